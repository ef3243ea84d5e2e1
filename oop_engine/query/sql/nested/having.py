"""Having: ``HAVING count(*) IN (SELECT ...)`` becomes a condition of a query around the groups."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from oop_engine.query.sql.aggregates import aggregates_in
from oop_engine.query.sql.joins.condition import conjuncts
from oop_engine.query.sql.stage import inner_of, item_name

__all__ = ["with_having_around"]

_GROUPS, _BEHIND = "_groups", ("order", "limit", "offset", "distinct")


def with_having_around(select: Any) -> Any:
    """Return the query around the groups, which has the conditions of HAVING that ask whether an aggregate is IN.

    None: there is none such, or the list and ORDER BY are of a form that cannot be named from around.
    """
    having = select.args.get("having")
    parts = [] if having is None else conjuncts(having.this)
    subquery_parts = [part for part in parts if _asks(part, select)]
    names = [item_name(expression) for expression in select.expressions]
    if not subquery_parts or len(set(names)) < len(names) or not _can_be_around(select, names):
        return None
    inner = select.copy()
    inner.set(
        "expressions",
        [
            _named(inner_of(expression).copy(), name)
            for expression, name in zip(inner.expressions, names, strict=True)
        ],
    )
    rest = [part.copy() for part in parts if part not in subquery_parts]
    inner.set("having", exp.Having(this=exp.and_(*rest)) if rest else None)
    conditions = []
    for number, part in enumerate(subquery_parts):
        condition, own = part.copy(), f"_having{number}"
        value = _in_of(condition).this
        inner.append("expressions", _named(_resolved(value, select), own))
        value.replace(exp.column(exp.to_identifier(own, quoted=True), table=_GROUPS))
        conditions.append(condition)
    outer = exp.select(*(exp.column(exp.to_identifier(name, quoted=True), table=_GROUPS) for name in names))
    for part in (*_BEHIND, "with", "with_"):
        if inner.args.get(part) is not None:
            outer.set(part, inner.args[part])
            inner.set(part, None)
    return outer.from_(exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(_GROUPS)))).where(
        *conditions
    )


def _in_of(part: Any) -> Any:
    """Return the IN of a condition, or of one that NOT stands before."""
    inner = inner_of(part)
    return inner_of(inner.this) if isinstance(inner, exp.Not) else inner


def _asks(part: Any, select: Any) -> bool:
    """Return whether a condition asks whether an aggregate, by itself or by its alias, is in a query."""
    inner_in = _in_of(part)
    return (
        isinstance(inner_in, exp.In)
        and inner_in.args.get("query") is not None
        and bool(aggregates_in(_resolved(inner_in.this, select)))
    )


def _resolved(node: Any, select: Any) -> Any:
    """Return an expression with the aggregates of the list in the place of their aliases."""
    known = {
        expression.alias.lower(): expression.this
        for expression in select.expressions
        if isinstance(expression, exp.Alias) and aggregates_in(expression)
    }

    def put(part: Any) -> Any:
        is_alias = isinstance(part, exp.Column) and not part.table and part.name.lower() in known
        return exp.Paren(this=known[part.name.lower()].copy()) if is_alias else part

    return node.copy().transform(put)


def _can_be_around(select: Any, names: list[str]) -> bool:
    order = select.args.get("order")
    order_keys = [expression.this for expression in ([] if order is None else order.expressions)]
    is_named = all(
        isinstance(key, exp.Literal) or (isinstance(key, exp.Column) and key.name in names)
        for key in order_keys
    )
    return (
        is_named
        and not select.args.get("qualify")
        and not any(
            expression.find(exp.Star) and isinstance(inner_of(expression), exp.Star | exp.Column)
            for expression in select.expressions
        )
    )


def _named(node: Any, name: str) -> Any:
    return exp.alias_(node, name, quoted=True)
