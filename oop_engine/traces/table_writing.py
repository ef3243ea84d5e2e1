"""Writing tables: a whole table goes to a file in the format of its suffix, which appears when it is whole."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from oop_engine.core.errors import EngineError, TraceError
from oop_engine.core.values.arrays import converted
from oop_engine.system.whole_file import whole_file
from oop_engine.traces.compressed import compressing
from oop_engine.traces.format import Marks, plain
from oop_engine.traces.format_registry import FORMATS, format_of

__all__ = ["write_table"]


def write_table(path: str | Path, table: pa.Table, *, format: str | None = None) -> int:
    """Write a table as ``write_trace`` writes rows; return their number.

    The format is that of the suffix: CSV, JSON lines, Parquet, Arrow, msgpack.  The file appears under its name when it
    is whole.  Raises ``TraceError`` if the format cannot hold the columns, or the file cannot be written.
    """
    path = Path(path)
    made_from = FORMATS[format_of(path, format)].writer
    fields = plain(table.schema)
    try:
        with whole_file(path) as file, pa.PythonFile(file, mode="w") as raw, compressing(path, raw) as sink:
            writer = made_from(sink, fields, Marks())
            try:
                for batch in table.to_batches():
                    columns = [converted(batch.column(f.name), f.type)[0] for f in fields]
                    writer.write(pa.RecordBatch.from_arrays(columns, schema=fields))
            finally:
                writer.close()
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, EngineError):
            raise
        msg = f"{path}: cannot be written ({error}): check the folder and the space left"
        raise TraceError(msg) from error
    return int(table.num_rows)
