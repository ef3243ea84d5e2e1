"""Texts: a text becomes the same value at every door; a text that cannot be read is never guessed.

White space around a text is left out, and in columns of other types than text an empty text and the words of
``NULL_WORDS`` are null.  A float is the nearest to its digits; whole numbers are exact, or unreadable.

Zones: a text with a zone (``05:00Z``, ``06:00+01:00``) is an instant, and cannot be read into a timestamp without one.
A text without a zone is in UTC where the column is of UTC, and cannot be read into a column of another zone.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.core.values.far_moments import with_far_moments
from oop_engine.core.values.kinds import is_text
from oop_engine.core.values.text_patterns import DIGITS, unreadable

__all__ = ["NULL_WORDS", "prepared", "read_texts", "reads_all"]

NULL_WORDS = ["", "NA", "N/A", "null", "NULL", "None"]
_UTC = ("UTC", "Etc/UTC", "Z", "+00:00")
_ZONED = r"[ T][0-9]{2}.*(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)\s*$"
_ZEROS = {unit: rf"(\.[0-9]{{{most}}})0+([^0-9].*)?$" for unit, most in DIGITS.items()}
_ZEROS["s"] = r"()\.0+([^0-9].*)?$"
_SOME_DAY = "1970-01-01T"
_WHOLE = r"^[+-]?[0-9]+$"
_NUMBER = r"^[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?:\.[0-9]*)?[eE][+-]?[0-9]{1,3})$"
_HEXADECIMAL = r"^\s*[+-]?0[xX]"
_MANTISSA = {16: 11, 32: 24, 64: 53}  # bits of the whole numbers that a float of so many bits has


def read_texts(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
    """Return a column of texts as ``kind``, null where unreadable, and a mask of these (None: all are readable).

    O(rows) where all can be read; else O(distinct values that look readable and are not x log) casts more.
    """
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.large_binary())
    if pa.types.is_fixed_size_binary(kind):
        return _of_width(column, kind)
    if is_text(kind) or not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        return _read(column, kind)
    text = pa.string() if pa.types.is_binary(column.type) else pa.large_string()
    texts, no_text = _cast(column, text)  # bytes that are no UTF-8 are no number either
    values, no_value = _read(texts, kind)
    return values, no_value if no_text is None else no_text if no_value is None else pc.or_(no_text, no_value)


def prepared(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return texts as they are to be read: strings as they stand, all else trimmed, with words for null."""
    if is_text(kind):
        return column
    trimmed = pc.utf8_trim_whitespace(column)
    words = pc.is_in(trimmed, value_set=pa.array(NULL_WORDS, trimmed.type))
    return pc.if_else(words, pa.scalar(None, trimmed.type), trimmed) if words.true_count else trimmed


