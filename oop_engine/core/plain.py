"""Plain: Arrow data of others, in the types that Arrow can work with everywhere.

Views of texts, bytes and lists, and run-end-encoded columns come from other libraries (Polars, DuckDB), and not every
version of Arrow can take rows of them.  They are made plain at the door, where a schema or a page is made, so
nobody behind it meets one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError
from oop_engine.core.late.packing import CODES

__all__ = ["arrivals", "is_arrow", "no_rows", "plain_column", "plain_type", "record_batches"]

_FRACTIONS = (float, np.floating, Decimal)
_WHOLE = frozenset({int, bool, type(None)})  # nothing of them is cut off
_MOMENTS = (date, time, timedelta)  # and datetime, which is a date
_FEW = 1024  # values: so many are packed in less time than Arrow takes for them
_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that a column gets here: texts for views of texts, values for runs of them.

    >>> plain_type(pa.string_view()), plain_type(pa.list_(pa.string_view()))
    (DataType(string), ListType(list<item: string>))
    """
    types = pa.types
    if types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, plain_type(kind.value_type), kind.ordered)
    if types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), _plain_field(kind.item_field), kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    if types.is_large_list(kind) or types.is_large_list_view(kind):
        return pa.large_list(_plain_field(kind.value_field))
    if types.is_list(kind) or types.is_list_view(kind):
        return pa.list_(_plain_field(kind.value_field))
    return _VIEWS.get(kind, kind)


def plain_column(values: Any, kind: pa.DataType, place: str) -> pa.Array:
    """Return a column of ``kind``, made of an Arrow array, or whatever Arrow makes an array of.

    Raises ``ContractError`` in the name of ``place`` if a value is not of that type, or there is more of it than
    an array of the type can hold (2 GiB of texts).
    """
    if (values.__class__ is list or values.__class__ is tuple) and (few := _packed(values, kind)) is not None:
        return few
    try:
        column = values if isinstance(values, pa.Array | pa.ChunkedArray) else _made(values, kind)
        if isinstance(column, pa.ChunkedArray):
            column = _in_one(column)
        if pa.types.is_run_end_encoded(column.type):
            column = pc.run_end_decode(column)
        return column if column.type == kind else column.cast(kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        msg = f"{place} must be {kind}; got {_type_of(values)}: {error}: cast it, or make smaller pages"
        raise ContractError(msg) from error


def no_rows(fields: pa.Schema) -> pa.RecordBatch:
    """Return no rows of these columns; of dictionaries of moments or decimals Arrow makes none from a list.

    >>> no_rows(pa.schema([("at", pa.dictionary(pa.int8(), pa.date32()))])).num_rows
    0
    """
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in fields], schema=fields)


def arrivals(values: Any) -> NDArray[np.int64]:
    """Return moments of arrival, int64 (rows,); ``ContractError`` if they are no integers, or beyond int64."""
    found = np.asarray(values)
    if found.dtype.kind == "M" or not found.size:
        return found.astype(np.int64)
    if found.dtype.kind not in "iu" or found.ndim != 1 or int(found.max()) >= 2**63:
        got = f"{found.dtype} {found.shape}" if found.dtype.kind not in "iuO" else found.max()
        msg = f"page: arrivals must be integers of 64 bits, one a row; got {got}"
        raise ContractError(msg)
    return found.astype(np.int64, copy=False)


def is_arrow(data: Any) -> bool:
    """Tell whether something gives Arrow data: a data frame, table, record batch, relation, reader."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def record_batches(data: Any) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of whatever gives Arrow data, as it gives them."""
    if hasattr(data, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(data)
    else:
        yield pa.record_batch(data)


def _packed(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    """Return an array of a few numbers; None where there are more, or Arrow has to judge them."""
    wanted, code = CODES.get(kind.id, (None, ""))
    if wanted is None or len(values) > _FEW or set(map(type, values)) != {wanted}:
        return None
    try:
        packed = struct.pack(f"{len(values)}{code}", *values)
    except struct.error:  # too large
        return None
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(packed)], 0)


def _made(values: Any, kind: pa.DataType) -> pa.Array:
    """Return an array; fractions and times below the unit are refused, which Arrow cuts off in a list."""
    column = pa.array(values, kind)
    if isinstance(values, list | tuple) and (pa.types.is_integer(kind) or pa.types.is_temporal(kind)):
        types = set(map(type, values))
        if types <= _WHOLE:
            return column
        for value in _of(_FRACTIONS, values, types):
            if value != int(value):
                msg = f"{value} has a fraction"
                raise pa.ArrowInvalid(msg)
        _refuse_finer(_of(_MOMENTS, values, types), kind)
    return column


def _of(wanted: tuple[type, ...], values: Sequence[Any], types: set[type]) -> list[Any]:
    """Return the values of the types wanted; costs a look at ``types`` where there are none."""
    some = tuple(of for of in types if issubclass(of, wanted))
    return [value for value in values if isinstance(value, some)] if some else []


def _refuse_finer(moments: list[Any], kind: pa.DataType) -> None:
    """Raise ``ArrowInvalid`` if a moment has a part below the unit of ``kind``: microseconds in a column of seconds."""
    unit = "ns" if any(hasattr(moment, "value") for moment in moments) else "us"  # pandas keeps nanoseconds
    if pa.types.is_timestamp(kind):
        pa.array(moments, pa.timestamp(unit, kind.tz)).cast(kind)
    elif pa.types.is_duration(kind):
        pa.array(moments, pa.duration(unit)).cast(kind)
    elif pa.types.is_time(kind):
        pa.array(moments, pa.time64(unit)).cast(kind)
    else:
        for moment in moments:
            if isinstance(moment, datetime) and moment.time() != time():
                msg = f"{moment} has a time of day"
                raise pa.ArrowInvalid(msg)


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    together = column.combine_chunks()
    if isinstance(together, pa.ChunkedArray):  # Arrow does not join chunks that one array cannot hold
        if together.num_chunks != 1:
            msg = f"{column.nbytes:,} bytes are too many for one array"
            raise OverflowError(msg)
        return together.chunk(0)
    return together


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


def _type_of(values: Any) -> str:
    return str(getattr(values, "type", None) or getattr(values, "dtype", None) or type(values).__name__)
