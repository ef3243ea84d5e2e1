from __future__ import annotations

import pickle
import re
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import GraphError, Schema
from oop_engine.errors import UnitError

PACKETS = Schema({"ts": pa.timestamp("ms", "UTC"), "len": pa.int32(), "src": pa.string()}, "ts")


def test_a_timestamp_brings_its_unit_and_an_integer_is_given_one() -> None:
    assert PACKETS.unit == "ms"
    assert Schema({"ts": pa.timestamp("us")}, "ts", "us").unit == "us"
    assert Schema({"km": pa.uint16()}, "km", "km").unit == "km"


@pytest.mark.parametrize(
    ("fields", "progressing", "unit", "words"),
    [
        ({"ts": pa.int64()}, "time", "s", "'time' is not a column of ['ts']"),
        ({}, "ts", "s", "'ts' is not a column of []"),
        ({"ts": pa.int64()}, "ts", "", "'ts' needs a unit; give unit='ms', 'rows', ..."),
        ({"ts": pa.float64()}, "ts", "s", "must be an integer or a timestamp; got double"),
        ({"ts": pa.string()}, "ts", "s", "must be an integer or a timestamp; got string: cast it before"),
        ({"ts": int}, "ts", "s", "such as {'ts': pa.int64()}; got {'ts': <class 'int'>}"),
        (["ts"], "ts", "s", "columns must be names with types, such as {'ts': pa.int64()}; got ['ts']"),
        ({"ts": pa.timestamp("ms")}, "ts", "s", "so its unit is 'ms'; got unit='s'"),
        (
            pa.schema([("ts", pa.int64()), ("ts", pa.int64())]),
            "ts",
            "s",
            "names must differ; got ['ts', 'ts']",
        ),
    ],
)
def test_what_makes_no_progress_is_refused(fields: Any, progressing: str, unit: str, words: str) -> None:
    with pytest.raises(GraphError, match=re.escape(words)):
        Schema(fields, progressing, unit)


def test_metadata_is_not_part_of_a_schema() -> None:
    marked = pa.schema([("ts", pa.int64())], metadata={"by": "pandas"})
    assert Schema(marked, "ts", "s") == Schema({"ts": pa.int64()}, "ts", "s")
    assert hash(Schema(marked, "ts", "s")) == hash(Schema({"ts": pa.int64()}, "ts", "s"))


def test_a_schema_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(PACKETS)) == PACKETS


def test_asking_for_columns() -> None:
    assert PACKETS.has(["src", "ts"])
    assert not PACKETS.has(["dst"])
    PACKETS.require(["src"], "Filter")
    with pytest.raises(GraphError, match=r"^Filter: no column 'dst' in its input; there are ts, len, src$"):
        PACKETS.require(["src", "dst"], "Filter")


def test_some_columns_keep_the_progressing_attribute() -> None:
    assert PACKETS.select(["src", "ts"]).names == ["src", "ts"]
    with pytest.raises(GraphError, match="'ts' is not a column"):
        PACKETS.select(["src"])


def test_lengths_are_in_the_unit_of_the_attribute() -> None:
    assert PACKETS.length("2 s", "Tumbling: range") == 2000
    with pytest.raises(UnitError, match="Tumbling: range"):
        PACKETS.length("2 rows", "Tumbling: range")


def test_a_schema_is_told_in_one_line() -> None:
    assert str(PACKETS) == "(ts+: timestamp[ms, tz=UTC], len: int32, src: string; unit ms)"
