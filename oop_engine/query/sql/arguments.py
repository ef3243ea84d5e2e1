"""Arguments: aggregates of a query, with the columns that these read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import EngineError
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation, Count
from oop_engine.query.registered import AGGREGATES
from oop_engine.query.sql.aggregates import name_of
from oop_engine.query.sql.reading.mistakes import mistake, unsupported
from oop_engine.query.sql.relation import Names
from oop_engine.query.sql.scalar.calls import call_of
from oop_engine.query.sql.scalar.expressions import Expressions

__all__ = ["Arguments"]

_OF_FLOATS = {
    "AVG", "MEAN", "MEDIAN", "QUANTILE_CONT", "PERCENTILE_CONT", "APPROX_QUANTILE", "STDDEV", "STDDEV_SAMP",
    "STDDEV_POP", "VARIANCE", "VAR_SAMP", "VAR_POP", "VARIANCE_POP", "GEOMEAN", "GEOMETRIC_MEAN",
}  # fmt: skip
"""Aggregates that are floats of decimals, too."""


class Arguments:
    """Makes aggregates over columns by their names; ``columns`` takes those that they read, computed ones too."""

    def __init__(self, text: str, names: Names, schema: Schema, columns: dict[str, Any]) -> None:
        self._text, self._names, self._columns = text, names, columns
        self._expressions = Expressions(text, names, schema)

    def made_of(self, node: Any) -> Aggregation:
        """Return the aggregate of a call, its arguments as columns."""
        where = None
        if isinstance(node, exp.Filter):
            where, node = node.expression.this, node.this
        constants: list[Any] = []
        if isinstance(node, exp.WithinGroup):
            constants = [constant_of(self._text, one) for one in call_of(node.this)[1]]
            name, arguments = name_of(node.this), [one.this for one in node.expression.expressions]
        else:
            name, arguments = name_of(node), call_of(node)[1]
        if arguments and isinstance(arguments[0], exp.Distinct):
            if name not in ("COUNT", "MIN", "MAX") or len(arguments[0].expressions) != 1:
                raise unsupported(
                    self._text, node, f"{name}(DISTINCT ...)", "COUNT(DISTINCT x) of one column"
                )
            name = "COUNT_DISTINCT" if name == "COUNT" else name
            arguments = arguments[0].expressions
        if name == "COUNT_IF":
            name, where = "COUNT", arguments[0]
            arguments = []
        if (instead := _bounded(name, arguments)) is not None:
            raise unsupported(self._text, node, *instead)
        if name not in AGGREGATES:
            raise mistake(
                self._text,
                node,
                f"no aggregate {name.lower()!r}; there are {', '.join(sorted(AGGREGATES)).lower()}"
                f"{did_you_mean(name.lower(), [known.lower() for known in AGGREGATES])}",
            )
        if name == "COUNT" and (not arguments or isinstance(arguments[0], exp.Star)):
            if where is None:
                return Count()
            arguments = [exp.Boolean(this=True)]
        columns = [one for one in arguments if not _is_constant(one)] or arguments[:1]
        constants += [constant_of(self._text, one) for one in arguments if one not in columns]
        if name in _OF_FLOATS and pa.types.is_decimal(self._expressions.of(columns[0]).kind):
            columns = [exp.cast(columns[0].copy(), "DOUBLE")]
        inputs = [self._argument(one, where) for one in columns]
        try:
            return AGGREGATES[name](*inputs, *constants)
        except (EngineError, TypeError) as error:
            raise mistake(self._text, node, f"{name.lower()}: {error}") from error

    def _argument(self, node: Any, where: Any) -> str:
        if where is None:
            return self.column(node, "_a", len(self._columns))
        value = self._expressions.value(node)
        chosen = pc.if_else(
            self._expressions.predicate(where), value.expression, pc.scalar(None).cast(value.kind)
        )
        return self._computed(chosen, f"_a{len(self._columns)}")

    def column(self, node: Any, prefix: str, number: int) -> str:
        """Return a column with the value of ``node``, one for equal ones of the same kind."""
        found = self._expressions.value(node).expression
        own = self._names.columns(node)[0] if isinstance(node, exp.Column) else ""
        if prefix == "_a" and own and self._columns.get(own, own) == own:
            self._columns[own] = own
            return own
        return self._computed(own or found, f"{prefix}{number}")

    def _computed(self, value: Any, name: str) -> str:
        """Return a column with ``value``: the one that there is, or a new one called ``name``."""
        for there, one in self._columns.items():
            if not isinstance(one, str) and not isinstance(value, str) and value.equals(one):
                return there
        self._columns[name] = value
        return name


def _bounded(name: str, arguments: list[Any]) -> tuple[str, str] | None:
    """Return the form and the way out of an aggregate that keeps all values of a group; None: it is another one."""
    if name not in ("GROUP_CONCAT", "LIST", "ARRAY_AGG") or (name != "GROUP_CONCAT" and len(arguments) > 1):
        return None
    form = "string_agg" if name == "GROUP_CONCAT" else f"{name.lower()} without a bound"
    return (
        form,
        "list(x, 100) keeps the first 100 values of each group by event time, and how many there were beyond",
    )


def _is_constant(node: Any) -> bool:
    return isinstance(node, exp.Literal | exp.Neg | exp.Boolean) and not isinstance(node, exp.Boolean)


def constant_of(text: str, node: Any) -> Any:
    """Return the value of a literal."""
    if isinstance(node, exp.Neg):
        return -constant_of(text, node.this)
    if not isinstance(node, exp.Literal):
        raise mistake(text, node, "a constant is wanted here")
    return node.this if node.is_string else float(node.this) if "." in node.this else int(node.this)
