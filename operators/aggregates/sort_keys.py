"""Sort keys: values as int64 of the same order, so that lists of values are sorted and merged as integers.

NaN is one value, the largest; -0.0 is 0.0.  Values that are no numbers have no keys, they stay in Arrow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["has_keys", "has_order", "is_numeric", "keys_of", "of_floats", "to_floats", "values_of"]

Integers = NDArray[np.int64]

_MOST = np.int64(np.iinfo(np.int64).max)
_LEAST = np.int64(np.iinfo(np.int64).min)
_NAN = np.int64(0x7FF8000000000000)


def is_numeric(kind: pa.DataType) -> bool:
    """Tell whether values are integers or floats."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def has_keys(kind: pa.DataType) -> bool:
    """Tell whether values are numbers, booleans or instants."""
    instant = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    return bool(is_numeric(kind) or instant or pa.types.is_boolean(kind))


def has_order(kind: pa.DataType) -> bool:
    """Tell whether values can be put in order, by keys or by Arrow."""
    types = pa.types
    words = (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_decimal(kind)
    )
    return bool(has_keys(kind) or words)


def keys_of(column: pa.Array) -> Integers:
    """Return the keys of a column; those of nulls are of no use."""
    kind = column.type
    if pa.types.is_floating(kind):
        return of_floats(column.to_numpy(zero_copy_only=False).astype(np.float64))
    if pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if pa.types.is_uint64(kind):
        return column.fill_null(0).to_numpy(zero_copy_only=False).view(np.int64) ^ _LEAST  # type: ignore[no-any-return]
    keys: Integers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return keys


def values_of(keys: Integers, kind: pa.DataType, null: NDArray[np.bool_]) -> pa.Array:
    """Return the values that have these keys; null where ``null`` is true."""
    if pa.types.is_floating(kind):
        return _array(to_floats(keys), null).cast(kind)
    if pa.types.is_uint64(kind):
        return _array((keys ^ _LEAST).view(np.uint64), null)
    numbers = _array(keys, null)
    if pa.types.is_temporal(kind):
        return numbers.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return numbers.cast(kind)


def of_floats(values: NDArray[np.float64]) -> Integers:
    """Return the keys of floats."""
    bits = (values + 0.0).view(np.int64)
    return np.where(np.isnan(values), _NAN, bits ^ ((bits >> 63) & _MOST))


def to_floats(keys: Integers) -> NDArray[np.float64]:
    """Return the floats that have these keys."""
    floats: NDArray[np.float64] = (keys ^ ((keys >> 63) & _MOST)).view(np.float64)
    return floats


def _array(values: NDArray[Any], null: NDArray[np.bool_]) -> pa.Array:
    if not null.any():
        return pa.array(values, from_pandas=False)
    return pa.array(np.where(null, values.dtype.type(0), values), mask=null, from_pandas=False)
