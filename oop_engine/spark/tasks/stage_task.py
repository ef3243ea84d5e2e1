"""The levels of a cut graph in Spark: each is a shuffle by target, and the copies behind it.

Streaming   a copy takes over its state after the micro-batch before, takes the letters of this one, and
            its state is kept in a file (``states``), or in Spark's state store (``stored``)
batch       over sorted partitions: copies live as long as their letters last

The tasks of the last level hand what it yields to the sink themselves: one task in Python is enough.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from oop_engine.spark.plan.cut import SHARDS
from oop_engine.spark.state.state_files import COPIES, States
from oop_engine.spark.tasks.job import Job, PackedJob
from oop_engine.spark.tasks.record import DDL, Letter
from oop_engine.spark.tasks.rows import Step, in_task
from oop_engine.spark.tasks.subtask import Copy
from oop_engine.spark.tasks.task_metrics import state_note

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["InBatch", "InMicroBatch", "InShards", "copy_at", "places_of", "through_levels"]


def through_levels(
    letters: DataFrame,
    packed: PackedJob,
    *,
    batch: int | None,
    states: Mapping[str, str],
    last: Step,
) -> DataFrame:
    """Return what ``last`` makes of the results that follow from ``letters``, which are of all sources.

    ``batch``: the number of the micro-batch that they are; None: they are all there is.  ``states``: the files with
    the states that copies go on from.
    """
    job = packed.job
    steps: list[Step] = []
    for level in range(SHARDS, job.cut.levels + 1):
        if not job.cut.at(level):
            continue
        before = letters.mapInArrow(in_task(*steps), DDL) if steps else letters
        letters = before.repartition(job.partitions, "target")
        if batch is None and level != SHARDS:
            letters = letters.sortWithinPartitions("target", "seq", "channel")
        steps = [_step(packed, level, batch, states)]
    return letters.mapInArrow(in_task(*steps, last), DDL)


def _step(packed: PackedJob, level: int, batch: int | None, states: Mapping[str, str]) -> Step:
    if level == SHARDS:
        return InShards(packed)
    return InBatch(packed, level) if batch is None else InMicroBatch(packed, level, batch, states)


@dataclass(frozen=True)
class InMicroBatch:
    """Runs the copies of a level over their letters of one micro-batch; others pass by.

    ``states``: the file with the state of each copy, by component and key group; without one it begins from nothing.
    """

    packed: PackedJob
    level: int
    batch: int
    states: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, letters: Iterator[Letter]) -> Iterator[Letter]:
        """Yield the letters that follow; the state of a copy is kept before its last one leaves."""
        job = self.packed.job
        places = places_of(job, self.level)
        own: dict[int, list[Letter]] = {}
        yield from _passing(letters, places.keys(), own)
        states = States.of_checkpoint(job.copies)
        for target, mine in own.items():
            number, group = places[target]
            owner = f"{number}-{group}"
            copy = copy_at(job, number, group)
            if (name := self.states.get(owner)) is not None:
                copy.restore(states.load(owner, name))
            yield from copy.run(_sorted(mine))
            yield state_note(f"{COPIES}{owner}", states.save(owner, self.batch, copy.snapshot()))


@dataclass(frozen=True)
class InShards:
    """Runs shards over what they are sent in a micro-batch, or all in all; others pass by.

    They keep nothing: nothing is restored, and the next micro-batch may send the same keys elsewhere.
    """

    packed: PackedJob

    def __call__(self, letters: Iterator[Letter]) -> Iterator[Letter]:
        """Yield the letters that follow."""
        job = self.packed.job
        places = places_of(job, SHARDS)
        own: dict[int, list[Letter]] = {}
        yield from _passing(letters, places.keys(), own)
        for target, mine in own.items():
            yield from copy_at(job, *places[target]).run(_sorted(mine))


@dataclass(frozen=True)
class InBatch:
    """Runs the copies of a level over letters that are sorted by target; others pass by."""

    packed: PackedJob
    level: int

    def __call__(self, letters: Iterator[Letter]) -> Iterator[Letter]:
        """Yield the letters that follow."""
        job = self.packed.job
        places = places_of(job, self.level)
        for target, mine in itertools.groupby(letters, key=lambda letter: letter.target):
            if target in places:
                yield from copy_at(job, *places[target]).run(mine)
            else:
                yield from mine


def places_of(job: Job, level: int) -> dict[int, tuple[int, int]]:
    """Return which component and key group a target of this level is."""
    return {
        number: (component.number, group)
        for component in job.cut.at(level)
        for group, number in enumerate(job.addresses[component.number])
    }


def copy_at(job: Job, component: int, group: int) -> Copy:
    """Return the copy of a component for a key group, with nothing in it yet."""
    return Copy(job.cut, job.cut.components[component], job.addresses, group)


def _passing(
    letters: Iterator[Letter], here: Collection[int], own: dict[int, list[Letter]]
) -> Iterator[Letter]:
    """Yield letters to elsewhere; put the others into ``own``, by target."""
    for letter in letters:
        if letter.target in here:
            own.setdefault(letter.target, []).append(letter)
        else:
            yield letter


def _sorted(letters: list[Letter]) -> list[Letter]:
    return sorted(letters, key=lambda letter: (letter.seq, letter.channel))
