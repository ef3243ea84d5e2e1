"""Expressions of queries: those of operators, or a text in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.values.expressions import Expression

__all__ = ["as_aggregates", "as_expression"]


def as_expression(given: Expression, schema: Schema, place: str) -> Expression:
    """Return the expression for an operator; a text that is no name of a column is read as SQL.

    Raises ``GraphError`` in the name of ``place`` if it does not fit the columns, ``SqlError`` if it is no SQL.
    """
    if not isinstance(given, str) or given in schema.names:
        return given
    from oop_engine.query.sql.reading.texts import expression_of

    return expression_of(given, schema, place)


def as_aggregates(
    given: Mapping[str, Any], schema: Schema
) -> tuple[dict[str, Aggregation], dict[str, Expression]]:
    """Return aggregates, a text read as SQL (``sum(bytes / 1024)``), and the columns that these compute before.

    Raises ``GraphError`` for anything else, ``UsageError`` with its place for a text that is no aggregate.
    """
    columns: dict[str, Expression] = {}
    found: dict[str, Aggregation] = {}
    for name, one in given.items():
        if isinstance(one, Aggregation):
            found[name] = one
        elif isinstance(one, str):
            from oop_engine.query.sql.reading.texts import aggregate_of

            found[name] = aggregate_of(one, schema, columns, f"agg: {name}")
        else:
            msg = f"agg: {name} must be an aggregate such as Count(), Sum('bytes') or 'sum(bytes)'; got {one!r:.60}"
            raise GraphError(msg)
    return found, columns
