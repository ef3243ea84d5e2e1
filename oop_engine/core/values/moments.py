"""Moments: a point of time that a caller writes, as a number of the column that it is for."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine.core.values.python_values import of_values

__all__ = ["moment_in"]


def moment_in(value: Any, kind: pa.DataType, unit: str) -> int | None:
    """Return a moment as the number that a column of ``kind`` has for it; None: it is no moment.

    Raises ``ValueError``, with the way out, for one that the column does not have.

    >>> moment_in(datetime(1970, 1, 1, 0, 1), pa.timestamp("ms"), "ms"), moment_in(5, pa.timestamp("ms"), "ms")
    (60000, None)
    """
    if not isinstance(value, date | np.datetime64):
        return None
    if not pa.types.is_timestamp(kind):
        msg = f"a number of {unit}, for the column is {kind}; got {value!r}"
        raise ValueError(msg)
    array, lost = of_values([value], kind)
    if lost is None and array.null_count == 0:
        return int(array.cast(pa.int64())[0].as_py())
    zoned = isinstance(value, datetime) and value.tzinfo is not None
    msg = f"a whole number of {unit}, one that 64 bits hold; got {value!r}"
    if zoned and not kind.tz:
        msg = (
            f"a moment without a zone, for the column is {kind}; got {value!r}: convert it, or declare a zone"
        )
    elif kind.tz and not zoned:
        msg = f"a moment in a zone, for the column is {kind}; got {value!r}: add tzinfo=ZoneInfo({kind.tz!r})"
    raise ValueError(msg)
