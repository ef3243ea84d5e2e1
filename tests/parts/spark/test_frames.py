"""DataFrames as sources: each value as it is or a refusal, and results that no partition, order or setting changes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oop_engine import ContractError, Graph, Schema, UsageError, replay
from oop_engine.errors import TraceError
from oop_engine.operators import BoundedDisorder, Count, PerGroup, Punctuate, Tumbling, WindowAggregate
from oop_engine.spark.io.frames import page_of
from oop_engine.spark.run import run_on_spark
from oop_engine.testing import multiset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MICROS = pa.timestamp("us", "America/New_York")
START = datetime(2026, 1, 5, 10, tzinfo=UTC)


def counting(schema: Schema, by: tuple[str, ...] = ()) -> Graph:
    made = Graph("counting")
    policy = PerGroup(BoundedDisorder("1 s"), by=by) if by else BoundedDisorder("1 s")
    edge = made.add("edge", Punctuate(policy), made.source("in", schema))
    made.sink("out", made.add("count", WindowAggregate(Tumbling("1 min"), {"n": Count()}, by=by), edge))
    return made


def cells(schema: Schema, **columns: Any) -> list[dict[str, Any]]:
    return page_of(pa.RecordBatch.from_pydict(columns), "sales", schema).to_pylist()


@pytest.mark.parametrize(
    ("kind", "moment"),
    [
        (pa.timestamp("s", "UTC"), datetime(1969, 12, 31, 23, 59, 59, 500_000, UTC)),
        (pa.timestamp("s", "UTC"), datetime(2026, 1, 5, 10, 0, 0, 1, UTC)),
        (pa.timestamp("ns", "UTC"), datetime(3000, 1, 1, tzinfo=UTC)),
        (pa.timestamp("ns", "UTC"), datetime(1500, 1, 1, tzinfo=UTC)),
        (pa.int64(), START),
        (pa.timestamp("s"), START),
    ],
    ids=str,
)
def test_a_moment_is_another_one_never(kind: pa.DataType, moment: datetime) -> None:
    unit = "s" if pa.types.is_integer(kind) else ""
    for time in ("ts", "more"):  # the time of the schema, and any other column
        other = "more" if time == "ts" else "ts"
        schema = Schema({time: kind, other: pa.int64()}, "ts", unit if time == "ts" else "s")
        with pytest.raises(ContractError, match=rf"source 'sales': '{time}' must be "):
            cells(schema, **{time: pa.array([moment], MICROS), other: [1]})


def test_a_moment_that_fits_is_taken_and_a_row_without_one_is_left_out() -> None:
    before = datetime(1969, 12, 31, 23, 59, 58, tzinfo=UTC)
    schema = Schema({"ts": pa.timestamp("s", "UTC"), "n": pa.int8()}, "ts")
    found = cells(schema, ts=pa.array([before, None], MICROS), n=[1.0, 2.5])
    assert found == [{"ts": before, "n": 1}]


@pytest.mark.parametrize("value", [1.5, 5_000_000_000, "x", 2.0**63])
def test_a_cell_that_does_not_fit_is_refused_by_name(value: object) -> None:
    schema = Schema({"ts": pa.int64(), "cents": pa.int32()}, "ts", "s")
    with pytest.raises(ContractError, match=r"source 'sales': 'cents' must be int32; got .*: .*declare"):
        cells(schema, ts=[1], cents=[value])


def test_a_null_is_refused_where_the_field_is_not_nullable() -> None:
    schema = Schema(pa.schema([("ts", pa.int64()), pa.field("v", pa.int64(), nullable=False)]), "ts", "s")
    with pytest.raises(ContractError, match="source 'sales': 'v' must not be null"):
        cells(schema, ts=[1], v=pa.array([None], pa.int64()))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("select", "kind", "words"),
    [
        (
            "timestamp_seconds(id) as ts",
            pa.int64(),
            r"must be int64; .* timestamp: frame.*F\.unix_seconds\('ts'\)",
        ),
        ("timestamp_seconds(id) as ts", pa.timestamp("s"), r"cast\('timestamp_ntz'\)"),
        (
            "cast(timestamp_seconds(id) as timestamp_ntz) as ts",
            pa.timestamp("s", "UTC"),
            r"cast\('timestamp'\)",
        ),
        ("id as ts", pa.timestamp("ms", "UTC"), r"F\.timestamp_millis\('ts'\)"),
        ("make_ym_interval(1) as ts", pa.int64(), "interval year to month: select or convert it before"),
        ("id as ts, id as TS", pa.int64(), "must have one column 'ts'; it has ts, TS: drop or rename"),
        ("named_struct('s', id) as ts", pa.int64(), "must be int64"),
    ],
)
def test_types_without_values_in_common_are_refused_before_anything_runs(
    spark: SparkSession, select: str, kind: pa.DataType, words: str
) -> None:
    schema = Schema({"ts": kind}, "ts", "s" if pa.types.is_integer(kind) else "")
    frame = spark.sql(f"select {select} from range(1)")
    with pytest.raises(TraceError, match=f"source 'in': .*{words}"):
        run_on_spark(counting(schema), {"in": frame}, spark=spark, batch=True)


ROWS = Schema({"ts": pa.timestamp("us", "UTC"), "a.b": pa.string(), "*": pa.int64()}, "ts")
BY_KEY = counting(ROWS, ("a.b",))
BY_TIME = counting(ROWS)
SETTINGS: list[dict[str, str]] = [
    {"spark.sql.session.timeZone": "Asia/Kolkata", "spark.sql.ansi.enabled": "false"},
    {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "3"},
]


def rows() -> pa.Table:
    times = [START + timedelta(seconds=second) for second in range(0, 3600, 4)]
    keys = [f"k{key}" for key in np.random.default_rng(7).integers(0, 5, len(times))]
    return pa.table({"ts": pa.array(times, ROWS.type_of("ts")), "a.b": keys, "*": range(len(times))})


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of files, later ones larger, so that Spark reads them first."""
    table = rows()
    for number, (start, stop) in enumerate(pairwise([0, 100, 300, 600, 900])):
        pq.write_table(
            table.slice(start, stop - start), tmp_path / f"{number}.parquet", coerce_timestamps="us"
        )
    return tmp_path


