"""Texts in SQL that methods take: an expression, or an aggregate, over the columns of a stream."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlglot import exp

from oop_engine.core.errors import UsageError
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.values.expressions import Expression
from oop_engine.query.sql.aggregates import is_aggregate
from oop_engine.query.sql.arguments import Arguments
from oop_engine.query.sql.fields import with_fields
from oop_engine.query.sql.reading.forms import JOINED, with_known_forms
from oop_engine.query.sql.reading.texts import statements_in
from oop_engine.query.sql.relation import columns_of
from oop_engine.query.sql.scalar.expressions import Expressions

__all__ = ["AggregateText", "aggregate_of", "expression_of"]


class AggregateText(NamedTuple):
    """An aggregate that was read; ``joined``: the call that makes one text of the list that it is, or None."""

    text: str
    made: Aggregation
    joined: Any

    def behind(self, schema: Schema, name: str) -> Expression:
        """Return the expression that replaces the result ``name``; ``schema`` is that of results."""
        call = self.joined.copy()
        call.expressions[0].replace(exp.column(name, quoted=True))
        return Expressions(self.text, columns_of(schema), schema).value(call).expression


def expression_of(text: str, schema: Schema, place: str) -> Expression:
    """Return a scalar expression over the columns of ``schema``; raises ``UsageError`` with the place of a mistake."""
    statements = statements_in(text)
    tree = statements[0].tree
    is_one = isinstance(tree, exp.Condition | exp.AtTimeZone) and not isinstance(tree, exp.Query)
    if len(statements) != 1 or not is_one:
        msg = f"{place}: one expression is wanted, such as 'bytes > 100'; got {text!r:.80}"
        raise UsageError(msg)
    known = with_known_forms(text, exp.Paren(this=tree))
    with_fields(text, known, (columns_of(schema), schema))
    return Expressions(text, columns_of(schema), schema).value(known).expression


def aggregate_of(text: str, schema: Schema, columns: dict[str, Any], place: str) -> AggregateText:
    """Return an aggregate over the columns of ``schema``; those that it computes go into ``columns``.

    Raises ``UsageError`` with the place of a mistake, and for a text that is another expression.
    """
    statements = statements_in(text)
    tree = statements[0].tree
    if len(statements) != 1 or not is_aggregate(tree):
        way_out = "'count(*)' counts" if text.strip().lower() == "count" else "compute behind it"
        msg = f"{place}: one aggregate is wanted, such as 'sum(bytes)'; got {text!r:.80}: {way_out}"
        raise UsageError(msg)
    with_fields(text, whole := with_known_forms(text, exp.Paren(this=tree)), (columns_of(schema), schema))
    tree = whole.this
    joined = tree if isinstance(tree, exp.Anonymous) and tree.name == JOINED else None
    made = Arguments(text, columns_of(schema), schema, columns).made_of(
        joined.expressions[0] if joined else tree
    )
    for name in [name for name, column in columns.items() if isinstance(column, str) and column == name]:
        del columns[name]
    return AggregateText(text, made, joined)
