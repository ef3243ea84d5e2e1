"""The examples of parts of one's own run on Spark, too: the page says so, and its own blocks are run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Page, Schema, UsageError, run
from oop_engine.extend import LiveSink, LiveSource
from oop_engine.operators import Punctuate, WindowAggregate
from oop_engine.sinks import Gathered
from oop_engine.sources import Pushed
from oop_engine.spark import Parquet
from tests.parts.connectors.own_parts_killed import parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_each_part_gives_the_rows_of_the_page(spark: SparkSession) -> None:
    page = parts()
    for part, graph in page["PARTS"].items():
        found = run(graph(), {"log": page["rows"]}, on="spark", spark=spark, batch=True)
        assert page["net"](found.results["out"].to_pylist()) == page["answer"](graph()), part


@pytest.mark.slow
def test_a_micro_batch_is_resumed_with_each_part(spark: SparkSession, tmp_path: Path) -> None:
    """All parts in one graph, a segment a micro-batch: each state is stored and read again."""
    page, graph = parts(), Graph("parts")
    edge = graph.add("edge", Punctuate(page["HalfMinutes"](1)), graph.source("log", page["schema"]))
    windows = page["UserWindows"](page["doubling"], back=2**20)
    aggregates = {"bits": page["any_bit"], "squares": page["SumOfSquares"]("bytes")}
    graph.sink("out", graph.add("agg", WindowAggregate(windows, aggregates, by=("host",)), edge))
    feeds = {"log": page["rows"]}
    options: dict[str, Any] = {"checkpoint": tmp_path, "segment_rows": 3, "segments_per_batch": 1}
    found = run(graph, feeds, on="spark", spark=spark, **options)
    assert len(found.batches) > 1
    assert page["content"](found.results["out"]) == page["answer"](graph)


class Service(LiveSource):
    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        yield {"ts": 1}, 1


class Sink(LiveSink):
    async def write(self, epoch: int, page: Page) -> None: ...


MUST = r"run on Spark: sink must be an object with start, worker and commit \(Parquet, Delta, ForeachBatch, Memory"


@pytest.mark.parametrize(
    ("feed", "sink", "words"),
    [
        (Service(), None, "source 'log': Service is a source of a service \\(serve\\), and a task of Spark"),
        (Pushed(), None, "source 'log': Pushed is a source of a service"),
        ([], Sink(), MUST + ".*a sink of a service \\(serve\\) writes in one process"),
        ([], Gathered(), MUST + ".*a sink of a service"),
        ([], print, MUST + ".*: ForeachBatch\\(function\\)"),
        ([], Parquet, MUST + ".*got the class Parquet: give an object of it"),
        ([], "out", MUST + ".*Parquet\\('out'\\)"),
        ([], 5, MUST + ".*got 5 \\(int\\)$"),
    ],
    ids=["source", "pushed", "sink", "gathered", "function", "class", "text", "number"],
)  # fmt: skip
def test_parts_of_a_service_are_refused_before_spark_starts(feed: Any, sink: Any, words: str) -> None:
    graph = Graph("g")
    graph.sink("out", graph.source("log", Schema({"ts": pa.int64()}, "ts", "s")))
    with pytest.raises(UsageError, match=words):
        run(graph, {"log": feed}, on="spark", sink=sink)
