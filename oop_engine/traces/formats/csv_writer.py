"""CSV as it is written: a header, then rows; strings are in quotes, and a row is one that can be read again."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from oop_engine.core.errors import TraceError
from oop_engine.core.punctuation import Punctuation
from oop_engine.core.values.rfc3339 import for_texts
from oop_engine.traces.format import Marks, require_textual
from oop_engine.traces.formats.csv_rows import LONGEST

__all__ = ["CsvWriter"]


class CsvWriter:
    """Strings and moments are quoted, so that an empty string is not null."""

    def __init__(self, sink: pa.NativeFile, fields: pa.Schema, marks: Marks) -> None:
        require_textual(fields, "csv")
        for name in fields.names:
            if name != name.strip("\r\n\0") or not name:
                msg = f"csv: column {name!r}: a name must be a text that a header can hold: rename it"
                raise TraceError(msg)
        texts = for_texts(fields.empty_table()).schema
        self._writer = pa.csv.CSVWriter(sink, texts)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        rows = for_texts(batch)
        if rows.nbytes >= LONGEST:
            _check_lengths(rows)
        self._writer.write_batch(rows)

    def punctuation(self, punctuation: Punctuation) -> None:
        """Refuse: CSV has rows only."""
        msg = "csv carries no punctuation: write arrow, jsonl or msgpack, or leave the punctuation out"
        raise TraceError(msg)

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()


def _check_lengths(rows: pa.RecordBatch) -> None:
    """Raise ``TraceError`` if a row may be longer than one that can be read."""
    texts = [c for c in rows.columns if pa.types.is_string(c.type) or pa.types.is_large_string(c.type)]
    lengths = [pc.add(pc.multiply(pc.binary_length(c).fill_null(0).cast(pa.int64()), 2), 4) for c in texts]
    for i in range(rows.num_rows if lengths else 0):
        if sum(each[i].as_py() for each in lengths) + 64 * len(rows.columns) >= LONGEST:
            msg = f"csv: a row must be shorter than {LONGEST:,} bytes, with quotes: use arrow, parquet or msgpack"
            raise TraceError(msg)
