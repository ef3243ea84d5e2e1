"""The two questions, each for our runner and for Spark alone, over the same files.

sums   the sum of each key over the last 10 seconds, every second
join   pairs of tuples of one key, one of either source, at most 50 ms apart
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.spark.traces import Trace
from oop_engine import Graph
from oop_engine.operators import (
    Band,
    BoundedDisorder,
    Meld,
    OAJoin,
    PerGroup,
    Punctuate,
    Sliding,
    Sum,
    WindowAggregate,
)
from oop_engine.operators.policies.running_bound import Policy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["join", "spark_join", "spark_sums", "sums"]

DISORDER = BoundedDisorder("2 s")


def sums(trace: Trace) -> Graph:
    """Return our graph of the sums."""
    graph = _promised("sums", trace, DISORDER)
    graph.add("both", Meld(2), "promised-a", "promised-b")
    windows = Sliding(range="10 s", slide="1 s")
    graph.add("sums", WindowAggregate(windows, {"sum": Sum("val")}, by=["key"]), "both")
    graph.sink("out", "sums")
    return graph


def join(trace: Trace) -> Graph:
    """Return our graph of the join; promises are made for each key."""
    graph = _promised("join", trace, PerGroup(DISORDER, by=("key",)))
    band = Band(before="50 ms", after="50 ms")
    graph.add("pairs", OAJoin(keys=[("key", "key")], band=band), "promised-a", "promised-b")
    graph.sink("out", "pairs")
    return graph


def _promised(name: str, trace: Trace, policy: Policy) -> Graph:
    graph = Graph(name)
    for source in trace.made.sources:
        graph.source(source, trace.made.schema)
        graph.add(f"promised-{source}", Punctuate(policy, granularity="1 s"), source)
    return graph


def spark_sums(spark: SparkSession, trace: Trace, files: int) -> DataFrame:
    """Return the sums as Spark has them, ``files`` of all sources in a micro-batch; 0: everything at once."""
    from pyspark.sql import functions as f

    given = _given(spark, str(trace.folder / "[ab]"), files)
    sums = given.groupBy(f.window("ts", "10 seconds", "1 second"), "key").agg(f.sum("val").alias("sum"))
    return sums.select("key", f.col("window.end").alias("window_end"), "sum")


def spark_join(spark: SparkSession, trace: Trace, files: int) -> DataFrame:
    """Return the join as Spark has it."""
    from pyspark.sql import functions as f

    left, right = (
        given.select(*(f.col(name).alias(f"{name}_{source}") for name in ("ts", "key", "val")))
        for source in trace.made.sources
        for given in [_given(spark, str(trace.path(source)), files // 2)]
    )
    apart = "interval 50 milliseconds"
    within = f"key_a = key_b and ts_b >= ts_a - {apart} and ts_b <= ts_a + {apart}"
    return left.join(right, f.expr(within))


def _given(spark: SparkSession, path: str, files: int) -> DataFrame:
    columns = "ts timestamp, key long, val double"
    if not files:
        return spark.read.schema(columns).parquet(path)
    given = spark.readStream.schema(columns).option("maxFilesPerTrigger", files).parquet(path)
    return given.withWatermark("ts", "2 seconds")
