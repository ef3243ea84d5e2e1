"""Rows of a batch by number, in any order, with repetitions.

A join takes two rows for each match, so with many matches this is most of its work.  Columns of a fixed width
without nulls are copied by a kernel, a column at a time: in a third of the time that Arrow takes, which also looks
for nulls and at the bounds of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.operators.kernels.join_index import take
from oop_engine.system.knobs import knob

__all__ = [
    "MANY", "Living", "Marks", "Rows", "dense", "is_full", "joined", "narrowed", "taken", "taken_column",
    "taken_values", "widened",
]  # fmt: skip

Rows = NDArray[np.int32]
Ints = NDArray[np.int64]
Marks = NDArray[np.bool_]
Living = tuple[pa.RecordBatch, Rows, Ints, Ints, Marks | None]
"""A batch, and rows of it with their codes and times, and which of them have matched something."""

MANY = knob(__name__, "MANY", 1024)
"""Rows: for fewer one call of Arrow costs less than one of a kernel for each column."""
_TAKE, _UNCHECKED = pc.get_function("take"), pc.TakeOptions(boundscheck=False)
_WIDTHS = {8 * size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def taken(batch: pa.RecordBatch, rows: Rows, chosen: Rows | None = None) -> pa.RecordBatch:
    """Return some ``rows`` of a batch, or those among ``rows`` at the places ``chosen``; all of them must be there.

    That is not looked at, which would take longer.  O(rows x columns).
    """
    if chosen is not None:
        rows = taken_values(rows, chosen)
    if len(rows) < MANY:
        return _TAKE.call([batch, pa.array(rows)], _UNCHECKED)
    columns = [taken_column(column, rows) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def taken_column(column: pa.Array, rows: Rows) -> pa.Array:
    """Return some ``rows`` of a column."""
    kind = column.type
    width = _WIDTHS.get(kind.bit_width) if pa.types.is_primitive(kind) else None
    if width is None:
        return pc.take(column, pa.array(rows), boundscheck=False)
    validity, data = column.buffers()
    if validity is not None and (
        len(rows) < MANY or column.null_count
    ):  # to count nulls costs more than to copy few
        return pc.take(column, pa.array(rows), boundscheck=False)
    values = np.frombuffer(data, width, len(column), column.offset * width.itemsize)
    return pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(taken_values(values, rows))], 0)


def taken_values(values: NDArray[Any], rows: Rows) -> NDArray[Any]:
    """Return some ``rows`` of an array."""
    out = np.empty(len(rows), values.dtype)
    values = values.view()
    values.flags.writeable = False  # one signature of the kernel, wherever they come from
    take(values, rows, out)
    return out


def narrowed(rows: Rows, most: int) -> Rows | NDArray[np.uint16]:
    """Return numbers of rows below ``most``, of 16 bits where that is enough."""
    return rows if most > 1 << 16 else rows.astype(np.uint16)


def widened(rows: Rows | NDArray[np.uint16]) -> Rows:
    """Return the same numbers as they were."""
    return rows.astype(np.int32, copy=False)


def joined(living: Sequence[Living]) -> Living:
    """Return the entries of several runs, as ``SortedRun.living`` gives them, as those of one."""
    batches, rows = zip(*(dense(batch, rows) for batch, rows, *_ in living), strict=True)
    before = np.cumsum([0, *(batch.num_rows for batch in batches[:-1])])
    moved = [(part + start).astype(np.int32) for part, start in zip(rows, before, strict=True)]
    codes, times = (np.concatenate([part[at] for part in living]) for at in (2, 3))
    marks = [part[4] for part in living if part[4] is not None]
    matched = np.concatenate(marks) if marks else None
    return pa.concat_batches(batches), np.concatenate(moved), codes, times, matched


def is_full(live: int, rows: int) -> bool:
    """Return whether so many live tuples among ``rows`` are not moved: so a tuple is copied four times at most."""
    return 5 * live > 4 * rows


def dense(batch: pa.RecordBatch, rows: Rows) -> tuple[pa.RecordBatch, Rows]:
    """Return the same tuples, copied if a fifth of the batch are others."""
    if is_full(len(rows), batch.num_rows):
        return batch, rows
    return batch.take(pa.array(rows)), np.arange(len(rows), dtype=np.int32)
