"""Expressions of queries: those of operators, or a text in SQL."""

from __future__ import annotations

from oop_engine.core.schema import Schema
from oop_engine.operators.values.expressions import Expression

__all__ = ["as_expression"]


def as_expression(given: Expression, schema: Schema, place: str) -> Expression:
    """Return the expression for an operator; a text that is no name of a column is read as SQL.

    Raises ``GraphError`` in the name of ``place`` if it does not fit the columns, ``SqlError`` if it is no SQL.
    """
    if not isinstance(given, str) or given in schema.names:
        return given
    from oop_engine.query.sql.reading.texts import expression_of

    return expression_of(given, schema, place)
