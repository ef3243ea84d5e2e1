"""Aliases: names of the SELECT list in WHERE, HAVING, QUALIFY and behind them in the list, as DuckDB has them."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

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
            _replace(node.args[part], known, names)


def _replace(node: Any, known: dict[str, Any], names: Names) -> None:
    for column in list(node.find_all(exp.Column)):
        found = None if column.table else known.get(column.name.lower())
        if (
            found is None
            or names.columns(column)
            or column.find_ancestor(exp.Query) is not node.find_ancestor(exp.Query)
        ):
            continue
        is_one = isinstance(found, exp.Column | exp.Func | exp.Window | exp.Literal)
        column.replace(found.copy() if is_one else exp.Paren(this=found.copy()))
