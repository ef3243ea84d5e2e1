"""Unions: the queries of UNION, in the names of the first one and in common types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.query.data_stream import DataStream
from oop_engine.query.sql.plans import project
from oop_engine.query.sql.reading.mistakes import mistake
from oop_engine.query.sql.relation import NamedStream
from oop_engine.query.sql.scalar.types import common

__all__ = ["union_part", "union_queries", "union_time", "union_types"]


def union_queries(node: Any) -> list[Any]:
    """Return the queries of UNION ALL of several, one after the other."""
    inner = node.this
    others = ("distinct", "order", "limit", "offset", "with_", "with")
    is_plain = isinstance(inner, exp.Union) and not any(inner.args.get(part) for part in others)
    return [*(union_queries(inner) if is_plain else [inner]), node.expression]


def union_types(text: str, node: Any, parts: Sequence[NamedStream]) -> list[pa.DataType]:
    """Return the common type of each column; raises ``UsageError`` where there is none."""
    kinds_of_columns = []
    for names in zip(*(part.names.names for part in parts), strict=True):
        kinds = [part.stream.schema.type_of(name.column) for part, name in zip(parts, names, strict=True)]
        kind = kinds[0] if len(set(kinds)) == 1 else common(kinds)
        if kind is None:
            words = " and ".join(dict.fromkeys(map(str, kinds)))
            raise mistake(text, node, f"UNION: {names[0].name!r} is {words}: cast one, CAST(x AS ...)")
        kinds_of_columns.append(kind)
    return kinds_of_columns


def union_time(text: str, node: Any, parts: Sequence[NamedStream], names: Sequence[str]) -> str:
    """Return the name of the event time in a union: that of the first query, or a new one where another has its place.

    Raises ``UsageError`` if the event times are of several types.
    """
    kinds = dict.fromkeys(str(part.stream.schema.type_of(part.time)) for part in parts)
    if len(kinds) > 1:
        words = f"UNION: the event times are {' and '.join(kinds)}: declare them alike"
        raise mistake(text, node, words)
    time = parts[0].time
    at = [i for i, name in enumerate(names) if name == time]
    if all(part.names.names[i].column == part.time for part in parts for i in at):
        return time
    while time in names:
        time = f"_{time}"
    return time


def union_part(
    relation: NamedStream,
    names: Sequence[str],
    kinds: Sequence[pa.DataType],
    hidden: Sequence[str],
    time: str,
) -> DataStream:
    """Return one query with the names and types of the union, and its event time under the name ``time``."""
    columns: dict[str, Any] = {}
    for name, own, kind in zip(names, relation.names.names, kinds, strict=True):
        same = relation.stream.schema.type_of(own.column) == kind
        columns[name] = own.column if same else pc.field(own.column).cast(kind)
    columns |= dict.fromkeys(hidden, relation.time)
    return project(relation.stream, columns, progressing=time)
