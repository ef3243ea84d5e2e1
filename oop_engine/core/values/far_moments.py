"""Far moments: texts of moments beyond the years 0 to 9999, which Arrow writes and does not read."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from oop_engine.core.values.text_patterns import DIGITS

__all__ = ["with_far_moments"]

_FAR = re.compile(
    r"([+-]?[0-9]{4,6}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.([0-9]{1,9}))?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?\s*\Z"
)
_UTC = ("UTC", "Etc/UTC", "Z", "+00:00")


def with_far_moments(texts: pa.Array, values: pa.Array, bad: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """Return values with the moments of texts that are ``bad`` only for their years, and the mask of the others.

    >>> texts = pa.array(["12000-01-01T00:00:00Z", "x"])
    >>> with_far_moments(texts, pa.nulls(2, pa.timestamp("s", "UTC")), pa.array([True, True]))[1].to_pylist()
    [False, True]
    """
    lost = bad.to_numpy(zero_copy_only=False).copy()
    rows = np.flatnonzero(lost)
    far = {
        row: moment
        for row in rows.tolist()
        if (moment := _moment(texts[row].as_py(), values.type)) is not None
    }
    if not far:
        return values, bad
    numbers = values.cast(pa.int64()).fill_null(0).to_numpy().copy()
    nulls = values.is_null().to_numpy(zero_copy_only=False).copy()
    for row, moment in far.items():
        numbers[row], nulls[row], lost[row] = moment, False, False
    return pa.array(numbers, pa.int64(), mask=nulls).cast(values.type), pa.array(lost) if lost.any() else None


def _moment(text: str, kind: pa.DataType) -> int | None:
    """Return a moment in the unit of a type; None: the text is none, or the type has it not."""
    if (parts := _FAR.match(text.strip())) is None:
        return None
    day, clock, fraction, zone = parts.groups()
    if (kind.tz is None) != (zone is None) and not (zone is None and kind.tz in _UTC):
        return None
    digits = (fraction or "").rstrip("0")
    if len(digits) > DIGITS[kind.unit]:
        return None
    try:
        seconds = int(np.datetime64(f"{day}T{clock}", "s").astype(np.int64))
    except ValueError:
        return None
    moment = (seconds - _offset_s(zone)) * 10 ** DIGITS[kind.unit] + int(
        digits.ljust(DIGITS[kind.unit], "0") or 0
    )
    return moment if -(2**63) < moment < 2**63 else None


def _offset_s(zone: str | None) -> int:
    if zone in (None, "Z"):
        return 0
    assert zone is not None
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return (-60 if zone[0] == "-" else 60) * minutes
