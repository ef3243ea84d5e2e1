"""Python values: lists of objects become Arrow arrays of a type.

Arrow makes an array of any type of a list, and on the way cuts fractions off, takes numbers for times, and drops zones.
So a list becomes an array of the type that its values have, which is then converted as any other array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, time
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.core.values.array_likes import of_numpy
from oop_engine.core.values.arrays import Converted, converted, either
from oop_engine.core.values.kinds import converts

__all__ = ["is_missing", "natural", "of_values"]

_NOTHING = type(None)
_REFUSED = (pa.ArrowException, TypeError, ValueError, ArithmeticError, AttributeError)
_DIRECT = {kind.id for kind in (pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.large_binary())}
"""Types of which Arrow takes their own values of a list, and no others."""
_NUMBERS = {
    kind.id
    for kind in (
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
        pa.float16(), pa.float32(), pa.float64(), pa.decimal128(1), pa.decimal256(1),
    )
}  # fmt: skip
_BOOLEANS = {bool, np.bool_}


def is_missing(value: Any) -> bool:
    """Return whether a value stands for none: None, and NA and NaT of pandas."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def of_values(values: Sequence[Any], kind: pa.DataType) -> Converted:
    """Return an array of Python objects (``None`` is null), and a mask of those that ``kind`` has no value for.

    O(values); values of several classes cost O(classes) arrays.

    >>> found, lost = of_values([1, 2.0, 2.5, True], pa.int64())
    >>> found.to_pylist(), lost.to_pylist()
    ([1, 2, None, None], [False, False, True, True])
    """
    if kind.id in _DIRECT:
        with suppress(*_REFUSED):
            return pa.array(values, kind), None
    elif kind.id not in _NUMBERS:
        return _of_others(values, kind)
    try:
        array = pa.array(values)
    except _REFUSED:
        return _by_class(values, kind)
    if _has_booleans(values, array):
        return _by_class(values, kind)
    if array.type == kind:
        return array, None
    if pa.types.is_temporal(array.type) or pa.types.is_nested(array.type):
        return _by_class(values, kind)
    return _as(array, kind)


def _of_others(values: Sequence[Any], kind: pa.DataType) -> Converted:
    """Return the same of values that are no numbers, texts or booleans."""
    if pa.types.is_dictionary(kind):
        array, lost = of_values(values, kind.value_type)
        return converted(array, kind)[0], lost
    return _nested(values, kind) if pa.types.is_nested(kind) else _by_class(values, kind)


def _as(array: pa.Array, kind: pa.DataType) -> Converted:
    """Convert an array; all values but null are lost where the types have none in common."""
    if converts(array.type, kind):
        return converted(array, kind)
    lost = array.is_valid()
    return pa.nulls(len(array), kind), lost if lost.true_count else None


def _has_booleans(values: Sequence[Any], array: pa.Array) -> bool:
    """Return whether there are booleans among numbers, which Arrow takes for 0 and 1."""
    if array.type not in (pa.int64(), pa.float64()):
        return False
    numbers = array.fill_null(2).to_numpy(zero_copy_only=False)
    likely = bool(((numbers == 0) | (numbers == 1)).any())
    return likely and not _BOOLEANS.isdisjoint(map(type, values))


def _by_class(values: Sequence[Any], kind: pa.DataType) -> Converted:
    """Convert the values of each class on their own, and put them together."""
    classes = set(map(type, values)) - {_NOTHING}
    if any(each.__name__ == "NAType" for each in classes):  # NaT is among moments
        return of_values([None if is_missing(value) else value for value in values], kind)
    if len(classes) == 1 and len(values):
        return _alike(values, classes.pop(), kind)
    array, lost = pa.nulls(len(values), kind), np.zeros(len(values), np.bool_)
    for each in classes:
        rows = np.fromiter((type(value) is each for value in values), np.bool_, len(values))
        of_class = [value if mine else None for value, mine in zip(values, rows.tolist(), strict=True)]
        part, bad = _alike(of_class, each, kind)
        array = pc.if_else(pa.array(rows), part, array)
        if bad is not None:
            lost |= bad.to_numpy(zero_copy_only=False)
    return array, pa.array(lost) if lost.any() else None


