"""State as bytes: msgpack frames with raw column buffers, never pickle.

A snapshot is made by one process and read by another, perhaps of another version, so
its bytes are treated as coming from outside: what is not understood is refused.
"""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np
import pyarrow as pa

from oop_engine.errors import SnapshotError

__all__ = ["pack", "unpack"]

_ARRAY, _BATCH, _BIG = 1, 2, 3
_FORMAT = "oop-engine/1"


def pack(owner: str, state: dict[str, Any]) -> bytes:
    """Return ``state`` as bytes in the name of ``owner`` (the operator's class).

    Values: None, bool, int, float, str, bytes, lists, tuples (they come back as lists),
    dictionaries, NumPy arrays of fixed-width dtype and Arrow record batches; keys of
    dictionaries are None, bool, int, float, str or bytes.  O(bytes).

    >>> unpack("Meld", pack("Meld", {"linear": np.array([1, 2])}))["linear"]
    array([1, 2])
    """
    return bytes(msgpack.packb([_FORMAT, owner, state], default=_encode, strict_types=False))


def unpack(owner: str, data: bytes) -> dict[str, Any]:
    """Return what ``pack`` was given.  Raises ``SnapshotError`` if it is not ``owner``'s."""
    try:
        found = msgpack.unpackb(data, ext_hook=_decode, strict_map_key=False)
    except Exception as error:  # whatever foreign bytes make msgpack, NumPy and Arrow stumble over
        msg = f"snapshot of {owner}: not readable ({error})"
        raise SnapshotError(msg) from error
    if not (isinstance(found, list) and len(found) == 3 and isinstance(found[2], dict)):
        msg = f"snapshot of {owner}: not a snapshot"
        raise SnapshotError(msg)
    if found[:2] != [_FORMAT, owner]:
        msg = f"snapshot of {owner}: expected {[_FORMAT, owner]}, got {found[:2]}"
        raise SnapshotError(msg)
    return dict(found[2])


def _encode(value: Any) -> Any:
    if isinstance(value, np.integer | np.floating | np.bool_):
        return value.item()
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        head = [value.dtype.str, list(value.shape)]
        return msgpack.ExtType(_ARRAY, msgpack.packb([*head, np.ascontiguousarray(value).tobytes()]))
    if isinstance(value, pa.RecordBatch):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_batch(value)
        return msgpack.ExtType(_BATCH, sink.getvalue().to_pybytes())
    if isinstance(value, int):  # beyond 64 bits
        return msgpack.ExtType(_BIG, str(value).encode())
    msg = f"cannot put {type(value).__name__} into a snapshot"
    raise SnapshotError(msg)


def _decode(code: int, data: bytes) -> Any:
    if code == _ARRAY:
        dtype, shape, raw = msgpack.unpackb(data)
        return np.frombuffer(raw, np.dtype(dtype)).reshape(shape).copy()
    if code == _BATCH:
        batch = pa.ipc.open_stream(data).read_next_batch()
        list(batch.schema.names)  # raises if a name is no text
        batch.validate(full=True)  # offsets from outside must not lead outside
        return batch
    if code == _BIG:
        return int(data)
    msg = f"unknown extension {code} in a snapshot"
    raise SnapshotError(msg)
