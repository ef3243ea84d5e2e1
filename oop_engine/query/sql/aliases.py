"""Aliases: names of the SELECT list in WHERE, HAVING, QUALIFY and behind them in the list, as DuckDB has them."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from sqlglot import exp

from oop_engine.query.sql.aggregates import aggregates_in
from oop_engine.query.sql.relation import Names
from oop_engine.query.sql.stage import BOUNDS

__all__ = ["resolve_aliases"]


def resolve_aliases(node: Any, names: Names) -> None:
    """Put the items of a SELECT in the place of their aliases; columns of the relation come before those."""
    known: dict[str, Any] = {}
    for item in list(node.expressions):
        _replace(item, known, names)
        if isinstance(item, exp.Alias) and item.alias.lower() not in BOUNDS:
            known[item.alias.lower()] = item.this
    for part in ("where", "having", "qualify"):
        if node.args.get(part) is not None:
            _replace(node.args[part], known, names, of_groups=_of_groups(node, part, known))


def _of_groups(node: Any, part: str, known: dict[str, Any]) -> set[str]:
    """Return the aliases of aggregates that HAVING reads although columns have their names, for these are no keys."""
    group = node.args.get("group")
    if part == "where" or group is None:
        return set()
    listed = node.expressions if group.args.get("all") else group.expressions
    keys = {item.name.lower() for item in listed if isinstance(item, exp.Column)}
    return {alias for alias, item in known.items() if alias not in keys and aggregates_in(item)}


def _replace(node: Any, known: dict[str, Any], names: Names, of_groups: Container[str] = ()) -> None:
    for column in list(node.find_all(exp.Column)):
        meant = None if column.table else known.get(column.name.lower())
        is_column = names.columns(column) and (
            column.name.lower() not in of_groups or column.find_ancestor(exp.AggFunc, exp.Filter)
        )
        if meant is None or is_column or column.find_ancestor(exp.Query) is not node.find_ancestor(exp.Query):
            continue
        is_one = isinstance(meant, exp.Column | exp.Func | exp.Window | exp.Literal)
        column.replace(meant.copy() if is_one else exp.Paren(this=meant.copy()))
