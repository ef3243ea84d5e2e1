"""Lengths of slacks, rounded up so that people can read them, as texts that a policy takes."""

from __future__ import annotations

from oop_engine.core.units import TIME_UNITS

__all__ = ["length_text", "rounded_up"]

_S = 10**9
_NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": _S, "min": 60 * _S, "h": 3600 * _S, "d": 86_400 * _S}
_STEPS = (("d", "h"), ("h", "min"), ("min", "s"))
"""From so long on a length is rounded up to about a twelfth of it, in whole parts of the smaller unit."""


def rounded_up(value: int, unit: str) -> int:
    """Return the next length that is short to write: of two digits, or of at most 1 part in 12 more.

    >>> rounded_up(298_168_000, "us"), rounded_up(62_400, "ms"), rounded_up(1_234, "ms"), rounded_up(17, "rows")
    (300000000, 65000, 1300, 17)
    """
    if unit not in TIME_UNITS or value <= 0:
        return value
    base = _NANOSECONDS[unit]
    exact, step = value * base, 1
    for large, small in _STEPS:
        if exact >= _NANOSECONDS[large]:
            parts = max(exact // _NANOSECONDS[small] // 12, 1)
            step = _NANOSECONDS[small] * max(each for each in (1, 5, 10, 15, 30) if each <= parts)
            break
    else:
        while exact >= 100 * step:
            step *= 10
    step = max(step, base)
    return -(-exact // step) * step // base


def length_text(value: int, unit: str) -> str:
    """Return a length with the largest unit that gives a whole number, or one with tenths.

    >>> length_text(300_000_000, "us"), length_text(65_000, "ms"), length_text(2_700, "ms"), length_text(17, "rows")
    ('5 min', '65 s', '2.7 s', '17 rows')
    """
    if unit not in TIME_UNITS:
        return f"{value} {unit}"
    exact = value * _NANOSECONDS[unit]
    fitting = [name for name, length in _NANOSECONDS.items() if exact % length == 0 and exact >= length]
    name = fitting[-1] if fitting else unit
    if exact >= _S and exact % _S and exact % (_S // 10) == 0:
        return f"{exact / _S:.1f} s"
    return f"{exact // _NANOSECONDS[name]} {name}"
