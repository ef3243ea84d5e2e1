"""Length texts: the forms in which people write a length of time.

``"90 s"``, ``"5min"``, ``"1h30m"``, ``"1 day"`` (pandas, Polars), ``"INTERVAL '5' MINUTES"`` (SQL), ``"PT1M30S"`` (ISO
8601), ``"1 days 00:01:30"`` (the output of pandas and Python).  A day is 24 hours; a month
has no fixed length, so it is none.
"""

from __future__ import annotations

import re
from fractions import Fraction

__all__ = ["FORMS", "PER_SECOND", "has_word", "no_length", "parsed", "time_word"]

FORMS = "'15 min', '1 minute', '1h30m', 'PT15M' or '900'"
"""Examples for messages."""

PER_SECOND = {
    "as": Fraction(10**18), "fs": Fraction(10**15), "ps": Fraction(10**12), "ns": Fraction(10**9),
    "us": Fraction(10**6), "ms": Fraction(1000), "s": Fraction(1), "m": Fraction(1, 60), "h": Fraction(1, 3600),
    "D": Fraction(1, 86_400), "W": Fraction(1, 604_800),
}  # fmt: skip
"""How many of a unit, by its name in NumPy, are a second."""

_WORDS = {
    "ns": "ns nsec nsecs nano nanos nanosecond nanoseconds",
    "us": "us \u00b5s \u03bcs usec usecs micro micros microsecond microseconds",
    "ms": "ms msec msecs milli millis millisecond milliseconds",
    "s": "s sec secs second seconds",
    "m": "m min mins minute minutes",
    "h": "h hr hrs hour hours",
    "D": "d day days",
    "W": "w week weeks",
}
_NO_LENGTH = {"mo", "mon", "month", "months", "q", "quarter", "quarters", "y", "yr", "yrs", "year", "years"}
_UNIT_OF = {word: unit for unit, words in _WORDS.items() for word in words.split()}
_PART = r"(\d+(?:\.\d+)?)\s*([A-Za-z\u00b5\u03bc_]+)"
_ONE = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([A-Za-z\u00b5\u03bc_]+)?")
_SEVERAL = re.compile(rf"([+-]?)\s*({_PART}(?:[\s,]*{_PART})*)")
_CLOCK = re.compile(r"([+-]?)(?:(\d+)\s*days?,?\s*)?\+?(\d{1,2}):(\d\d):(\d\d(?:\.\d+)?)", re.IGNORECASE)
_ISO = re.compile(
    r"([+-]?)P(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?"
    r"(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?"
)
_ISO_SECONDS = (7 * 86_400, 86_400, 3600, 60, 1)
_SQL = re.compile(r"interval\s+(.*)", re.IGNORECASE | re.DOTALL)


def time_word(word: str) -> str | None:
    """Return the unit of time, by its name in NumPy, that a word means; None: it means none.

    >>> time_word("Minutes"), time_word("m"), time_word("M")
    ('m', 'm', None)
    """
    return None if word == "M" else _UNIT_OF.get(word.lower())


def has_word(text: str) -> bool:
    """Return whether a text is a number with a word behind it: it may be of another unit."""
    parts = _ONE.fullmatch(text.strip())
    return parts is not None and parts[2] is not None


def no_length(text: str) -> str:
    """Return a remark on the word behind a number: a month and a year have no fixed length, others are unknown."""
    parts = _ONE.fullmatch(text.strip())
    word = parts[2] if parts and parts[2] else ""
    if word == "M" or word.lower() in _NO_LENGTH:
        return f"{word!r} has no fixed length; "
    return f"there is no unit {word!r}; " if word else ""


def parsed(text: str, own: str) -> tuple[Fraction, bool] | None:
    """Return a number, and whether it counts seconds; else it counts the unit ``own``.  None: the text is no length.

    >>> parsed("1.5 min", "s"), parsed("7", "s"), parsed("7 rows", "rows"), parsed("a while", "s")
    ((Fraction(90, 1), True), (Fraction(7, 1), False), (Fraction(7, 1), False), None)
    """
    text = text.strip()
    if parts := _SQL.fullmatch(text):
        text = parts[1].replace("'", "").strip()
    if parts := _ONE.fullmatch(text):
        number, word = Fraction(parts[1]), parts[2]
        if word is None or word == own:
            return number, False
        return (number / PER_SECOND[unit], True) if (unit := time_word(word)) else None
    seconds = _several(text)
    if seconds is None:
        seconds = _clock(text)
    if seconds is None:
        seconds = _iso(text)
    return None if seconds is None else (seconds, True)


def _several(text: str) -> Fraction | None:
    if not (whole := _SEVERAL.fullmatch(text)):
        return None
    parts = re.findall(_PART, whole[2])
    units = [time_word(word) for _, word in parts]
    if None in units or len(set(units)) < len(units):
        return None
    total = sum(
        Fraction(number) / PER_SECOND[unit] for (number, _), unit in zip(parts, units, strict=True) if unit
    )
    return Fraction(-total if whole[1] == "-" else total)


def _clock(text: str) -> Fraction | None:
    if not (parts := _CLOCK.fullmatch(text)):
        return None
    sign, days, hours, minutes, seconds = parts.groups()
    if sign == "-" and days:  # Python and pandas mean different lengths by it
        return None
    total = int(days or 0) * 86_400 + int(hours) * 3600 + int(minutes) * 60 + Fraction(seconds)
    return -total if sign == "-" else total


def _iso(text: str) -> Fraction | None:
    parts = _ISO.fullmatch(text)
    if not parts or not any(parts.groups()[1:]):
        return None
    total = sum(
        Fraction(number or 0) * each for number, each in zip(parts.groups()[1:], _ISO_SECONDS, strict=True)
    )
    return Fraction(-total if parts[1] == "-" else total)
