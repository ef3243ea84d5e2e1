"""Aggregate functions of SQL, by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from oop_engine.operators import aggregates as of
from oop_engine.operators.aggregates import Aggregation
from oop_engine.query.registered import AGGREGATES
from oop_engine.query.sql.scalar.calls import call_of

__all__ = ["aggregates_in", "counts_none", "is_aggregate", "name_of"]

_BUILT_IN: dict[str, Callable[..., Aggregation]] = {
    "COUNT": lambda column=None: of.Count() if column is None else of.Count(column),
    "SUM": of.Sum,
    "AVG": of.Avg,
    "MEAN": of.Avg,
    "MIN": of.Min,
    "MAX": of.Max,
    "STDDEV": of.Stddev,
    "STDDEV_SAMP": of.Stddev,
    "STDDEV_POP": lambda column: of.Stddev(column, ddof=0),
    "VARIANCE": of.Var,
    "VAR_SAMP": of.Var,
    "VAR_POP": lambda column: of.Var(column, ddof=0),
    "VARIANCE_POP": lambda column: of.Var(column, ddof=0),
    "MEDIAN": of.Median,
    "MODE": of.Mode,
    "QUANTILE_CONT": of.Quantile,
    "PERCENTILE_CONT": of.Quantile,
    "APPROX_QUANTILE": of.ApproxQuantile,
    "APPROX_DISTINCT": of.ApproxCountDistinct,
    "ARG_MAX": of.ArgMax,
    "ARG_MIN": of.ArgMin,
    "MAX_BY": of.ArgMax,
    "MIN_BY": of.ArgMin,
    "FIRST": of.First,
    "FIRST_VALUE": of.First,
    "LAST": of.Last,
    "LAST_VALUE": of.Last,
    "ANY_VALUE": of.First,
    "LIST": of.Collect,
    "ARRAY_AGG": of.Collect,
    "LOGICAL_AND": of.All,
    "BOOL_AND": of.All,
    "LOGICAL_OR": of.Any,
    "BOOL_OR": of.Any,
    "PRODUCT": of.Product,
    "GEOMEAN": of.GeometricMean,
    "GEOMETRIC_MEAN": of.GeometricMean,
    "COUNT_DISTINCT": of.CountDistinct,
}
"""Aggregates by names in capitals; each takes the names of its columns, then constants."""
for _name, _made in _BUILT_IN.items():
    AGGREGATES.register(_name, _made, __name__)

_RENAMED = {
    "APPROX_COUNT_DISTINCT": "APPROX_DISTINCT", "ARGMAX": "ARG_MAX", "ARGMIN": "ARG_MIN", "COUNT_IF": "COUNT_IF",
    "STANDARD_DEVIATION": "STDDEV", "QUANTILE": "QUANTILE_CONT",
}  # fmt: skip


_COUNTS = ("COUNT", "COUNT_IF", "COUNT_DISTINCT", "APPROX_DISTINCT")


def name_of(node: Any) -> str:
    """Return the name of a function in capitals, as the table has it."""
    name = call_of(node)[0]
    return _RENAMED.get(name, name)


def is_aggregate(node: Any) -> bool:
    """Return whether a function is of many rows: an aggregate, with a filter or an order about it, and no window."""
    call = node.parent if isinstance(node.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls) else node
    if isinstance(call.parent, exp.Window) and call.arg_key == "this":
        return False
    if isinstance(node, exp.Filter | exp.WithinGroup | exp.AggFunc):
        return True
    return isinstance(node, exp.Anonymous) and name_of(node) in AGGREGATES


def counts_none(node: Any) -> bool:
    """Return whether an aggregate counts, and so is 0 of no records, and not null."""
    while isinstance(node, exp.Filter | exp.WithinGroup):
        node = node.this
    return name_of(node) in _COUNTS


def aggregates_in(node: Any) -> list[Any]:
    """Return the aggregates in an expression, none that is inside another."""
    if is_aggregate(node):
        return [node]
    if isinstance(node, exp.Query):
        return []
    return [aggregate for child in node.iter_expressions() for aggregate in aggregates_in(child)]
