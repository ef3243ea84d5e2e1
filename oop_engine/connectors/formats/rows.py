"""Rows: objects of Python, as a source in the same process gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from oop_engine.connectors.message_format import MessageFormat, register_message_format
from oop_engine.connectors.payload import Metadata
from oop_engine.connectors.source import Unreadable
from oop_engine.core.errors import ContractError
from oop_engine.core.operator import Message
from oop_engine.core.page import PAGE_ROWS, Page, concat
from oop_engine.core.schema import Schema
from oop_engine.runners.feeds.forms import Intake
from oop_engine.runners.feeds.rows import RowReader

__all__ = ["Rows"]


@register_message_format("rows")
class Rows(MessageFormat):
    """Objects of Python, in all forms that a feed of ``run`` may have, and lists of these."""

    by_lines = False

    def __init__(
        self, schema: Schema, place: str, unreadable: Unreadable, metadata: Metadata | None = None
    ) -> None:
        super().__init__(schema, place, unreadable, metadata)
        self._reader = RowReader(schema, self._others)

    def joined(self, pieces: list[Any]) -> Any | None:
        """Return all pieces, each of which stays one thing: several plain values are not a row."""
        return _Pieces(pieces)

    def records(self, data: Any) -> list[Any]:
        """Return the items of a list; a tuple of values is one row."""
        return list(data) if isinstance(data, list) else [data]

    def messages(self, data: Any) -> Iterator[Message]:
        """Yield messages as they are, pages of one schema together, and pages of all else."""
        intake = Intake(self.place, self.schema, "a source", self._bad, reader=self._reader)
        try:
            messages = (
                list(intake.messages(data))
                if isinstance(data, _Pieces)
                else [*intake.add(data), *intake.flush()]
            )
        except ContractError as error:  # a table without a column
            self._refuse(error, repr(data))
            return
        for is_page, alike in groupby(messages, lambda message: isinstance(message, Page)):
            group: list[Any] = list(alike)
            yield from _together(group) if is_page else group

    def _bad(self, position: int | None, reason: str, record: Any, text: str) -> None:
        self._refuse(reason, repr(record))

    def _others(self, names: Iterable[object]) -> None:
        self.unknown.add_rows([names])


class _Pieces(list[Any]):
    """Several pieces of a source."""


def _together(pages: list[Page]) -> Sequence[Page]:
    """Return small pages of one schema as one; those that have arrivals stay."""
    alike = all(page.schema is pages[0].schema and page.arrival is None for page in pages)
    return (
        [concat(pages[0].schema, pages)]
        if alike and len(pages) > 1 and sum(map(len, pages)) <= PAGE_ROWS
        else pages
    )
