"""Message formats: bytes of a source become pages and punctuation; a row that cannot be read never stops a stream.

Rows go through the same checks as those of a trace (``traces/validation.py``), so a value means the same in a file
at rest and in a stream.  ``register_message_format`` adds a format of your own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from oop_engine.connectors.source import Unreadable
from oop_engine.core.errors import ContractError, TraceError, UsageError
from oop_engine.core.operator import Message
from oop_engine.core.page import PAGE_ROWS, Page, concat, pages
from oop_engine.core.plain import is_arrow
from oop_engine.core.punctuation import Punctuation
from oop_engine.core.registry import Registry
from oop_engine.core.schema import Schema
from oop_engine.traces.format import LINE, REFUSED, readable
from oop_engine.traces.formats.json_lines import apart
from oop_engine.traces.formats.json_rows import rows_of
from oop_engine.traces.punctuation_records import fit_punctuation, punctuation_of_json
from oop_engine.traces.validation import Validation

__all__ = ["MESSAGE_FORMATS", "MessageFormat", "register_message_format"]

_SHOWN = 1000  # characters of a record that cannot be read


class MessageFormat(ABC):
    """Reads the data of one source; ``place`` names it, ``unreadable`` hears of rows that are left out.

    ``headed``: a line of column names may come before the data.
    """

    headed = False

    def __init__(self, schema: Schema, place: str, unreadable: Unreadable) -> None:
        self.schema, self.place, self._unreadable = schema, place, unreadable
        self._validation = Validation(Path(place), schema, schema.fields, None, self._refused)

    @abstractmethod
    def messages(self, data: Any) -> Iterator[Message]:
        """Yield the messages in some data: whole lines, or a list of payloads."""

    def joined(self, pieces: list[Any]) -> Any | None:
        """Return several data in one, with the same rows and punctuation; None (the default): they are read one by one.

        So many small messages cost little.  Reading must leave nothing behind in the format.
        """
        return None

    def _pages(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Page]:
        for batch in batches:
            if (page := self._validation.page(batch)) is not None:
                yield page.without_arrival()

    def _refused(self, row: int, rows: pa.RecordBatch, reason: str) -> None:
        self._unreadable(reason, _words(rows.slice(0, 1)), rows.num_rows)

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


@register_message_format("jsonl")
class JsonMessages(MessageFormat):
    """A JSON object a line, or a payload; ``{"punctuation": ...}`` is punctuation, as in a trace of JSON lines."""

    def joined(self, pieces: list[Any]) -> Any | None:
        """Return whole lines as one text, lists of payloads as one list."""
        if all(isinstance(piece, bytes) and piece.endswith(b"\n") for piece in pieces):
            return b"".join(pieces)
        return list(chain.from_iterable(pieces)) if all(isinstance(piece, list) for piece in pieces) else None

    def messages(self, data: Any) -> Iterator[Message]:
        """Yield pages, and punctuation where it stands."""
        for lines, is_punctuation in apart(_lines(data)):
            if not is_punctuation:
                yield from self._pages(rows_of(lines, self.schema.fields))
                continue
            try:
                with readable(Path(self.place), "see docs/traces.md"):
                    found = fit_punctuation(
                        punctuation_of_json(lines, self.schema.fields), self.schema.fields
                    )
            except TraceError as error:
                self._refuse(error, lines)
            else:
                yield found


@register_message_format("csv")
class CsvMessages(MessageFormat):
    """Cells with commas in between, a row a line; in the order of a line of names, or else of the schema."""

    headed = True

    def __init__(self, schema: Schema, place: str, unreadable: Unreadable) -> None:
        super().__init__(schema, place, unreadable)
        self._names = schema.names

    def messages(self, data: Any) -> Iterator[Message]:
        """Yield pages; a line that consists of the names of the columns sets their order."""
        kept: list[bytes] = []
        for line in _lines(data).splitlines(keepends=True):
            cells = [cell.strip(b'" \r\n') for cell in line.split(b",")]
            if {*map(str.encode, self.schema.names)} <= {*cells}:
                yield from self._page(kept)
                self._names, kept = [cell.decode() for cell in cells], []
            elif line.strip():
                kept.append(line)
        yield from self._page(kept)

    def _page(self, lines: list[bytes]) -> Iterator[Page]:
        if not lines:
            return
        misfits: list[Any] = []

        def skip(row: Any) -> str:
            misfits.append(row)
            return "skip"

        columns = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(self._names, pa.binary()),
            include_columns=self.schema.names,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        try:
            table = pa.csv.read_csv(
                pa.py_buffer(b"".join(lines)),
                pa.csv.ReadOptions(column_names=self._names, use_threads=False),
                pa.csv.ParseOptions(invalid_row_handler=skip),
                columns,
            )
        except pa.ArrowInvalid as error:
            if len(lines) == 1:
                self._refuse(error, lines[0])
                return
            for line in lines:
                yield from self._page([line])
            return
        for row in misfits:
            self._refuse(f"must have {row.expected_columns} cells; got {row.actual_columns}", row.text)
        yield from self._pages(table.combine_chunks().to_batches())


@register_message_format("arrow")
class ArrowMessages(MessageFormat):
    """Payloads that are Arrow IPC streams; columns are found by their names."""

    def messages(self, data: Any) -> Iterator[Message]:
        """Yield a page a record batch."""
        for payload in [data] if isinstance(data, bytes) else data:
            try:
                with pa.ipc.open_stream(payload) as reader:
                    found = list(pages(self.schema, reader.read_all()))
            except (pa.ArrowException, ContractError, OSError) as error:
                self._refuse(error, repr(payload[:40]))
            else:
                yield from found


@register_message_format("rows")
class Rows(MessageFormat):
    """Objects of Python: pages, punctuation, Arrow data, a dictionary a row, or lists of these."""

    def joined(self, pieces: list[Any]) -> Any | None:
        """Return a list of all that is there."""
        if not any(isinstance(piece, list | tuple) for piece in pieces):
            return pieces
        return list(chain.from_iterable(p if isinstance(p, list | tuple) else (p,) for p in pieces))

    def messages(self, data: Any) -> Iterator[Message]:
        """Yield messages as they are, and pages of all else."""
        if isinstance(data, Page | Punctuation):
            yield data
        elif is_arrow(data):
            yield from pages(self.schema, data)
        elif isinstance(data, dict):
            yield from self._rows([data])
        elif isinstance(data, list | tuple):
            for kind, alike in groupby(data, type):
                yield from self._alike(kind, list(alike))
        else:
            msg = f"{self.place}: must give pages, punctuation, Arrow data or dictionaries; got {type(data).__name__}"
            raise UsageError(msg)

    def _alike(self, kind: type, data: list[Any]) -> Iterator[Message]:
        """Yield the messages of data of one kind: rows, and pages of the schema, together."""
        if issubclass(kind, dict):
            yield from self._rows(data)
        elif kind is Page and all(page.schema is data[0].schema for page in data):
            timed = all(page.arrival is not None for page in data)
            small = sum(map(len, data)) <= PAGE_ROWS
            yield from [concat(data[0].schema, data)] if small and not timed else data
        else:
            for each in data:
                yield from self.messages(each)

    def _rows(self, rows: list[dict[str, Any]]) -> Iterator[Page]:
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


def _lines(data: bytes | list[bytes]) -> bytes:
    """Return payloads as whole lines: a line feed is space in JSON, and no cell of a message has one."""
    if isinstance(data, bytes):
        return data
    return b"".join(payload.replace(b"\n", b" ") + b"\n" for payload in data)


def _words(rows: pa.RecordBatch) -> str:
    """Return the first of some rows as text: its line, or its values."""
    row = rows.to_pylist()[0]
    if set(row) == {"line"} or LINE in row:
        found = row.get("line", row.get(LINE))
    else:
        found = {name: value for name, value in row.items() if name != REFUSED}
    text = found.decode(errors="replace") if isinstance(found, bytes) else str(found)
    return text[:_SHOWN]
