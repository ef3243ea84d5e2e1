"""CSV rows: bytes of whole lines become columns of cells; a row that is none is refused alone.

A row is a line, or several where a quoted cell has line breaks, which ``spans`` allows.  A quote opens at the start
of a cell; the one that closes it stands before a delimiter or the end of a line.  If no such quote follows within
4 MiB, or the row that it ends has too few or too many cells, the line where the cell began is refused, and the lines
behind it are rows again.  So the answer depends on the bytes alone, not on where they are cut.

Arrow reads a block at once if NumPy finds its quotes in order; else lines are looked at one by one, and Arrow is
given those that are rows.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.csv

from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.format import LINE, LINE_NUMBER, REFUSED

__all__ = ["LONGEST", "CsvRows"]

LONGEST = 1 << 22
"""Bytes of a row, at most."""
_SHOWN = 1000
_OPEN, _TEXT_BEHIND = -1, -2
_Bad = tuple[list[str], list[bytes], list[int], list[int]]
"""Of lines that are no rows: reasons, lines, their numbers, and how many rows stand above each."""
_COLUMN = "oop_engine.{}"


class CsvRows:
    """Reads blocks of one file or stream; ``format`` has a delimiter.  ``line``: the number of the next line.

    ``names`` of the columns, which may change between blocks.
    """

    def __init__(self, format: CsvFormat, names: list[str], *, spans: bool, line: int = 1) -> None:
        self.names, self.line = names, line
        self._format, self._spans = format, spans
        self._quote, self._delimiter = (format.quote or "").encode(), (format.delimiter or ",").encode()
        self._comment = format.comment.encode()
        q = re.escape(self._quote)
        self._quoted = re.compile(b"%b(?:[^%b]++|%b%b)*+%b" % (q, q, q, q, q)) if q else None
        self._first: dict[str, int] = {}

    def read(self, data: bytes, wanted: list[str], *, last: bool = True) -> tuple[pa.RecordBatch, int]:
        """Return the rows in some whole lines, and how many bytes were read.

        Those behind are of a row that goes on, if this is not the ``last`` block.  Cells are bytes; refused rows have
        ``REFUSED``, ``LINE`` and ``LINE_NUMBER``.  O(bytes).
        """
        if self._in_order(data):
            try:
                batch = self._parsed(data, wanted)
            except pa.ArrowInvalid:
                pass  # a row has too few or too many cells
            else:
                self.line += data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
                return batch, len(data)
        return self._one_by_one(data, wanted, last=last)

    def cells(self, record: bytes) -> list[bytes] | None:
        """Return the cells of a record without its line break; None: a quote is not where it may be."""
        cells: list[bytes] = []
        if self._scan(record, cells) < 0:
            return None
        return cells

    def header(self, data: bytes, *, last: bool = True) -> tuple[list[bytes] | None, bytes, int]:
        """Return the cells of the first row, its text, and where the next one begins; counts the lines."""
        at = 0
        for line in data.splitlines(keepends=True):
            record = line
            text = line.rstrip(b"\r\n")
            if not self._is_blank(text) and not (self._comment and text.startswith(self._comment)):
                if self._scan(text) == _OPEN and self._spans and (end := self._closed(data, at)) > 0:
                    record = data[at:end]
                self.line += max(len(record.splitlines()), 1)
                return self.cells(record.rstrip(b"\r\n")), record, at + len(record)
            at += len(line)
            self.line += 1
        return None, b"", at

    def refused(self, reasons: list[str], lines: list[bytes], numbers: list[int]) -> dict[str, pa.Array]:
        """Return the columns that mark refused rows."""
        return {
            REFUSED: pa.array(reasons, pa.string()),
            LINE: pa.array([line[:_SHOWN] for line in lines], pa.binary()),
            LINE_NUMBER: pa.array(numbers, pa.int64()),
        }

    def _in_order(self, data: bytes) -> bool:
        """Return whether lines are rows as far as quotes, line breaks and comments go."""
        if len(data) >= LONGEST or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n")):
            return False
        if self._comment and (data.startswith(self._comment) or b"\n" + self._comment in data):
            return False
        if not self._quote or self._quote not in data:
            return True
        letters = np.frombuffer(data, np.uint8)
        quote, delimiter = self._quote[0], self._delimiter[0]
        quotes = np.flatnonzero(letters == quote)
        if len(quotes) % 2:
            return False
        opens, closes = quotes[0::2], quotes[1::2]
        before = letters[np.maximum(opens - 1, 0)]
        following = letters[np.minimum(closes + 1, len(letters) - 1)]
        ends = (following == delimiter) | (following == 10) | (following == 13) | (following == quote)
        starts = (before == delimiter) | (before == 10) | (before == quote)
        starts[0] |= opens[0] == 0
        ends[-1] |= closes[-1] == len(letters) - 1
        if not (starts.all() and ends.all()):
            return False
        if self._spans:
            return True
        breaks = np.flatnonzero(letters == 10)
        return not (np.searchsorted(quotes, breaks) % 2).any()

    def _parsed(self, data: bytes, wanted: list[str]) -> pa.RecordBatch:
        """Return cells of rows that all have as many as there are names."""
        if data[:1] in (b"", b"\r", b"\n") and not data.strip(b"\r\n"):
            return pa.RecordBatch.from_pydict({name: pa.nulls(0, pa.binary()) for name in wanted})
        places = [_COLUMN.format(i) for i in range(len(self.names))]  # names may be twice, or of Arrow
        included = [places[self.names.index(name)] for name in wanted]
        table = pa.csv.read_csv(
            pa.py_buffer(data),
            pa.csv.ReadOptions(column_names=places, use_threads=False, block_size=len(data) + 1),
            pa.csv.ParseOptions(
                delimiter=self._format.delimiter or ",",
                quote_char=self._format.quote or False,
                newlines_in_values=self._spans,
            ),
            pa.csv.ConvertOptions(
                column_types=dict.fromkeys(places, pa.binary()),
                include_columns=included,
                null_values=["", *self._format.nulls],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        return pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], names=wanted)

    def _one_by_one(self, data: bytes, wanted: list[str], *, last: bool) -> tuple[pa.RecordBatch, int]:
        sound: list[bytes] = []
        bad: _Bad = ([], [], [], [])
        at, skipped_to, width = 0, 0, len(self.names)
        for line in data.splitlines(keepends=True):
            start, at = at, at + len(line)
            if start < skipped_to:  # of a row that began above
                continue
            number, self.line = self.line, self.line + 1
            text = line.rstrip(b"\r\n")
            if self._is_blank(text) or (self._comment and text.startswith(self._comment)):
                continue
            if len(line) >= LONGEST:
                self._add(bad, f"a row must be shorter than {LONGEST:,} bytes", line, number, len(sound))
                continue
            count = self._scan(text)
            if count == _OPEN and self._spans:
                end = self._closed(data, start)
                if end == 0 and not last and len(data) - start < LONGEST:
                    self.line = number
                    return self._joined(sound, bad, wanted), start
                if end > 0 and self._scan(data[start:end].rstrip(b"\r\n")) == width:
                    sound.append(data[start:end])
                    self.line += len(data[at:end].splitlines())
                    skipped_to = end
                    continue
            if count == width:
                sound.append(line)
            elif count == _OPEN:
                self._add(bad, "a quote opens and does not close", line, number, len(sound))
            elif count == _TEXT_BEHIND:
                self._add(bad, "text follows on a closing quote", line, number, len(sound))
            else:
                self._add(bad, f"must have {width} cells; got {count}", line, number, len(sound))
        return self._joined(sound, bad, wanted), len(data)

    def _add(self, bad: _Bad, reason: str, line: bytes, number: int, place: int) -> None:
        reasons, lines, numbers, places = bad
        first = self._first.setdefault(reason, number)
        reasons.append(f"{reason} (first in line {first:,})" if self._spans else reason)
        lines.append(line.rstrip(b"\r\n"))
        numbers.append(number)
        places.append(place)

    def _joined(self, sound: list[bytes], bad: _Bad, wanted: list[str]) -> pa.RecordBatch:
        batch = self._parsed(b"".join(sound), wanted)
        reasons, lines, numbers, places = bad
        if not reasons:
            return batch
        marks = self.refused(reasons, lines, numbers)
        nothing, more = pa.nulls(batch.num_rows), pa.nulls(len(reasons), pa.binary())
        columns = {n: pa.concat_arrays([batch.column(n), more]) for n in batch.schema.names}
        columns |= {n: pa.concat_arrays([nothing.cast(c.type), c]) for n, c in marks.items()}
        rows = batch.num_rows
        in_order = np.insert(np.arange(rows), places, np.arange(rows, rows + len(reasons)))
        return pa.RecordBatch.from_pydict(columns).take(pa.array(in_order))

    def _is_blank(self, text: bytes) -> bool:
        """Return whether a line has no cells: nothing, or spaces where there are several columns."""
        return not text or (len(self.names) != 1 and self._delimiter not in text and not text.strip(b" \t"))

    def _scan(self, text: bytes, cells: list[bytes] | None = None) -> int:
        """Return the number of cells of a row, or why it is none; ``cells`` takes the cells."""
        if cells is None and (not self._quote or self._quote not in text):
            return text.count(self._delimiter) + 1
        at, count, size = 0, 0, len(text)
        while True:
            count += 1
            if self._quoted is not None and text.startswith(self._quote, at):
                end = self._end_of_quoted(text, at, size)
                if end < 0:
                    return _OPEN
                if cells is not None:
                    cells.append(text[at + 1 : end - 1].replace(self._quote * 2, self._quote))
                if end < size and text[end : end + 1] != self._delimiter:
                    return _TEXT_BEHIND
            else:
                end = text.find(self._delimiter, at)
                end = size if end < 0 else end
                if cells is not None:
                    cells.append(text[at:end])
            if end >= size:
                return count
            at = end + 1

    def _end_of_quoted(self, text: bytes, at: int, most: int) -> int:
        """Return the offset behind the closing quote of the cell that opens at ``at``; -1: there is none."""
        quoted = self._quoted.match(text, at, most) if self._quoted is not None else None
        return -1 if quoted is None else quoted.end()

    def _closed(self, data: bytes, start: int) -> int:
        """Return where the row ends whose last cell on its first line stays open; 0: unknown yet, -1: it does not."""
        most = min(len(data), start + LONGEST)
        at = start
        while True:
            if data.startswith(self._quote, at):
                end = self._end_of_quoted(data, at, most)
                if end < 0:
                    return 0 if most == len(data) else -1
            else:
                ends = [
                    e for e in (data.find(s, at, most) for s in (self._delimiter, b"\n", b"\r")) if e >= 0
                ]
                end = min(ends, default=most)
            if end >= most:
                return end if most == len(data) else -1
            sign = data[end : end + 1]
            if sign == b"\r" and data[end + 1 : end + 2] == b"\n":
                return end + 2
            if sign in (b"\n", b"\r"):
                return end + 1
            if sign != self._delimiter:
                return -1
            at = end + 1
