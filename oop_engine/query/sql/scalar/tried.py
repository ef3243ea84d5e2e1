"""TRY_CAST: values in another type, null where they have none there.

Arrow's casts raise for the first value that does not fit, so each value is checked before: texts by a grammar of the
forms that DuckDB reads, numbers by the least and the largest value of the type.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.query.sql.scalar.types import Typed, cast, is_text, is_time, rounded

__all__ = ["tried"]

_SPACE = " \t\n\v\f\r"
_DIGITS = "[0-9]+(?:_[0-9]+)*"
_NUMBER = rf"^[+-]?(?:{_DIGITS}(?:[.](?:{_DIGITS})?)?|[.]{_DIGITS})(?:[eE][+-]?{_DIGITS})?$"
_NO_NUMBER = r"(?i)^[+-]?(?:inf|infinity|nan)$"
_TRUE, _FALSE = r"(?i)^(?:true|t|yes|y|1)$", r"(?i)^(?:false|f|no|n|0)$"
_YEAR = r"[0-9]{4}"
_LEAP = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DAY = (
    rf"^(?:(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    rf"|02-(?:0[1-9]|1[0-9]|2[0-8])))|{_LEAP}-02-29)$"
)
_WRITTEN_DAY = r"(?P<y>[0-9]{4})(?:-(?P<m>[0-9]{1,2})-|/(?P<n>[0-9]{1,2})/)(?P<d>[0-9]{1,2})"
_WRITTEN_TIME = r"(?P<h>[0-9]{1,2}):(?P<mi>[0-9]{1,2})(?::(?P<s>[0-9]{1,2})(?:[.](?P<f>[0-9]{1,6})[0-9]*)?)?"
_MOMENT = rf"^{_WRITTEN_DAY}(?:[ T]{_WRITTEN_TIME})?(?P<z>Z|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)?$"
_HOURS, _SIXTY = "^(?:[01][0-9]|2[0-3])$", "^[0-5][0-9]$"


def tried(value: Typed, kind: pa.DataType) -> Any:
    """Return the values of ``kind``, null where there is none; None: such a cast never fails."""
    if is_text(value.kind):
        return _of_text(value.expression, kind)
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return _of_number(value, kind)
    return None


def _of_text(text: Any, kind: pa.DataType) -> Any:
    if pa.types.is_boolean(kind):
        return pc.if_else(
            _matches(text, _TRUE), pc.scalar(True), _where(_matches(text, _FALSE), pc.scalar(False))
        )
    if is_time(kind):
        return _moment(text, kind)
    if not (pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind)):
        return None
    plain = pc.utf8_trim(text, characters=_SPACE)
    number = pc.replace_substring(_where(_matches(plain, _NUMBER), plain), "_", "")
    if pa.types.is_floating(kind):
        return pc.coalesce(number, _where(_matches(plain, _NO_NUMBER), plain)).cast(kind)
    exponent = _matches(number, "[eE]")
    as_float = Typed(_where(exponent, number).cast(pa.float64()), pa.float64())
    return pc.coalesce(_digits(_where(pc.invert(exponent), number), kind), _of_number(as_float, kind))


def _digits(number: Any, kind: pa.DataType) -> Any:
    """Return a number of plain digits, its half rounded away from zero; null beyond the type."""
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    whole = (kind.precision if pa.types.is_decimal(kind) else 20) - scale
    pattern = (
        rf"^(?P<s>[+-]?)0*(?P<i>[0-9]{{0,{whole}}})(?:[.](?P<f>[0-9]{{0,{scale}}})(?P<n>[0-9]?)[0-9]*)?$"
    )
    parts = {name: _part(number, pattern, name) for name in "sifn"}
    wide = pa.decimal256(whole + scale + 1, scale)
    digits = _together(pc.scalar("0"), parts["i"], pc.scalar("."), parts["f"], pc.scalar("0" * (not scale)))
    size = _together(pc.scalar("0"), parts["i"]).cast(wide) if not scale else digits.cast(wide)
    up = _matches(parts["n"], "[5-9]")
    last = pa.scalar(Decimal(1).scaleb(-scale), pa.decimal128(max(scale, 1), scale))
    none = pa.scalar(Decimal(0).scaleb(-scale), pa.decimal128(max(scale, 1), scale))
    size = pc.add(size, pc.if_else(up, pc.scalar(last), pc.scalar(none))).cast(wide)
    signed = pc.if_else(_matches(parts["s"], "-"), pc.negate(size), size)
    return _within(signed, wide, kind)


def _of_number(value: Typed, kind: pa.DataType) -> Any:
    """Return rounded numbers, null beyond the type; None: ``value`` is no number."""
    if pa.types.is_decimal(value.kind) or pa.types.is_floating(value.kind):
        scale = kind.scale if pa.types.is_decimal(kind) else 0
        is_float = pa.types.is_floating(value.kind)
        mode = "half_to_even" if is_float and pa.types.is_integer(kind) else "half_towards_infinity"
        return _within(rounded(value, scale, mode), value.kind, kind)
    return _within(value.expression, value.kind, kind) if pa.types.is_integer(value.kind) else None


def _within(value: Any, given: pa.DataType, kind: pa.DataType) -> Any:
    """Return values of ``given`` as ``kind``, null for those that are beyond it."""
    lowest, highest = _limits(kind)
    if pa.types.is_floating(given):
        # the largest integer of 64 bits is no float: the first that is too large is one
        above, below = (
            pc.scalar(float(highest + 1) if pa.types.is_integer(kind) else float(highest)),
            pc.scalar(float(lowest)),
        )
        fits = pc.and_kleene(pc.greater_equal(value, below), pc.less(value, above))
    else:
        wide = pa.decimal256(60, max(getattr(given, "scale", 0), getattr(kind, "scale", 0)))
        exact = (
            value.cast(wide) if pa.types.is_decimal(given) else value.cast(pa.decimal128(20, 0)).cast(wide)
        )
        below, above = (pc.scalar(pa.scalar(Decimal(limit), wide)) for limit in (lowest, highest))
        fits = pc.and_kleene(pc.greater_equal(exact, below), pc.less_equal(exact, above))
    return cast(Typed(_where(fits, value), given), kind).expression


def _limits(kind: pa.DataType) -> tuple[Any, Any]:
    """Return the least and the largest value of a type of numbers."""
    if pa.types.is_decimal(kind):
        most = Decimal(10**kind.precision - 1).scaleb(-kind.scale)
        return -most, most
    limits = np.iinfo(kind.to_pandas_dtype())
    return int(limits.min), int(limits.max)


def _moment(text: Any, kind: pa.DataType) -> Any:
    """Return days or moments that are written with four digits of the year, and with one or two of the others."""
    plain = pc.utf8_trim(text, characters=_SPACE) if pa.types.is_date(kind) else text

    def part(name: str) -> Any:
        return _part(plain, _MOMENT, name)

    def two(name: str) -> Any:
        digits = part(name)
        return pc.if_else(pc.equal(digits, pc.scalar("")), pc.scalar("00"), pc.utf8_lpad(digits, 2, "0"))

    month = pc.utf8_lpad(_together(part("m"), part("n")), 2, "0")
    day = pc.binary_join_element_wise(part("y"), month, two("d"), pc.scalar("-"))
    hour, minute, second = two("h"), two("mi"), two("s")
    fits = pc.and_kleene(_matches(day, _DAY), _matches(hour, _HOURS))
    fits = pc.and_kleene(fits, pc.and_kleene(_matches(minute, _SIXTY), _matches(second, _SIXTY)))
    if pa.types.is_date(kind):
        return _where(fits, day).cast(kind)
    clock = pc.binary_join_element_wise(hour, minute, second, pc.scalar(":"))
    offset = pc.if_else(pc.equal(part("z"), pc.scalar("")), pc.scalar("Z"), part("z"))
    whole = _together(day, pc.scalar(" "), clock, pc.scalar("."), pc.utf8_rpad(part("f"), 6, "0"), offset)
    return cast(
        Typed(_where(fits, whole).cast(pa.timestamp("us", "UTC")), pa.timestamp("us", "UTC")), kind
    ).expression


def _part(text: Any, pattern: str, name: str) -> Any:
    """Return a named part of a text; null where the pattern does not match, empty where the part is not there."""
    return pc.struct_field(pc.extract_regex(text, pattern), [name])


def _matches(text: Any, pattern: str) -> Any:
    return pc.match_substring_regex(text, pattern)


def _where(condition: Any, value: Any) -> Any:
    """Return a value where a condition is true, and null elsewhere."""
    return pc.if_else(pc.coalesce(condition, pc.scalar(False)), value, pc.scalar(None))


def _together(*texts: Any) -> Any:
    return pc.binary_join_element_wise(*texts, pc.scalar(""))
