"""Equal values: columns of results against those of the truth; floats may differ in their last digits."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.groups.in_python import values_of

__all__ = ["CLOSE", "alike", "as_codes", "equal_values"]

CLOSE = 1e-9
"""Relative error of floats that are equal: sums depend on the order of addition in the last digits."""
_NOTHING = 1e-15  # of the largest value of a column: the rest of a sum that comes to 0


def equal_values(results: pa.Array, truth: pa.Array) -> NDArray[np.bool_]:
    """Return which values are equal, bool (rows,): by value, whatever their types; null is not NaN.  O(rows)."""
    if pa.types.is_floating(results.type) and pa.types.is_floating(truth.type):
        both = np.equal(_nulls(results), _nulls(truth))
        close: NDArray[np.bool_] = both & _close(_floats(results), _floats(truth), _nothing(truth))
        return close
    if pa.types.is_nested(results.type):
        pairs = zip(values_of(results), values_of(truth), strict=True)
        return np.fromiter((_same(a, b) for a, b in pairs), np.bool_, len(results))
    a, b = alike(results, truth)
    same = pc.or_(pc.fill_null(pc.equal(a, b), False), pc.and_(a.is_null(), b.is_null()))
    mask: NDArray[np.bool_] = same.to_numpy(zero_copy_only=False)
    return mask


def as_codes(results: pa.Array, truth: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return two columns of one type, whose values are the same where those of the given ones are equal.

    Floats are numbered, those that are close to the next one like it.  O(rows log rows).
    """
    if not (pa.types.is_floating(results.type) and pa.types.is_floating(truth.type)):
        return alike(results, truth)
    floats = np.concatenate([_floats(results), _floats(truth)])
    order = np.argsort(floats)
    ordered = floats[order]
    codes = np.empty(floats.size, np.int64)
    codes[order] = np.cumsum(np.append(False, ~_close(ordered[1:], ordered[:-1], _nothing(truth))))[
        : floats.size
    ]
    codes = np.where(np.concatenate([_nulls(results), _nulls(truth)]), -1, codes)
    return pa.array(codes[: len(results)]), pa.array(codes[len(results) :])


def alike(a: pa.Array, b: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return two columns as the type of one of them, if it has the values of both; else as texts.  O(rows)."""
    if not pa.types.is_nested(a.type):
        with suppress(pa.ArrowException):
            return a, b.cast(a.type)
        with suppress(pa.ArrowException):
            return a.cast(b.type), b
    return _texts(a), _texts(b)


def _close(a: NDArray[np.float64], b: NDArray[np.float64], nothing: float) -> NDArray[np.bool_]:
    return np.isclose(a, b, rtol=CLOSE, atol=nothing, equal_nan=True)


def _nothing(truth: pa.Array) -> float:
    floats = np.abs(_floats(truth))
    return _NOTHING * float(floats[np.isfinite(floats)].max(initial=0.0))


def _floats(column: pa.Array) -> NDArray[np.float64]:
    floats: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return floats


def _nulls(column: pa.Array) -> NDArray[np.bool_]:
    nulls: NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _texts(column: pa.Array) -> pa.Array:
    return pa.array([None if value is None else _text(value) for value in values_of(column)], pa.string())


def _text(value: Any) -> str:
    """Return a text that equal values share; floats in lists with nine digits."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else f"{value:.9g}"
    if isinstance(value, dict):
        return _text(list(value.items()))
    return f"[{', '.join(map(_text, value))}]" if isinstance(value, (list, tuple)) else repr(value)


def _same(a: Any, b: Any) -> bool:
    """Return whether values in Python are equal: lists item by item, floats but for their last digits."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=CLOSE) or (a != a and b != b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(item, b[name]) for name, item in a.items())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)
