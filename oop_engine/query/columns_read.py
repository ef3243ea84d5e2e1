"""Columns read: a run takes only the columns from a file that its query reads, and joins keep no others.

Aggregates keep none, so there columns of no use may pass by.  Of files of formats that carry punctuation, which may be
about any column, lists and objects alone are not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine.core.graphs.stream import Stream
from oop_engine.core.schema import Schema
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.rewrites.narrow_sources import narrow_sources
from oop_engine.operators.rewrites.pruned import pruned
from oop_engine.query.feeds import CsvFiles, files_in
from oop_engine.query.graph_of import Built
from oop_engine.traces.format_registry import format_of_file

__all__ = ["columns_read"]

_PLAIN = ("csv", "parquet")


def columns_read(made: Built) -> Built:
    """Return the same query whose sources over files have the columns alone that are read, and so have joins."""
    schemas = {name: made.graph.schema(Stream(name)) for name in made.feeds}
    spare = {name: _spare(feed, schemas[name]) for name, feed in made.feeds.items()}
    graph = made.graph if all(found == [] for found in spare.values()) else narrow_sources(made.graph, spare)
    keeps = any(isinstance(node.operator, OAJoin) for node in graph.nodes.values())
    return Built(pruned(graph, (OAJoin,)) if keeps else graph, made.feeds, made.unbounded)


def _spare(feed: Any, schema: Schema) -> list[str] | None:
    """Return the columns that need not be read of a feed; None: any, for its files have no punctuation."""
    if isinstance(feed, CsvFiles):
        return None
    if not isinstance(feed, str | Path):
        return []
    if all(format_of_file(one) in _PLAIN for one in files_in(feed)):
        return None
    return [field.name for field in schema.fields if pa.types.is_nested(field.type)]
