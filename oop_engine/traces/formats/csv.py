"""CSV: a header, then rows (``csv_rows``); carries no punctuation.

An empty cell is null, ``""`` is the empty string.  In columns that are not text, ``NA``,
``N/A``, ``null`` and ``None`` are null too.  A row with too few or too many cells is refused: nobody
can tell which cell is missing.  A ``CsvFormat`` has how a file is written; the rest is sniffed.
"""

from __future__ import annotations

import codecs
import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.csv

from oop_engine.core.errors import TraceError
from oop_engine.system.knobs import knob
from oop_engine.traces.compressed import opened, share_read
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.format import Marks, Record, readable
from oop_engine.traces.formats.alike.block import Seen
from oop_engine.traces.formats.alike.csv import csv_alike
from oop_engine.traces.formats.csv_cells import canonical
from oop_engine.traces.formats.csv_rows import LONGEST, CsvRows
from oop_engine.traces.formats.csv_sniffed import csv_hint, sniffed_cells, sniffed_delimiter, sniffed_encoding
from oop_engine.traces.formats.guessing import as_texts_are, guess, guess_time, spoiler_of

__all__ = ["CsvReader"]

_BLOCK = knob(__name__, "_BLOCK", 1 << 20)
_SAMPLE = 10_000
"""Rows by which types are guessed, at least; of a large file a quarter of the first block."""


