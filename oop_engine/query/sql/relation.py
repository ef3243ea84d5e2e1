"""NamedStream: a stream with the names that a query may use for its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.query.finish import ALL, Finish
from oop_engine.query.sql.reading.hints import is_text_meant
from oop_engine.query.sql.reading.mistakes import mistake

if TYPE_CHECKING:
    from oop_engine.query.data_stream import DataStream
    from oop_engine.query.sql.windows.brackets import Bracket

__all__ = ["Name", "NamedStream", "Names", "RankColumn", "columns_of"]


@dataclass(frozen=True)
class Name:
    """A column under the name that a query has for it: ``table.name`` is the column ``column``.

    ``merged``: a key of USING, which only ``table.name`` names.
    """

    table: str
    name: str
    column: str
    merged: bool = False


@dataclass(frozen=True)
class Names:
    """The names of a relation, in the order of its columns."""

    names: tuple[Name, ...] = field(default=())

    def column(self, text: str, node: Any) -> str:
        """Return the column that ``node`` names; raises ``UsageError`` with its place if there is none, or two."""
        columns = self.columns(node)
        if len(columns) == 1:
            return columns[0]
        if columns:
            tables = " or ".join(
                f"{column.table}.{column.name}"
                for column in self._matching(node.table, node.name, exact=False)
            )
            raise mistake(text, node, f"{node.name!r} is ambiguous: write {tables}")
        words = self._unknown(node.table, node.name)
        if not node.table and is_text_meant(node):
            words += f"; a text stands in single quotes, {node.name!r}"
        raise mistake(text, node, words)

    def columns(self, node: Any) -> list[str]:
        """Return the columns that ``node`` may name."""
        table, name = node.table, node.name
        matching = self._matching(table, name, exact=True) or self._matching(table, name, exact=False)
        return list(dict.fromkeys(column.column for column in matching))

    def of(self, table: str) -> list[Name]:
        """Return the names of a table; if it is '', all that need none."""
        if not table:
            return [name for name in self.names if not name.merged]
        return [name for name in self.names if name.table.lower() == table.lower()]

    def _matching(self, table: str, name: str, *, exact: bool) -> list[Name]:
        if exact:
            return [column for column in self.of(table) if column.name == name]
        return [column for column in self.of(table) if column.name.lower() == name.lower()]

    def _unknown(self, table: str, name: str) -> str:
        tables = sorted({name.table for name in self.names if name.table})
        if table and not self.of(table):
            return f"no table {table!r}; there are {', '.join(tables)}{did_you_mean(table, tables)}"
        known = [column.name for column in self.of(table)]
        if not known:
            return f"no column {name!r}: results of GROUP BY have the names of the SELECT list"
        return f"no column {name!r}; there are {', '.join(known)}{did_you_mean(name, known)}"


@dataclass(frozen=True)
class RankColumn:
    """A column with places of rows; ``first(n)`` is the same relation with the first ``n`` of each partition."""

    column: str
    first: Callable[[int], NamedStream]


@dataclass(frozen=True)
class NamedStream:
    """A stream under the names that a query has for its columns.

    ``windows``: of a call of a window function, by names; their bounds are columns only once they are aggregated.
    ``keys``: those of its sessions.  ``bracket``: how the thesis writes them.  ``twins``: columns that are equal where
    the event time is.  ``lasts``: how long each row is in the relation, as CQL has it; None: for ever.
    """

    stream: DataStream
    names: Names
    windows: Any = None
    keys: tuple[str, ...] = ()
    bracket: Bracket | None = None
    lasts: Length | None = None
    twins: frozenset[str] = frozenset()
    ranked: RankColumn | None = None
    finish: Finish = ALL

    @property
    def named_columns(self) -> tuple[Names, Schema]:
        """The names, and the columns that they mean."""
        return self.names, self.stream.schema

    @property
    def time(self) -> str:
        """The column of event time."""
        return self.stream.schema.progressing


def columns_of(schema: Schema, table: str = "", hidden: Iterable[str] = ()) -> Names:
    """Return the names of a stream's columns, each its own."""
    left_out: Sequence[str] = list(hidden)
    return Names(tuple(Name(table, name, name) for name in schema.names if name not in left_out))
