"""Scalar expressions of SQL become expressions of Arrow, with the logic of three values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import EngineError
from oop_engine.core.schema import Schema
from oop_engine.operators.values.expressions import types_of
from oop_engine.query.registered import AGGREGATES
from oop_engine.query.sql.reading.hints import INSTEAD_OF
from oop_engine.query.sql.reading.mistakes import mistake, unsupported
from oop_engine.query.sql.relation import Names
from oop_engine.query.sql.scalar.arithmetic import ARITHMETIC
from oop_engine.query.sql.scalar.calls import call_of
from oop_engine.query.sql.scalar.functions import (
    FUNCTIONS,
    PARTS,
)
from oop_engine.query.sql.scalar.literals import literal_as
from oop_engine.query.sql.scalar.moments import OF_MOMENTS
from oop_engine.query.sql.scalar.predicates import PREDICATES
from oop_engine.query.sql.scalar.types import (
    Typed,
    as_columns,
    cast,
    common,
    is_text,
    is_time,
    literal,
    to_common,
)

__all__ = ["Expressions", "key_of"]

_WRITTEN = {"_JOINED": "string_agg", "AT_TIME_ZONE": "AT TIME ZONE"}
_OF_THE_RUN = {
    "NOW", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP", "TODAY", "RAND",
    "RANDOM", "UUID", "GEN_RANDOM_UUID", "TRANSACTION_TIMESTAMP",
}  # fmt: skip


class Expressions:
    """Makes expressions over the columns of ``schema``, by the names of a query.

    ``made`` are parts of the query that are columns already, by their text (``key_of``) over the names ``known``: keys
    and results of an aggregate.
    """

    def __init__(
        self, text: str, names: Names, schema: Schema, made: Mapping[str, str] | None = None,
        known: Names | None = None,
    ) -> None:  # fmt: skip
        self.text, self._names, self._schema = text, names, schema
        self._made, self._known = dict(made or {}), names if known is None else known

    def of(self, node: Any) -> Typed:
        """Return the expression of a parsed one; raises ``UsageError`` with its place for all that is not known."""
        if (column := self._made.get(key_of(node, self._known) if self._made else "")) is not None:
            return self._column(column)
        for kind, how in _WAYS.items():
            if isinstance(node, kind):
                return how(self, node)
        if isinstance(node, exp.Func):
            return self._function(node)
        if isinstance(node, exp.Window):
            raise mistake(
                self.text,
                node,
                "OVER stands in the SELECT list, in QUALIFY and in ORDER BY: WITH c AS (SELECT ... OVER ...)",
            )
        raise unsupported(
            self.text, node, node.sql("duckdb")[:60], "compute it before, with a function of Python"
        )

    def value(self, node: Any) -> Typed:
        """Return the expression of a column: a null of no type is an integer, as in DuckDB."""
        typed = self.of(node)
        return cast(typed, pa.int32()) if pa.types.is_null(typed.kind) else typed

    def predicate(self, node: Any) -> Any:
        """Return an expression that is true or false."""
        typed = self.of(node)
        if pa.types.is_null(typed.kind):
            return literal(None, pa.bool_()).expression
        if not pa.types.is_boolean(typed.kind):
            raise mistake(self.text, node, f"a condition must be true or false; this is {typed.kind}")
        return typed.expression

    def _column(self, name: str) -> Typed:
        return Typed(pc.field(name), self._schema.type_of(name))

    def of_column(self, node: Any) -> Typed:
        """Return a column; raises ``UsageError`` for one that GROUP BY has left behind."""
        if not self._names.columns(node) and self._known.columns(node):
            words = f"{node.name!r} must be in GROUP BY, or inside an aggregate such as max({node.name})"
            raise mistake(self.text, node, words)
        return self._column(self._names.column(self.text, node))

    def typed(self, expression: Any, node: Any) -> Typed:
        """Return an expression with its type, which an evaluation over no rows shows."""
        try:
            [kind] = types_of("sql", [expression], self._schema)
        except EngineError as error:
            why = str(error).split(": ")[-1]
            raise mistake(self.text, node, f"{node.sql('duckdb')[:60]}: {why}") from error
        return Typed(expression, kind)

    def of_literal(self, node: Any) -> Typed:
        """Return a text or a number."""
        if node.is_string:
            return literal(node.this, pa.string())
        if any(sign in node.this for sign in ".eE"):
            return literal(float(node.this), pa.float64())
        if abs(int(node.this)) > 2**63 - 1:
            raise mistake(self.text, node, f"{node.this} is beyond 64 bits")
        return literal(int(node.this), pa.int64())

    def of_field(self, node: Any) -> Typed:
        """Return a field of a struct; null where that is null."""
        value, name = self.of(node.this), node.expression.name
        if not pa.types.is_struct(value.kind) or value.kind.get_field_index(name) < 0:
            raise mistake(
                self.text, node, f"no field {name!r} in {node.this.sql('duckdb')[:60]}; it is {value.kind}"
            )
        return Typed(pc.struct_field(value.expression, [name]), value.kind.field(name).type)

    def alike(self, node: Any, *parts: Any) -> list[Typed]:
        """Return parts in their common type."""
        values = [self.of(part) for part in parts]
        alike = to_common(self.read(values, node))
        if alike is None:
            kinds = " and ".join(dict.fromkeys(str(value.kind) for value in values))
            raise mistake(self.text, node, f"{kinds} cannot be compared: cast one, CAST(x AS ...)")
        return alike

    def read(self, values: list[Typed], node: Any) -> list[Typed]:
        """Return values with the literal texts beside others read as their type."""
        plain = [value for value in values if not (value.is_literal and is_text(value.kind))]
        others = [value.kind for value in plain if not pa.types.is_null(value.kind)]
        kind = common(others) if others else None
        values = as_columns(values)
        if kind is None or is_text(kind):
            return values
        return [
            literal_as(self.text, value, kind, node) if value.is_literal and is_text(value.kind) else value
            for value in values
        ]

    def moment(self, node: Any, *, or_length: bool = False) -> Typed:
        """Return a moment or a day, or a length of time; a text is read as a moment."""
        value = self.of(node)
        if or_length and pa.types.is_duration(value.kind):
            return value
        if value.is_literal and is_text(value.kind):
            return literal_as(self.text, value, pa.timestamp("us"), node)
        if is_text(value.kind):
            return cast(value, pa.timestamp("us", "UTC"))
        if not is_time(value.kind):
            raise mistake(self.text, node, f"a moment is wanted; this is {value.kind}")
        return value

    def _function(self, node: Any) -> Typed:
        name, parts = call_of(node)
        if isinstance(node, exp.Exists):
            raise unsupported(
                self.text,
                node,
                "EXISTS beside GROUP BY",
                "WITH c AS (SELECT ..., EXISTS (...) AS e FROM s), then GROUP BY e",
            )
        if (
            name in ("DATE_PART", "DATEPART", "DATE_TRUNC")
            and len(parts) == 2
            and isinstance(parts[0], exp.Literal)
        ):
            unit = exp.Var(this=parts[0].name.upper())
            kind = exp.TimestampTrunc(this=parts[1], unit=unit) if name == "DATE_TRUNC" else None
            return self.of(kind or exp.Extract(this=unit, expression=parts[1]))
        if name in _OF_THE_RUN:
            words = f"{name.lower()} has another value in each run, on which results must not depend"
            way_out = "write a literal, TIMESTAMP '2026-01-01', or compare with the event time"
            raise mistake(self.text, node, f"{words}: {way_out}")
        if name not in FUNCTIONS:
            raise mistake(self.text, node, _unknown(name, node))
        values = [
            self.moment(part, or_length=name == "EPOCH") if name in PARTS else self.of(part) for part in parts
        ]
        try:
            return self.typed(FUNCTIONS[name](*values), node)
        except ValueError as error:
            raise mistake(self.text, node, f"{_WRITTEN.get(name, name.lower())}: {error}") from error
        except TypeError as error:
            raise mistake(self.text, node, f"{name.lower()} does not take {len(values)} values") from error


def _unknown(name: str, node: Any) -> str:
    """Return the words for a function that is not one of values."""
    shown = name.lower()
    if isinstance(node, exp.AggFunc) or name in AGGREGATES:
        way_out = "HAVING has conditions on groups, and a SELECT around this one reads its results"
        return f"{shown} is an aggregate of many rows, and here is one row: {way_out}"
    if name in INSTEAD_OF:
        return f"no function {shown!r} here: write {INSTEAD_OF[name]}"
    known = [name.lower() for name in (*FUNCTIONS, *AGGREGATES) if not name.startswith("_")]
    return f"no function {shown!r} here{did_you_mean(shown, known)}"


def key_of(node: Any, names: Names) -> str:
    """Return the text by which equal parts of a query are found, whatever tables stand before columns."""

    def plain(part: Any) -> Any:
        if isinstance(part, exp.Column) and len(found := names.columns(part)) == 1:
            return exp.column(exp.to_identifier(found[0], quoted=True))
        return part

    inner = node.this if isinstance(node, exp.Alias) else node
    return str(inner.transform(plain).sql("duckdb", normalize_functions="upper"))


_WAYS: dict[type, Callable[[Expressions, Any], Typed]] = {
    exp.Column: Expressions.of_column,
    exp.Literal: Expressions.of_literal,
    exp.StructExtract: Expressions.of_field,
    exp.Boolean: lambda _, node: literal(bool(node.this), pa.bool_()),
    exp.Null: lambda _, node: literal(None, pa.null()),
    exp.Paren: lambda expressions, node: expressions.of(node.this),
    exp.Alias: lambda expressions, node: expressions.of(node.this),
    **PREDICATES,
    **ARITHMETIC,
    **OF_MOMENTS,
}
