"""The pipeline as a door for values: a cell is the value that a trace of CSV has, or is refused as there."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oop_engine import Schema, open_trace
from oop_engine.core.values.arrays import converted
from oop_engine.core.values.kinds import converts
from oop_engine.pipeline.declaration import Column, load_declaration
from oop_engine.pipeline.inputs import ARROW_TYPES, find_inputs, layouts
from oop_engine.pipeline.parse import REASON, _read, parsed
from oop_engine.traces.csv_format import CsvFormat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TEXTS = """x|5|-5|+7|300|128|-129|3.0|3.|3.5|+3.0|-0|-0.0|007|0x10|1_000|1,5|5L|1d|.5|0.5|1.005|
9007199254740993|9007199254740994|16777217|-16777218|2147483648|9223372036854775807|9223372036854775808|
18446744073709551615|18446744073709551616|100000000000000000000|1000000000000000000000000|1719837000|
1e2|1E+2|-1e02|+1e2|1.5e1|1.e2|.5e1|15e-1|10e-1|1e-1|1e18|1e19|9.223372036854775807e18|9.223372036854775808e18|0e400|
0.0e-5|1e|e2|1e2.0|1_0e2|1e99999999999|0e99999999999|0e999|0e1000|1e0002|.0|-.00|+.0|.|-|+|1.0000000000000000000000001e0|1000000000000000000000000000000e-25|
1e400|-1e400|1e39|1e-400|nan|inf|-Infinity|NA|null| 7 |true|TRUE|tRuE|yes|on|T|f|1|0|
2024-07-01|2024-7-1|2024-02-30|2013|12:30:00|2024-07-01 12:30:00|2024-07-01T12:30:00Z|2024-07-01T12:30|2024-07-01T12|
2024-07-01T12:30:00.5+02:00|2024-07-01T12:30:00+0200|2024-07-01T12:30:00+02|2024-07-01T12:30:00 Europe/Paris|
2024-07-01T12:30:00.1234567|2024-07-01T12:30:00.1230000|2024-07-01T25:00:00|2024-07-01T12:30:60|
9999-12-31 00:00:00|10000-01-01|epoch|now""".replace("\n", "").split("|")


@pytest.mark.slow
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


COLUMNS: dict[str, pa.Array] = {
    "bool": pa.array([True, False]), "int8": pa.array([127, -128, 0], pa.int8()), "uint8": pa.array([255], pa.uint8()),
    "int32": pa.array([2**24 + 1, 2**31 - 1, -(2**31)], pa.int32()), "uint32": pa.array([2**32 - 1], pa.uint32()),
    "int64": pa.array([0, 300, 2**53 + 1, 2**62, -(2**63), 1_719_837_000]), "uint64": pa.array([5], pa.uint64()),
    "float32": pa.array([0.5, 3, 2.0**31, 2.0**63, math.inf, math.nan], pa.float32()),
    "float64": pa.array([0, 1.5, 1.005, 1e39, 128, 2.0**15, 2.0**31, 2.0**63, -(2.0**63), 1e300, math.inf, math.nan]),
    "string": pa.array(["x", "", "5", "0.5", "true", "NA", "2024-07-01", "1e400"]),
    "binary": pa.array([b"x", b"5", b"2024-07-01", b"\xff"]), "fixed": pa.array([b"12", b"xy"], pa.binary(2)),
    "dictionary": pa.array(["5", "x"]).dictionary_encode(),
    "decimal": pa.array(["0.10", "3.00", "16777217.00"]).cast(pa.decimal128(10, 2)),
    "wide": pa.array(["9007199254740993", "5"]).cast(pa.decimal128(38, 0)),
    "date32": pa.array([0, 19_905], pa.date32()), "timestamp": pa.array([0, 86_400_000_000, 5], pa.timestamp("us")),
    "zoned": pa.array([0, 5_000], pa.timestamp("ms", "UTC")),
}  # fmt: skip


@pytest.mark.slow
def test_a_value_of_parquet_is_that_of_a_trace(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    many = max(map(len, COLUMNS.values()))
    padded = {name: pa.concat_arrays([c, pa.nulls(many - len(c), c.type)]) for name, c in COLUMNS.items()}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"row": range(many), **padded}), path)
    fields = pq.read_schema(path)
    frame = spark.read.parquet(str(path)).orderBy("row")
    cells, pairs = [], []
    for column in COLUMNS:
        for name, kind in ARROW_TYPES.items():
            found = fields.field(column).type
            if not (may := pa.types.is_timestamp(found) and pa.types.is_timestamp(kind)) and not converts(
                found, kind
            ):
                continue  # is an error at the start
            kind = found if may else kind
            value, bad = _read(F.col(column), frame.schema[column].dataType, found, Column(name), CsvFormat())
            plain = (
                F.unix_micros(value)
                if name == "timestamp"
                else F.unix_date(value)
                if name == "date32"
                else value
            )
            cells.append(F.struct(plain.cast("string"), bad).alias(f"_{len(cells)}"))
            pairs.append((column, name, pa.timestamp("us", kind.tz) if may else kind))
    rows = frame.select(*cells).collect()
    wrong = {}
    for at, (column, name, kind) in enumerate(pairs):
        values, lost = converted(COLUMNS[column], kind)
        plain = (
            values.cast(pa.int64() if name == "timestamp" else pa.int32())
            if name in ("timestamp", "date32")
            else values
        )
        for row, (wanted, given) in enumerate(
            zip(plain.to_pylist(), COLUMNS[column].to_pylist(), strict=True)
        ):
            found, refused = rows[row][at]
            if refused != (lost is not None and lost[row].as_py()) or not (refused or _same(found, wanted)):
                wrong[column, name, given] = (found, refused, wanted)
    assert len(pairs) > 100
    assert not wrong


def test_a_value_of_json_that_is_no_text_is_refused_in_a_column_of_text(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = [
        '"x"', '"5"', '""', '"\\u00e9"', '"2024-07-01"', "null", "5", "1.50", "1e400", "true", '{"x": 1}', "[1]",
        '{"x": 1, "x": 2}', '"\\ud800"', "12345678901234567890123456789012345678901234567890", "-0.0",
    ]  # fmt: skip
    path = tmp_path / "a.jsonl"
    path.write_text(
        "".join(f'{{"ts": {at}, "x": {value}}}\n' for at, value in enumerate(lines)) + '{"ts": 16}\n'
    )
    schema = Schema({"ts": pa.int64(), "x": pa.string()}, "ts", "s")
    wanted = {row["ts"]: row["x"] for page in open_trace(path, schema).pages() for row in page.to_pylist()}
    declaration = load_declaration(tmp_path / "a.toml") if (tmp_path / "a.toml").write_text(OF_JSON) else None
    assert declaration is not None
    [layout] = layouts(declaration, find_inputs([path], "json"))
    rows = parsed(spark, declaration, layout, tmp_path / "links").collect()
    assert {row["ts"]: row["x"] for row in rows if row[REASON] is None} == wanted
    assert {row[REASON] for row in rows} == {None, "x: is no text"}


OF_JSON = """format = "json"
[columns]
ts = "int64"
x = "string"
[stream]
time = "ts"
unit = "s"
"""


def _same(found: str | None, wanted: object) -> bool:
    if found is None or wanted is None:
        return found is wanted
    if isinstance(wanted, bool):
        return found == str(wanted).lower()
    if isinstance(wanted, float):
        return repr(float(found)) == repr(wanted) or abs(float(found) - wanted) <= abs(wanted) * 1e-7
    return found == str(wanted)
