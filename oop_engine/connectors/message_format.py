"""Message formats: bytes of a source become pages and punctuation; a row that cannot be read never stops a stream.

Rows go through the same checks as those of a trace (``traces/validation.py``), so a value means the same in a file
at rest and in a stream.  ``register_message_format`` adds a format of your own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from oop_engine.connectors.source import Unreadable
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.registry import Registry
from oop_engine.core.schema import Schema
from oop_engine.traces.format import LINE, REFUSED
from oop_engine.traces.unknown_columns import UnknownColumns
from oop_engine.traces.validation import Validation

__all__ = ["MESSAGE_FORMATS", "MessageFormat", "register_message_format", "shown"]

_SHOWN = 1000  # characters of a record that cannot be read


class MessageFormat(ABC):
    """Reads the data of one source; ``place`` names it, ``unreadable`` hears of rows that are left out.

    ``headed``: a line of column names may come before the data.  ``by_lines``: it can be cut at the ends of lines, as
    the content of a file is.  ``unknown``: counts columns that the schema does not have; ``messages`` adds to it.
    ``remembers``: attributes that ``messages`` changes, such as the line of names.
    """

    headed = False
    header = b""
    """The line of names that holds for the next data, where one came."""
    by_lines = True
    remembers: ClassVar[tuple[str, ...]] = ()

    def __init__(self, schema: Schema, place: str, unreadable: Unreadable) -> None:
        self.schema, self.place, self._unreadable = schema, place, unreadable
        self.unknown = UnknownColumns(schema.names)
        self._validation = Validation(Path(place), schema, schema.fields, None, self._refused)

    @abstractmethod
    def messages(self, data: Any) -> Iterator[Message]:
        """Yield the messages in some data: whole lines, or a list of payloads."""

    def joined(self, pieces: list[Any]) -> Any | None:
        """Return several data in one, with the same rows and punctuation; None (the default): they are read one by one.

        So many small messages cost little.  Reading must leave nothing behind in the format.
        """
        return None

    def records(self, data: Any) -> list[Any]:
        """Return data record by record, so that one that is refused is known as it came: lines, or the items of a list.

        A format whose records may have several lines overrides this.
        """
        if isinstance(data, bytes) and self.by_lines:
            lines = data.split(b"\n")
            return [line + b"\n" for line in lines[:-1]] + [line for line in lines[-1:] if line]
        return list(data) if isinstance(data, list | tuple) else [data]

    def _pages(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Page]:
        for batch in batches:
            if (page := self._validation.page(batch)) is not None:
                yield page.without_arrival()

    def _refused(self, row: int, rows: pa.RecordBatch, reason: str) -> None:
        self._unreadable(reason, shown(rows), rows.num_rows)

    def _refuse(self, reason: object, record: bytes | str) -> None:
        text = record.decode(errors="replace") if isinstance(record, bytes) else record
        self._unreadable(" ".join(str(reason).split())[:300], text.rstrip("\n")[:_SHOWN], 1)


MESSAGE_FORMATS = Registry[type[MessageFormat]]("message format")
"""All formats of messages, by name."""


def register_message_format(name: str) -> Callable[[type[MessageFormat]], type[MessageFormat]]:
    """Make a format known under ``name``: ``@register_message_format("lines")``."""

    def register(kind: type[MessageFormat]) -> type[MessageFormat]:
        return MESSAGE_FORMATS.register(name, kind, kind.__module__)

    return register


def shown(rows: pa.RecordBatch) -> str:
    """Return the first of some rows as text: its line, or its values."""
    first = rows.slice(0, 1)
    try:
        row = first.to_pylist()[0]
    except (ArithmeticError, ValueError):  # a moment that Python has no date for
        row = {name: str(column) for name, column in zip(first.schema.names, first.columns, strict=True)}
    if set(row) <= {"line", "number"} or LINE in row:
        found = row.get("line", row.get(LINE))
    else:
        found = {name: value for name, value in row.items() if name != REFUSED}
    text = found.decode(errors="replace") if isinstance(found, bytes) else str(found)
    return text[:_SHOWN]
