"""CSV messages: rows of a stream, by lines or by payloads.

By lines a line is a row: a quoted cell cannot have a line break, for its lines may come in two reads.  So the same
bytes give the same rows wherever reads are cut.  A payload (of Kafka, MQTT...) is whole, so its cells may have them.
"""

from __future__ import annotations

import codecs
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine.connectors.message_format import MessageFormat, register_message_format
from oop_engine.connectors.payload import Metadata
from oop_engine.connectors.source import Unreadable
from oop_engine.core.errors import TraceError, UsageError
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.core.values.arrays import converted
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.format import REFUSED
from oop_engine.traces.formats.csv_cells import canonical, check_zone
from oop_engine.traces.formats.csv_rows import CsvRows
from oop_engine.traces.formats.csv_sniffed import csv_hint, sniffed_delimiter
from oop_engine.traces.formats.encodings import MARKS
from oop_engine.traces.validation import check_texts

__all__ = ["CsvMessages"]

_MARK = b"\xef\xbb\xbf"
_INSIDE = frozenset(string.ascii_letters + string.digits + "_-.")
"""Signs beside which a name is a part of a cell, unless one of them is the delimiter or the quote."""


@register_message_format("csv")
class CsvMessages(MessageFormat):
    """A row a line, in the order of a line of names, or else of the schema; ``csv`` tells how they are written.

    A line that has all names of the schema is a header, wherever it stands, and tells the delimiter unless ``csv``
    does.  Below a line of names that lacks one of the schema rows are refused: they are never read by position.
    ``in_file``: the first line must be a header or a row, else ``TraceError``; ``by_lines``: data are cut at lines.
    """

    headed = True
    row_a_line = True
    remembers = ("_names", "_csv", "_below", "_first", "header")

    def __init__(
        self,
        schema: Schema,
        place: str,
        unreadable: Unreadable,
        csv: CsvFormat | None = None,
        metadata: Metadata | None = None,
        *,
        in_file: bool = False,
        by_lines: bool = False,
    ) -> None:
        super().__init__(schema, place, unreadable, metadata)
        check_texts(Path(place), self.columns)
        self._sniffs = csv is None or csv.delimiter is None
        self._csv = csv or CsvFormat()
        check_zone(place, self._csv, self.columns)
        if self._sniffs:
            self._csv = replace(self._csv, delimiter=";" if self._csv.decimal == "," else ",")
        if by_lines and codecs.lookup(self._csv.encoding or "utf-8").name.startswith(("utf-16", "utf-32")):
            msg = f"{place}: is read by lines; got encoding {self._csv.encoding!r}, whose lines do not end at a byte: "
            raise UsageError(msg + "convert it to UTF-8, or read whole files (GrowingFolder)")
        self._names = list(self._csv.names) or self.columns.names
        if missing := set(self.columns.names) - {*self._names}:
            msg = (
                f"{place}: CsvFormat: names must have all columns of the schema; {min(missing)!r} is missing"
            )
            raise UsageError(msg)
        self._check_metadata(self._names)
        self._needed = {*map(str.encode, self.columns.names)}
        self._cells = [_as_a_cell(name, self._csv) for name in sorted(self._needed)]
        self._below = ""  # why rows below a header are refused
        self._first = in_file and self._csv.header is not False
        self._validation.hint = lambda text, kind: csv_hint(text, kind, self._csv)

    def is_row(self, payload: bytes) -> bool:
        """Return whether a payload is one line, which is no header and none that holds elsewhere."""
        text = payload.strip(b" \t\r\n")
        comment = self._csv.comment.encode()
        plain = self._csv.encoding is None and not any(sign in text for sign in (b"\n", b"\r", b"\xff\xfe"))
        names = self._has_names(text)
        return (
            bool(text)
            and plain
            and not names
            and not (comment and text.startswith(comment))
            and not self._below
        )

    def _check_metadata(self, names: Sequence[str]) -> None:
        """Raise ``TraceError`` if a name is that of a column of messages."""
        if taken := [name for name in names if name in self.metadata]:
            msg = f"{self.place}: {taken[0]} is a column of the message, and the rows have one, too"
            raise TraceError(msg)

    def messages(self, data: Any) -> Iterator[Message]:
        """Yield pages; a line that has the names of the columns sets their order."""
        if isinstance(data, bytes):
            yield from self._of_lines(data)
            return
        payloads = [self._without_mark(payload) for payload in data]
        if not any(
            b"\n" in text or b"\r" in text for text in (payload.rstrip(b"\r\n") for payload in payloads)
        ):
            yield from self._of_lines(b"".join(payload.rstrip(b"\r\n") + b"\n" for payload in payloads))
            return
        for payload in payloads:
            yield from self._of_lines(payload, spans=True)

    def _without_mark(self, payload: bytes) -> bytes:
        """Return a payload as UTF-8 if its byte order mark tells that it is none."""
        mark, encoding = next((each for each in MARKS.items() if payload.startswith(each[0])), (b"", "utf-8"))
        try:
            return payload if encoding == "utf-8" else payload[len(mark) :].decode(encoding).encode()
        except UnicodeDecodeError:
            return payload  # its cells are refused

    def _of_lines(self, data: bytes, *, spans: bool = False) -> Iterator[Page]:
        data = self._as_utf8(data)
        if not self._first and not self._has_names(data):
            yield from self._rows(data, spans=spans)
            return
        sound: list[bytes] = []
        for line in data.splitlines(keepends=True):
            may_be = self._csv.header is not False and (self._first or self._has_names(line))
            if may_be and line.strip() and (cells := self._header(line)) is not None:
                yield from self._rows(b"".join(sound), spans=spans)
                sound = []
                self._begin(cells, line)
            else:
                sound.append(line)
        yield from self._rows(b"".join(sound), spans=spans)

    def _has_names(self, text: bytes) -> bool:
        """Return whether a cell may be a name of the columns: under ``host`` each line may have a ``host-1``."""
        return any(cell.search(text) is not None for cell in self._cells)

    def _as_utf8(self, data: bytes) -> bytes:
        if self._csv.encoding is None:
            return data
        try:
            return data.decode(self._csv.encoding).encode()
        except UnicodeDecodeError as error:
            if data.count(b"\n", 0, -1) == 0:
                self._refuse(f"the line is no {self._csv.encoding} ({error.reason})", data)
                return b""
            return b"".join(self._as_utf8(line) for line in data.splitlines(keepends=True))

    def _header(self, line: bytes) -> list[bytes] | None:
        """Return the cells of a line of names, though some may be missing; None: it is another line."""
        first, self._first = self._first, False
        text = line.removeprefix(_MARK).rstrip(b"\r\n")
        if self._csv.comment and text.startswith(self._csv.comment.encode()):
            self._first = first
            return None
        if self._sniffs:
            delimiter = sniffed_delimiter(text, replace(self._csv, delimiter=None), self.columns.names)
            cells = CsvRows(replace(self._csv, delimiter=delimiter), [], spans=False).cells(text)
            if cells is not None and self._needed <= {*cells}:
                self._csv = replace(self._csv, delimiter=delimiter)
                return self._each_once(cells, first=first)
        cells = CsvRows(self._csv, [], spans=False).cells(text) or [text]
        if self._needed <= {*cells}:
            return self._each_once(cells, first=first)
        if self._is_row(cells):
            return None
        if first or 2 * len(self._needed & {*cells}) >= len(cells):
            missing = ", ".join(sorted(repr(name.decode()) for name in self._needed - {*cells}))
            self._below = f"the header lacks {missing}"
            if first:
                got = ", ".join(cell.decode(errors="replace") for cell in cells[:20])
                msg = f"{self.place}: the first line must have the names of the columns, or be a row; got {got[:200]}: "
                msg += f"it lacks {missing}; with a CsvFormat of header=False rows are read in the order of the schema"
                raise TraceError(msg)
            return cells
        return None

    def _each_once(self, cells: list[bytes], *, first: bool) -> list[bytes]:
        """Return the names of a header; raises ``TraceError`` if the first line of a file has a needed one twice."""
        if (
            first
            and (name := next((name for name in self._needed if cells.count(name) > 1), None)) is not None
        ):
            msg = f"{self.place}: the first line has {name.decode()!r} twice: rename one"
            raise TraceError(msg)
        return cells

    def _is_row(self, cells: list[bytes]) -> bool:
        """Return whether cells are a row by their number and their time."""
        if len(cells) != len(self._names):
            return False
        time = self.schema.progressing
        if time in self.metadata:
            return True
        cell = pa.array([cells[self._names.index(time)]], pa.binary())
        kind = self.schema.type_of(time)
        bad = converted(canonical(cell, kind, self._csv), kind)[1]
        return bad is None or not bad[0].as_py()

    def _begin(self, cells: list[bytes], line: bytes) -> None:
        """Take names for the rows that follow."""
        self.header = line
        if not self._needed <= {*cells}:
            self._refuse(self._below, line)
            return
        names = [cell.decode(errors="replace") for cell in cells]
        twice = next((name for name in self.columns.names if names.count(name) > 1), None)
        taken = next((name for name in names if name in self.metadata), None)
        self._below = "" if twice is None else f"the header has {twice!r} twice"
        if taken is not None:
            self._below = f"{taken} is a column of the message, and the header has it, too"
        self._names = names
        if self._below:
            self._refuse(self._below, line)

    def _rows(self, data: bytes, *, spans: bool) -> Iterator[Page]:
        if not data:
            return
        if self._below:
            for line in data.splitlines():
                if line.strip():
                    self._refuse(f"{self._below}, so the rows below cannot be read", line)
            return
        rows = CsvRows(self._csv, self._names, spans=spans)
        batch, _ = rows.read(data.removeprefix(_MARK), self.columns.names)
        cells = dict(zip(batch.schema.names, batch.columns, strict=True))
        for field in self.columns:
            cells[field.name] = canonical(cells[field.name], field.type, self._csv)
        good = batch.num_rows if REFUSED not in cells else cells[REFUSED].null_count
        for name in dict.fromkeys(self._names) if good else ():
            self.unknown.add(name, good)
        if batch.num_rows:
            yield from self._pages([pa.RecordBatch.from_pydict(cells)])


def _as_a_cell(name: bytes, csv: CsvFormat) -> re.Pattern[bytes]:
    """Return a pattern for a name that is no part of a longer word; it begins with the name, which is found quickly."""
    inside = re.escape("".join(sorted(_INSIDE - {csv.delimiter, csv.quote}))).encode()
    plain = re.escape(name)
    return re.compile(plain + b"(?![" + inside + b"])(?<![" + inside + b"]" + plain + b")")
