"""Bounds: the bounds of windows as columns of records that are not aggregated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.core.schema import Schema
from oop_engine.operators.windows import Tumbling
from oop_engine.query.sql.reading.mistakes import unsupported
from oop_engine.query.sql.relation import Name, NamedStream, Names
from oop_engine.query.sql.stage import BOUNDS, Stage

__all__ = ["with_bounds", "with_plain_bounds"]


def with_plain_bounds(node: Any, relation: NamedStream) -> None:
    """Read ``q.window_end`` of ``FROM TUMBLE(...) AS q`` as ``window_end``: the bounds are of no column yet."""
    if relation.windows is None:
        return
    for column in node.find_all(exp.Column):
        is_bound = column.table and column.name.lower() in BOUNDS and relation.names.of(column.table)
        if is_bound and not relation.names.columns(column) and column.find_ancestor(exp.Query) is node:
            column.set("table", None)


def with_bounds(text: str, node: Any, stage: Stage) -> Stage:
    """Return the rows of TUMBLE with the bounds of their windows as columns, where they are asked for."""
    relation = stage.relation
    if relation.windows is None:
        return stage
    if not isinstance(relation.windows, Tumbling):
        raise unsupported(
            text,
            node,
            "windows that are not aggregated",
            "GROUP BY window_start, window_end",
        )
    schema = relation.stream.schema
    size = schema.length(relation.windows.range, "TUMBLE")
    start = _floor(relation.stream.schema, size)
    kind = schema.type_of(schema.progressing)
    end = pc.add(start, pc.scalar(size)).cast(kind)
    stream = relation.stream.with_columns(window_start=start.cast(kind), window_end=end)
    names = Names((*relation.names.names, *(Name("", name, name) for name in BOUNDS[:2])))
    return Stage(replace(relation, stream=stream, names=names, windows=None))


def _floor(schema: Schema, size: int) -> Any:
    """Return the start of the window of ``size`` that each row is in, an integer."""
    times = pc.field(schema.progressing).cast(pa.int64())
    quotient = pc.divide(times, pc.scalar(size))
    short = pc.less(times, pc.multiply(quotient, pc.scalar(size))).cast(pa.int64())
    return pc.multiply(pc.subtract(quotient, short), pc.scalar(size))
