"""Rows: objects of Python, as a source in the same process gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import Any

from oop_engine.connectors.message_format import MessageFormat, register_message_format
from oop_engine.connectors.source import Unreadable
from oop_engine.core.errors import ContractError, UsageError
from oop_engine.core.late.late_page import FEW, packed_rows
from oop_engine.core.operator import Message
from oop_engine.core.page import PAGE_ROWS, Page, concat, pages
from oop_engine.core.plain import is_arrow
from oop_engine.core.punctuation import Punctuation
from oop_engine.core.schema import Schema

__all__ = ["Rows"]


@register_message_format("rows")
class Rows(MessageFormat):
    """Objects of Python: pages, punctuation, Arrow data, a dictionary a row, or lists of these."""

    by_lines = False

    def __init__(self, schema: Schema, place: str, unreadable: Unreadable) -> None:
        super().__init__(schema, place, unreadable)
        self._names = schema.names

    def joined(self, pieces: list[Any]) -> Any | None:
        """Return a list of all that is there."""
        if not any(isinstance(piece, list | tuple) for piece in pieces):
            return pieces
        return list(chain.from_iterable(p if isinstance(p, list | tuple) else (p,) for p in pieces))

    def messages(self, data: Any) -> Iterator[Message]:
        """Yield messages as they are, and pages of all else."""
        if isinstance(data, dict):
            yield from self._row(data)
        elif isinstance(data, Page | Punctuation):
            yield data
        elif is_arrow(data):
            yield from pages(self.schema, data)
        elif isinstance(data, list | tuple):
            for kind, alike in groupby(data, type):
                yield from self._alike(kind, list(alike))
        else:
            msg = f"{self.place}: must give pages, punctuation, Arrow data or dictionaries; got {type(data).__name__}"
            raise UsageError(msg)

    def _alike(self, kind: type, data: list[Any]) -> Iterator[Message]:
        """Yield the messages of data of one kind: rows, and pages of the schema, together."""
        if issubclass(kind, dict):
            self.unknown.add_rows(data)
            yield from self._rows(data)
        elif kind is Page and all(page.schema is data[0].schema for page in data):
            timed = all(page.arrival is not None for page in data)
            small = sum(map(len, data)) <= PAGE_ROWS
            yield from [concat(data[0].schema, data)] if small and not timed else data
        else:
            for each in data:
                yield from self.messages(each)

    def _row(self, row: dict[str, Any]) -> Iterable[Page]:
        """Return the page of one row."""
        if not self.unknown.known.issuperset(row):
            self.unknown.add_rows([row])
        page = self._few([row])
        return self._rows([row]) if page is None else (page,)

    def _few(self, rows: list[dict[str, Any]]) -> Page | None:
        """Return the page of a few rows of plain numbers; None: they are others."""
        return packed_rows(self.schema, [list(map(row.get, self._names)) for row in rows])

    def _rows(self, rows: list[dict[str, Any]]) -> Iterator[Page]:
        if len(rows) <= FEW and (page := self._few(rows)) is not None:
            yield page
            return
        names = self.schema.names
        try:
            columns = {name: [row.get(name) for row in rows] for name in names}
            yield Page.of(self.schema, columns)
        except ContractError as error:
            if len(rows) == 1:
                self._refuse(error, repr(rows[0]))
                return
            half = len(rows) // 2
            yield from self._rows(rows[:half])
            yield from self._rows(rows[half:])
