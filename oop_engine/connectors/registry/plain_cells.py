"""Plain cells: values of a column of Arrow as Avro is given them: moments, times and days as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["plain_cells"]


def plain_cells(column: pa.Array) -> list[Any]:
    """Return the values of a column.  O(values).

    >>> plain_cells(pa.array([[{"at": 5}], None], pa.list_(pa.struct({"at": pa.timestamp("s", "UTC")}))))
    [[{'at': 5000}], None]
    """
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        return plain_cells(column.dictionary_decode())
    if types.is_struct(kind):
        names = [field.name for field in kind]
        rows = zip(*map(plain_cells, column.flatten()), strict=True) if names else [()] * len(column)
        return _where([dict(zip(names, row, strict=True)) for row in rows], column)
    if types.is_map(kind):
        pairs = plain_cells(
            column.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
        )
        if not (types.is_string(kind.key_type) or types.is_large_string(kind.key_type)):
            return pairs
        return [None if row is None else {each["key"]: each["value"] for each in row} for row in pairs]
    if types.is_nested(kind):
        return _lists(column)
    return _scalars(column)


def _scalars(column: pa.Array) -> list[Any]:
    kind, types = column.type, pa.types
    if types.is_timestamp(kind):
        whole = column.cast(pa.timestamp("ms", kind.tz)) if kind.unit == "s" else column
        return list(whole.cast(pa.int64()).to_pylist())
    if types.is_date(kind):
        return list(column.cast(pa.date32()).cast(pa.int32()).to_pylist())
    if types.is_time32(kind):
        return list(column.cast(pa.time32("ms")).cast(pa.int32()).to_pylist())
    if types.is_time64(kind):
        return list(column.cast(pa.int64()).to_pylist())
    if types.is_uint64(kind):
        return list(column.cast(pa.decimal128(20)).to_pylist())
    return list(column.to_pylist())


def _lists(column: pa.Array) -> list[Any]:
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    cells, ends = plain_cells(column.flatten()), np.cumsum(lengths)
    starts = ends - lengths
    return _where([cells[start:end] for start, end in zip(starts, ends, strict=True)], column)


def _where(rows: Sequence[Any], column: pa.Array) -> list[Any]:
    """Return rows, None where the column is null."""
    valid = column.is_valid().to_pylist()
    return [row if there else None for row, there in zip(rows, valid, strict=True)]
