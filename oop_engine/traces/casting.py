"""Casting: a column of a file becomes a column of its declared type, with a mask of the values that cannot.

Nothing is lost on the way: a value that does not fit the type (``2.5`` or ``"abc"`` as
int64, ``300`` as int8) is unreadable, never rounded, wrapped or guessed.  A time of day with a zone
(``05:00Z``, ``06:00+01:00``) is an instant, so as a timestamp without a zone it is that of UTC; one without
a zone becomes a timestamp of UTC, and of no other zone.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.traces.text_patterns import DIGITS, unreadable

__all__ = ["fits", "guess", "guess_time", "guess_words", "read_as", "reads_texts"]

_TIMES = [pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")]
_GUESSES = [pa.int64(), pa.uint64(), pa.float64(), pa.bool_(), *_TIMES]
_WHOLE = "^-?[0-9]+$"
_UTC = ("UTC", "Etc/UTC", "Z", "+00:00")
_ZONED = r"[ T][0-9]{2}.*(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)\s*$"
_ZEROS = {unit: rf"(\.[0-9]{{{most}}})0+([^0-9].*)?$" for unit, most in DIGITS.items()}
_ZEROS["s"] = r"()\.0+([^0-9].*)?$"
_SOME_DAY = "1970-01-01T"
_SAMPLE = 200
_NULL_WORDS = ["", "NA", "N/A", "null", "NULL", "None"]


def fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Tell whether values of type ``found`` can become ``wanted`` one by one without loss.

    Integers and floats become each other where the value allows; text becomes anything it
    can be read as; timestamps change their unit, but a zone is neither added nor dropped.
    Numbers do not become times: they would need a unit.
    """
    found, wanted = _values(found), _values(wanted)
    if found == wanted or pa.types.is_null(found) or (_is_text(found) and reads_texts(wanted)):
        return True
    if pa.types.is_integer(found):
        return _is_number(wanted)
    if pa.types.is_floating(found):
        narrower = pa.types.is_floating(wanted) and wanted.bit_width < found.bit_width
        return _is_number(wanted) and not narrower
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(wanted):
        return (found.tz is None) == (wanted.tz is None)
    return bool(pa.types.is_date(found) and pa.types.is_timestamp(wanted) and wanted.tz is None)


def reads_texts(kind: pa.DataType) -> bool:
    """Tell whether there are texts that can be read as values of ``kind``."""
    types, kind = pa.types, _values(kind)
    return not any(
        test(kind) for test in (types.is_nested, types.is_duration, types.is_interval, types.is_null)
    )


