"""The pipeline as a door for values: a cell is the value that a trace of CSV has, or is refused as there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from oop_engine.core.values.arrays import converted
from oop_engine.pipeline.declaration import Column
from oop_engine.pipeline.inputs import ARROW_TYPES
from oop_engine.pipeline.parse import _read
from oop_engine.traces.csv_format import CsvFormat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TEXTS = """x|5|-5|+7|300|128|-129|3.0|3.|3.5|+3.0|-0|-0.0|007|0x10|1_000|1,5|5L|1d|.5|0.5|1.005|
9007199254740993|9007199254740994|16777217|-16777218|2147483648|9223372036854775807|9223372036854775808|
18446744073709551615|18446744073709551616|100000000000000000000|1000000000000000000000000|1719837000|
1e400|-1e400|1e39|1e-400|nan|inf|-Infinity|NA|null| 7 |true|TRUE|tRuE|yes|on|T|f|1|0|
2024-07-01|2024-7-1|2024-02-30|2013|12:30:00|2024-07-01 12:30:00|2024-07-01T12:30:00Z|2024-07-01T12:30|2024-07-01T12|
2024-07-01T12:30:00.5+02:00|2024-07-01T12:30:00+0200|2024-07-01T12:30:00+02|2024-07-01T12:30:00 Europe/Paris|
2024-07-01T12:30:00.1234567|2024-07-01T12:30:00.1230000|2024-07-01T25:00:00|2024-07-01T12:30:60|
9999-12-31 00:00:00|10000-01-01|epoch|now""".replace("\n", "").split("|")


def test_a_cell_is_the_value_of_a_trace(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    frame = spark.createDataFrame([(text,) for text in TEXTS], "cell string").coalesce(1)
    read = {}
    for name in ARROW_TYPES:
        value, bad = _read(
            F.col("cell"), frame.schema["cell"].dataType, pa.string(), Column(name), CsvFormat()
        )
        plain = (
            F.unix_micros(value) if name == "timestamp" else F.unix_date(value) if name == "date32" else value
        )
        read[name] = F.struct(plain.cast("string").alias("value"), bad.alias("bad")).alias(name)
    rows = frame.select("cell", *read.values()).collect()
    wrong = {}
    for name, kind in ARROW_TYPES.items():
        values, bad = converted(pa.array(TEXTS), kind)
        plain = (
            values.cast(pa.int64() if name == "timestamp" else pa.int32())
            if name in ("timestamp", "date32")
            else values
        )
        for row, wanted, refused in zip(
            rows, plain.to_pylist(), bad.to_pylist() if bad else [False] * len(TEXTS), strict=True
        ):
            found = row[name]["value"]
            same = refused is row[name]["bad"] and (refused or _same(found, wanted))
            if not same:
                wrong[row["cell"], name] = (found, row[name]["bad"], wanted, refused)
    assert not wrong


def _same(found: str | None, wanted: object) -> bool:
    if found is None or wanted is None:
        return found is wanted
    if isinstance(wanted, bool):
        return found == str(wanted).lower()
    if isinstance(wanted, float):
        return repr(float(found)) == repr(wanted) or abs(float(found) - wanted) <= abs(wanted) * 1e-7
    return found == str(wanted)
