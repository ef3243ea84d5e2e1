"""Arrays: an Arrow array becomes one of another type, with a mask of the values that the type does not have.

A value is the same if the way there and back makes no difference.  So 3.0 becomes 3, and 2.5, 2^53 + 1 as a float, or a
time of day as a date stay out.  One exception: a float becomes the nearest of a narrower type, if that is finite.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.core.values.kinds import VIEWS, is_text
from oop_engine.core.values.texts import read_texts

__all__ = ["Converted", "converted", "either", "without_views"]

Converted: TypeAlias = tuple[pa.Array, pa.Array | None]
"""Values in a type, null where it has not the value that was given, and a mask of these (None: it has all)."""

_REFUSED = (pa.ArrowException, ArithmeticError, ValueError, TypeError, InvalidOperation)


def converted(column: pa.Array, kind: pa.DataType) -> Converted:
    """Return ``column`` as ``kind``, of a type that ``converts`` to it; O(1) where the types agree, else O(rows).

    >>> values, lost = converted(pa.array([1.0, 1.5]), pa.int8())
    >>> values.to_pylist(), lost.to_pylist()
    ([1, None], [False, True])
    """
    given = column.type
    if given == kind:
        return column, None
    if pa.types.is_null(given):
        return pa.nulls(len(column), kind), None
    if isinstance(column, pa.ExtensionArray):
        return converted(column.storage, kind)
    if isinstance(kind, pa.BaseExtensionType):
        values, lost = converted(column, kind.storage_type)
        return pa.ExtensionArray.from_storage(kind, values), lost
    if pa.types.is_run_end_encoded(given):
        return converted(pc.run_end_decode(column), kind)
    if (plain := without_views(column)) is not column:
        return converted(plain, kind)
    if pa.types.is_dictionary(given):
        if pa.types.is_dictionary(kind) and given.value_type == kind.value_type:
            indices = column.indices.cast(kind.index_type)
            return pa.DictionaryArray.from_arrays(indices, column.dictionary, ordered=kind.ordered), None
        return converted(column.dictionary_decode(), kind)
    if pa.types.is_dictionary(kind):
        values, lost = converted(column, kind.value_type)
        return _encoded(values, kind), lost
    if pa.types.is_nested(kind):
        return _nested(column, kind)
    return read_texts(column, kind) if is_text(given) else _exact(column, kind)


def either(a: pa.Array | None, b: pa.Array | None) -> pa.Array | None:
    """Return a mask of the rows that are in one mask or the other."""
    return b if a is None else a if b is None else pc.or_(a, b)


def without_views(column: pa.Array) -> pa.Array:
    """Return texts or bytes, or a dictionary of them, that are no views: Arrow computes little of those.

    >>> without_views(pa.array(["a"], pa.string_view())).type
    DataType(string)
    """
    given = column.type
    if given in VIEWS:
        return column.cast(VIEWS[given])
    if pa.types.is_dictionary(given) and given.value_type in VIEWS:
        texts = column.dictionary.cast(VIEWS[given.value_type])
        return pa.DictionaryArray.from_arrays(column.indices, texts, ordered=given.ordered)
    return column


def _encoded(values: pa.Array, kind: pa.DictionaryType) -> pa.Array:
    """Return values as a dictionary; Arrow itself casts texts and bytes only."""
    encoded = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        encoded.indices.cast(kind.index_type), encoded.dictionary, ordered=kind.ordered
    )


def _exact(column: pa.Array, kind: pa.DataType) -> Converted:
    given, types = column.type, pa.types
    if types.is_float16(given) and not types.is_float32(kind):  # Arrow computes nothing with it
        return _exact(column.cast(pa.float32()), kind)
    if types.is_float16(kind) and not types.is_floating(given):
        return _through(column, pa.float32(), lambda wide: _back_and_forth(wide, kind))
    if types.is_floating(given) and types.is_floating(kind):
        return _nearest(column, kind)
    if types.is_decimal(kind) and types.is_floating(
        given
    ):  # by its digits: 0.1 is 0.1, not 0.1000000000000000055
        return read_texts(column.cast(pa.string()), kind)
    if types.is_decimal(kind) and types.is_integer(given):  # Arrow asks for room for all integers
        return _of_integers(column, kind)
    if types.is_decimal(given) and types.is_floating(kind):
        return _of_decimals(column, kind)
    if types.is_decimal(given) and types.is_decimal(kind) and not _has_room(column, kind):
        return _one_by_one(column, kind)
    if _keeps_all(given, kind):
        try:
            return column.cast(kind), None
        except pa.ArrowInvalid:
            pass
    return _back_and_forth(column, kind)


def _of_integers(column: pa.Array, kind: pa.DataType) -> Converted:
    """Return integers as decimals."""
    try:
        return _exact(column.cast(pa.decimal256(76)), kind)
    except pa.ArrowException:
        return _one_by_one(column, kind)


def _of_decimals(column: pa.Array, kind: pa.DataType) -> Converted:
    """Return decimals as floats that have their digits, or their very value."""
    values, _ = read_texts(column.cast(pa.string()), kind)
    digits, _ = read_texts(values.cast(pa.string()), column.type)
    same = pc.equal(digits, column).fill_null(False)
    with suppress(pa.ArrowException):
        same = pc.or_(same, pc.equal(values.cast(column.type, safe=False), column).fill_null(False))
    return _checked(values, pc.or_(same, column.is_null()))


def _has_room(column: pa.Array, kind: pa.DataType) -> bool:
    """Return whether all decimals are within the digits of ``kind``, which Arrow does not look at for every width."""
    if kind.precision - kind.scale >= column.type.precision - column.type.scale:
        return True
    wide = column.cast(pa.decimal256(column.type.precision, column.type.scale))
    ends = pc.min_max(wide).as_py()
    most = Decimal(10) ** (kind.precision - kind.scale)
    return ends["min"] is None or (-most < ends["min"] and ends["max"] < most)


def _keeps_all(given: pa.DataType, kind: pa.DataType) -> bool:
    """Return whether Arrow refuses a cast that would change a value; it cuts times from dates, and rounds floats."""
    types = pa.types
    tests = types.is_integer, types.is_timestamp, types.is_time, types.is_duration, types.is_decimal
    return any(is_one(given) and is_one(kind) for is_one in tests)


def _through(column: pa.Array, wide: pa.DataType, then: Callable[[pa.Array], Converted]) -> Converted:
    """Convert by way of another type."""
    values, lost = _exact(column, wide)
    values, more = then(values)
    return values, either(lost, more)


def _nearest(column: pa.Array, kind: pa.DataType) -> Converted:
    """Return floats as the nearest of another width; a finite one does not become infinite."""
    values = column.cast(kind)
    if kind.bit_width >= column.type.bit_width:
        return values, None
    wide = values.cast(pa.float32()) if pa.types.is_float16(kind) else values
    return _checked(values, pc.or_(pc.invert(pc.is_inf(wide)), pc.is_inf(column)))


def _back_and_forth(column: pa.Array, kind: pa.DataType) -> Converted:
    """Keep the values that come back as they were."""
    given, types = column.type, pa.types
    try:
        values = column.cast(kind, safe=False)
        back = values.cast(given, safe=False)
    except pa.ArrowException:
        return _one_by_one(column, kind)
    same = pc.equal(column, back)
    if types.is_integer(given) and types.is_integer(kind):  # -1 comes back from uint64
        signs = [pc.less(values_, pa.scalar(0, values_.type)) for values_ in (column, values)]
        same = pc.and_(same, pc.equal(*signs))
    whole, fractional = (given, column) if types.is_integer(given) else (kind, column)
    if types.is_integer(whole) and types.is_floating(kind if whole is given else given):
        floats = values if whole is given else fractional
        most = 2.0 ** (
            whole.bit_width - types.is_signed_integer(whole)
        )  # a value beyond may come back as the largest
        same = pc.and_(same, pc.less(floats, pa.scalar(most, floats.type)))
    return _checked(values, same)


def _checked(values: pa.Array, same: pa.Array) -> Converted:
    """Return the values that are the ``same``, and null for others; a null is neither."""
    known = same.fill_null(True)
    if pc.all(known).as_py() or not len(known):
        return values, None
    return pc.if_else(known, values, pa.scalar(None, values.type)), pc.invert(known)


def _one_by_one(column: pa.Array, kind: pa.DataType) -> Converted:
    """Do the same where Arrow refuses all for the sake of one, or for the room that there might have to be."""
    values, lost = [], np.zeros(len(column), np.bool_)
    for row, value in enumerate(column.to_pylist()):
        made = None if value is None else _scalar(value, kind)
        lost[row] = value is not None and made is None
        values.append(made)
    return pa.array(values, kind), pa.array(lost) if lost.any() else None


def _scalar(value: Any, kind: pa.DataType) -> Any:
    """Return a value as ``kind`` has it; None: it has not."""
    given: Any = value
    try:
        if pa.types.is_decimal(kind):
            given = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        elif isinstance(value, Decimal):
            given = int(value) if pa.types.is_integer(kind) else float(value)
        made = pa.scalar(given, kind).as_py()
        if isinstance(value, Decimal) and isinstance(made, float):
            return made if Decimal(repr(made)) == value else None
        return made if made == given and (given == value or isinstance(value, float)) else None
    except _REFUSED:
        return None


def _nested(column: pa.Array, kind: pa.DataType) -> Converted:
    """Convert lists and structs by their values; a row is lost with any value in it."""
    given, types = column.type, pa.types
    if types.is_list_view(given) or types.is_large_list_view(given):  # casts of Arrow lose values of these
        column = _of_view(column)
        given = column.type
    null = column.is_null()
    if types.is_struct(kind) and kind.num_fields:
        parts = [converted(part, field.type) for part, field in zip(column.flatten(), kind, strict=True)]
        lost = None
        for _, more in parts:
            lost = either(lost, more)
        mask = null if lost is None else pc.or_(null, lost)
        return pa.StructArray.from_arrays([values for values, _ in parts], fields=list(kind), mask=mask), lost
    if types.is_list(kind) or types.is_large_list(kind):
        lengths = pc.list_value_length(column).fill_null(0).to_numpy()
        if types.is_fixed_size_list(given):
            lengths = np.where(null.to_numpy(zero_copy_only=False), 0, lengths)
        values, lost = converted(column.flatten(), kind.value_type)
        lost = None if lost is None else _rows_with(lost, lengths)
        mask = null if lost is None else pc.or_(null, lost)
        large = types.is_large_list(kind)
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64 if large else np.int32)
        cls = pa.LargeListArray if large else pa.ListArray
        return cls.from_arrays(pa.array(ends), values, type=kind, mask=mask), lost
    return _in_python(column, kind)


def _of_view(column: pa.Array) -> pa.Array:
    """Return the lists of views one behind the other."""
    lengths = pc.list_value_length(column).fill_null(0).to_numpy()
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    kind = pa.large_list(column.type.value_field)
    return pa.LargeListArray.from_arrays(pa.array(ends), column.flatten(), type=kind, mask=column.is_null())


def _rows_with(lost: pa.Array, lengths: Any) -> pa.Array:
    """Return a mask of the lists that have a value of a mask."""
    rows = np.zeros(len(lengths), np.bool_)
    rows[np.repeat(np.arange(len(lengths)), lengths)[lost.to_numpy(zero_copy_only=False)]] = True
    return pa.array(rows)


def _in_python(column: pa.Array, kind: pa.DataType) -> Converted:
    """Convert maps and lists of a fixed size: as Arrow casts them, or else row by row."""
    try:
        values = column.cast(kind)
        if values.cast(column.type).equals(column):
            return values, None
    except pa.ArrowException:
        pass
    rows, lost = [], np.zeros(len(column), np.bool_)
    for row in range(len(column)):
        cell = column.take(pa.array([row]))  # no slice: a cast reads the values of its other rows
        try:
            made = cell.cast(kind)
            lost[row] = not made.cast(column.type).equals(cell)
        except pa.ArrowException:
            made, lost[row] = pa.nulls(1, kind), True
        rows.append(pa.nulls(1, kind) if lost[row] else made)
    return pa.concat_arrays(rows), pa.array(lost) if lost.any() else None
