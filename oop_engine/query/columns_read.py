"""Columns read: a run takes only the columns from a file that its query reads, and joins keep no others.

Aggregates keep none, so there columns of no use may pass by.  Files are of formats that carry no punctuation, which may
be about any column.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.rewrites.narrow_sources import narrow_sources
from oop_engine.operators.rewrites.pruned import pruned
from oop_engine.query.feeds import CsvFiles, files_in
from oop_engine.query.graph_of import Built
from oop_engine.traces.format_registry import format_of

__all__ = ["columns_read"]

_FORMATS = ("csv", "parquet")


def columns_read(made: Built) -> Built:
    """Return the same query whose sources over files have the columns alone that are read, and so have joins."""
    narrow = {name: None for name, feed in made.feeds.items() if _is_plain(feed)}
    graph = narrow_sources(made.graph, narrow) if narrow else made.graph
    keeps = any(isinstance(node.operator, OAJoin) for node in graph.nodes.values())
    return Built(pruned(graph, (OAJoin,)) if keeps else graph, made.feeds, made.unbounded)


def _is_plain(feed: Any) -> bool:
    """Return whether a feed is files that have columns and no punctuation."""
    if isinstance(feed, CsvFiles):
        return True
    return isinstance(feed, str | Path) and all(format_of(file, None) in _FORMATS for file in files_in(feed))