class CsvReader:
    """Blocks of 1 MB; every cell is yielded as the bytes it is, numbers and dates as ISO 8601 has them.

    ``csv``: how the file is written; ``wanted``: names of the columns of a schema, so that no types are guessed but
    those of times, and a file without a header has these columns.
    ``notes``: lines for the user: the form that was sniffed; ``spoiled``: by column, why it is text.
    """

    guessed: ClassVar[bool] = True
    sparse: ClassVar[bool] = False
    crowded: ClassVar[bool] = False

    def __init__(
        self,
        path: Path,
        times: tuple[str, ...] = (),
        *,
        csv: CsvFormat | None = None,
        wanted: Collection[str] = (),
    ) -> None:
        self._path, self._times = path, times
        self.share: float | None = None
        self.marks = Marks()
        self.notes: list[str] = []
        self.spoiled: dict[str, str] = {}
        given = csv or CsvFormat()
        with readable(path):
            head, self.csv = self._told_by_head(given, tuple(times))
            with readable(path, "a CSV trace begins with a line of column names"):
                self._names = self._header(head, wanted)
            nothing = pa.RecordBatch.from_pydict({name: pa.nulls(0, pa.binary()) for name in self._names})
            first = next(self._blocks(self._names), nothing).select(self._names)
            first = first.slice(0, max(first.num_rows // 4, _SAMPLE))
        self.csv = sniffed_cells(first, self.csv)
        guesses = {
            name: self._guess(name, first, name in times)
            for name in self._names
            if name in times or not wanted
        }
        self.fields = pa.schema([(name, guesses.get(name, pa.string())) for name in self._names])
        self._note(given, head)

    def hint(self, text: str, kind: pa.DataType) -> str:
        """Return which option reads a cell that was refused, in words; "": none does."""
        return csv_hint(text, kind, self.csv)

    def read(self, columns: pa.Schema, page_rows: int) -> Iterator[Record]:
        """Yield the rows of each block; rows that are none are refused."""
        return self._read(columns, ())

    def read_guessed(self, columns: pa.Schema, declared: Collection[str]) -> Iterator[Record]:
        """Yield the same rows; in columns whose type is a guess, numbers that are written otherwise are refused."""
        return self._read(columns, [f.name for f in columns if f.name not in declared])

    def _read(self, columns: pa.Schema, guesses: Collection[str]) -> Iterator[Record]:
        for batch in self._blocks(columns.names, columns):
            if batch.schema.types == columns.types:
                yield batch
                continue
            cells = {name: batch.column(name) for name in batch.schema.names}
            for field in columns:
                cells[field.name] = canonical(cells[field.name], field.type, self.csv)
                if field.name in guesses and pa.types.is_integer(field.type):
                    cells[field.name] = as_texts_are(field.name, cells[field.name])
            yield pa.RecordBatch.from_pydict(cells)

    def _guess(self, name: str, head: pa.RecordBatch, is_time: bool) -> pa.DataType:
        texts, prepared = head.column(name), partial(canonical, format=self.csv)
        if is_time:
            return guess_time(texts, prepared)
        kind = guess(texts, prepared)
        if kind == pa.string() and (spoiler := spoiler_of(texts, prepared)) is not None:
            self.spoiled[name] = spoiler.line(name)
        return kind

    def _told_by_head(self, given: CsvFormat, known: tuple[str, ...]) -> tuple[bytes, CsvFormat]:
        """Return the first block as UTF-8, and the format with encoding and delimiter."""
        with opened(self._path) as file:
            raw = file.read(_BLOCK)
        encoding, mark = sniffed_encoding(raw)
        if given.encoding is not None and not mark:
            encoding = given.encoding
        self._mark = mark
        format = replace(given, encoding=encoding)
        head = raw[mark:]
        if not _is_utf8(encoding):
            head = codecs.getincrementaldecoder(encoding)().decode(head).encode()
        if format.delimiter is None:
            format = replace(format, delimiter=sniffed_delimiter(head, format, known))
        return head, format

    def _header(self, head: bytes, wanted: Collection[str]) -> list[str]:
        rows = CsvRows(self.csv, [""], spans=True)
        cells, text, at = rows.header(head)
        self._first_line, self._starts_at = rows.line, at
        if self.csv.header is False:
            self._first_line, self._starts_at = 1, 0
            names = list(self.csv.names or wanted)
            return names or [f"column_{i}" for i in range(1, len(cells or ()) + 1)]
        if cells is None or len(text) >= LONGEST:
            msg = f"empty, or a quote that does not close: {text[:80]!r}" if text else "empty"
            raise ValueError(msg)
        names = _numbered([cell.decode() for cell in cells], wanted)
        if len(set(names)) < len(names):
            msg = f"{self._path}: line {rows.line - 1}: column names must differ; got {', '.join(names)}: rename one"
            raise TraceError(msg)
        return names

    def _note(self, given: CsvFormat, head: bytes) -> None:
        """Note the form that was sniffed, if it is not the usual one."""
        usual = replace(given, delimiter=given.delimiter or ",", encoding=given.encoding or "utf-8")
        shown = {
            name: value
            for name, value in vars(self.csv).items()
            if value != getattr(usual, name)
            and name in ("delimiter", "encoding", "decimal", "thousands", "dates")
        }
        if shown:
            words = ", ".join(f"{name} {json.dumps(value)}" for name, value in shown.items())
            self.notes.insert(0, f"csv: {words} (sniffed; another with CsvFormat, --csv)")
        if _is_utf8(self.csv.encoding or "utf-8") and not _decodes(head):
            self.notes.insert(
                0, 'csv: has texts that are no UTF-8: declare them, such as --csv "encoding=latin-1"'
            )

    def _blocks(self, names: list[str], typed: pa.Schema | None = None) -> Iterator[pa.RecordBatch]:
        """Yield cells as bytes, or, of a block whose rows are all good, in the types of the columns ``typed``."""
        required = {*self._times, *(field.name for field in typed or () if not field.nullable)}
        seen = Seen()
        with readable(self._path):
            rows = CsvRows(self.csv, self._names, spans=True, line=self._first_line)
            skipped, data, at_long_row = self._starts_at, b"", False
            for block, last in _with_last(self._as_utf8()):
                data = data + block if data else block
                if skipped:
                    skipped, data = max(skipped - len(data), 0), data[skipped:]
                if at_long_row:
                    end = data.find(b"\n") + 1
                    at_long_row, data = not end, data[end:] if end else b""
                    rows.line += not at_long_row
                cut = len(data) if last else _end_of_lines(data)
                if cut == 0 and len(data) >= LONGEST:
                    yield _too_long(rows, data, names)
                    at_long_row, data = True, b""
                    continue
                # A block as long as the longest row may have a row beyond it, which the kernel would read.
                if 0 < cut < LONGEST and typed is not None and seen.enough(lines := data[:cut]):
                    good = csv_alike(lines, self._names, typed, required, self.csv)
                    if good is not None:
                        rows.line += good.num_rows
                        data, cut = data[cut:], 0
                        yield good
                if cut:
                    batch, used = rows.read(data[:cut], names, last=last)
                    data = data[used:]
                    if batch.num_rows:
                        yield batch

    def _as_utf8(self) -> Iterator[bytes]:
        """Yield the file in blocks of UTF-8, without the byte order mark."""
        encoding = self.csv.encoding or "utf-8"
        decoder = None if _is_utf8(encoding) else codecs.getincrementaldecoder(encoding)()
        with opened(self._path) as file:
            file.read(self._mark)
            while block := file.read(_BLOCK):
                self.share = share_read(self._path, file)
                if decoder is not None:
                    yield decoder.decode(block).encode()
                else:  # to the end of a line, so that nothing is left to be copied
                    yield block if block.endswith(b"\n") else block + file.readline(_BLOCK)
            if decoder is not None:
                yield decoder.decode(b"", True).encode()


def _too_long(rows: CsvRows, data: bytes, names: list[str]) -> pa.RecordBatch:
    nothing = {name: pa.nulls(1, pa.binary()) for name in names}
    reason = f"a row must be shorter than {LONGEST:,} bytes"
    return pa.RecordBatch.from_pydict(nothing | rows.refused([reason], [data], [rows.line]))


def _end_of_lines(data: bytes) -> int:
    """Return where the last whole line ends: at a line feed, or, in a file that has none, at a carriage return."""
    end = data.rfind(b"\n") + 1
    return end or data.rfind(b"\r", 0, len(data) - 1) + 1


def _with_last(blocks: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield blocks, each with whether it is the last."""
    pending = next(blocks, b"")
    for block in blocks:
        yield pending, False
        pending = block
    yield pending, True


def _numbered(names: list[str], wanted: Collection[str]) -> list[str]:
    """Return names of columns, with a number behind repeated ones that are not ``wanted``."""
    seen: Counter[str] = Counter()
    numbered = []
    for name in names:
        seen[name] += 1
        numbered.append(
            f"{name} ({seen[name]})" if wanted and seen[name] > 1 and name not in wanted else name
        )
    return numbered


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name == "utf-8"


def _decodes(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True