@pytest.fixture(params=range(len(SETTINGS)))
def reading(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """The session with other settings, and a partition a file."""
    settings = SETTINGS[request.param] | {"spark.sql.files.openCostInBytes": "128m"}
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.slow
@pytest.mark.spark
def test_a_batch_counts_every_row_whatever_the_partitions_and_settings(
    reading: SparkSession, files: Path
) -> None:
    frame = reading.read.parquet(str(files))
    assert frame.rdd.getNumPartitions() == 4
    expected = multiset(replay(BY_KEY, {"in": rows()}).results["out"].to_pylist())
    for given in (frame, frame.repartition(5)):
        found = run_on_spark(BY_KEY, {"in": given}, spark=reading, batch=True)
        assert multiset(found.results["out"].to_pylist()) == expected
        assert found.statistics.count("late") == 0


@pytest.mark.spark
def test_a_micro_batch_is_taken_by_its_times(spark: SparkSession, files: Path) -> None:
    table = rows()
    schema = spark.read.parquet(str(files)).schema
    frame = spark.readStream.schema(schema).parquet(str(files)).repartition(3)
    found = run_on_spark(BY_TIME, {"in": frame}, spark=spark)
    last = table["ts"][-1].as_py() - timedelta(seconds=1)
    expected = [
        row for row in replay(BY_TIME, {"in": table}).results["out"].to_pylist() if row["window_end"] <= last
    ]
    assert multiset(found.results["out"].to_pylist()) == multiset(expected)
    assert found.statistics.count("late") == 0


@pytest.mark.slow(keep=1)
@pytest.mark.spark
@pytest.mark.parametrize("declared", ["order", "arrival"])
def test_a_batch_with_a_declared_order_is_replayed_by_it(spark: SparkSession, declared: str) -> None:
    """Whatever the partitions: the same rows are late as where they came."""
    table, random = rows(), np.random.default_rng(3)
    came = np.argsort(np.arange(len(table)) + random.integers(0, 60, len(table)), kind="stable")
    table = table.take(came)
    last = np.maximum.accumulate(table["ts"].cast("int64").to_numpy())
    at = {
        "order": pa.array(range(len(table))),
        "arrival": pa.array(last + 5_000_000, pa.timestamp("us", "UTC")),
    }
    table = table.append_column("at", at[declared])
    if declared == "arrival":  # of one moment by their times
        table = table.sort_by([("at", "ascending"), ("ts", "ascending")])
    wanted = replay(BY_KEY, {"in": table})
    assert wanted.statistics.count("late") > 10
    shuffled = table.take(random.permutation(len(table)))
    frame = spark.createDataFrame(shuffled.to_pandas()).repartition(5)
    options: dict[str, Any] = {declared: {"in": "at"}}
    for batches in (frame, frame.coalesce(1)):
        found = run_on_spark(BY_KEY, {"in": batches}, spark=spark, batch=True, **options)
        assert multiset(found.results["out"].to_pylist()) == multiset(wanted.results["out"].to_pylist())
        assert found.statistics.count("late") == wanted.statistics.count("late")


@pytest.mark.spark
def test_an_order_that_is_none_is_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, None), (2, 5)], "ts long, at long")
    graph = counting(Schema({"ts": pa.int64()}, "ts", "s"))
    for options, feed, words in (
        ({"order": {"in": "att"}}, frame, r"source 'in': order must be a column .*; got 'att'"),
        ({"order": {"inn": "at"}}, frame, "order is for sources that are DataFrames"),
        ({"order": {"in": "at"}, "arrival": {"in": "at"}}, frame, "has an order and arrivals: give one"),
        ({"arrival": {"in": "at"}}, [{"ts": 1}], "arrival is for sources that are DataFrames"),
    ):
        with pytest.raises(UsageError, match=words):
            run_on_spark(graph, {"in": feed}, spark=spark, batch=True, **options)  # type: ignore[arg-type]
    with pytest.raises(ContractError, match="source 'in': 'at' must not be null: leave such rows out"):
        run_on_spark(graph, {"in": frame}, spark=spark, batch=True, order={"in": "at"})
