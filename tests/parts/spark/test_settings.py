"""Settings of Spark: a random program has the results of its definition under any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine.spark.run import run_on_spark
from oop_engine.testing import multiset
from tests.laws.test_random_graphs import SCHEMA, Built, graphs, pages
from tests.parts.spark.together import Together, in_segments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EITHER = ("true", "false")
SETTINGS: dict[str, tuple[str, ...]] = {
    "spark.sql.session.timeZone": ("UTC", "Asia/Kolkata", "America/St_Johns", "Pacific/Apia"),
    "spark.sql.ansi.enabled": EITHER,
    "spark.sql.caseSensitive": EITHER,
    "spark.sql.shuffle.partitions": ("1", "2", "5"),
    "spark.sql.adaptive.enabled": EITHER,
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": EITHER,
    "spark.sql.adaptive.forceOptimizeSkewedJoin": EITHER,
    "spark.sql.execution.arrow.maxRecordsPerBatch": ("10000", "1", "3"),
    "spark.sql.execution.arrow.maxBytesPerBatch": ("1", "1048576"),
    "spark.sql.execution.arrow.pyspark.enabled": EITHER,
    "spark.sql.execution.sortBeforeRepartition": EITHER,
    "spark.sql.codegen.wholeStage": EITHER,
    "spark.sql.sources.partitionOverwriteMode": ("static", "dynamic"),
    "spark.sql.parquet.outputTimestampType": ("INT96", "TIMESTAMP_MICROS"),
    "spark.sql.timestampType": ("TIMESTAMP_LTZ", "TIMESTAMP_NTZ"),
    "spark.sql.legacy.timeParserPolicy": ("LEGACY", "CORRECTED"),
    "spark.sql.streaming.noDataMicroBatches.enabled": EITHER,
}
DRAWN = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in SETTINGS.items()})


@contextmanager
def having(spark: SparkSession, drawn: Mapping[str, str]) -> Iterator[None]:
    """Have a session with other settings."""
    before = {name: spark.conf.get(name, None) for name in drawn}
    try:
        for name, value in drawn.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, was in before.items():
            spark.conf.unset(name) if was is None else spark.conf.set(name, was)


def frame_of(spark: SparkSession, feed: list[tuple[int, dict[str, Any]]], partitions: int) -> Any:
    """Return rows as a DataFrame, dealt to partitions in another order than they came."""
    kinds = {"int64": "long", "string": "string", "bool": "boolean", "double": "double"}
    types = ", ".join(f"{field.name} {kinds[str(field.type)]}" for field in SCHEMA.fields)
    rows = [tuple(row[name] for name in SCHEMA.names) for _, row in reversed(feed)]
    return spark.createDataFrame(rows, types).repartition(partitions)


@pytest.mark.slow
@pytest.mark.spark
@settings(max_examples=2)
@given(graphs(), DRAWN)
def test_a_query_over_segments(spark: SparkSession, built: Built, drawn: dict[str, str]) -> None:
    feeds = {name: in_segments(pages(feed, 3), 3) for name, feed in built.feeds.items()}
    together = Together()
    together.add(built.graph, feeds)
    with having(spark, drawn):
        [found] = together.run(spark)
    for number, told in enumerate(built.told):
        assert multiset(found[f"sink{number}"]) == multiset(told.rows), built.graph.text()


@pytest.mark.slow
@pytest.mark.spark
@settings(max_examples=2)
@given(graphs(), DRAWN, st.integers(1, 4))
def test_a_batch_over_frames(
    spark: SparkSession, built: Built, drawn: dict[str, str], partitions: int
) -> None:
    with having(spark, drawn):
        feeds = {name: frame_of(spark, feed, partitions) for name, feed in built.feeds.items()}
        found = run_on_spark(built.graph, feeds, spark=spark, batch=True)
    assert found.statistics.count("late") == 0
    for number, told in enumerate(built.told):
        rows = found.results[f"sink{number}"].to_pylist()
        assert multiset(rows) == multiset(told.rows), built.graph.text()
