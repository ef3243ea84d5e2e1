"""RFC 3339: moments as texts that every machine reads, with ``T``, and with the zone of their column.

A column has as many digits of seconds in all its rows as its unit has: readers that take the form from the first row
read the others.  A column without a zone has moments without one: a zone is not made up.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["for_texts", "moment_of", "moment_texts", "rfc3339", "rfc3339_of"]

_OFFSET = r"([+-][0-9]{2})([0-9]{2})$"
_FAR_S = 30_000 * 365 * 86_400
_TO_US = {"s": 1_000_000, "ms": 1_000, "us": 1}


def rfc3339(value: Any, seconds: str = "auto") -> str:
    """Return a value of Python as text: moments as RFC 3339 has them, others by ``str``.

    ``seconds``: the digits of a ``datetime``, as ``isoformat`` has them.

    >>> from datetime import UTC
    >>> rfc3339(datetime(2026, 3, 1, 9, tzinfo=UTC)), rfc3339(datetime(2026, 3, 1, 9)), rfc3339(5)
    ('2026-03-01T09:00:00Z', '2026-03-01T09:00:00', '5')
    """
    if not isinstance(value, datetime | date | time):
        return str(value)
    text = value.isoformat(timespec=seconds) if isinstance(value, datetime | time) else value.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def moment_of(wall_s: float) -> str:
    """Return seconds since 1970, as ``time.time`` has them, as RFC 3339 has it, in milliseconds.

    >>> moment_of(1_714_564_990.5)
    '2024-05-01T12:03:10.500Z'
    """
    return rfc3339(datetime.fromtimestamp(round(wall_s * 1000) / 1000, UTC), "milliseconds")


def rfc3339_of(text: str) -> str:
    """Return the text of a timestamp, as Arrow casts it, as RFC 3339 has it.

    >>> rfc3339_of("2026-03-01 10:00:00.5+0100")
    '2026-03-01T10:00:00.5+01:00'
    """
    return re.sub(_OFFSET, r"\1:\2", text.replace(" ", "T", 1))


def moment_texts(column: pa.Array) -> pa.Array:
    """Return a column of timestamps as texts; O(rows).

    >>> moment_texts(pa.array([1_500], pa.timestamp("ms", "Europe/Berlin"))).to_pylist()
    ['1970-01-01T01:00:01.500+01:00']
    """
    if _is_far(column):
        return _far_texts(column)
    texts = pc.replace_substring(column.cast(pa.string()), " ", "T", max_replacements=1)
    if column.type.tz is None or column.type.tz == "UTC":
        return texts
    texts = pc.replace_substring_regex(texts, _OFFSET, r"\1:\2")
    texts = pc.if_else(pc.ends_with(texts, "+00:00"), pc.utf8_replace_slice(texts, -6, 1 << 30, "Z"), texts)
    return _of_whole_minutes(column, texts)


def _is_far(column: pa.Array) -> bool:
    """Return whether there are moments with years of more than 16 bits, of which Arrow writes others."""
    ends, per_s = pc.min_max(column.cast(pa.int64())).as_py(), 10**9 if column.type.unit == "ns" else None
    most = _FAR_S * (per_s or 1_000_000 // _TO_US[column.type.unit])
    return ends["min"] is not None and max(-ends["min"], ends["max"]) >= most


def _far_texts(column: pa.Array) -> pa.Array:
    """Return moments as texts one by one, in UTC where they have a zone."""
    zone, numbers = "Z" if column.type.tz else "", column.cast(pa.int64()).to_pylist()
    return pa.array(
        [None if n is None else f"{np.datetime64(n, column.type.unit)}{zone}" for n in numbers], pa.string()
    )


def for_texts(data: Any) -> Any:
    """Return a batch or a table for formats of text: timestamps as texts, and floats of 32 bits as those of 64.

    Arrow writes 40758592 of 32 bits as 40758590, the shortest text that is nearest to it: another whole number.

    >>> for_texts(pa.table({"at": pa.array([0], pa.timestamp("s", "UTC"))})).to_pylist()
    [{'at': '1970-01-01T00:00:00Z'}]
    """
    for place, field in enumerate(data.schema):
        if pa.types.is_timestamp(field.type):
            column = data.column(place)
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            made = [moment_texts(chunk) for chunk in chunks]
            whole = pa.chunked_array(made, pa.string()) if isinstance(column, pa.ChunkedArray) else made[0]
            data = data.set_column(place, pa.field(field.name, pa.string()), whole)
        elif pa.types.is_float32(field.type):
            wide = data.column(place).cast(pa.float64())
            data = data.set_column(place, pa.field(field.name, pa.float64()), wide)
    return data


def _of_whole_minutes(column: pa.Array, texts: pa.Array) -> pa.Array:
    """Return the texts, in UTC where the offset has seconds, as those of long ago have: RFC 3339 has none."""
    utc = column.cast(pa.timestamp(column.type.unit, "UTC"))
    apart = pc.subtract(
        pc.local_timestamp(column).cast(pa.int64()), utc.cast(pa.timestamp(column.type.unit)).cast(pa.int64())
    )
    minute = 60_000_000_000 if column.type.unit == "ns" else 60_000_000 // _TO_US[column.type.unit]
    whole = pc.equal(pc.multiply(pc.divide(apart, minute), minute), apart)
    if pc.all(whole).as_py() is not False:
        return texts
    return pc.if_else(whole, texts, moment_texts(utc))
