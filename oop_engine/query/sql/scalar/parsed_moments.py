"""Moments that are read or put together: ``strptime``, ``make_date``, ``make_timestamp``, ``AT TIME ZONE``.

Arrow's strptime takes February 30 for March 2.  Here a format becomes a regular expression, its parts a text of ISO
8601, and that a moment by the grammar of ``TRY_CAST``.
"""

from __future__ import annotations

import zoneinfo
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.query.sql.scalar.text_functions import known, quoted, text_of
from oop_engine.query.sql.scalar.tried import tried
from oop_engine.query.sql.scalar.types import Typed, cast, is_text, is_time

__all__ = ["MADE_MOMENTS"]

_MOMENT = pa.timestamp("us")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT = 3  # letters of the short name of a month or a day
_CENTURY = 69  # years of two digits below are of this century, as in POSIX


def _names(whole: tuple[str, ...]) -> str:
    return "|".join(f"{name}|{name[:_SHORT]}" for name in whole)


_GROUPS = {
    "Y": "(?P<Y>[0-9]{4})", "y": "(?P<y>[0-9]{1,2})", "m": "(?P<m>[0-9]{1,2})", "d": "(?P<d>[0-9]{1,2})",
    "H": "(?P<H>[0-9]{1,2})", "I": "(?P<I>[0-9]{1,2})", "M": "(?P<M>[0-9]{1,2})", "S": "(?P<S>[0-9]{1,2})",
    "f": "(?P<f>[0-9]{1,6})", "p": "(?P<p>am|pm)", "b": f"(?P<b>{_names(_MONTHS)})", "B": f"(?P<b>{_names(_MONTHS)})",
    "a": f"(?:{_names(_DAYS)})", "A": f"(?:{_names(_DAYS)})", "%": "%",
}  # fmt: skip


def _pattern(format: str) -> str:
    """Return a format as a pattern with a group for each part; raises ``ValueError`` for one that is not known."""
    out, signs = "", iter(format)
    for sign in signs:
        if sign != "%":
            out += r"\s+" if sign.isspace() else quoted(sign)
            continue
        part = next(signs, "")
        part = next(signs, "") if part == "-" else part
        if part not in _GROUPS:
            msg = f"no part '%{part}' of a format that is read; there are %{' %'.join(_GROUPS)}"
            raise ValueError(msg)
        out += _GROUPS[part]
    for name in "YymdHIMSfpb":
        if out.count(f"(?P<{name}>") > 1:
            msg = f"the format has a part twice: {format!r}"
            raise ValueError(msg)
    return rf"(?i)^\s*{out}\s*$"


def _parsed(text: Any, pattern: str) -> Any:
    """Return the moments of texts; null where the pattern does not match, or a part is beyond its limit."""

    def part(name: str, without: str) -> Any:
        if f"(?P<{name}>" not in pattern:
            return pc.scalar(without)
        return pc.struct_field(pc.extract_regex(text, pattern), [name])

    day, clock = _two(part("d", "01")), (_two(part(name, "00")) for name in "MS")
    parts = [_year(part, pattern), _month(part, pattern), day]
    whole = pc.binary_join_element_wise(*parts, pc.scalar("-"))
    time = pc.binary_join_element_wise(_hour(part, pattern), *clock, pc.scalar(":"))
    fraction = pc.utf8_rpad(part("f", "0"), 6, "0")
    iso = pc.binary_join_element_wise(whole, pc.scalar(" "), time, pc.scalar("."), fraction, pc.scalar(""))
    is_there = pc.match_substring_regex(text, pattern)
    return tried(
        Typed(pc.if_else(is_there, iso, pc.scalar(pa.scalar(None, pa.string()))), pa.string()), _MOMENT
    )


def _two(digits: Any) -> Any:
    return pc.utf8_lpad(digits, 2, "0")


def _year(part: Any, pattern: str) -> Any:
    if "(?P<y>" not in pattern:
        return part("Y", "1900")
    short = _two(part("y", "00"))
    recent = pc.less(short, pc.scalar(str(_CENTURY)))
    return pc.binary_join_element_wise(
        pc.if_else(recent, pc.scalar("20"), pc.scalar("19")), short, pc.scalar("")
    )


def _month(part: Any, pattern: str) -> Any:
    if "(?P<b>" not in pattern:
        return _two(part("m", "01"))
    short = pc.utf8_slice_codeunits(pc.utf8_lower(part("b", "")), 0, _SHORT)
    place = pc.index_in(short, value_set=pa.array([month[:_SHORT] for month in _MONTHS]))
    return _two(pc.add(place.cast(pa.int64()), pc.scalar(1)).cast(pa.string()))