def read_as(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
    """Return ``column`` as ``kind``, null where unreadable, and a boolean mask of these (None: all are readable).

    O(rows) where all can be read; else O(distinct values that look readable and are not x log) casts more.
    """
    if column.type == kind:
        return column, None
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not pa.types.is_binary(column.type) or _is_text(_values(kind)):
        return _cast(_prepared(column, _values(kind)), kind)
    texts, no_text = _cast(column, pa.string())  # bytes that are no UTF-8 are no number either
    values, no_value = _cast(_prepared(texts, _values(kind)), kind)
    return values, no_value if no_text is None else no_text if no_value is None else pc.or_(no_text, no_value)


def guess(texts: pa.Array) -> pa.DataType:
    """Return the narrowest type that reads all texts: integer, float, boolean, timestamp, else string.

    Integers that are beyond 64 bits are texts: as floats some that differ would be one.
    """
    known = _cast(texts.unique().drop_null(), pa.string())[0]
    readable = (
        kind for kind in _GUESSES if _reads(_prepared(known, kind), kind) and not _merged(known, kind)
    )
    return next(readable, pa.string()) if len(known) else pa.string()


def guess_words(texts: pa.Array) -> pa.DataType:
    """Return the timestamp type that reads all texts, else string: digits in quotes are no number."""
    known = _cast(texts.drop_null(), pa.string())[0]  # bytes that are no UTF-8 are no evidence
    return next((kind for kind in _TIMES if len(known) and _reads(_prepared(known, kind), kind)), pa.string())


def guess_time(texts: pa.Array) -> pa.DataType:
    """Return the integer or timestamp type that reads most of some texts, if more than half, else string."""
    known = texts.drop_null()[:_SAMPLE]

    def unread(kind: pa.DataType) -> int:
        where = read_as(known, kind)[1]
        return 0 if where is None else int(where.true_count)

    best = min([pa.int64(), *_TIMES], key=unread)
    return best if 2 * unread(best) < len(known) else pa.string()


def _merged(texts: pa.Array, kind: pa.DataType) -> bool:
    """Tell whether all texts are integers, and ``kind`` has not all of their digits."""
    if not pa.types.is_floating(kind):
        return False
    digits = _prepared(texts, kind).drop_null()
    return bool(len(digits) and pc.all(pc.match_substring_regex(digits, _WHOLE)).as_py())


def _prepared(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return texts as they are to be read: strings as they stand, all else trimmed, with words for null."""
    if pa.types.is_null(column.type):
        return column.cast(kind)
    if not _is_text(column.type) or _is_text(kind):
        return column
    trimmed = pc.utf8_trim_whitespace(column)
    words = pc.is_in(trimmed, value_set=pa.array(_NULL_WORDS, trimmed.type))
    return pc.if_else(words, pa.scalar(None, trimmed.type), trimmed) if words.true_count else trimmed


def _cast(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
    if pa.types.is_time(kind) and _is_text(column.type):  # Arrow reads it as part of a timestamp only
        texts = _without_zeros(pc.binary_join_element_wise(_SOME_DAY, column, ""), kind.unit)
        times, bad = _cast_some(texts, pa.timestamp(kind.unit))
        return times.cast(kind), bad
    try:
        return column.cast(kind), None
    except pa.ArrowInvalid:
        if pa.types.is_timestamp(kind) and _is_text(column.type):
            return _cast_times(column, kind)
        return _cast_some(column, kind)


def _cast_times(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
    """Read texts with a zone as instants, and those without one as times of UTC, if ``kind`` is such."""
    column = _without_zeros(column, kind.unit)
    zoned = pc.match_substring_regex(column, _ZONED).fill_null(False)
    nothing = pa.scalar(None, column.type)
    instants, misread = _cast_some(pc.if_else(zoned, column, nothing), pa.timestamp(kind.unit, "UTC"))
    plain, unread = pc.if_else(zoned, nothing, column), None
    if kind.tz is None or kind.tz in _UTC:
        plain, unread = _cast_some(plain, pa.timestamp(kind.unit))
    else:
        plain, unread = pa.nulls(len(column), pa.timestamp(kind.unit)), plain.is_valid()
    values = pc.if_else(zoned, instants.cast(pa.int64()), plain.cast(pa.int64())).cast(kind)
    bad = [where for where in (misread, unread) if where is not None]
    return values, (pc.or_(*bad) if len(bad) > 1 else bad[0]) if bad else None


def _without_zeros(texts: pa.Array, unit: str) -> pa.Array:
    """Return times without the zeros behind the digits of ``unit``, which Arrow takes for a loss: 12:00:00.500000."""
    return pc.replace_substring_regex(texts, _ZEROS[unit], r"\1\2")


def _cast_some(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
    try:
        return column.cast(kind), None
    except pa.ArrowInvalid:
        values, bad = column.unique().drop_null(), []
        if _is_text(values.type) and not pa.types.is_binary(values.type):
            lost = unreadable(values, _values(kind))
            values, bad = values.filter(pc.invert(lost)), [values.filter(lost)]
        bad = pa.concat_arrays([*bad, *_unreadable(values, kind)])
        where = pc.is_in(column, value_set=bad, skip_nulls=True)
        return pc.if_else(where, pa.scalar(None, column.type), column).cast(kind), where


def _reads(column: pa.Array, kind: pa.DataType) -> bool:
    try:
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _unreadable(values: pa.Array, kind: pa.DataType) -> list[pa.Array]:
    """Return the values that cannot be read, found by halving."""
    if _reads(values, kind):
        return []
    if len(values) == 1:
        return [values]
    middle = len(values) // 2
    return _unreadable(values[:middle], kind) + _unreadable(values[middle:], kind)


def _values(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
        )
    )


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
