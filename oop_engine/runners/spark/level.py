"""One level of a cut graph in Spark: a shuffle by target, and the copies behind it.

Streaming   ``transformWithState``: a copy is restored from Spark's state store, takes the letters of
            a micro-batch, and is saved again
batch       ``mapInArrow`` over sorted partitions: copies live as long as their letters last
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from oop_engine.runners.spark.copy import Copy
from oop_engine.runners.spark.job import Job
from oop_engine.runners.spark.letters import DDL, Letter
from oop_engine.runners.spark.source import batch_of, letters_of

__all__ = ["add_level", "places_of"]

_CHUNK = 1 << 20  # bytes; larger values slow Spark's state store down more than their size


def add_level(letters: DataFrame, job: Job, level: int, *, streaming: bool) -> DataFrame:
    """Return the letters that the components of ``level`` make of ``letters``; others pass by."""
    if streaming:
        return letters.groupBy("target").transformWithState(_Processor(job, level), DDL, "append", "None")
    together = letters.repartition("target").sortWithinPartitions("target", "seq", "channel")
    return together.mapInArrow(_in_batch(job, level), DDL)


class _Processor(StatefulProcessor):
    """One key group is one grouping key; its state is the snapshot of its copy, in chunks."""

    def __init__(self, job: Job, level: int) -> None:
        self._job, self._level = job, level

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getListState("snapshot", "chunk binary")
        self._places = places_of(self._job, self._level)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Run one copy, or let letters pass by that are for later levels."""
        place = self._places.get(key[0])
        if place is None:
            yield from rows
            return
        copy = Copy(self._job.cut, self._job.cut.components[place[0]], self._job.addresses, place[1])
        if state := b"".join(bytes(chunk[0]) for chunk in self._state.get()):
            copy.restore(state)
        letters = sorted((Letter(*row) for row in rows), key=lambda letter: (letter.seq, letter.channel))
        for letter in copy.run(letters):
            yield Row(**letter._asdict())
        state = copy.snapshot()
        self._state.put([(state[at : at + _CHUNK],) for at in range(0, len(state), _CHUNK)])

    def close(self) -> None:
        """Do nothing: all there is is in the store."""


def places_of(job: Job, level: int) -> dict[int, tuple[int, int]]:
    """Return which component and key group a target of this level is."""
    return {
        number: (component.number, group)
        for component in job.cut.at(level)
        for group, number in enumerate(job.addresses[component.number])
    }


def _in_batch(job: Job, level: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        places = places_of(job, level)
        letters = (letter for batch in batches for letter in letters_of(batch))
        for target, own in itertools.groupby(letters, key=lambda letter: letter.target):
            place = places.get(target)
            if place is not None:
                copy = Copy(job.cut, job.cut.components[place[0]], job.addresses, place[1])
                own = copy.run(own)
            for letter in own:
                yield batch_of([letter])

    return run
