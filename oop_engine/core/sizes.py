"""Bytes of values by their types, and bytes that a batch keeps alive.

By their types values take the same on every machine, before and after a snapshot: Arrow's own count also has
null bitmaps, which come and go, and padding.  The bytes kept alive may be more, for a slice keeps the whole.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

__all__ = ["copied", "owned", "room_for", "row_bytes", "value_bytes"]

_SHORT = (pa.types.is_string, pa.types.is_binary)
_LARGE = (pa.types.is_large_string, pa.types.is_large_binary)


def value_bytes(column: pa.Array) -> int:
    """Return the bytes of the values: their width, or their length and an offset each.

    O(1) for fixed widths and texts, O(rows) for dictionaries.

    >>> value_bytes(pa.array([1, None], pa.int32())), value_bytes(pa.array(["abc", None]))
    (8, 11)
    """
    kind, types = column.type, pa.types
    if types.is_primitive(kind):
        return len(column) * max(int(kind.bit_width) // 8, 1)
    if isinstance(kind, pa.BaseExtensionType):
        return value_bytes(column.storage)
    if types.is_dictionary(kind):
        return value_bytes(column.dictionary_decode())
    if any(is_text(kind) for is_text in _SHORT):
        return _text_bytes(column, np.dtype(np.int32))
    if any(is_text(kind) for is_text in _LARGE):
        return _text_bytes(column, np.dtype(np.int64))
    if types.is_null(kind):
        return 0
    if types.is_struct(kind):
        return sum(map(value_bytes, column.flatten()))
    if types.is_map(kind):
        return 4 * len(column) + value_bytes(column.keys) + value_bytes(column.items)
    if types.is_union(kind) or types.is_run_end_encoded(kind):
        return int(column.nbytes)
    if types.is_nested(kind):
        return 4 * len(column) + value_bytes(column.flatten())
    if types.is_fixed_size_binary(kind) or types.is_decimal(kind):
        return len(column) * max(int(kind.bit_width) // 8, 1)
    return int(column.nbytes)


def copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same rows in memory of their own."""
    return pa.concat_batches([batch, batch.slice(0, 0)])


def owned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch, or a copy if it is a slice that keeps more than twice its own bytes alive.

    >>> whole = pa.record_batch({"x": pa.array(range(1000))})
    >>> whole.slice(0, 1).get_total_buffer_size(), owned(whole.slice(0, 1)).get_total_buffer_size()
    (8000, 8)
    """
    return batch if batch.get_total_buffer_size() <= 2 * batch.nbytes else copied(batch)


def room_for(rows: int, room: int) -> int:
    """Return how many ``rows`` a column of so much ``room`` should have room for: a quarter more at least, if any.

    So a column that grows row by row is copied five times on the average, and an eighth of it is empty; where it
    doubled, it would be copied twice, with a quarter empty.

    >>> room_for(100, 80), room_for(81, 80), room_for(80, 80)
    (100, 100, 80)
    """
    return room if rows <= room else max(rows, room + room // 4)


def row_bytes(fields: pa.Schema) -> int | None:
    """Return the bytes of a row, to the nearest above; None where rows differ.

    >>> row_bytes(pa.schema({"ts": pa.int64(), "alert": pa.bool_()})), row_bytes(pa.schema({"name": pa.string()}))
    (9, None)
    """
    if not all(map(pa.types.is_primitive, fields.types)):
        return None
    return sum(-(-int(kind.bit_width) // 8) for kind in fields.types)


def _text_bytes(column: pa.Array, offset: np.dtype[np.signedinteger]) -> int:
    if not len(column):
        return 0
    first, last = column.offset, column.offset + len(column)
    offsets = np.frombuffer(column.buffers()[1], offset)
    return offset.itemsize * len(column) + int(offsets[last] - offsets[first])
