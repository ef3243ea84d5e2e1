"""State columns: columns of states of a fixed size, empty, and in Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["arrow_type", "filled", "of_arrow", "to_arrow"]


def filled(rows: int, value: np.generic) -> NDArray[Any]:
    """Return ``rows`` times a value; zeros that are not written to take no memory."""
    return np.full(rows, value) if value != 0 else np.zeros(rows, value.dtype)


def arrow_type(kind: np.dtype[Any]) -> pa.DataType:
    """Return the Arrow type of a state's column; numbers that Arrow lacks travel as their bytes."""
    try:
        return pa.from_numpy_dtype(kind)
    except pa.ArrowNotImplementedError:
        return pa.binary(kind.itemsize)


def to_arrow(column: NDArray[Any]) -> pa.Array:
    """Return a state's column in Arrow."""
    kind = arrow_type(column.dtype)
    if not pa.types.is_fixed_size_binary(kind):
        return pa.array(column, kind, from_pandas=False)
    buffer = pa.py_buffer(np.ascontiguousarray(column).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(kind, column.size, [None, buffer])


def of_arrow(column: pa.Array, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return the state's column that ``to_arrow`` made."""
    if not pa.types.is_fixed_size_binary(column.type):
        array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return array
    whole: NDArray[Any] = np.frombuffer(column.buffers()[1], kind)
    return whole[column.offset : column.offset + len(column)]
