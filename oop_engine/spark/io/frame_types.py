"""Types of Spark's DataFrames: their Arrow types, and the calls of Spark that convert between them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from oop_engine.core.values.kinds import way_out

__all__ = ["arrow_type_of", "spark_way_out"]

_FUNCTIONS = {"s": "seconds", "ms": "millis", "us": "micros"}


def arrow_type_of(kind: Any) -> pa.DataType | None:
    """Return the Arrow type in which Spark hands over a column of its type ``kind``; None: it does not."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        return to_arrow_type(kind, timezone="UTC")
    except (PySparkException, TypeError, ValueError):
        return None


def spark_way_out(name: str, given: pa.DataType | None, wanted: pa.DataType, unit: str) -> str:
    """Return the call of Spark that makes a column of type ``given`` one of ``wanted``; ``unit``: of its numbers.

    >>> spark_way_out("ts", pa.timestamp("us", "UTC"), pa.int64(), "s")
    "frame.withColumn('ts', F.unix_seconds('ts')), or declare it as timestamp[us, tz=UTC]"
    >>> spark_way_out("ts", pa.timestamp("us", "UTC"), pa.timestamp("s"), "s")
    "frame.withColumn('ts', F.col('ts').cast('timestamp_ntz')), or declare it as timestamp[us, tz=UTC]"
    """
    if given is None:
        return "select or convert it before"
    call = _call(name, given, wanted, unit)
    return f"frame.withColumn({name!r}, {call}), or declare it as {given}" if call else way_out(given, wanted)


def _call(name: str, given: pa.DataType, wanted: pa.DataType, unit: str) -> str:
    """Return the call; '' where there is none to recommend."""
    times, types, function = pa.types.is_timestamp, pa.types, _FUNCTIONS.get(unit)
    if times(given) and times(wanted):
        return f"F.col({name!r}).cast('timestamp{'' if wanted.tz else '_ntz'}')"
    if function and times(given) and given.tz and types.is_integer(wanted):
        return f"F.unix_{function}({name!r})"
    if function and types.is_integer(given) and times(wanted) and wanted.tz:
        return f"F.timestamp_{function}({name!r})"
    return ""
