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
from oop_engine.query.sql.scalar.text_functions import rows_as_texts

__all__ = ["Arguments"]

_OF_FLOATS = {
    "AVG", "MEAN", "MEDIAN", "QUANTILE_CONT", "PERCENTILE_CONT", "APPROX_QUANTILE", "STDDEV", "STDDEV_SAMP",
    "STDDEV_POP", "VARIANCE", "VAR_SAMP", "VAR_POP", "VARIANCE_POP", "GEOMEAN", "GEOMETRIC_MEAN",
}  # fmt: skip
"""Aggregates that are floats of decimals, too."""

_EDGES = {"FIRST": "LAST", "LAST": "FIRST", "FIRST_VALUE": "LAST", "LAST_VALUE": "FIRST"}
"""Aggregates of the first or last value by event time, and those of the opposite order."""


class Arguments:
    """Makes aggregates over columns by their names; ``columns`` takes those that they read, computed ones too."""

    def __init__(
        self, text: str, names: Names, schema: Schema, columns: dict[str, Any],
        expressions: Expressions | None = None,
    ) -> None:  # fmt: skip
        self._text, self._names, self._columns = text, names, columns
        self._expressions, self._time = expressions or Expressions(text, names, schema), schema.progressing

    def made_of(self, node: Any) -> Aggregation:
        """Return the aggregate of a call, its arguments as columns."""
        where = None
        if isinstance(node, exp.Filter):
            where, node = node.expression.this, node.this
        constants: list[Any] = []
        if isinstance(node, exp.WithinGroup):
            constants = [constant_of(self._text, argument) for argument in call_of(node.this)[1]]
            name, arguments = (
                name_of(node.this),
                [expression.this for expression in node.expression.expressions],
            )
        else:
            name, arguments = name_of(node), call_of(node)[1]
        name, arguments = self._in_order(name, arguments)
        if arguments and isinstance(arguments[0], exp.Distinct):
            if name not in ("COUNT", "MIN", "MAX"):
                form = f"{name.lower()}(DISTINCT ...)"
                raise unsupported(
                    self._text, node, form, "the values once before, WITH c AS (SELECT DISTINCT k, x ...)"
                )
            arguments = arguments[0].expressions
            if len(arguments) > 1 or isinstance(arguments[0], exp.Tuple):
                return self._distinct_rows(arguments, where)
            name = "COUNT_DISTINCT" if name == "COUNT" else name
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
        columns = [argument for argument in arguments if not _is_constant(argument)] or arguments[:1]
        constants += [constant_of(self._text, argument) for argument in arguments if argument not in columns]
        if name in _OF_FLOATS and pa.types.is_decimal(self._expressions.of(columns[0]).kind):
            columns = [exp.cast(columns[0].copy(), "DOUBLE")]
        inputs = [self._argument(column, where) for column in columns]
        try:
            return AGGREGATES[name](*inputs, *constants)
        except (EngineError, TypeError) as error:
            raise mistake(self._text, node, f"{name.lower()}: {error}") from error

    def _in_order(self, name: str, arguments: list[Any]) -> tuple[str, list[Any]]:
        """Return an aggregate and its arguments without their ORDER BY, which is that of event time.

        Values of one time are in their own order.  Raises ``UsageError`` for another order.
        """
        order = arguments[0] if arguments else None
        if not isinstance(order, exp.Order):
            return name, arguments
        first, *more = order.expressions
        down = bool(first.args.get("desc"))
        is_time = self._names.columns(first.this) == [self._time] and all(
            other.this == order.this for other in more
        )
        if (
            not is_time
            or (down and name not in _EDGES)
            or any(bool(ordered.args.get("desc")) != down for ordered in more)
        ):
            way_out = f"write ORDER BY {self._time}, the event time, or arg_min(x, y) and arg_max(x, y)"
            shown = "a list or string_agg" if name == "ARRAY_AGG" else name.lower()
            raise unsupported(self._text, order, f"this order in {shown}", way_out)
        return _EDGES.get(name, name) if down else name, [order.this, *arguments[1:]]

    def _distinct_rows(self, arguments: list[Any], where: Any) -> Aggregation:
        """Return how many different rows of several columns there are.

        Of ``count(DISTINCT a, b)`` those without a null, of ``count(DISTINCT (a, b))`` all, in which nulls are equal.
        """
        is_row = isinstance(arguments[0], exp.Tuple)
        parts = arguments[0].expressions if is_row else arguments
        values = [self._expressions.value(part) for part in parts]
        key = rows_as_texts(values, with_nulls=is_row)
        if where is not None:
            key = pc.if_else(self._expressions.predicate(where), key, pc.scalar(pa.scalar(None, pa.string())))
        return AGGREGATES["COUNT_DISTINCT"](self._computed(key, f"_a{len(self._columns)}"))

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
        [own] = (self._names.columns(node)[:1] if isinstance(node, exp.Column) else []) or [""]
        if prefix == "_a" and own and self._columns.get(own, own) == own:
            self._columns[own] = own
            return own
        return self._computed(own or found, f"{prefix}{number}")

    def _computed(self, value: Any, name: str) -> str:
        """Return a column with ``value``: the one that there is, or a new one called ``name``."""
        for there, known in self._columns.items():
            if not isinstance(known, str) and not isinstance(value, str) and value.equals(known):
                return there
        self._columns[name] = value
        return name


def _bounded(name: str, arguments: list[Any]) -> tuple[str, str] | None:
    """Return the form and the way out of an aggregate that keeps all values of a group; None: it is another one."""
    if name not in ("LIST", "ARRAY_AGG") or len(arguments) > 1:
        return None
    way_out = (
        "list(x, 100) keeps the first 100 values of each group by event time, and how many there were beyond"
    )
    return f"{name.lower()} without a bound", way_out


def _is_constant(node: Any) -> bool:
    return isinstance(node, exp.Literal | exp.Neg | exp.Boolean) and not isinstance(node, exp.Boolean)


def constant_of(text: str, node: Any) -> Any:
    """Return the value of a literal."""
    if isinstance(node, exp.Neg):
        return -constant_of(text, node.this)
    if not isinstance(node, exp.Literal):
        raise mistake(text, node, "a constant is wanted here")
    return node.this if node.is_string else float(node.this) if "." in node.this else int(node.this)
