"""State as bytes: msgpack frames with raw column buffers, never pickle.

A snapshot is made by one process and read by another, perhaps of another version, so
its bytes are treated as coming from outside: an unknown part is refused.  A checksum finds
damage on the way.  It keeps nobody from making bytes of their own, so operators check the parts they take
over (``saved``).
"""

from __future__ import annotations

import datetime
import math
import zlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.saved import Saved
from oop_engine.core.sizes import copied

__all__ = ["Later", "Migration", "frozen", "pack", "readable", "unpack"]

Migration = Callable[[dict[Any, Any]], dict[Any, Any]]
"""Takes the state that ``save`` returned in one version, and returns that of the next."""

_ARRAY, _BATCH, _BIG = 1, 2, 3
_FORMAT = b"oop-engine/1"
_SUM = 4  # bytes of the checksum, behind the name of the format
_HEAD = 512  # bytes of an array that its type and shape are within
_LENGTHS = ((1 << 8, 2), (1 << 16, 3), (1 << 32, 5))  # a length below has so many bytes, with its kind
_VALUES = (
    "it takes None, bool, int, float, str, bytes, lists, dictionaries, arrays of numbers or texts, batches"
)
_FLAT = "give numbers in place of references"
_WAYS = (
    (np.ma.MaskedArray, "its filled(), and the mask as an array of its own"),
    ((set, frozenset), "a sorted list"),
    (deque, "list(...)"),
    (np.ndarray, "an array of numbers or texts, or a list"),
    ((datetime.date, datetime.time, datetime.timedelta), "its integer, or isoformat()"),
    (pa.Table, "a record batch, table.combine_chunks().to_batches()[0]"),
    ((pa.Array, pa.ChunkedArray), "an array of NumPy, or a record batch of it"),
    (Decimal, "str(...)"),
)
_FIXED = "biufUSMm"  # kinds of NumPy types whose values are their bytes


@dataclass(frozen=True)
class Later:
    """A value of a state that is made when it is packed, perhaps on another thread, while the operator goes on.

    ``make`` may use nothing that the operator writes to: to copy arrays takes a tenth of the time of saving them well.
    """

    make: Callable[[], Any]