def natural(values: Sequence[Any]) -> pa.Array:
    """Return Python objects in the type that they have, all of it.

    Raises ``TypeError``, ``ValueError`` or an error of Arrow where they have none in common.

    >>> natural([1, 2.5]).type, natural([2**63]).type, natural([np.timedelta64(1, "m")]).type
    (DataType(double), DataType(uint64), DurationType(duration[s]))
    """
    classes = set(map(type, values)) - {_NOTHING}
    if len(classes) == 1:
        return _of_class(values, classes.pop())
    array = pa.array(values)
    if pa.types.is_temporal(array.type) or _has_booleans(values, array):
        names = ", ".join(sorted(each.__name__ for each in classes))
        msg = f"they are of several types: {names}"
        raise TypeError(msg)
    return array


def _alike(values: Sequence[Any], each: type, kind: pa.DataType) -> Converted:
    """Convert values that are of one class, or None."""
    try:
        return _as(_of_class(values, each), kind)
    except _REFUSED:
        return _one_by_one(values, kind)


def _of_class(values: Sequence[Any], each: type) -> pa.Array:
    """Return objects of one class, or None, in their own type; raises where Arrow has no array of them all."""
    if hasattr(each, "asm8"):  # of pandas: moments and lengths, with nanoseconds
        scalars = [None if value is None else value.asm8 for value in values]
        return _of_scalars(scalars, "UTC" if _zoned(values) else None)  # in UTC is ``asm8`` of an instant
    if issubclass(each, np.datetime64 | np.timedelta64):
        return _of_scalars(values)
    if issubclass(each, datetime):
        return pa.array(values, pa.timestamp("us", "UTC" if _zoned(values) else None))
    if issubclass(each, time) and _zoned(values):
        msg = "Arrow has no time of day in a zone"
        raise TypeError(msg)
    if issubclass(each, int | np.integer) and each is not bool:
        return _of_integers(values)
    return pa.array(values)


def _zoned(values: Sequence[Any]) -> bool:
    """Return whether moments are in zones; raises ``TypeError`` if some are."""
    zones = {getattr(value, "tzinfo", None) is not None for value in values if value is not None}
    if len(zones) > 1:
        msg = "some have a zone and others none"
        raise TypeError(msg)
    return True in zones


def _of_integers(values: Sequence[Any]) -> pa.Array:
    """Return integers, those beyond 64 bits as decimals."""
    for kind in (pa.int64(), pa.uint64()):
        try:
            return pa.array(values, kind)
        except _REFUSED:
            continue
    return pa.array([None if value is None else Decimal(int(value)) for value in values], pa.decimal256(76))


def _of_scalars(values: Sequence[Any], zone: str | None = None) -> pa.Array:
    """Return scalars of NumPy, which must be of one unit."""
    units = {value.dtype for value in values if value is not None}
    if len(units) > 1:
        msg = "they have several units"
        raise TypeError(msg)
    unit = units.pop()
    nothing = np.array("NaT", unit)
    array = of_numpy(np.array([nothing if value is None else value for value in values], unit))
    return (
        array.cast(pa.timestamp(array.type.unit, zone))
        if zone and pa.types.is_timestamp(array.type)
        else array
    )


def _one_by_one(values: Sequence[Any], kind: pa.DataType) -> Converted:
    """Convert values each on its own; one that is of no type is lost."""
    parts = [_alone(value, kind) for value in values]
    lost = pa.array([bad for _, bad in parts], pa.bool_())
    return pa.concat_arrays([array for array, _ in parts]), lost if lost.true_count else None


def _alone(value: Any, kind: pa.DataType) -> tuple[pa.Array, bool]:
    try:
        array, bad = _as(_of_class([value], type(value)), kind)
    except _REFUSED:
        return pa.nulls(1, kind), True
    return array, bad is not None


