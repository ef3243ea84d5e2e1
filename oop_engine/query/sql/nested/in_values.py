"""In values: ``x IN (SELECT ...)`` inside an expression, as counts of the rows that are equal, null and there at all.

A condition of WHERE by itself is a semi or an anti join; elsewhere three values are wanted.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from oop_engine.query.sql.aggregates import aggregates_in
from oop_engine.query.sql.nested.inner import has_aggregates, is_plain, select_of
from oop_engine.query.sql.nested.scalars import OF_ROW
from oop_engine.query.sql.reading.mistakes import unsupported
from oop_engine.query.sql.stage import inner_of as unaliased

__all__ = ["with_in_values"]

_ROWS, _VALUE = "_in", "_value"


def with_in_values(text: str, select: Any) -> None:
    """Write ``x IN (SELECT ...)``, and EXISTS of aggregates and groups, as counts.

    Raises ``UsageError`` for several columns.
    """
    if select.find(exp.In, exp.Exists) is None:
        return
    named = {
        expression.alias.lower()
        for expression in select.expressions
        if expression.alias and aggregates_in(expression)
    }
    for node in list(select.find_all(exp.In)):
        if node.args.get("query") is not None and node.find_ancestor(exp.Query) is select:
            names = {column.name.lower() for column in node.this.find_all(exp.Column)}
            if aggregates_in(node.this) or names & named:
                form = "WITH c AS (SELECT k, count(*) AS n ... GROUP BY k) SELECT * FROM c WHERE n IN (SELECT ...)"
                raise unsupported(text, node, "IN (SELECT ...) of an aggregate", form)
            node.replace(_counted(text, node))
    for node in list(select.find_all(exp.Exists)):
        inner = select_of(node.this)
        if node.find_ancestor(exp.Query) is select and (not is_plain(inner) or has_aggregates(inner)):
            node.replace(exp.Paren(this=_any(inner, None)))


def _counted(text: str, node: Any) -> Any:
    inner = select_of(node.args["query"])
    items = inner.expressions if isinstance(inner, exp.Select) else [inner]
    if len(items) != 1 or isinstance(node.this, exp.Tuple) or isinstance(items[0], exp.Star):
        raise unsupported(
            text, node, "IN of several columns in an expression", "EXISTS (SELECT 1 ... WHERE ...)"
        )
    value, null = exp.column(_VALUE, table=_ROWS), exp.Null()
    of_row = exp.Paren(this=unaliased(node.this).copy())
    of_row.meta[OF_ROW] = True
    is_equal = exp.EQ(this=value.copy(), expression=of_row)
    is_null = exp.Is(this=value.copy(), expression=null.copy())
    nothing = exp.and_(exp.Is(this=node.this.copy(), expression=null.copy()), _any(inner, None))
    case = exp.Case().when(_any(inner, is_equal), exp.true()).when(nothing, null.copy())
    return exp.Paren(this=case.when(_any(inner, is_null), null.copy()).else_(exp.false()))


def _any(inner: Any, condition: Any) -> Any:
    """Return whether rows of a query fulfil a condition: a count that is above 0."""
    alias = exp.TableAlias(this=exp.to_identifier(_ROWS), columns=[exp.to_identifier(_VALUE)])
    counted = exp.select(exp.Count(this=exp.Star())).from_(exp.Subquery(this=inner.copy(), alias=alias))
    whole = counted if condition is None else counted.where(condition)
    return exp.GT(this=exp.Subquery(this=whole), expression=exp.Literal.number(0))
