"""Arrow data: frames, tables, batches and readers of others, and times of arrival."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError, EngineError
from oop_engine.core.units import TIME_UNITS

__all__ = [
    "TIME_KEYS",
    "arrivals",
    "check_arrival_zone",
    "check_unit",
    "is_arrow",
    "no_rows",
    "record_batches",
]

TIME_KEYS = ("oop_engine.time", "oop_engine.unit", "oop_engine.arrival")
"""Metadata of columns: the one that makes progress, its unit, and the one with the times of arrival."""


def no_rows(fields: pa.Schema) -> pa.RecordBatch:
    """Return no rows of these columns; of dictionaries of moments or decimals Arrow makes none from a list.

    >>> no_rows(pa.schema([("at", pa.dictionary(pa.int8(), pa.date32()))])).num_rows
    0
    """
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in fields], schema=fields)


def check_arrival_zone(
    kind: pa.DataType, time: pa.DataType, place: str, error: type[EngineError] = ContractError
) -> None:
    """Raise ``error`` if either arrivals of a type or the progressing attribute ``time`` has a zone, and not both."""
    both = pa.types.is_timestamp(kind) and pa.types.is_timestamp(time)
    if both and (kind.tz is None) != (time.tz is None):
        msg = f"{place} must have a zone if event time has one, and none else; got {kind} beside {time}: convert one"
        raise error(msg)


def arrivals(values: Any, unit: str, time: pa.DataType | None = None) -> NDArray[np.int64]:
    """Return times of arrival in ``unit``, int64 (rows,): of integers, or of times, which are rounded down.

    ``time``: the type of the progressing attribute.  Times of NumPy have no zone, whatever it has.  Raises
    ``ContractError`` for others, for integers beyond int64, and for times of Arrow and pandas of which one side has a
    zone.
    """
    if hasattr(values, "iloc"):  # of pandas: moments in a zone would be objects
        values = pa.array(values)
    if time is not None and isinstance(kind := getattr(values, "type", None), pa.DataType):
        check_arrival_zone(kind, time, "page: arrivals")
    times = np.asarray(values)
    if times is values and times.flags.writeable:  # its giver may use it for the next ones
        times = times.copy()
    if times.dtype.kind == "M":
        return _in_unit(times, unit)
    if not times.size:
        return times.astype(np.int64)
    if times.dtype.kind not in "iu" or times.ndim != 1 or int(times.max()) >= 2**63:
        got = f"{times.dtype} {times.shape}" if times.dtype.kind not in "iuO" else times.max()
        msg = f"page: arrivals must be integers of 64 bits, one a row; got {got}"
        raise ContractError(msg)
    return times.astype(np.int64, copy=False)


def is_arrow(data: Any) -> bool:
    """Return whether something gives Arrow data: a data frame, table, record batch, relation, reader."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def record_batches(data: Any) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of whatever gives Arrow data, as it gives them."""
    if isinstance(data, pa.RecordBatch):  # Arrow's own pass no C interface, which takes 15 us
        yield data
    elif isinstance(data, pa.Table):
        yield from data.to_batches()
    elif hasattr(data, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(data)
    else:
        yield pa.record_batch(data)


def check_unit(fields: pa.Schema, name: str, unit: str, place: str) -> None:
    """Raise ``ContractError`` where the metadata of ``fields`` has another unit for the integers of a column."""
    marks = fields.metadata
    if not marks or marks.get(TIME_KEYS[0].encode()) != name.encode():
        return
    marked = marks.get(TIME_KEYS[1].encode(), b"").decode()
    if marked not in ("", unit) and pa.types.is_integer(fields.field(name).type):
        msg = (
            f"{place}: {name!r} must be in {unit!r}; got {marked!r} in the metadata of the columns: convert the times, "
            f"or declare the schema with unit={marked!r}"
        )
        raise ContractError(msg)


def _in_unit(times: NDArray[Any], unit: str) -> NDArray[np.int64]:
    if unit not in TIME_UNITS:
        msg = f"page: arrivals must be integers, in {unit!r}; got {times.dtype}"
        raise ContractError(msg)
    in_unit = times.astype(f"M8[{unit}]")
    lost = np.isnat(times) | (in_unit.astype(times.dtype) > times)
    if lost.any():
        msg = f"page: arrivals must be times that 64 bits hold in {unit!r}; got {times[lost][0]}"
        raise ContractError(msg)
    return in_unit.view(np.int64)
