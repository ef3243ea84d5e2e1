"""States between micro-batches: what a micro-batch that is run again finds, in files and in Spark's store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oop_engine import UsageError, replay
from oop_engine.spark.run import pieces_of, run_on_spark
from oop_engine.spark.state.manifest import Manifest
from oop_engine.spark.state.state_files import QUERY, StateFiles
from oop_engine.spark.tasks.job import Job, addresses_of
from oop_engine.spark.tasks.record import METRICS, Record
from oop_engine.spark.tasks.source_chain import SourceChainRun
from oop_engine.spark.tasks.stage_task import InMicroBatch
from oop_engine.spark.tasks.task_metrics import Totals
from tests.parts.spark.staged import Given
from tests.parts.spark.test_run import SCHEMA, assert_equal, feeds, graph, pages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_micro_batch_goes_on_from_the_newest_states_that_are_older(tmp_path: Path) -> None:
    manifest = Manifest(tmp_path)
    for batch in (2, 4, 5, 5, 10):
        assert manifest.before(batch).get("copies/0-1") != f"{batch}.state"
        manifest.end(batch, {"copies/0-1": f"{batch}.state"}, {})
    assert [manifest.before(batch) for batch in (5, 10, 11)] == [
        {},  # Spark goes back by one at most
        {"copies/0-1": "5.state"},
        {"copies/0-1": "10.state"},
    ]
    assert Manifest.read(tmp_path) == manifest


def test_two_attempts_of_a_task_do_not_write_over_each_other(tmp_path: Path) -> None:
    states = StateFiles(str(tmp_path))
    names = [states.save("0-1", 3, state) for state in (b"one", b"other", b"one")]
    assert names[0] == names[2] != names[1]
    assert [states.load("0-1", name) for name in names[:2]] == [b"one", b"other"]


def records_of_batches(job: Job) -> list[list[Record]]:
    """Return what the source chains say, two segments at a time."""
    batches: list[list[Record]] = [[], [], []]
    for chain in job.cut.chains:
        run = SourceChainRun(job.cut, chain, job.addresses, job.sources[chain.source])
        for number, records in enumerate(batches):
            records += run.run(2 * number, min(2 * number + 2, 5))  # the fifth is the end
    return batches


def results(step: InMicroBatch, records: list[Record]) -> list[Record]:
    return sorted(record for record in step(iter(records)) if record.edge != METRICS)


def test_a_micro_batch_that_is_run_again_says_the_same(tmp_path: Path) -> None:
    cut = pieces_of(graph(), 3, split=False)
    segments = [pages(1)[start : start + 2] for start in range(0, 8, 2)]
    sources = {name: Given(SCHEMA, segments) for name in ("a", "b")}
    (tmp_path / QUERY).touch()  # tasks see the checkpoint
    packed = Job(cut, addresses_of(cut, 2), sources, 2, subtasks=str(tmp_path / "copies")).packed()
    said, manifest = [], Manifest(tmp_path)
    for number, records in enumerate(records_of_batches(packed.job)):
        step = InMicroBatch(packed, 1, number, manifest.before(number))
        once = results(step, records)
        totals = Totals()
        totals.take(record for record in step(iter(records)) if record.edge == METRICS)
        assert results(step, records) == once
        manifest.end(
            number, {owner.removeprefix("copies/"): name for owner, name in totals.states.items()}, {}
        )
        said += once
    assert said


@pytest.mark.slow
@pytest.mark.spark
def test_the_state_store_of_spark_will_do(spark: SparkSession, tmp_path: Path) -> None:
    stored = run_on_spark(
        graph(),
        feeds(),
        spark=spark,
        state="store",
        checkpoint=tmp_path,
        segment_rows=150,
        segments_per_batch=2,
    )
    assert_equal(stored.results, replay(graph(), feeds()).results)
    assert len(stored.batches) > 1
    assert not (tmp_path / "copies").exists()
    with pytest.raises(UsageError, match="it has states with state='store'; got state='files'"):
        run_on_spark(graph(), feeds(), spark=spark, checkpoint=tmp_path, segment_rows=150)