def frozen(value: Any) -> Any:
    """Return a state that shares no memory with its operator, which may go on.  O(bytes), at the speed of memory.

    Raises ``SnapshotError`` for a value that holds itself.
    """
    try:
        return _frozen(value)
    except RecursionError:
        msg = f"cannot put a {type(value).__name__} into a snapshot that holds itself, or nests too deep: {_FLAT}"
        raise SnapshotError(msg) from None


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ma.MaskedArray):  # its bytes are those below the mask, too
        return value
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, pa.RecordBatch):
        return copied(value)
    if isinstance(value, dict):
        return {name: _frozen(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_frozen(part) for part in value]
    return value


def pack(owner: str, state: dict[str, Any], version: int = 1) -> bytes:
    """Return ``state`` as bytes in the name of ``owner`` (the operator's class), of this ``version``.

    Values: None, bool, int, float, str, bytes, lists, tuples (they come back as lists),
    dictionaries, NumPy arrays of fixed-width dtype and Arrow record batches; keys of
    dictionaries are None, bool, int, float, str or bytes.  O(bytes).

    >>> unpack("Meld", pack("Meld", {"linear": np.array([1, 2])}))["linear"]
    array([1, 2])
    """
    try:
        body = bytes(msgpack.packb([owner, state, version], default=_encode, strict_types=False))
    except (ValueError, OverflowError) as error:
        if isinstance(error, SnapshotError):
            raise
        if isinstance(error, UnicodeEncodeError):
            msg = (
                f"snapshot of {owner}: a text must be UTF-8; got {error.object!r:.60}: give text.encode(...)"
            )
            raise SnapshotError(msg) from error
        msg = f"snapshot of {owner}: a value must be below 4 GiB ({error}): let it keep less, or fewer groups"
        raise SnapshotError(msg) from error
    return _FORMAT + zlib.crc32(body).to_bytes(_SUM, "little") + body


def readable(version: int, migrations: Mapping[int, Migration]) -> range:
    """Return the versions from which migrations lead to ``version``, one by one, and itself as the last."""
    oldest = version
    while oldest - 1 in migrations:
        oldest -= 1
    return range(oldest, version + 1)


def unpack(
    owner: str, data: bytes, version: int = 1, migrations: Mapping[int, Migration] | None = None
) -> Saved:
    """Return the state that ``pack`` was given, as one of ``version``.

    ``migrations``: by the version that each takes.  Raises ``SnapshotError`` if it is not ``owner``'s, was damaged, or
    is of a version from which no migration leads here.
    """
    start = len(_FORMAT)
    if data[:start] != _FORMAT:
        got = f"got {bytes(data[:start])!r}: is it of another version?"
        msg = f"snapshot of {owner}: must begin with {_FORMAT!r}; {got}"
        raise SnapshotError(msg)
    body = memoryview(data)[start + _SUM :]
    if zlib.crc32(body).to_bytes(_SUM, "little") != data[start : start + _SUM]:
        msg = f"snapshot of {owner}: {len(data)} bytes whose checksum is wrong: they were damaged or cut off"
        raise SnapshotError(msg)
    saved_version, state = _read(owner, body)
    return Saved(_migrated(owner, state, saved_version, version, migrations or {}))


def _migrated(
    owner: str, state: dict[Any, Any], saved_version: int, version: int, migrations: Mapping[int, Migration]
) -> dict[Any, Any]:
    """Return a state of the version ``saved_version`` as one of ``version``."""
    if saved_version not in readable(version, migrations):
        way = "a newer one" if saved_version > version else "an older one, from which there is no migration"
        which = f"is of version {saved_version}, {way}; this program's is {version}"
        msg = f"snapshot of {owner}: {which}: use the program that wrote it"
        raise SnapshotError(msg)
    for step in range(saved_version, version):
        try:
            state = migrations[step](state)
        except Exception as error:  # whatever foreign values make it stumble over
            msg = f"snapshot of {owner}: its state of version {step} cannot be migrated ({error!r})"
            raise SnapshotError(msg) from error
    return state


def _read(owner: str, body: memoryview) -> tuple[int, dict[Any, Any]]:
    """Return the version and the state in a snapshot; before versions there were two entries."""
    try:
        content = msgpack.unpackb(body, ext_hook=_decode, strict_map_key=False)
    except Exception as error:  # whatever foreign bytes make msgpack, NumPy and Arrow stumble over
        msg = f"snapshot of {owner}: not readable ({error})"
        raise SnapshotError(msg) from error
    if isinstance(content, list) and len(content) == 2:
        content.append(1)
    sound = isinstance(content, list) and len(content) == 3 and isinstance(content[1], dict)
    if not sound or type(content[2]) is not int or content[2] < 1:
        msg = f"snapshot of {owner}: not a snapshot"
        raise SnapshotError(msg)
    if content[0] != owner:
        msg = f"snapshot of {owner}: expected one of {owner!r}, got one of {content[0]!r}"
        raise SnapshotError(msg)
    return content[2], content[1]


def _encode(value: Any) -> Any:
    if isinstance(value, Later):
        return value.make()
    if isinstance(value, np.integer | np.floating | np.bool_):
        return value.item()
    if isinstance(value, np.ndarray) and not (value.dtype.hasobject or isinstance(value, np.ma.MaskedArray)):
        head = [value.dtype.str, list(value.shape)]
        return msgpack.ExtType(_ARRAY, msgpack.packb([*head, np.ascontiguousarray(value).tobytes()]))
    if isinstance(value, pa.RecordBatch):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_batch(value)
        return msgpack.ExtType(_BATCH, sink.getvalue().to_pybytes())
    if isinstance(value, int):  # beyond 64 bits
        return msgpack.ExtType(_BIG, str(value).encode())
    way = next((f"give {way}" for kinds, way in _WAYS if isinstance(value, kinds)), _VALUES)
    msg = f"cannot put {type(value).__name__} into a snapshot: {way}"
    raise SnapshotError(msg)


def _decode(code: int, data: bytes) -> Any:
    if code == _ARRAY:
        return _array(data)
    if code == _BATCH:
        batch = pa.ipc.open_stream(data).read_next_batch()
        list(batch.schema.names)  # raises if a name is no text
        batch.validate(full=True)  # offsets from outside must not lead outside
        return batch
    if code == _BIG:
        return int(data)
    msg = f"unknown extension {code} in a snapshot"
    raise SnapshotError(msg)


def _array(data: bytes) -> NDArray[Any]:
    """Return an array that reads ``data``, which is not copied: only its head is unpacked."""
    head = msgpack.Unpacker()
    head.feed(data[:_HEAD])
    if head.read_array_header() != 3:
        msg = "an array must have a type, a shape and bytes"
        raise SnapshotError(msg)
    dtype, shape = np.dtype(head.unpack()), tuple(head.unpack())
    if dtype.kind not in _FIXED:
        msg = f"an array must be of plain numbers or texts; got {dtype}"
        raise SnapshotError(msg)
    length = dtype.itemsize * math.prod(shape)
    start = head.tell() + next(more for most, more in _LENGTHS if length < most)
    if len(data) != start + length:
        msg = f"an array of {shape} {dtype} must have {start + length} bytes with its head; got {len(data)}"
        raise SnapshotError(msg)
    return np.frombuffer(data, dtype, offset=start).reshape(shape)