def _hour(part: Any, pattern: str) -> Any:
    """Return the hour; of twelve with AM and PM one from 1 to 12, beyond them none."""
    if "(?P<I>" not in pattern:
        return _two(part("H", "00"))
    of_twelve = _two(part("I", "12"))
    number = of_twelve.cast(pa.int64())
    hour = pc.if_else(pc.equal(number, pc.scalar(12)), pc.scalar(0), number)
    later = pc.equal(pc.utf8_lower(part("p", "am")), pc.scalar("pm"))
    whole = pc.if_else(later, pc.add(hour, pc.scalar(12)), hour)
    fits = pc.and_kleene(pc.greater(number, pc.scalar(0)), pc.less_equal(number, pc.scalar(12)))
    return _two(pc.if_else(fits, whole, pc.scalar(99)).cast(pa.string()))


def _read(text: Typed, format: Typed) -> Any:
    """Return the moments of texts; one that is not of the format ends the query."""
    given = str(known(format, "a format"))
    moments = _parsed(text_of(text), _pattern(given))
    wrong = pc.binary_join_element_wise(
        pc.scalar("strptime: "), text_of(text), pc.scalar(f" is not {given}"), pc.scalar("")
    )
    unread = pc.if_else(pc.is_valid(moments), pc.scalar(pa.scalar(None, pa.string())), wrong)
    return pc.coalesce(moments, unread.cast(_MOMENT))


def _tried_format(text: Typed, format: Typed) -> Any:
    return _parsed(text_of(text), _pattern(str(known(format, "a format"))))


def _digits(value: Typed, many: int) -> Any:
    return pc.utf8_lpad(cast(cast(value, pa.int64()), pa.string()).expression, many, "0")


def _day(year: Typed, month: Typed, day: Typed) -> Any:
    """Return a day; one that the calendar has not ends the query."""
    parts = _digits(year, 4), _digits(month, 2), _digits(day, 2)
    return pc.binary_join_element_wise(*parts, pc.scalar("-")).cast(pa.date32())


def _moment(year: Typed, month: Typed, day: Typed, hour: Typed, minute: Typed, second: Typed) -> Any:
    """Return a moment, to the microsecond; a part beyond its limit ends the query."""
    micros = pc.round(pc.multiply(cast(second, pa.float64()).expression, pc.scalar(1e6))).cast(pa.int64())
    whole = pc.divide(micros, pc.scalar(1_000_000))
    rest = pc.subtract(micros, pc.multiply(whole, pc.scalar(1_000_000)))
    clock = pc.binary_join_element_wise(
        _digits(hour, 2), _digits(minute, 2), _digits(Typed(whole, pa.int64()), 2), pc.scalar(":")
    )
    text = pc.binary_join_element_wise(
        _day(year, month, day).cast(pa.string()), pc.scalar(" "), clock, pc.scalar("."),
        _digits(Typed(rest, pa.int64()), 6), pc.scalar(""),
    )  # fmt: skip
    return text.cast(_MOMENT)


def _in_zone(zone: Typed, moment: Typed) -> Any:
    """Return the local time of a moment, or the moment of a local time.

    Of two moments of one local time the later is meant, as in DuckDB; a local time that clocks skip is the moment
    after the gap.
    """
    name = str(known(zone, "the zone"))
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        msg = f"no time zone {name!r}: write one such as 'Europe/Berlin', or 'UTC'"
        raise ValueError(msg) from error
    if is_text(moment.kind) or not is_time(moment.kind):
        msg = f"a moment is wanted; this is {moment.kind}"
        raise ValueError(msg)
    unit = moment.kind.unit if pa.types.is_timestamp(moment.kind) else "us"
    if pa.types.is_timestamp(moment.kind) and moment.kind.tz:
        return pc.local_timestamp(moment.expression.cast(pa.timestamp(unit, name)))
    local = cast(moment, pa.timestamp(unit)).expression
    there = pc.assume_timezone(local, timezone=name, ambiguous="latest", nonexistent="latest")
    return there.cast(pa.timestamp(unit, "UTC"))


def _made(*parts: Typed) -> Any:
    """Return the moment of microseconds since 1970, or of six parts."""
    if len(parts) == 1:
        return cast(parts[0], pa.int64()).expression.cast(_MOMENT)
    return _moment(*parts)


MADE_MOMENTS: dict[str, Any] = {
    "STRPTIME": _read,
    "TRY_STRPTIME": _tried_format,
    "MAKE_DATE": _day,
    "MAKE_TIMESTAMP": _made,
    "TIMEZONE": _in_zone,
    "AT_TIME_ZONE": lambda moment, zone: _in_zone(zone, moment),
}
"""Functions of typed values; a ``ValueError`` has the words of a mistake."""
