"""Sort keys: values as int64 of the same order, so that lists of values are sorted and merged as integers.

NaN is one value, the largest; -0.0 is 0.0.  Values that are no numbers have no keys, they stay in Arrow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = [
    "NAN",
    "ORDERED",
    "decoded",
    "has_keys",
    "has_order",
    "is_numeric",
    "keys_of",
    "of_floats",
    "plain",
    "ranked",
    "ranks_of",
    "taken",
    "to_floats",
    "values_of",
]

Integers = NDArray[np.int64]

ORDERED = "numbers, booleans, dates and times, decimals, texts or bytes"
"""What has an order, in words."""
_MOST = np.int64(np.iinfo(np.int64).max)
_LEAST = np.int64(np.iinfo(np.int64).min)
NAN = np.int64(0x7FF8000000000000)
"""The key of NaN, among those of floats."""


def is_numeric(kind: pa.DataType) -> bool:
    """Return whether values are integers or floats."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def has_keys(kind: pa.DataType) -> bool:
    """Return whether values are numbers, booleans or instants."""
    instant = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    return bool(is_numeric(kind) or instant or pa.types.is_boolean(kind))


def has_order(kind: pa.DataType) -> bool:
    """Return whether values can be put in order, by keys or by Arrow; of a dictionary, those it is of."""
    types, kind = pa.types, plain(kind)
    words = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return bool(has_keys(kind) or types.is_decimal(kind) or any(test(kind) for test in words))


def plain(kind: pa.DataType) -> pa.DataType:
    """Return a type, or that of the values of a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def decoded(column: pa.Array) -> pa.Array:
    """Return a column, or the values that its dictionary stands for."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


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


def ranked(names: pa.Array) -> tuple[pa.Array, Integers]:
    """Return the different values in order, and which one each value is."""
    coded = names.dictionary_encode()
    order = pc.sort_indices(coded.dictionary)
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    return coded.dictionary.take(order), rank[coded.indices.to_numpy()]


def ranks_of(flat: Any) -> Integers:
    """Return integers in the order of values: keys as they are, the ranks of values in Arrow, without nulls."""
    keys: Integers = flat if isinstance(flat, np.ndarray) else ranked(flat)[1]
    return keys


def taken(flat: Any, rows: Integers) -> Any:
    """Return some of the values, in NumPy or in Arrow."""
    return flat[rows] if isinstance(flat, np.ndarray) else flat.take(pa.array(rows))


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
    return np.where(np.isnan(values), NAN, bits ^ ((bits >> 63) & _MOST))


def to_floats(keys: Integers) -> NDArray[np.float64]:
    """Return the floats that have these keys."""
    floats: NDArray[np.float64] = (keys ^ ((keys >> 63) & _MOST)).view(np.float64)
    return floats


def _array(values: NDArray[Any], null: NDArray[np.bool_]) -> pa.Array:
    if not null.any():
        return pa.array(values, from_pandas=False)
    return pa.array(np.where(null, values.dtype.type(0), values), mask=null, from_pandas=False)
