"""Versions of results, and tuples behind punctuation, in a session of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from oop_engine import Graph, Linear, Page, Schema, replay
from oop_engine.extend import Message
from oop_engine.operators import (
    AsOf,
    Band,
    BoundedDisorder,
    Count,
    Emit,
    OAJoin,
    Punctuate,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.spark.io.sinks import Delta
from oop_engine.spark.run import run_on_spark
from oop_engine.testing import multiset
from oop_engine.testing.driver import net_content
from oop_engine.triggers import AfterCount
from tests.parts.spark.staged import Given

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
ASKED = {"n": Count(), "s": Sum("v")}


def graph(emit: Emit | None) -> Graph:
    """Versions behind a watermark, and windows of a source whose own punctuation tuples break."""
    made = Graph("versions")
    edge = Punctuate(BoundedDisorder(40), granularity=10, watermark=BoundedDisorder(5))
    tuples = made.add("edge", edge, made.source("tuples", S))
    made.sink("out", made.add("count", WindowAggregate(Tumbling(10), ASKED, ("k",), emit=emit), tuples))
    made.sink("rest", made.add("broken", WindowAggregate(Tumbling(10), ASKED, ("k",)), made.source("own", S)))
    return made


def pages() -> list[Page]:
    draw = np.random.default_rng(7)
    times = np.arange(600) - draw.integers(0, 40, 600)
    keys, values = draw.choice(["a", "b", "c"], 600), draw.integers(-9, 9, 600)
    rows = (
        {"ts": times[i : i + 150], "k": keys[i : i + 150], "v": values[i : i + 150]}
        for i in range(0, 600, 150)
    )
    return [Page.of(S, columns) for columns in rows]


@pytest.mark.slow
@pytest.mark.spark
def test_a_table_is_the_final_results_and_tuples_behind_bounds_are_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    own: list[list[Message]] = [
        [page, Linear(end)] for end, page in zip(range(140, 740, 150), pages(), strict=True)
    ]
    embedded = replay(graph(None), {"tuples": pages(), "own": [message for some in own for message in some]})
    feeds = {"tuples": Given(S, [[page] for page in pages()]), "own": Given(S, own)}
    sink = Delta(tmp_path, key=("k", "window_end"))
    found = run_on_spark(
        graph(Emit(early=AfterCount(1))), feeds, spark=spark, sink=sink, groups=2, segments_per_batch=1
    )
    assert found.statistics.count("allowed_late") > 0
    assert found.behind.by_operator["broken"] == embedded.behind.total > 20
    for name, wanted in embedded.results.items():
        table = DeltaTable(tmp_path / name)
        assert multiset(table.to_pyarrow_table().to_pylist()) == multiset(wanted.to_pylist())
    done = DeltaTable(tmp_path / "out").history()
    assert sum(one.get("operationMetrics", {}).get("num_target_rows_updated", 0) for one in done) > 5


def unmatched(band: Band | AsOf, *, speculative: bool) -> Graph:
    made, policies = Graph("unmatched"), (BoundedDisorder(40), BoundedDisorder(2))
    left, right = (
        made.add(f"edge_{name}", Punctuate(policies[0], watermark=policies[1]), made.source(name, S))
        for name in ("left", "right")
    )
    join = OAJoin([("k", "k")], band, how="left", speculative=speculative)
    made.sink("out", made.add("join", join, left, right))
    return made


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("band", [Band(0, 1), AsOf(3)], ids=["band", "as_of"])
def test_the_net_rows_of_a_speculative_join_are_those_of_the_plain_one(
    spark: SparkSession, band: Band | AsOf
) -> None:
    right = [page.filter(page.column("v").to_numpy() > 4) for page in pages()]
    plain = replay(unmatched(band, speculative=False), {"left": pages(), "right": right}).results["out"]
    feeds = {"left": Given(S, [[page] for page in pages()]), "right": Given(S, [[page] for page in right])}
    found = run_on_spark(
        unmatched(band, speculative=True), feeds, spark=spark, groups=2, segments_per_batch=1
    )
    rows = found.results["out"].to_pylist()
    assert multiset(net_content(rows, "change")) == multiset(plain.to_pylist())
    assert len(rows) > plain.num_rows
