"""Value rows: ``VALUES (1, 'a'), (2, 'b')`` as a table, all of whose rows have one event time, which nobody sees."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp

from oop_engine.core.schema import Schema
from oop_engine.operators.values.expressions import evaluate
from oop_engine.query.sources import scan
from oop_engine.query.sql.reading.mistakes import mistake
from oop_engine.query.sql.relation import Name, NamedStream, Names
from oop_engine.query.sql.scalar.expressions import Expressions
from oop_engine.query.sql.scalar.types import Typed, cast, common

__all__ = ["value_rows"]

_TIME = "_time"


def value_rows(text: str, node: Any) -> NamedStream:
    """Return the relation of VALUES: columns col0, col1, ... of constants.

    Raises ``UsageError`` for rows of several lengths and values without a common type.
    """
    rows = [
        list(expression.expressions) if isinstance(expression, exp.Tuple) else [expression]
        for expression in node.expressions
    ]
    if len({len(row) for row in rows}) != 1:
        raise mistake(text, node, "the rows of VALUES have as many values each")
    moments = pa.array([0] * len(rows), pa.timestamp("us"))
    schema = Schema({_TIME: moments.type}, _TIME)
    made = Expressions(text, Names(), schema)
    one_row = pa.record_batch({_TIME: moments[:1]})
    columns = {
        f"col{place}": _column(text, node, [made.of(row[place]) for row in rows], one_row)
        for place in range(len(rows[0]))
    }
    stream = scan(pa.table({**columns, _TIME: moments}), "values").event_time(_TIME, "ordered")
    return NamedStream(stream, Names(tuple(Name("", name, name) for name in columns)))


def _column(text: str, node: Any, values: list[Typed], one_row: pa.RecordBatch) -> pa.Array:
    kind = common([value.kind for value in values])
    if kind is None:
        kinds = " and ".join(dict.fromkeys(str(value.kind) for value in values))
        raise mistake(text, node, f"a column of VALUES has {kinds}: cast one, CAST(x AS ...)")
    parts = [cast(value, kind).expression for value in values]
    return pa.concat_arrays(evaluate("VALUES", parts, [kind] * len(parts), one_row))
