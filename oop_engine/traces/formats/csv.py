"""CSV: a header, then a row a line; carries no punctuation.

An empty cell is null, ``""`` is the empty string.  In columns that are not text, ``NA``,
``N/A``, ``null`` and ``None`` are null too.  A row with too few or too many cells is an error: nobody
can tell which cell is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.csv

from oop_engine.core.errors import TraceError
from oop_engine.core.punctuation import Punctuation
from oop_engine.core.values.rfc3339 import with_moment_texts
from oop_engine.traces.casting import guess, guess_time
from oop_engine.traces.format import Marks, Record, readable, require_textual

__all__ = ["CsvReader", "CsvWriter"]

_MISFIT = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)
_BLOCK = 1 << 18  # Arrow reads up to 32 of them ahead


class CsvReader:
    """Blocks of 256 kB; every cell is yielded as the bytes it is."""

    guessed: ClassVar[bool] = True
    sparse: ClassVar[bool] = False
    crowded: ClassVar[bool] = False

    def __init__(self, path: Path, times: tuple[str, ...] = ()) -> None:
        self._path = path
        self.marks = Marks()
        self._names = self._header()
        nothing = pa.RecordBatch.from_pydict({name: pa.array([], pa.binary()) for name in self._names})
        head = next(self._blocks(self._names), nothing)
        guesses = [(guess_time if name in times else guess)(head.column(name)) for name in self._names]
        self.fields = pa.schema(list(zip(self._names, guesses, strict=True)))

    def read(self, columns: pa.Schema, page_rows: int) -> Iterator[Record]:
        """Yield the rows of each block; raises ``TraceError`` at a row of another length than the header."""
        return self._blocks(columns.names)

    def _blocks(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        with readable(self._path):
            try:
                yield from self._open(names)
            except pa.ArrowInvalid as error:
                if (found := _MISFIT.search(str(error))) is None:
                    raise
                row, wanted, got, text = found.groups()
                msg = (
                    f"{self._path}: line {row} (row {int(row) - 1}): must have {wanted} cells as the header has; "
                    f"got {got}: {text[:80]!r}: mend or delete the line"
                )
                raise TraceError(msg) from None

    def _header(self) -> list[str]:
        with self._path.open("rb") as file:
            line = file.readline(_BLOCK)
        with readable(self._path, "a CSV trace begins with a line of column names"):
            options = pa.csv.ReadOptions(autogenerate_column_names=True, use_threads=False)
            cells = pa.csv.read_csv(pa.py_buffer(line), options, convert_options=_as_bytes(None)).slice(0, 1)
            names = [cell.as_py() or "" for column in cells.columns for cell in column.cast(pa.string())]
        if len(set(names)) < len(names):
            msg = f"{self._path}: line 1: column names must differ; got {', '.join(names)}: rename one"
            raise TraceError(msg)
        return names

    def _open(self, names: list[str]) -> pa.csv.CSVStreamingReader:
        return pa.csv.open_csv(
            self._path,
            pa.csv.ReadOptions(block_size=_BLOCK, use_threads=False),
            pa.csv.ParseOptions(newlines_in_values=True),
            _as_bytes(self._names, names),
        )


class CsvWriter:
    """Strings and moments are quoted, so that an empty string is not null."""

    def __init__(self, sink: pa.NativeFile, fields: pa.Schema, marks: Marks) -> None:
        require_textual(fields, "csv")
        texts = with_moment_texts(fields.empty_table()).schema
        self._writer = pa.csv.CSVWriter(sink, texts)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._writer.write_batch(with_moment_texts(batch))

    def punctuation(self, punctuation: Punctuation) -> None:
        """Refuse: CSV has rows only."""
        msg = "csv carries no punctuation: write arrow, jsonl or msgpack, or leave the punctuation out"
        raise TraceError(msg)

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()


def _as_bytes(names: list[str] | None, included: list[str] | None = None) -> pa.csv.ConvertOptions:
    """Return options that read cells as bytes: one that is no UTF-8 must not stop the others."""
    return pa.csv.ConvertOptions(
        column_types=None if names is None else dict.fromkeys(names, pa.binary()),
        include_columns=included,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
