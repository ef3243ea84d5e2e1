"""Arrow IPC files: columns as they are in memory; a punctuation is a batch of no rows with metadata."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import msgpack
import pyarrow as pa

from oop_engine.core.punctuation import Punctuation
from oop_engine.traces.compressed import seekable
from oop_engine.traces.format import Marks, Record, readable
from oop_engine.traces.formats.msgpack_frames import frame_of
from oop_engine.traces.punctuation_records import punctuation_of

__all__ = ["ArrowReader", "ArrowWriter", "punctuation_in"]

_PUNCTUATION = b"oop_engine.promise"


def punctuation_in(metadata: pa.KeyValueMetadata | None) -> Punctuation | None:
    """Return the punctuation in the metadata of a batch, if there is one; raises ``ValueError`` if it is unsound."""
    if metadata is None or _PUNCTUATION not in metadata:
        return None
    return punctuation_of(msgpack.unpackb(b64decode(metadata[_PUNCTUATION])))


class ArrowReader:
    """One batch is in memory at a time.

    The file is read, not mapped: one that is cut meanwhile would end the process.
    """

    guessed: ClassVar[bool] = False
    sparse: ClassVar[bool] = False
    crowded: ClassVar[bool] = False

    def __init__(self, path: Path, times: tuple[str, ...] = ()) -> None:
        self._path = path
        self.share: float | None = None
        with readable(path), seekable(path) as source:
            schema = pa.ipc.open_file(source).schema
            self.fields = schema.remove_metadata()
            self.marks = Marks.of(schema)

    def read(self, columns: pa.Schema, page_rows: int) -> Iterator[Record]:
        """Yield batches as they were written, and the punctuation between them."""
        wanted = [self.fields.get_field_index(name) for name in columns.names]
        with readable(self._path), seekable(self._path) as source:
            reader = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=sorted(wanted)))
            for i in range(reader.num_record_batches):
                batch, metadata = reader.get_batch_with_custom_metadata(i)
                self.share = (i + 1) / reader.num_record_batches
                punctuation = punctuation_in(metadata)
                yield batch.select(columns.names) if punctuation is None else punctuation


class ArrowWriter:
    """One record batch a page, uncompressed."""

    def __init__(self, sink: pa.NativeFile, fields: pa.Schema, marks: Marks) -> None:
        self._fields = marks.on(fields)
        self._writer = pa.ipc.new_file(sink, self._fields)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a page."""
        self._writer.write_batch(batch)

    def punctuation(self, punctuation: Punctuation) -> None:
        """Append a punctuation."""
        nothing = pa.RecordBatch.from_pylist([], schema=self._fields)
        packed = b64encode(msgpack.packb(frame_of(punctuation)))  # metadata must be UTF-8
        self._writer.write_batch(nothing, custom_metadata={_PUNCTUATION: packed})

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()
