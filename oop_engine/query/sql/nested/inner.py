"""Inner: the FROM and WHERE of a subquery, its own conditions apart from those with the query around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from sqlglot import exp

from oop_engine.query.sql.aggregates import aggregates_in
from oop_engine.query.sql.joins.condition import conjuncts
from oop_engine.query.sql.relation import NamedStream

__all__ = ["Known", "Plans", "has_aggregates", "inner_of", "is_plain", "select_of"]

Known = Mapping[str, NamedStream]
_PARTS = ("group", "having", "qualify", "limit", "offset", "with", "with_")


class Plans(Protocol):
    """A planner of the queries inside a query."""

    def query(self, node: Any, around: Known) -> NamedStream:
        """Return a SELECT."""

    def sources(self, node: Any, known: Known) -> NamedStream:
        """Return the FROM of a SELECT with its joins."""

    def filtered(self, relation: NamedStream, parts: list[Any], known: Known) -> NamedStream:
        """Return the rows for which all conditions hold."""


def select_of(node: Any) -> Any:
    """Return the query inside brackets."""
    while isinstance(node, exp.Subquery):
        node = node.this
    return node


def is_plain(select: Any) -> bool:
    """Return whether a query is a SELECT of rows alone: no groups, no limit, no union."""
    if not isinstance(select, exp.Select) or any(select.args.get(part) for part in _PARTS):
        return False
    return not any(expression.find(exp.Window) for expression in select.expressions)


def inner_of(planner: Plans, select: Any, known: Known) -> tuple[NamedStream, list[Any]]:
    """Return the rows of a subquery's FROM that its own conditions leave, and its conditions with the query around."""
    relation = planner.sources(select, known)
    where = select.args.get("where")
    parts = [] if where is None else conjuncts(where.this)
    for column in [one for part in parts for one in part.find_all(exp.Column)]:
        _qualify(column, relation)
    own = [part for part in parts if part.find(exp.Query) or _is_of(part, relation)]
    others = [part for part in parts if part not in own]
    return planner.filtered(relation, own, known), others


def _is_of(part: Any, relation: NamedStream) -> bool:
    return all(relation.names.columns(column) for column in part.find_all(exp.Column))


def _qualify(column: Any, relation: NamedStream) -> None:
    """Write the table before a name of the subquery, which comes before one of the query around it."""
    names = [name for name in relation.names.of("") if name.column in relation.names.columns(column)]
    if not column.table and len(names) == 1 and names[0].table:
        column.set("table", exp.to_identifier(names[0].table, quoted=True))


def has_aggregates(select: Any) -> bool:
    """Return whether the list of a SELECT has aggregates."""
    return any(aggregates_in(expression) for expression in select.expressions)
