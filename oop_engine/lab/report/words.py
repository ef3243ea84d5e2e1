"""Figures as people read them: ``336,776``, ``1.2 MB``, ``2 h 15 min``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oop_engine.core.values.rfc3339 import rfc3339

__all__ = ["UNKNOWN", "advised", "count", "label", "late_in", "plain", "ratio", "seconds", "size", "text"]

UNKNOWN = "n/a"
_SIZES = ("B", "kB", "MB", "GB", "TB")
_UNITS = ("s", "ms", "us", "ns", "min", "h", "kB", "MB")
_LONG = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def count(value: float) -> str:
    """Return a number of things: exact below ten million, then short.

    >>> count(336776), count(5e7)
    ('336,776', '50.0 M')
    """
    if not math.isfinite(value):
        return UNKNOWN
    if abs(value) < 1e7:
        return f"{round(value):,}"
    return f"{value / 1e6:,.1f} M" if abs(value) < 1e9 else f"{value / 1e9:,.1f} G"


def late_in(where: str, late: int, tuples: int) -> str:
    """Return how many of a run's tuples were late, and the way out.

    >>> late_in("guess", 93, 1000)
    'guess: 93 of 1,000 tuples were late (9.3 %): allow for more disorder, or divert them (late=Late.DIVERT)'
    """
    return advised(
        f"{where}: {count(late)} of {count(tuples)} tuples were late ({100 * late / tuples:.2g} %)"
    )


def advised(late: object) -> str:
    """Return a message about late tuples, with the way out."""
    return f"{late}: allow for more disorder, or divert them (late=Late.DIVERT)"


def size(nbytes: float) -> str:
    """Return a number of bytes.

    >>> size(900), size(41_200), size(1_240_000)
    ('900 B', '41.2 kB', '1.24 MB')
    """
    power = 0
    while abs(nbytes) >= 999.5 and power < len(_SIZES) - 1:
        nbytes, power = nbytes / 1000, power + 1
    return f"{nbytes:.3g} {_SIZES[power]}"


def seconds(value: float) -> str:
    """Return a length of time.

    >>> seconds(0.0123), seconds(3.25), seconds(8100), seconds(-90)
    ('12.3 ms', '3.25 s', '2 h 15 min', '-1 min 30 s')
    """
    if not math.isfinite(value):
        return UNKNOWN
    if value < 0:
        return f"-{seconds(-value)}"
    for unit, word, part, part_word in _LONG:
        if value >= unit:
            rest = round(value % unit / part)
            whole = int(value // unit) + (rest * part == unit)
            return f"{whole} {word} {rest} {part_word}" if rest and rest * part < unit else f"{whole} {word}"
    if value == 0 or value >= 1:
        return f"{value:.3g} s"
    return f"{value * 1000:.3g} ms" if value >= 0.001 else f"{value * 1e6:.3g} µs"


def ratio(a: float, b: float) -> str:
    """Return how many times ``a`` is ``b``: ``"3.4"``, ``"120"``."""
    return f"{a / b:,.0f}" if a / b >= 100 else f"{a / b:.2g}"


def text(value: Any) -> str:
    """Return any value of a table or of a claim's figures, in one line.

    >>> text({"kept": {"in": 41200, "out": 48.5}, "exact": True})
    'kept: (in: 41,200, out: 48.5), exact: yes'
    """
    value = plain(value)
    match value:
        case None:
            return UNKNOWN
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
        case dict():
            return ", ".join(f"{key}: {_inner(item)}" for key, item in value.items()) or "none"
        case list():
            return ", ".join(map(_inner, value)) or "none"
    return str(value)


def label(key: str) -> str:
    """Return the name of a figure in words, its unit behind it.

    >>> label("per_carrier_p50_s"), label("found"), label("slack, delay_ms")
    ('per carrier p50 (s)', 'found', 'slack, delay (ms)')
    """
    name, _, unit = key.rpartition("_")
    return f"{name.replace('_', ' ')} ({unit})" if name and unit in _UNITS else key.replace("_", " ")


def _inner(value: Any) -> str:
    return f"({text(value)})" if isinstance(value, dict | list) and len(value) > 1 else text(value)


def plain(value: Any) -> Any:
    """Return ``value`` as JSON has it: no NumPy, no NaN (null instead), names as text."""
    match value:
        case None | bool() | str():
            return value
        case np.generic():
            return plain(value.item())
        case np.ndarray():
            return plain(value.tolist())
        case int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case Sequence() | set() | frozenset():
            return [plain(item) for item in value]
    return rfc3339(value)
