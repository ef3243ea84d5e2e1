"""msgpack frames: a stream of arrays, each a page or a punctuation, with an end that can be checked.

["oop-trace/1", columns]         first; Arrow IPC schema, marks in its metadata
["page", batch]                  Arrow IPC record batch message
["linear", below]
["group-wise", groups, below]    Arrow IPC stream of one batch; int64 little-endian
["joint", [[name, below], ...]]
["arrival", arrival, frame]      around one of these three, or a watermark: the moment when it comes
["end", rows]                    last; without it the file was cut off
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import msgpack
import pyarrow as pa

from oop_engine.core.errors import TraceError
from oop_engine.core.punctuation import GroupWise, Joint, Linear, Punctuation, Watermark
from oop_engine.traces.compressed import opened
from oop_engine.traces.format import Marks, Record, readable
from oop_engine.traces.punctuation_records import punctuation_of

__all__ = ["FramesReader", "FramesWriter", "frame_of"]

_FORMAT = "oop-trace/1"
_MAX_FRAME = 1 << 30
_MAX_PARTS = 1 << 16  # of a list: room for all is made when its length is read


def frame_of(punctuation: Punctuation) -> list[Any]:
    """Return a punctuation as a frame."""
    if punctuation.arrival is not None:
        return ["arrival", punctuation.arrival, frame_of(replace(punctuation, arrival=None))]
    match punctuation:
        case Linear(below):
            return ["linear", below]
        case GroupWise(groups, bounds):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, groups.schema) as writer:
                writer.write_batch(groups)
            return ["group-wise", sink.getvalue().to_pybytes(), bounds.astype("<i8").tobytes()]
        case Joint(joint):
            return ["joint", [list(pair) for pair in joint]]
        case Watermark(soft):
            return ["watermark", frame_of(soft)]


class FramesReader:
    """One frame is in memory at a time."""

    guessed: ClassVar[bool] = False
    sparse: ClassVar[bool] = False
    crowded: ClassVar[bool] = False

    def __init__(self, path: Path, times: tuple[str, ...] = ()) -> None:
        self._path = path
        with readable(path):
            schema = self._schema_of(next(self._frames(), None))
            self.fields = schema.remove_metadata()
            self.marks = Marks.of(schema)

    def read(self, columns: pa.Schema, page_rows: int) -> Iterator[Record]:
        """Yield pages as they were written, and the punctuation between them."""
        rows = 0
        with readable(self._path):
            frames = self._frames()
            schema = self._schema_of(next(frames, None))
            for frame in frames:
                match frame:
                    case ["end", *_]:
                        self._check_end(frame, rows, frames)
                        return
                    case ["page", bytes(page)]:
                        batch = pa.ipc.read_record_batch(pa.py_buffer(page), schema)
                        rows += batch.num_rows
                        yield batch.select(columns.names)
                    case _:
                        yield punctuation_of(frame)
        msg = f"{self._path}: ends after row {rows} without its end frame: it was cut off, write it again"
        raise TraceError(msg)

    def _frames(self) -> Iterator[list[Any]]:
        with opened(self._path) as file:
            unpacker = msgpack.Unpacker(
                file, max_buffer_size=_MAX_FRAME, max_array_len=_MAX_PARTS, max_map_len=0, max_ext_len=0
            )
            for frame in unpacker:
                if not isinstance(frame, list) or not frame:
                    msg = f"no frame before byte {unpacker.tell()}"
                    raise ValueError(msg)
                yield frame

    def _schema_of(self, frame: list[Any] | None) -> pa.Schema:
        match frame:
            case [format_name, bytes(columns)] if format_name == _FORMAT:
                return pa.ipc.read_schema(pa.py_buffer(columns))
        got = "nothing" if frame is None else str(frame[:1])[:40]
        msg = f"{self._path}: must begin with a frame [{_FORMAT!r}, columns]; got {got}: is it a trace?"
        raise TraceError(msg)

    def _check_end(self, frame: list[Any], rows: int, frames: Iterator[list[Any]]) -> None:
        if frame[1:] != [rows]:
            msg = f"{self._path}: must have {frame[1:]} rows, by its end frame; got {rows}: write it again"
            raise TraceError(msg)
        if next(frames, None) is not None:
            msg = f"{self._path}: has data after its end frame (row {rows}): traces cannot be joined by cat"
            raise TraceError(msg)


class FramesWriter:
    """One frame a page, so readers see the pages as they were."""

    def __init__(self, sink: pa.NativeFile, fields: pa.Schema, marks: Marks) -> None:
        self._sink = sink
        self._rows = 0
        self._put([_FORMAT, marks.on(fields).serialize().to_pybytes()])

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a page."""
        self._rows += batch.num_rows
        self._put(["page", batch.serialize().to_pybytes()])

    def punctuation(self, punctuation: Punctuation) -> None:
        """Append a punctuation."""
        self._put(frame_of(punctuation))

    def close(self) -> None:
        """Append the end."""
        self._put(["end", self._rows])

    def _put(self, frame: list[Any]) -> None:
        self._sink.write(msgpack.packb(frame))
