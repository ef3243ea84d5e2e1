"""Listing: the items of a SELECT list, ``*`` as columns."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from oop_engine.query.sql.aggregates import aggregates_in
from oop_engine.query.sql.reading.mistakes import mistake
from oop_engine.query.sql.relation import Name, NamedStream
from oop_engine.query.sql.stage import BOUNDS, Item, item_name
from oop_engine.query.sql.windows.streams_of import is_over

__all__ = ["items_of"]


def items_of(text: str, select: Any, relation: NamedStream) -> list[Item]:
    """Return the items of the list, ``*`` as columns, under names of which none is twice."""
    items: list[Item] = []
    for node in select.expressions:
        items += _starred(text, relation, node) or [Item(item_name(node), node)]
    items = _with_window(select, items)
    taken: dict[str, int] = {}
    for item in items:
        number = taken[item.name] = taken.get(item.name, -1) + 1
        item.name = f"{item.name}_{number}" if number else item.name
    return items


def _with_window(select: Any, items: list[Item]) -> list[Item]:
    """Return the items with the bounds of the window that stands behind the list, behind the keys."""
    group = select.args.get("group")
    windows = [] if group is None else [expression for expression in group.expressions if is_over(expression)]
    if not windows or any(item.node.find(exp.Column) and item.name in BOUNDS for item in items):
        return items
    at = next((i for i, item in enumerate(items) if aggregates_in(item.node)), len(items))
    bounds = [Item(name, exp.column(name)) for name in BOUNDS[:2]]
    return [*items[:at], *bounds, *items[at:]]


def _starred(text: str, relation: NamedStream, node: Any) -> list[Item]:
    star = node if isinstance(node, exp.Star) else node.this if isinstance(node, exp.Column) else None
    if not isinstance(star, exp.Star):
        return []
    new = {item.this.name.lower(): item for item in star.args.get("rename") or []}
    other = {item.alias.lower(): item for item in star.args.get("replace") or []}
    without = {item.name.lower() for item in star.args.get("except_") or star.args.get("except") or []}
    table = node.table if isinstance(node, exp.Column) else ""
    names = [name for name in relation.names.of(table) if name.name.lower() not in without]
    if table and not names:
        raise mistake(text, node, f"no table {table!r}")
    items = [_starred_item(name, other.get(name.name.lower()), new.get(name.name.lower())) for name in names]
    if relation.windows is not None:
        items += [Item(name, exp.column(name)) for name in BOUNDS[:2]]
    return items


def _starred_item(name: Name, other: Any, new: Any) -> Item:
    """Return one column of ``*``, with the expression of REPLACE, under the name of RENAME."""
    column = exp.column(exp.to_identifier(name.name), table=name.table or None)
    return Item(name.name if new is None else new.alias, column if other is None else other.this)
