"""Text messages: JSON and CSV, by lines or by payloads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from oop_engine.connectors.formats.few_json_rows import FewJsonRows
from oop_engine.connectors.message_format import MessageFormat, register_message_format
from oop_engine.connectors.source import Unreadable
from oop_engine.core.errors import TraceError
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.traces.format import readable
from oop_engine.traces.formats.json_lines import apart
from oop_engine.traces.formats.json_rows import rows_of
from oop_engine.traces.punctuation_records import fit_punctuation, punctuation_of_json
from oop_engine.traces.validation import check_texts

__all__ = ["CsvMessages", "JsonMessages"]


@register_message_format("jsonl")
class JsonMessages(MessageFormat):
    """A JSON object a line, or a payload; ``{"punctuation": ...}`` is punctuation, as in a trace of JSON lines."""

    def __init__(self, schema: Schema, place: str, unreadable: Unreadable) -> None:
        super().__init__(schema, place, unreadable)
        check_texts(Path(place), schema.fields)
        self._few = FewJsonRows(schema)

    def joined(self, pieces: list[Any]) -> Any | None:
        """Return whole lines as one text, lists of payloads as one list."""
        if all(isinstance(piece, bytes) and piece.endswith(b"\n") for piece in pieces):
            return b"".join(pieces)
        return list(chain.from_iterable(pieces)) if all(isinstance(piece, list) for piece in pieces) else None

    def messages(self, data: Any) -> Iterator[Message]:
        """Yield pages, and punctuation where it stands."""
        if (page := self._few.page(data)) is not None:
            yield page
            return
        for lines, is_punctuation in apart(_lines(data)):
            if not is_punctuation:
                yield from self._pages(rows_of(lines, self.schema.fields, self.unknown.add))
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
    remembers = ("_names",)

    def __init__(self, schema: Schema, place: str, unreadable: Unreadable) -> None:
        super().__init__(schema, place, unreadable)
        check_texts(Path(place), schema.fields)
        self._names = schema.names

    def messages(self, data: Any) -> Iterator[Message]:
        """Yield pages; a line that consists of the names of the columns sets their order."""
        kept: list[bytes] = []
        for line in _lines(data).splitlines(keepends=True):
            cells = [cell.strip(b'" \r\n') for cell in line.split(b",")]
            if {*map(str.encode, self.schema.names)} <= {*cells}:
                yield from self._page(kept)
                self._names, kept = [cell.decode(errors="replace") for cell in cells], []
            elif line.strip() and _is_utf8(line):
                kept.append(line)
            elif line.strip():  # Arrow could not tell why it is refused
                self._refuse("the line is no UTF-8", line)
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
        for name in dict.fromkeys(self._names):
            self.unknown.add(name, table.num_rows)
        yield from self._pages(table.combine_chunks().to_batches())


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _lines(data: bytes | list[bytes]) -> bytes:
    """Return payloads as whole lines: a line feed is space in JSON, and no cell of a message has one."""
    if isinstance(data, bytes):
        return data
    return b"".join(payload.replace(b"\n", b" ") + b"\n" for payload in data)
