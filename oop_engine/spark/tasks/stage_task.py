"""The levels of a cut graph in Spark: each is a shuffle by target, and the subtasks behind it.

Streaming   a subtask takes over its state after the micro-batch before, takes the records of this one, and
            its state is kept in a file (``states``), or in Spark's state store (``stored``)
batch       over sorted partitions: subtasks live as long as their records last

The tasks of the last level hand its results to the sink themselves: one task in Python is enough.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from oop_engine.spark.plan.pieces import SHARDS
from oop_engine.spark.state.state_files import SUBTASKS, StateFiles
from oop_engine.spark.tasks.job import Job, PackedJob
from oop_engine.spark.tasks.record import DDL, Record
from oop_engine.spark.tasks.rows import TaskStep, in_task
from oop_engine.spark.tasks.subtask import Subtask
from oop_engine.spark.tasks.task_metrics import state_record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["InBatch", "InMicroBatch", "InShards", "places_of", "subtask_at", "through_levels"]


def through_levels(
    records: DataFrame,
    packed: PackedJob,
    *,
    batch: int | None,
    states: Mapping[str, str],
    last: TaskStep,
) -> DataFrame:
    """Return the receipts that ``last`` makes of the results that follow from ``records``, which are of all sources.

    ``batch``: the number of the micro-batch that they are; None: they are all there is.  ``states``: the files with
    the states that subtasks go on from.
    """
    job = packed.job
    steps: list[TaskStep] = []
    for level in range(SHARDS, job.cut.levels + 1):
        if not job.cut.at(level):
            continue
        before = records.mapInArrow(in_task(*steps), DDL) if steps else records
        records = before.repartition(job.partitions, "target")
        if batch is None and level != SHARDS:
            records = records.sortWithinPartitions("target", "seq", "channel")
        steps = [_step(packed, level, batch, states)]
    return records.mapInArrow(in_task(*steps, last), DDL)


def _step(packed: PackedJob, level: int, batch: int | None, states: Mapping[str, str]) -> TaskStep:
    if level == SHARDS:
        return InShards(packed)
    return InBatch(packed, level) if batch is None else InMicroBatch(packed, level, batch, states)


@dataclass(frozen=True)
class InMicroBatch:
    """Runs the subtasks of a level over their records of one micro-batch; others pass by.

    ``states``: the file with the state of each subtask, by component and key group; without one it begins from nothing.
    """

    packed: PackedJob
    level: int
    batch: int
    states: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield the records that follow; the state of a subtask is kept before its last one leaves."""
        job = self.packed.job
        places = places_of(job, self.level)
        own: dict[int, list[Record]] = {}
        yield from _passing(records, places.keys(), own)
        states = StateFiles.of_checkpoint(job.subtasks)
        for target, mine in own.items():
            number, group = places[target]
            owner = f"{number}-{group}"
            subtask = subtask_at(job, number, group)
            if (name := self.states.get(owner)) is not None:
                subtask.restore(states.load(owner, name))
            yield from subtask.run_all(mine)
            yield state_record(f"{SUBTASKS}{owner}", states.save(owner, self.batch, subtask.snapshot()))


@dataclass(frozen=True)
class InShards:
    """Runs shards over their records of a micro-batch, or over all of them; records of others pass by.

    They keep nothing: nothing is restored, and the next micro-batch may send the same keys elsewhere.
    """

    packed: PackedJob

    def __call__(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield the records that follow."""
        job = self.packed.job
        places = places_of(job, SHARDS)
        own: dict[int, list[Record]] = {}
        yield from _passing(records, places.keys(), own)
        for target, mine in own.items():
            yield from subtask_at(job, *places[target]).run_all(mine)


@dataclass(frozen=True)
class InBatch:
    """Runs the subtasks of a level over records that are sorted by target; others pass by."""

    packed: PackedJob
    level: int

    def __call__(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield the records that follow."""
        job = self.packed.job
        places = places_of(job, self.level)
        for target, mine in itertools.groupby(records, key=lambda record: record.target):
            if target in places:
                yield from subtask_at(job, *places[target]).run(mine)
            else:
                yield from mine


def places_of(job: Job, level: int) -> dict[int, tuple[int, int]]:
    """Return which component and key group a target of this level is."""
    return {
        number: (component.number, group)
        for component in job.cut.at(level)
        for group, number in enumerate(job.addresses[component.number])
    }


def subtask_at(job: Job, component: int, group: int) -> Subtask:
    """Return the subtask of a component for a key group, with nothing in it yet."""
    return Subtask(job.cut, job.cut.components[component], job.addresses, group)


def _passing(
    records: Iterator[Record], here: Collection[int], own: dict[int, list[Record]]
) -> Iterator[Record]:
    """Yield records to elsewhere; put the others into ``own``, by target."""
    for record in records:
        if record.target in here:
            own.setdefault(record.target, []).append(record)
        else:
            yield record
