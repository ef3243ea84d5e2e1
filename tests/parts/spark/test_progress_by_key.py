"""A thousand keys, one of them an hour behind: promises per key, and Spark's watermark beside them.

Spark has one watermark a query.  Set low, it takes the rows of the slow key for late and drops them; set
high, all keys wait for the slow one.  With a promise for each key nobody waits, and nothing is lost.
"""

from __future__ import annotations

import os
from collections import Counter as Tally
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oop_engine import Graph, GroupWise, Page, Schema
from oop_engine.operators import Count, Sum, Tumbling, WindowAggregate
from oop_engine.spark.io.segments import Files
from oop_engine.spark.io.sinks import Memory
from oop_engine.spark.run import run_on_spark
from oop_engine.testing import multiset
from oop_engine.traces.trace_writing import write_trace
from tests.naive.windows import sliding

KEYS, SLOW = 1000, 0
SEGMENTS = 6
WINDOW = 20 * 60 * 1_000_000  # a segment brings the tuples of one window of each key
BEHIND = 3  # windows: the slow key is an hour behind
BASE = 1_435_708_800_000_000  # 2015-07-01
SCHEMA = Schema({"ts": pa.timestamp("us", "UTC"), "key": pa.int64(), "amount": pa.int64()}, "ts")
Batches = dict[int, list[dict]]
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


def window_of(number: int, key: int) -> int:
    """Return which window's tuples of ``key`` are in segment ``number``."""
    return number - (BEHIND if key == SLOW else 0)


def sliced() -> list[tuple[Page, GroupWise]]:
    """Return what arrives: some tuples of each key a segment, then a promise for each key."""
    rng = np.random.default_rng(7)
    keys = np.arange(KEYS)
    found = []
    for number in range(SEGMENTS):
        starts = np.array([BASE + WINDOW * window_of(number, key) for key in keys.tolist()])
        key = rng.permutation(np.concatenate([keys, rng.choice(keys, KEYS), np.full(20, SLOW)]))
        ts = starts[key] + rng.integers(0, WINDOW, len(key))
        page = Page.of(
            SCHEMA,
            {"ts": pa.array(ts, SCHEMA.type_of("ts")), "key": key, "amount": rng.integers(1, 100, len(key))},
        )
        found.append((page, GroupWise.of({"key": keys}, (starts + WINDOW).tolist())))
    return found


def of_slow(numbers: Iterable[int]) -> int:
    """Return how many tuples of the slow key are in some segments."""
    there = sliced()
    return sum(row["key"] == SLOW for number in numbers for row in there[number][0].to_pylist())


@dataclass(frozen=True)
class Answered:
    """``late``: windows of the 999 keys by how many micro-batches their answer came after the one that
    completed them.  ``slow``: how many tuples of the slow key are in answers.
    """

    late: Tally[int]
    slow: int


