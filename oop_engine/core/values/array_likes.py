"""Array likes: arrays of NumPy, pandas and Polars become Arrow arrays of the same values, in their own units."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.system.knobs import knob

__all__ = ["as_arrow", "objects", "of_numpy"]

_LARGE = knob(__name__, "_LARGE", 1 << 18)  # bytes: smaller copies are made faster by NumPy
_IN_PLACE = "iufmM"  # kinds of NumPy's types whose memory Arrow reads as it is
_ARROW_UNITS = ("s", "ms", "us", "ns")


def as_arrow(values: Any) -> pa.Array | pa.ChunkedArray | None:
    """Return an array of NumPy, pandas or Polars as Arrow's of the same values; None: they are Python objects."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    dtype = getattr(values, "dtype", None)
    if isinstance(values, np.ndarray):
        return None if _is_objects(dtype) else of_numpy(values)
    if dtype is not None and not _is_objects(dtype) and hasattr(values, "__arrow_array__"):
        return pa.array(values)
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    if _is_objects(dtype) and hasattr(values, "isna"):
        return _texts(values)
    if hasattr(values, "__arrow_c_array__") or (dtype is not None and not _is_objects(dtype)):
        return pa.array(values)
    return None


def objects(values: Iterable[Any]) -> list[Any]:
    """Return a list of Python objects; a value that pandas takes for missing is None."""
    missing = values.isna() if hasattr(values, "isna") else None
    items = values.tolist() if hasattr(values, "tolist") else list(values)
    return items if missing is None else [None if no else v for v, no in zip(items, missing, strict=True)]


def of_numpy(values: NDArray[Any]) -> pa.Array:
    """Return an array of NumPy in the type that it has; raises ``TypeError`` where Arrow has no such unit.

    Arrow would read the memory of the array, which its giver may use for the next values: one that can be written to is
    copied, at the speed of memory.
    """
    if not values.dtype.isnative:  # bytes in the order of a file or a network, which Arrow does not read
        values = values.astype(values.dtype.newbyteorder("="))
        values.flags.writeable = False  # nobody else has it
    if values.flags.writeable and values.dtype.kind in _IN_PLACE:
        if values.nbytes >= _LARGE and values.__class__ is np.ndarray and values.dtype.kind in "iuf":
            return _copied(values)
        values = values.copy()
    if values.dtype.kind not in "mM":
        return pa.array(values)
    unit, steps = np.datetime_data(values.dtype)
    if unit in _ARROW_UNITS and steps == 1:
        return pa.array(values)
    letter = values.dtype.kind
    if letter == "M" and unit in "YMWD":
        return pa.array(values.astype("M8[D]"))
    if unit in ("W", "D", "h", "m") or unit in _ARROW_UNITS:
        finer = values.astype(f"{letter}8[{unit if unit in _ARROW_UNITS else 's'}]")
        if (np.isnat(values) | (finer.astype(values.dtype) == values)).all():
            return pa.array(finer)
    msg = f"{values.dtype} has no unit that is known here: values.astype('{letter}8[ns]')"
    raise TypeError(msg)


def _copied(values: NDArray[Any]) -> pa.Array:
    """Return a copy in memory that Arrow uses again: new pages of the system take three times as long to write to."""
    room = pa.allocate_buffer(values.nbytes)
    np.copyto(np.frombuffer(room, values.dtype), values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, room], 0)


def _texts(values: Any) -> pa.Array | None:
    """Return cells of pandas that are texts, or missing; None: there are others, which Arrow may change."""
    try:
        texts = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return texts if pa.types.is_string(texts.type) else None


def _is_objects(dtype: Any) -> bool:
    return getattr(dtype, "kind", "") == "O" and getattr(dtype, "name", "") == "object"
