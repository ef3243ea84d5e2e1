"""Expressions of queries: those of operators, or a text in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.values.expressions import Expression

if TYPE_CHECKING:
    from oop_engine.query.sql.reading.method_texts import AggregateText

__all__ = ["Aggregates", "as_expression"]


def as_expression(given: Expression, schema: Schema, place: str) -> Expression:
    """Return the expression for an operator; a text that is no name of a column is read as SQL.

    Raises ``GraphError`` in the name of ``place`` if it does not fit the columns, ``SqlError`` if it is no SQL.
    """
    if not isinstance(given, str) or given in schema.names:
        return given
    from oop_engine.query.sql.reading.texts import require_sqlglot

    require_sqlglot()
    from oop_engine.query.sql.reading.method_texts import expression_of

    return expression_of(given, schema, place)


class Aggregates:
    """The aggregates of a step, the columns that they compute before it, and those that are computed behind it.

    A text is read as SQL (``sum(bytes / 1024)``).  Raises ``GraphError`` for anything that is neither text nor
    aggregate, ``UsageError`` with its place for a text that is no aggregate.
    """

    def __init__(self, given: Mapping[str, Any], schema: Schema) -> None:
        self.made: dict[str, Aggregation] = {}
        self.computed: dict[str, Expression] = {}
        self._behind: dict[str, AggregateText] = {}
        for name, aggregate in given.items():
            if isinstance(aggregate, Aggregation):
                self.made[name] = aggregate
            elif isinstance(aggregate, str):
                self._read(name, aggregate, schema)
            else:
                msg = (
                    f"agg: {name} must be an aggregate such as Count(), Sum('bytes') or 'sum(bytes)'; "
                    f"got {aggregate!r:.60}"
                )
                raise GraphError(msg)

    def _read(self, name: str, text: str, schema: Schema) -> None:
        from oop_engine.query.sql.reading.texts import require_sqlglot

        require_sqlglot()
        from oop_engine.query.sql.reading.method_texts import aggregate_of

        read = aggregate_of(text, schema, self.computed, f"agg: {name}")
        self.made[name] = read.made
        if read.joined is not None:
            self._behind[name] = read

    def behind(self, schema: Schema) -> dict[str, Expression]:
        """Return the columns that are computed of results, whose schema is ``schema``: texts that are joined."""
        return {name: aggregate.behind(schema, name) for name, aggregate in self._behind.items()}
