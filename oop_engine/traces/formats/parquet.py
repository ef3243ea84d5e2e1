"""Parquet: columns, compressed; carries no punctuation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from oop_engine.core.errors import TraceError
from oop_engine.core.punctuation import Punctuation
from oop_engine.traces.format import Marks, Record, readable

__all__ = ["ParquetReader", "ParquetWriter"]

_BUFFER = 1 << 20
_GROUP_ROWS = 1 << 17


class ParquetReader:
    """Row groups are read through a buffer of 1 MB a column, never whole."""

    guessed: ClassVar[bool] = False
    sparse: ClassVar[bool] = False
    crowded: ClassVar[bool] = False

    def __init__(self, path: Path, times: tuple[str, ...] = ()) -> None:
        self._path = path
        with readable(path), pq.ParquetFile(path) as file:
            self.fields = file.schema_arrow.remove_metadata()
            self.marks = Marks.of(file.schema_arrow)

    def read(self, columns: pa.Schema, page_rows: int) -> Iterator[Record]:
        """Yield the rows, at most ``page_rows`` at a time; raises ``TraceError`` unless the footer has their number."""
        options = {"buffer_size": _BUFFER, "pre_buffer": False}
        with readable(self._path), pq.ParquetFile(self._path, **options) as file:
            rows = 0
            for batch in file.iter_batches(page_rows, columns=columns.names, use_threads=False):
                rows += batch.num_rows
                yield batch.select(columns.names)
            if rows != file.metadata.num_rows:
                msg = f"must have {file.metadata.num_rows:,} rows, by its footer; got {rows:,}"
                raise ValueError(msg)


class ParquetWriter:
    """Rows are gathered into row groups of at least 131,072."""

    def __init__(self, sink: pa.NativeFile, fields: pa.Schema, marks: Marks) -> None:
        self._fields = marks.on(fields)
        self._writer = pq.ParquetWriter(sink, self._fields)
        self._held: list[pa.RecordBatch] = []
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._held.append(batch.replace_schema_metadata(self._fields.metadata))
        self._rows += batch.num_rows
        if self._rows >= _GROUP_ROWS:
            self._flush()

    def punctuation(self, punctuation: Punctuation) -> None:
        """Refuse: Parquet has rows only."""
        msg = "parquet carries no punctuation: write arrow, jsonl or msgpack, or leave the punctuation out"
        raise TraceError(msg)

    def close(self) -> None:
        """Finish the file."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.Table.from_batches(self._held))
            self._held, self._rows = [], 0
