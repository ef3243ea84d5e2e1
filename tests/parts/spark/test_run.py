"""Graphs on Spark itself: streaming and batch, folders of traces and DataFrames, equal to the embedded run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import Graph, Page, Schema, UsageError, replay, write_trace
from oop_engine.errors import TraceError
from oop_engine.operators.aggregates import Avg, Count, Sum
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.meld import Meld
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding, Tumbling
from oop_engine.spark.io.segments import Files
from oop_engine.spark.io.spool import spool
from oop_engine.spark.plan.key_groups import partition_of
from oop_engine.spark.run import run_on_spark
from oop_engine.testing import multiset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")


def pages(seed: int, rows: int = 400) -> list[Page]:
    random = np.random.default_rng(seed)
    times = np.arange(rows) // 4 - random.integers(0, 4, rows)
    keys = [f"k{i}" for i in random.integers(0, 9, rows)]
    whole = Page.of(
        SCHEMA, {"ts": times, "k": keys, "v": random.integers(0, 50, rows)}, np.arange(rows) // 4 + 1
    )
    return [whole.slice(at, min(at + 50, rows)) for at in range(0, rows, 50)]


def graph() -> Graph:
    """Two levels: by key, and then over all keys."""
    made = Graph("two levels")
    edges = [
        made.add(f"{name}-edge", Punctuate(BoundedDisorder(2), granularity=5), made.source(name, SCHEMA))
        for name in ("a", "b")
    ]
    union = made.add("union", Meld(2), *edges)
    by_key = WindowAggregate(Sliding(10, 5), {"n": Count(), "sum": Sum("v"), "mean": Avg("v")}, by=("k",))
    per_key = made.add("per-key", by_key, union)
    made.sink("keys", per_key)
    made.sink(
        "all", made.add("total", WindowAggregate(Tumbling(20), {"n": Sum("n"), "keys": Count()}), per_key)
    )
    return made


def feeds() -> dict[str, list[Page]]:
    return {"a": pages(1), "b": pages(2, 333)}


def assert_equal(found: dict[str, pa.Table], expected: dict[str, pa.Table]) -> None:
    assert found.keys() == expected.keys()
    for name, table in expected.items():
        assert multiset(found[name].to_pylist()) == multiset(table.to_pylist()), name


def test_streaming_and_batch_give_what_the_embedded_run_gives(spark: SparkSession, tmp_path: Path) -> None:
    expected = replay(graph(), feeds())
    streaming = run_on_spark(graph(), feeds(), spark=spark, segment_rows=150, segments_per_batch=2)
    assert_equal(streaming.results, expected.results)
    assert streaming.tuples == expected.tuples
    assert len(streaming.batches) > 1
    assert sum(batch.tuples for batch in streaming.batches) == expected.tuples
    assert streaming.statistics.state.partials == 0
    batch = run_on_spark(graph(), feeds(), spark=spark, segment_rows=150, batch=True)
    assert_equal(batch.results, expected.results)
    assert batch.tuples == expected.tuples
    late = expected.statistics.count("late")
    assert late > 0
    assert batch.statistics.count("late") == streaming.statistics.count("late") == late


@pytest.mark.slow
def test_a_folder_of_traces_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in feeds()}
    given = feeds()
    for name, folder in folders.items():
        folder.mkdir()
        for number, page in enumerate(given[name][:3]):
            write_trace(folder / f"{number:03d}.parquet", SCHEMA, [page])
    sources = {name: Files(str(folder), SCHEMA) for name, folder in folders.items()}
    options: dict[str, Any] = {"spark": spark, "checkpoint": tmp_path / "checkpoint", "segments_per_batch": 8}
    first = run_on_spark(graph(), sources, **options)
    for name, folder in folders.items():
        for number, page in enumerate(given[name][3:], start=3):
            write_trace(folder / f"+{number:03d}.parquet", SCHEMA, [page])  # sorts before what was read
        (folder / "_SUCCESS").touch()
    second = run_on_spark(graph(), sources, **options)
    together = {n: pa.concat_tables([first.results[n], second.results[n]]) for n in first.results}
    assert_equal(together, replay(graph(), feeds()).results)
    assert first.results["keys"].num_rows
    assert second.tuples == 733


def one_source() -> Graph:
    made = Graph("one source")
    edge = made.add("edge", Punctuate(BoundedDisorder(2), granularity=5), made.source("a", SCHEMA))
    made.sink("keys", made.add("per-key", WindowAggregate(Sliding(10, 5), {"n": Count()}, by=("k",)), edge))
    return made


def test_dataframes_are_sources(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.concat_tables([pa.Table.from_batches([page.batch]) for page in pages(1)])
    frame = spark.createDataFrame(table).coalesce(1)
    batch = run_on_spark(one_source(), {"a": frame}, spark=spark, batch=True)
    whole = table.sort_by("ts")
    assert_equal(batch.results, replay(one_source(), {"a": whole}).results)
    assert batch.tuples == 400

    frame.write.parquet(str(tmp_path / "files"))
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "files"))
    streaming = run_on_spark(one_source(), {"a": stream}, spark=spark)
    every = batch.results["keys"]
    closed = every.filter(pa.compute.less_equal(every["window_end"], 95))
    assert_equal(streaming.results, {"keys": closed})  # it never ends, so the last windows stay open
    assert streaming.statistics.state.partials > 0


def test_a_dataframe_that_does_not_fit_is_refused(spark: SparkSession) -> None:
    frame = spark.range(3).selectExpr("id as ts", "id as v")
    with pytest.raises(TraceError, match="source 'a': its DataFrame has no column 'k'; it has ts, v"):
        run_on_spark(one_source(), {"a": frame}, spark=spark)
    frame = frame.selectExpr("ts", "cast(v as string) as k", "v")
    with pytest.raises(UsageError, match=r"made by spark\.readStream"):
        run_on_spark(one_source(), {"a": frame}, spark=spark)


def test_groups_are_where_spark_puts_them(spark: SparkSession) -> None:
    rows = spark.range(200).selectExpr("id", "pmod(hash(cast(id as int)), 7) as partition").collect()
    assert [row.partition for row in rows] == [partition_of(row.id, 7) for row in rows]


def test_what_is_spooled_comes_back_segment_by_segment(tmp_path: Path) -> None:
    given = feeds()
    found = spool(given, dict.fromkeys(given, SCHEMA), tmp_path, rows=100)
    for name, source in found.items():
        read = [m for number in range(source.count()) for m in source.read(number) if isinstance(m, Page)]
        assert [row for page in read for row in page.to_pylist()] == [
            r for p in given[name] for r in p.to_pylist()
        ]
        arrivals = np.concatenate([p.arrival for p in read if p.arrival is not None])
        assert (np.diff(arrivals) >= 0).all()
        assert arrivals.size == sum(map(len, given[name]))