def reads_all(column: pa.Array, kind: pa.DataType) -> bool:
    """Return whether Arrow reads all texts as ``kind``."""
    try:
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _of_width(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
    column = column.cast(pa.large_binary())
    lost = pc.not_equal(pc.binary_length(column), kind.byte_width).fill_null(False)
    sound = pc.if_else(lost, pa.scalar(None, column.type), column)
    return pa.array(sound.to_pylist(), kind), lost if lost.true_count else None


def _read(texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
    """Read texts; numbers that Arrow reads as they stand have neither white space nor words for null."""
    if pa.types.is_integer(kind) and _may_be_hexadecimal(texts):  # Arrow reads 0xFF as -1 into eight bits
        hexadecimal = pc.match_substring_regex(texts, _HEXADECIMAL).fill_null(False)
        values, bad = _cast(prepared(pc.if_else(hexadecimal, pa.scalar(None, texts.type), texts), kind), kind)
        lost = hexadecimal if bad is None else pc.or_(hexadecimal, bad)
        return values, lost if pc.any(lost).as_py() else None  # the bytes may be those of other rows
    if pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind):
        try:
            values = texts.cast(kind)
        except pa.ArrowInvalid:
            pass
        else:
            return (values, None) if pa.types.is_integer(kind) else _as_floats(texts, kind, values, None)
    return _cast(prepared(texts, kind), kind)


def _may_be_hexadecimal(texts: pa.Array) -> bool:
    """Return whether there is an x in the bytes of texts."""
    data = texts.buffers()[2] if len(texts.buffers()) == 3 else None
    letters = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    return bool((letters == ord("x")).any() or (letters == ord("X")).any())


def _cast(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
    if pa.types.is_time(kind):  # Arrow reads it as part of a timestamp only
        texts = _without_zeros(pc.binary_join_element_wise(_SOME_DAY, column, ""), kind.unit)
        times, bad = _cast_some(texts, pa.timestamp(kind.unit))
        return times.cast(kind), bad
    if pa.types.is_floating(kind):
        return _as_floats(column, kind, *_cast_some(column, kind))
    try:
        return column.cast(kind), None
    except pa.ArrowInvalid:
        if pa.types.is_timestamp(kind):
            values, bad = _cast_times(column, kind)
            return (values, None) if bad is None else with_far_moments(column, values, bad)
        return _cast_some(_as_whole(column) if pa.types.is_integer(kind) else column, kind)


def _as_floats(
    column: pa.Array, kind: pa.DataType, values: pa.Array, bad: pa.Array | None
) -> tuple[pa.Array, pa.Array | None]:
    """Return the floats that were read.

    A whole number that would be rounded is unreadable, and so is a number that would be infinite.
    """
    wide = values.cast(pa.float32()) if pa.types.is_float16(kind) else values
    exact, ends = 2 ** _MANTISSA[kind.bit_width], pc.min_max(wide).as_py()
    if ends["min"] is None or max(-ends["min"], ends["max"]) < exact:
        return values, bad
    numbers = wide.fill_null(0).to_numpy(zero_copy_only=False)
    large = np.flatnonzero(np.abs(numbers) >= exact)
    wrong = np.zeros(len(column), np.bool_)
    for row, text in zip(large.tolist(), column.take(pa.array(large)).to_pylist(), strict=True):
        infinite = bool(np.isinf(numbers[row]))
        whole = text.lstrip("+-").isdecimal()
        wrong[row] = "n" not in text.lower() if infinite else whole and int(text) != int(numbers[row])
    if not wrong.any():
        return values, bad
    where = pa.array(wrong)
    return pc.if_else(where, pa.scalar(None, kind), values), where if bad is None else pc.or_(bad, where)


def _as_whole(texts: pa.Array) -> pa.Array:
    """Return texts of whole numbers without a fraction and an exponent: 3.0 and 3e0 are 3."""
    likely = pc.match_substring_regex(texts, _NUMBER).fill_null(False)
    if not likely.true_count:
        return texts
    distinct = texts.filter(likely).unique()
    plain = pa.array([_plain(text) for text in distinct.to_pylist()], texts.type)
    return pc.coalesce(plain.take(pc.index_in(texts, value_set=distinct)), texts)


def _plain(text: str) -> str:
    try:
        number = Decimal(text)
        return str(int(number)) if number == int(number) and abs(number) < 2**64 else text
    except (InvalidOperation, OverflowError, ValueError):
        return text


def _cast_times(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
    """Read texts with a zone as instants, and those without one as times of UTC, if ``kind`` is such."""
    column = _without_zeros(column, kind.unit)
    if kind.tz is None:
        return _cast_some(column, kind)
    zoned = pc.match_substring_regex(column, _ZONED).fill_null(False)
    nothing = pa.scalar(None, column.type)
    instants, misread = _cast_some(pc.if_else(zoned, column, nothing), pa.timestamp(kind.unit, "UTC"))
    plain, unread = pc.if_else(zoned, nothing, column), None
    if kind.tz in _UTC:
        plain, unread = _cast_some(plain, pa.timestamp(kind.unit))
    else:
        plain, unread = pa.nulls(len(column), pa.timestamp(kind.unit)), plain.is_valid()
    values = pc.if_else(zoned, instants.cast(pa.int64()), plain.cast(pa.int64())).cast(kind)
    bad = [where for where in (misread, unread) if where is not None and where.true_count]
    return values, (pc.or_(*bad) if len(bad) > 1 else bad[0]) if bad else None


def _without_zeros(texts: pa.Array, unit: str) -> pa.Array:
    """Return times without the zeros behind the digits of ``unit``, which Arrow takes for a loss: 12:00:00.500000."""
    return pc.replace_substring_regex(texts, _ZEROS[unit], r"\1\2")


def _cast_some(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
    try:
        return column.cast(kind), None
    except pa.ArrowInvalid:
        values, bad = column.unique().drop_null(), []
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            lost = unreadable(values, kind)
            values, bad = values.filter(pc.invert(lost)), [values.filter(lost)]
        bad = pa.concat_arrays([*bad, *_unreadable(values, kind)])
        where = pc.is_in(column, value_set=bad, skip_nulls=True)
        return pc.if_else(where, pa.scalar(None, column.type), column).cast(kind), where


def _unreadable(values: pa.Array, kind: pa.DataType) -> list[pa.Array]:
    """Return the values that cannot be read, found by halving."""
    if reads_all(values, kind):
        return []
    if len(values) == 1:
        return [values]
    middle = len(values) // 2
    return _unreadable(values[:middle], kind) + _unreadable(values[middle:], kind)
