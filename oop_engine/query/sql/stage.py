"""Stages of a SELECT: its stream so far, the parts that are columns already, and the items of its list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.query.sql.relation import NamedStream, Names
from oop_engine.query.sql.scalar.expressions import Expressions

__all__ = ["BOUNDS", "Item", "Listed", "Stage", "inner_of", "item_name"]

BOUNDS = ("window_start", "window_end", "window_time")


@dataclass
class Item:
    """One item of the SELECT list: a parsed expression under a name."""

    name: str
    node: Any


@dataclass
class Stage:
    """A relation while its SELECT is read; ``made`` are parts of it that are columns, over the names ``known``."""

    relation: NamedStream
    made: dict[str, str] = field(default_factory=dict)
    known: Names | None = None

    def expressions(self, text: str) -> Expressions:
        """Return the maker of expressions over its columns."""
        relation = self.relation
        return Expressions(text, relation.names, relation.stream.schema, self.made, self.known)


class Listed:
    """The columns that a SELECT computes, by their new names: a name of an old column, or an expression."""

    def __init__(self, text: str, stage: Stage) -> None:
        self.columns: dict[str, Any] = {}
        self._expressions, self._old = stage.expressions(text), stage.relation.stream.schema.names

    def value(self, node: Any) -> Any:
        """Return a column by its name, so that it is not copied, or an expression."""
        value = self._expressions.value(node).expression
        name = str(value)
        return name if name in self._old and value.equals(pc.field(name)) else value

    def name_of(self, column: str) -> str | None:
        """Return the new name of an old column; None: it is not listed."""
        return next(
            (new for new, old in self.columns.items() if isinstance(old, str) and old == column), None
        )

    def keep(self, column: str) -> list[str]:
        """List an old column if it is not, under a name that is free; return the added ones."""
        if self.name_of(column) is not None:
            return []
        name = column
        while name in self.columns:
            name = f"_{name}"
        self.columns[name] = column
        return [name]

    def add(self, node: Any, prefix: str) -> tuple[str, list[str]]:
        """Return the name of a column with the value of ``node``, and those added for it."""
        value = self.value(node)
        if isinstance(value, str):
            added = self.keep(value)
            return str(self.name_of(value)), added
        name = f"{prefix}{len(self.columns)}"
        self.columns[name] = value
        return name, [name]


def inner_of(node: Any) -> Any:
    """Return an expression without its alias and brackets."""
    while isinstance(node, exp.Alias | exp.Paren):
        node = node.this
    return node


def item_name(node: Any) -> str:
    """Return the name of an item: its alias, its column, or its text."""
    own = node.name if isinstance(node, exp.Column) else ""
    return str(node.alias or own or node.sql("duckdb").lower())