def answered(batches: Batches) -> Answered:
    late: Tally[int] = Tally()
    slow = 0
    for number, rows in batches.items():
        for row in rows:
            window = int((row["window_end"].timestamp() * 1e6 - BASE) // WINDOW) - 1
            if row["key"] == SLOW:
                slow += row["n"]
            else:
                late[number - window] += 1
    return Answered(late, slow)


def graph() -> Graph:
    query = Graph("progress by key")
    query.source("sales", SCHEMA)
    query.add(
        "sums",
        WindowAggregate(Tumbling("20 min"), {"n": Count(), "amount": Sum("amount")}, by=["key"]),
        "sales",
    )
    query.sink("out", "sums")
    return query


def naive(rows: list[dict]) -> list[dict]:
    functions = {"n": len, "amount": lambda window: sum(row["amount"] for row in window)}
    plain = [row | {"ts": round(row["ts"].timestamp() * 1e6)} for row in rows]
    found = sliding(plain, "ts", ("key",), functions, WINDOW, WINDOW)
    as_time = {name: pa.scalar(0, pa.timestamp("us", "UTC")) for name in ("window_start", "window_end")}
    return [row | {n: pa.scalar(row[n], s.type).as_py() for n, s in as_time.items()} for row in found]


def ours(spark, folder: Path) -> Batches:
    folder.mkdir()
    for number, messages in enumerate(sliced()):
        write_trace(folder / f"{number:03d}.msgpack", SCHEMA, messages)
    memory = Memory()
    feeds = {"sales": Files(str(folder), SCHEMA, complete=True)}
    run_on_spark(graph(), feeds, spark=spark, sink=memory, segments_per_batch=1)
    return {number: tables["out"].to_pylist() for number, tables in memory.batches.items()}


def sparks_own(spark, folder: Path, delays: list[str]) -> list[Batches]:
    """Return the answers of each micro-batch, for each delay of the watermark."""
    session = spark.newSession()
    session.conf.set("spark.sql.streaming.stateStore.providerClass", HDFS)  # the faster one here
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.shuffle.partitions", 1)
    (folder / "files").mkdir(parents=True)
    for number, (page, _) in enumerate(sliced()):
        path = folder / "files" / f"{number:03d}.parquet"
        pq.write_table(pa.Table.from_batches([page.batch]), path)
        os.utime(path, (number, number))  # Spark takes files by their age
    answers: list[Batches] = [{} for _ in delays]
    for query in [
        started(session, folder, delay, found) for delay, found in zip(delays, answers, strict=True)
    ]:
        query.awaitTermination()
    return answers


def started(session, folder: Path, delay: str, answers: Batches):
    from pyspark.sql import functions as f

    def keep(frame, number):
        answers[number] = frame.toArrow().to_pylist()

    given = session.readStream.schema("ts timestamp, key long, amount long").option("maxFilesPerTrigger", 1)
    sums = (
        given.parquet(str(folder / "files"))
        .withWatermark("ts", delay)
        .groupBy(f.window("ts", "20 minutes"), "key")
        .agg(f.count("*").alias("n"), f.sum("amount").alias("amount"))
        .select("key", f.col("window.end").alias("window_end"), "n", "amount")
    )
    writer = sums.writeStream.option("checkpointLocation", str(folder / delay)).foreachBatch(keep)
    return writer.trigger(availableNow=True).start()


@pytest.mark.slow
@pytest.mark.spark
def test_nobody_waits_for_the_slow_key_and_nothing_of_it_is_lost(spark, tmp_path: Path) -> None:
    rows = [row for page, _ in sliced() for row in page.to_pylist()]
    batches = ours(spark, tmp_path / "trace")
    assert multiset(row for found in batches.values() for row in found) == multiset(naive(rows))
    assert answered(batches) == Answered(late=Tally({0: 999 * SEGMENTS}), slow=of_slow(range(SEGMENTS)))
    for number in range(SEGMENTS):  # the slow key, too, has its answer as soon as that is complete
        ends = [row["window_end"] for row in batches[number] if row["key"] == SLOW]
        assert [round(end.timestamp() * 1e6) for end in ends] == [
            BASE + WINDOW * (window_of(number, SLOW) + 1)
        ]


@pytest.mark.slow
@pytest.mark.spark
def test_with_one_watermark_rows_are_dropped_or_everybody_waits(spark, tmp_path: Path) -> None:
    low, high = sparks_own(spark, tmp_path, ["1 minute", "1 hour"])
    # A watermark passes the end of a window with tuples of the next one, and holds from the next micro-batch
    # on: the first two let everything in.  Of what came of the slow key later nothing is in any answer.
    assert answered(low) == Answered(late=Tally({2: 999 * (SEGMENTS - 2)}), slow=of_slow([0, 1]))
    assert of_slow(range(SEGMENTS)) - of_slow([0, 1]) > 60
    # Nothing is dropped, but whoever is on time is answered an hour later than could be.
    assert answered(high).late == Tally({2 + BEHIND: 999 * (SEGMENTS - 2 - BEHIND)})
