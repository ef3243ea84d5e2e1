"""Windows that come and go while a query runs on Spark: asked for between micro-batches, and there after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from oop_engine import Change, ContractError, Graph, Linear, Page, Schema, UsageError, replay, write_trace
from oop_engine.operators import Count, Meld, Punctuate, Tumbling, Upstream, WindowAggregate
from oop_engine.spark.outcome import BatchDone
from oop_engine.spark.run import run_on_spark
from oop_engine.testing import multiset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")
TEN = Change(1, 40, {"ten": Tumbling(10)}, ("twenty",))
STEPS = 6


class KilledError(Exception):
    """What ends a query behind a micro-batch, before Spark hears that it is done."""


def graph() -> Graph:
    built = Graph("changing")
    edges = [
        built.add(f"{name}_edge", Punctuate(Upstream()), built.source(name, SCHEMA))
        for name in ("west", "east")
    ]
    count = WindowAggregate({"twenty": Tumbling(20)}, {"n": Count()}, by=["k"], changing=True)
    built.sink("out", built.add("count", count, built.add("together", Meld(2), *edges)))
    return built


def said(step: int) -> list[Any]:
    """Return what a source says in a step: tuples of 20 s out of order, and a bound."""
    times = [20 * step + (7 * i) % 20 for i in range(20)]
    return [Page.of(SCHEMA, {"ts": times, "k": [t % 3 for t in times]}), Linear(20 * step + 10)]


def segments(place: Path, steps: int) -> dict[str, str]:
    for name in ("west", "east"):
        (place / name).mkdir(exist_ok=True)
        for step in range(steps):
            write_trace(place / name / f"{step}.msgpack", SCHEMA, said(step))
        if steps == STEPS:
            (place / name / "_SUCCESS").touch()
    return {name: str(place / name) for name in ("west", "east")}


def expected() -> Any:
    feed = [message for step in range(STEPS) for message in said(step)]
    west = [*feed[:2], TEN, *feed[2:]]
    return multiset(replay(graph(), {"west": west, "east": feed}).results["out"].to_pylist())


@pytest.mark.slow
@pytest.mark.spark
def test_a_change_that_is_asked_for_holds_from_the_next_micro_batch_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A kill behind the micro-batch that asked, and a restart with more segments, change nothing."""
    refused = list[str]()

    def ask(done: BatchDone) -> None:
        if done.number == 0:
            with pytest.raises(ContractError) as late:
                done.change(Change(1, 19, {"ten": Tumbling(10)}))
            refused.append(str(late.value))
            done.change(TEN)
            if len(refused) == 1:
                raise KilledError

    how: dict[str, Any] = {
        "spark": spark, "checkpoint": tmp_path / "checkpoint", "segments_per_batch": 1, "groups": 3, "on_batch": ask,
    }  # fmt: skip
    found = list[Any]()
    with pytest.raises(Exception, match="KilledError"):
        run_on_spark(graph(), segments(tmp_path, 1), **how)
    for steps in (3, STEPS):
        found += run_on_spark(graph(), segments(tmp_path, steps), **how).results["out"].to_pylist()
    assert multiset(found) == expected()
    assert refused == [refused[0]] * 2
    assert "operator 'count': " in refused[0]
    assert "got at=19, and 19 has been let through" in refused[0]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("batch", [False, True], ids=["streaming", "batch"])
def test_a_change_may_stand_in_a_feed(spark: SparkSession, batch: bool) -> None:
    feed = [message for step in range(STEPS) for message in said(step)]
    feeds = {"west": [*feed[:2], TEN, *feed[2:]], "east": feed}
    asked = list[str]()

    def ask(done: BatchDone) -> None:
        with pytest.raises(UsageError, match="cannot be asked for; a run in one batch has them in its feeds"):
            done.change(Change(2, 100, drop=("ten",)))
        asked.append("refused")

    outcome = run_on_spark(
        graph(), feeds, spark=spark, batch=batch, segment_rows=40, on_batch=ask if batch else None
    )
    assert multiset(outcome.results["out"].to_pylist()) == expected()
    assert asked == ["refused"] * batch
