"""Lengths of the progressing attribute: ``90``, ``"90 s"``, ``"1 minute"``, ``"PT1M30S"``, ``timedelta(seconds=90)``.

A progressing attribute is an integer with a unit.  Time units are ``s ms us ns``; any
other word (``rows``, ``m``, ``bytes``) is a unit of its own, in which lengths are plain
integers.  Lengths are turned into whole units once, when a graph is built.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import UnitError
from oop_engine.core.values.length_texts import FORMS, PER_SECOND, has_word, no_length, parsed

__all__ = ["TIME_UNITS", "Clock", "Length", "dated", "instant", "lasting", "to_seconds", "to_units"]

Length = int | str | timedelta
"""An integer in the attribute's own unit, a text such as ``"15 min"``, or a ``timedelta`` (also NumPy's, pandas's)."""

Clock = Literal["number", "utc", "local"]
"""The kind of an attribute: a number, a timestamp in a zone, a timestamp in none."""

TIME_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Time units a progressing attribute can have, and how many there are in a second."""

_FIRST_S, _LAST_S = 315_532_800, 253_402_300_800  # the years 1980 to 9999
_EPOCH = datetime(1970, 1, 1)
_SHORT_S = 120.0
_SIZES = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")]
_INTEGERS = (int, np.integer)


def to_units(length: Length, unit: str, place: str = "length") -> int:
    """Return ``length`` as a whole number of ``unit``.

    ``place`` names the place for the error.  A length of NumPy or pandas has its own unit.  A word that is ``unit``
    means that, whatever else it may mean.  Raises ``UnitError`` if the text cannot be read, names another unit, or is
    not a whole number of ``unit``.

    >>> to_units("15 min", "s"), to_units("1 hour", "s"), to_units("PT1M", "ms"), to_units("5 m", "m")
    (900, 3600, 60000, 5)
    >>> to_units("2 s", "rows", place="Sliding: slide")
    Traceback (most recent call last):
    oop_engine.core.errors.UnitError: Sliding: slide must be in 'rows'; got '2 s': give a plain integer
    """
    if isinstance(length, (str, timedelta)) and not hasattr(length, "asm8"):
        try:
            return _known(length, unit)
        except UnitError:
            return _units(length, unit, place)
    if (of_time := _elapsed(length, place)) is not None:
        return _timed(of_time, unit, length, place)
    if isinstance(length, bool) or not isinstance(length, _INTEGERS):
        msg = f"{place} must be an integer, a text such as '15 min' or a timedelta; got {length!r}"
        raise UnitError(msg)
    return int(length)


@lru_cache(
    maxsize=16_384
)  # a definition is read each time that a graph is planned or opened, and may be one of many
def _known(length: str | timedelta, unit: str) -> int:
    return _units(length, unit, "length")


def _units(length: str | timedelta, unit: str, place: str) -> int:
    if isinstance(length, timedelta):
        return _timed(Fraction(length // timedelta(microseconds=1), 10**6), unit, length, place)
    number_and_kind = parsed(length, unit)
    if number_and_kind is None:
        form = FORMS if unit in TIME_UNITS else "'900'"
        msg = f"{place} must read like {form}; got {length!r}"
        if has_word(length):
            what = "a length of time" if unit in TIME_UNITS else f"in {unit!r}"
            msg = f"{place} must be {what}; got {length!r}: {no_length(length)}write it like {form}"
        raise UnitError(msg)
    number, is_time = number_and_kind
    return _timed(number, unit, length, place) if is_time else _whole(number, unit, length, place)


def _elapsed(length: Any, place: str) -> Fraction | None:
    """Return the seconds of a length of NumPy or pandas; None: it is another value."""
    given = getattr(length, "asm8", length)
    if not isinstance(given, np.timedelta64):
        return None
    unit, steps = np.datetime_data(given.dtype)
    if np.isnat(given) or unit not in PER_SECOND:
        way_out = (
            "give it a unit, as np.timedelta64(1, 's')" if unit == "generic" else "months have no length"
        )
        msg = f"{place} must be a length of time; got {length!r}: {way_out}"
        raise UnitError(msg)
    return int(given.astype(np.int64)) * steps / PER_SECOND[unit]


def _timed(seconds: Fraction, unit: str, length: Any, place: str) -> int:
    if unit not in TIME_UNITS:
        way_out = "give a plain integer"
        if unit != "rows":
            way_out += f"; where {unit!r} are times, the schema's unit must be one of {', '.join(TIME_UNITS)}"
            way_out += did_you_mean(unit, TIME_UNITS)
        msg = f"{place} must be in {unit!r}; got {length!r}: {way_out}"
        raise UnitError(msg)
    return _whole(seconds * TIME_UNITS[unit], unit, length, place)


def to_seconds(value: int, unit: str) -> float:
    """Return ``value`` of ``unit`` in seconds; a unit that is no time is taken as it is."""
    return value / TIME_UNITS.get(unit, 1)


def instant(value: int, unit: str, clock: Clock = "number") -> str:
    """Return a point of the attribute as text: a moment as RFC 3339 has it (``dated``), another one with its unit.

    >>> instant(1_714_564_990_500, "ms"), instant(40, "s"), instant(40, "s", "utc"), instant(40, "s", "local")
    ('2024-05-01T12:03:10.500Z', '40 s', '1970-01-01T00:00:40Z', '1970-01-01T00:00:40')
    """
    return dated(value, unit, clock) or f"{value:,} {unit}"


def dated(value: int, unit: str, clock: Clock = "number") -> str | None:
    """Return a point of the attribute as RFC 3339 has it; None: it is no moment.

    ``clock``: the kind of the attribute.  A number is a moment, in UTC, if it can be one since 1980; a local timestamp
    has no zone, and gets none.
    """
    if unit not in TIME_UNITS or (clock == "number" and not _FIRST_S <= to_seconds(value, unit) < _LAST_S):
        return None
    seconds, rest = divmod(value, TIME_UNITS[unit])
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:  # of a year that has no date
        return None
    digits = len(str(TIME_UNITS[unit])) - 1
    return f"{moment.isoformat()}{f'.{rest:0{digits}}' * bool(rest)}{'Z' * (clock != 'local')}"


def lasting(value: int, unit: str) -> str:
    """Return a length of the attribute in words.

    >>> lasting(260, "s"), lasting(1_500, "ms"), lasting(90_000, "s"), lasting(5_000, "rows")
    ('4 min 20 s', '1.5 s', '1 d 1 h', '5,000 rows')
    """
    seconds = to_seconds(value, unit)
    if unit not in TIME_UNITS or seconds < _SHORT_S:
        return (
            f"{seconds:.1f} s" if unit != "s" and unit in TIME_UNITS and seconds >= 1 else f"{value:,} {unit}"
        )
    large = next(at for at, (size, _) in enumerate(_SIZES) if seconds >= size)
    parts = []
    for size, word in _SIZES[large : large + 2]:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count:,.0f} {word}")
    return " ".join(parts)


def _whole(number: Fraction, unit: str, length: Any, place: str) -> int:
    if number.denominator != 1:
        msg = f"{place} must be a whole number of {unit!r}; got {length!r} = {float(number):g} {unit}"
        raise UnitError(msg)
    return int(number)
