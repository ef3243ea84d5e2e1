"""Packed: whatever a source gives, as bytes of msgpack and back.

Lines and payloads are binary, rows are maps.  Arrow data are IPC streams, punctuation is a frame of a trace, and
other values of a row (moments, decimals) are columns of one: each an extension type of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgpack
import pyarrow as pa

from oop_engine.connectors.payload import Payload
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Punctuation
from oop_engine.core.values.frames import cells_of, typed_batches, typed_column
from oop_engine.core.values.python_values import natural
from oop_engine.runners.feeds.of_now import of_now, parts_of_now
from oop_engine.runners.feeds.tables import is_column
from oop_engine.traces.formats.msgpack_frames import frame_of
from oop_engine.traces.punctuation_records import punctuation_of

__all__ = ["UNPACKABLE", "carried", "lasting", "lasting_parts", "packer", "packer_of_parts", "unpacked"]

_ARROW, _PUNCTUATION, _VALUE, _COLUMN, _PAYLOAD = 1, 2, 3, 4, 5
UNPACKABLE = (TypeError, ValueError, OverflowError, pa.ArrowException)
"""Errors of a value that has no form as bytes: an object of Python, an integer of more than 64 bits."""


def lasting(data: Any) -> Any:
    """Return data that can be read twice: as ``of_now``; of iterators, traces and Arrow data all that is in them."""
    return of_now(data, _read)


def lasting_parts(data: Any, most: int) -> Iterator[list[Any]] | None:
    """Return ``lasting(data)`` of a long list as parts of ``most`` rows, each made when it is asked for; else None."""
    return parts_of_now(data, most, _read)


def _read(data: Any) -> Any:
    """Return all that is in Arrow data, an iterator or a trace."""
    return _batches(data) if hasattr(data, "__arrow_c_stream__") else [of_now(each, _read) for each in data]


def _batches(data: Any) -> Any:
    """Return the batches of Arrow data; of a frame of pandas whose cells have no type in common, columns of objects."""
    try:
        return typed_batches(data)
    except UNPACKABLE:
        if (cells := cells_of(data)) is None:
            raise
        return cells


class _Carried:
    """A payload with columns of its message: msgpack takes it for plain bytes."""

    def __init__(self, payload: Payload) -> None:
        self.payload = payload


def carried(data: Any) -> Any:
    """Return data as ``packer`` packs all of them.

    >>> pack = packer()
    >>> [(again, _)] = unpacked(pack(carried([Payload(b"a", {"_offset": 7})])))
    >>> again, again[0].about
    ([b'a'], {'_offset': 7})
    """
    if isinstance(data, Payload):
        return _Carried(data)
    return [*map(carried, data)] if data.__class__ is list else data


def packer() -> Callable[[Any], bytes]:
    """Return a function that packs data; it raises one of ``UNPACKABLE``."""
    pack: Callable[[Any], bytes] = msgpack.Packer(default=_extended).pack
    return pack


def packer_of_parts() -> Callable[[Iterable[list[Any]], int, Any], Iterator[bytes]]:
    """Return a function that packs a list of so many rows and a position, part by part.

    The bytes are those of ``packer``.

    >>> b"".join(packer_of_parts()([[1, 2], [3]], 3, 7)) == packer()([[1, 2, 3], 7])
    True
    """
    packing = msgpack.Packer(default=_extended)

    def packed(parts: Iterable[list[Any]], rows: int, position: Any) -> Iterator[bytes]:
        yield packing.pack_array_header(2) + packing.pack_array_header(rows)
        for part in parts:
            yield b"".join(map(packing.pack, part))
        yield packing.pack(position)

    return packed


def unpacked(packed: bytes) -> Iterator[tuple[Any, int]]:
    """Yield each of the data that were packed one behind the other, with the number of the byte behind it.

    >>> pack = packer()
    >>> list(unpacked(pack([b"line", 1]) + pack({"ts": 5})))
    [([b'line', 1], 8), ({'ts': 5}, 13)]
    """
    unpacker = msgpack.Unpacker(max_buffer_size=len(packed), strict_map_key=False, ext_hook=_plain)
    unpacker.feed(packed)
    for data in unpacker:
        yield data, unpacker.tell()


def _extended(value: Any) -> msgpack.ExtType:
    if isinstance(value, _Carried):
        payload = value.payload
        body = msgpack.packb([None if payload.is_null else bytes(payload), dict(payload.about)])
        return msgpack.ExtType(_PAYLOAD, body)
    if isinstance(value, Punctuation):
        return msgpack.ExtType(_PUNCTUATION, msgpack.packb(frame_of(value)))
    if isinstance(value, pa.RecordBatch | Page):
        return msgpack.ExtType(_ARROW, _stream(pa.record_batch(value)))
    if is_column(value):
        return msgpack.ExtType(_COLUMN, _stream(pa.record_batch([typed_column(value)], ["column"])))
    if isinstance(value, int):  # of more than 64 bits: it would come back as a decimal
        msg = f"an integer must be of 64 bits; got {value}"
        raise OverflowError(msg)
    return msgpack.ExtType(_VALUE, _stream(pa.record_batch([natural([value])], ["value"])))


def _plain(kind: int, data: bytes) -> Any:
    if kind == _PAYLOAD:
        return Payload(*msgpack.unpackb(data, use_list=False))
    if kind == _PUNCTUATION:
        return punctuation_of(msgpack.unpackb(data))
    batch = pa.ipc.open_stream(data).read_next_batch()
    if kind == _ARROW:
        return batch
    return batch.column(0) if kind == _COLUMN else batch.column(0)[0].as_py()


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
