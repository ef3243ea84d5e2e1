"""Part columns: columns of a page as arrays for kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.operators.aggregates import Part

__all__ = ["fixed", "known", "numbers", "valid", "values"]

_ALL = np.empty(0, np.bool_)
_ALL.flags.writeable = False


def fixed(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous read-only view: one signature of each kernel will do."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def known(page: Page, name: str | None) -> NDArray[np.bool_]:
    """Tell which rows of a column are not null; (0,) where none is, or for no column."""
    if name is None or not (column := page.column(name)).null_count:
        return _ALL
    return valid(column)


def valid(column: pa.Array) -> NDArray[np.bool_]:
    """Tell which rows of a column are not null."""
    if not column.null_count:
        return fixed(np.ones(len(column), np.bool_))
    return fixed(column.is_valid().to_numpy(zero_copy_only=False))


def values(page: Page, part: Part) -> NDArray[Any]:
    """Return the column of a part as int32, int64 or float64; nulls are 0, and ``known`` tells."""
    kinds = (pa.float64(),) if part.floating else (pa.int32(), pa.int64())
    return numbers(page.column(part.column or ""), *kinds)


def numbers(column: pa.Array, *kinds: pa.DataType) -> NDArray[Any]:
    """Return a column as it is, if it is of one of ``kinds``, or else as the last one; nulls are 0."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if column.type not in kinds:
        column = column.cast(kinds[-1], safe=False)
    if column.null_count:
        column = pc.fill_null(column, 0)
    return fixed(column.to_numpy(zero_copy_only=False))