def _nested(values: Sequence[Any], kind: pa.DataType) -> Converted:
    """Convert lists, maps and structs, a level at a time; a row is lost with any value in it."""
    types = pa.types
    if types.is_struct(kind):
        return _structs(values, kind)
    if types.is_map(kind):
        return _maps([list(value.items()) if isinstance(value, Mapping) else value for value in values], kind)
    if types.is_list(kind) or types.is_large_list(kind):
        return _lists(values, kind)
    array, lost = _lists(values, pa.list_(kind.value_field))
    array, more = converted(array, kind)
    return array, either(lost, more)


def _maps(rows: list[Any], kind: pa.MapType) -> Converted:
    pairs = pa.struct([pa.field("key", kind.key_type), pa.field("value", kind.item_type)])
    lists, lost = _nested(rows, pa.list_(pairs))
    if lost is not None:  # a map that is null must have no pairs: they would be those of the map before it
        return _maps([None if bad else row for row, bad in zip(rows, lost.to_pylist(), strict=True)], kind)[
            0
        ], lost
    keys, items = (lists.values.field(at) for at in range(2))
    if keys.null_count:  # of a row that is lost, or one that no map can have
        bad = np.zeros(len(rows), np.bool_)
        nulls = keys.is_null().to_numpy(zero_copy_only=False)
        bad[np.repeat(np.arange(len(rows)), np.diff(lists.offsets.to_numpy()))[nulls]] = True
        sound = [None if no else row for row, no in zip(rows, bad.tolist(), strict=True)]
        return _maps(sound, kind)[0], either(lost, pa.array(bad))
    nulls_ = lists.is_null().to_numpy(zero_copy_only=False)
    offsets = pa.array(lists.offsets.to_numpy(), pa.int32(), mask=np.append(nulls_, False))
    return pa.MapArray.from_arrays(offsets, keys, items, type=kind), lost


def _lists(values: Sequence[Any], kind: pa.DataType) -> Converted:
    rows = [list(value) if isinstance(value, list | tuple | np.ndarray) else None for value in values]
    bad = np.array(
        [row is None and value is not None for row, value in zip(rows, values, strict=True)], np.bool_
    )
    lengths = np.array([0 if row is None else len(row) for row in rows], np.int64)
    items, more = of_values(list(chain.from_iterable(row for row in rows if row)), kind.value_type)
    if more is not None:
        bad[np.repeat(np.arange(len(rows)), lengths)[more.to_numpy(zero_copy_only=False)]] = True
    mask = bad | np.array([value is None for value in values], np.bool_)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    cls, width = (pa.LargeListArray, np.int64) if pa.types.is_large_list(kind) else (pa.ListArray, np.int32)
    column = cls.from_arrays(pa.array(ends.astype(width)), items, type=kind, mask=pa.array(mask))
    return column, pa.array(bad) if bad.any() else None


def _structs(values: Sequence[Any], kind: pa.StructType) -> Converted:
    names = [field.name for field in kind]
    rows = [_by_names(value, names) for value in values]
    bad = np.array([row is not None and not _has_only(row, names) for row in rows], np.bool_)
    columns = []
    for field in kind:
        cells = [
            None if row is None or no else row.get(field.name)
            for row, no in zip(rows, bad.tolist(), strict=True)
        ]
        column, more = of_values(cells, field.type)
        columns.append(column)
        if more is not None:
            bad = bad | more.to_numpy(zero_copy_only=False)
    mask = bad | np.array([row is None for row in rows], np.bool_)
    if not columns:
        return pa.array([None if no else {} for no in mask.tolist()], kind), pa.array(
            bad
        ) if bad.any() else None
    column = pa.StructArray.from_arrays(columns, fields=list(kind), mask=pa.array(mask))
    return column, pa.array(bad) if bad.any() else None


def _by_names(value: Any, names: list[str]) -> Any:
    """Return a tuple as the mapping that it stands for: by its own names if it has some, else by their order."""
    if isinstance(value, tuple) and len(value) == len(names):
        return dict(zip(getattr(type(value), "_fields", names), value, strict=True))
    return value


def _has_only(row: Any, names: list[str]) -> bool:
    return isinstance(row, Mapping) and set(row) <= set(names)
