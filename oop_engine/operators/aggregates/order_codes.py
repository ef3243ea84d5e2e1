"""Order codes: values of a column as columns of numbers that are ordered as they are.

A value is one code or several, from the least to the most important one, which decide as digits do.  Integers,
booleans and instants are int64, floats float64; decimals are int64 codes of 64 bits each, unsigned ones with the
highest bit turned over.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.operators.aggregates.base import Arrays, column_of, of_words

__all__ = ["codes_of", "has_codes", "is_narrow", "least", "values_of", "words_of"]

_FLIP = np.int64(np.iinfo(np.int64).min)
_LIMITS = np.iinfo(np.int64)
_WIDE = (pa.int64(), pa.float64(), pa.int32())


def is_narrow(kind: pa.DataType) -> bool:
    """Return whether a value is one code that is the number itself: int64 or float64."""
    if pa.types.is_temporal(kind):
        return not pa.types.is_interval(kind)
    signed = pa.types.is_integer(kind) and not pa.types.is_uint64(kind)
    return bool(signed or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def has_codes(kind: pa.DataType) -> bool:
    """Return whether values of a type have codes."""
    return bool(is_narrow(kind) or pa.types.is_uint64(kind) or pa.types.is_decimal(kind))


def least(kind: pa.DataType, *, greatest: bool = False) -> tuple[np.generic, ...]:
    """Return the codes that give way to those of any value, where the least (or the greatest) one is looked for."""
    if pa.types.is_floating(kind):
        return (np.float64("nan"),)
    return (np.int64(_LIMITS.min if greatest else _LIMITS.max),) * _words(kind)


def codes_of(column: pa.Array) -> Arrays:
    """Return the codes of a column, arrays (rows,); those of nulls are of no use."""
    kind = column.type
    if pa.types.is_decimal(kind):
        *lower, highest = words_of(column)
        return *(word ^ _FLIP for word in lower), highest
    if pa.types.is_uint64(kind):
        return (words_of(column)[0] ^ _FLIP,)
    if pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    wide = pa.float64() if pa.types.is_floating(kind) else pa.int64()
    column = column.cast(wide, safe=False)
    if column.null_count:  # else Arrow copies all the same
        column = pc.fill_null(column, 0)
    return (column.to_numpy(zero_copy_only=False),)


def values_of(codes: Arrays, null: NDArray[np.bool_] | None, kind: pa.DataType) -> pa.Array:
    """Return the values that have these codes; null where ``null`` is true.  Zero has no sign."""
    if pa.types.is_decimal(kind):
        return of_words([*(code ^ _FLIP for code in codes[:-1]), codes[-1]], null, kind)
    if pa.types.is_uint64(kind):
        return of_words([codes[0] ^ _FLIP], null, kind)
    (values,) = codes
    if pa.types.is_floating(kind):
        values = values + 0.0  # -0.0 is 0.0
    values = values if null is None else np.where(null, values.dtype.type(0), values)
    if kind in _WIDE:
        return column_of(values, kind, null)
    numbers = pa.array(values, mask=null)
    if pa.types.is_temporal(kind):
        return numbers.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return numbers.cast(kind)


def words_of(column: pa.Array) -> Arrays:
    """Return values of 64 bits or more as words, int64 (rows,), the lowest first; those of nulls are of no use."""
    wide = _words(column.type)
    words = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, wide)
    return tuple(words[column.offset : column.offset + len(column)].T)


def _words(kind: pa.DataType) -> int:
    """Return how many codes of 64 bits a value is."""
    return kind.byte_width // 8 if pa.types.is_decimal(kind) else 1
