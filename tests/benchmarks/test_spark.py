"""The benchmark of the Spark runner, over small traces: every way to a question is run once, and is right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.spark.__main__ import join, ratios, sums, table
from benchmarks.spark.traces import Measurements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_all_ways_to_the_sums_are_right(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Measurements(rows=4000, keys=20, span=20, file_rows=1000).at(tmp_path)
    variants = [v for v in sums(spark, made, [2]) if "rocksdb" not in v.name]
    for variant in variants:
        variant.take_turn()
    streaming, ours, ours_replay, replay = variants
    assert streaming.lacking > 0  # Spark's watermark never closes the last windows
    assert ours.lacking == ours_replay.lacking == replay.lacking == 0
    assert ratios(variants)["spark hdfs, 2k a batch"]["wall"] == 1
    table("sums", variants)
    assert "| ours, replay |" in capsys.readouterr().out


@pytest.mark.slow
def test_our_join_is_right(spark: SparkSession, tmp_path: Path) -> None:
    made = Measurements(rows=4000, keys=20, span=10, file_rows=1000).at(tmp_path)
    for variant in join(spark, made, made, 2):
        if variant.name in ("ours, 2k a batch", "ours, replay"):
            variant.take_turn()
            assert len(variant.runs[0].results) > 0
            assert variant.lacking == 0
