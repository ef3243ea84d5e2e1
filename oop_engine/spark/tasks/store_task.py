"""The levels of a cut graph with their states in Spark's state store: ``transformWithState``.

A key group is a grouping key, and its state the snapshot of its copy.  Slower than files (``level``):
an operator of Spark with a task in Python of its own for each level, and a store that is opened and committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from oop_engine.spark.plan.cut import SHARDS
from oop_engine.spark.tasks.job import PackedJob
from oop_engine.spark.tasks.record import DDL, Letter
from oop_engine.spark.tasks.rows import in_task
from oop_engine.spark.tasks.stage_task import InShards, copy_at, places_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["through_store"]

_CHUNK = 1 << 20  # bytes; larger values slow Spark's state store down more than their size


def through_store(letters: DataFrame, packed: PackedJob) -> DataFrame:
    """Return the letters to sinks that follow from ``letters``, which are of a streaming query."""
    job = packed.job
    if job.cut.at(SHARDS):
        letters = letters.repartition(job.partitions, "target").mapInArrow(in_task(InShards(packed)), DDL)
    for level in range(1, job.cut.levels + 1):
        processor = _Processor(packed, level)
        letters = letters.groupBy("target").transformWithState(processor, DDL, "append", "None")
    return letters


class _Processor(StatefulProcessor):
    """Runs the copies of a level; the snapshot of each is kept in chunks."""

    def __init__(self, packed: PackedJob, level: int) -> None:
        self._packed, self._level = packed, level

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getListState("snapshot", "chunk binary")
        self._places = places_of(self._packed.job, self._level)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Run one copy, or let letters pass by that are for later levels."""
        place = self._places.get(key[0])
        if place is None:
            yield from rows
            return
        copy = copy_at(self._packed.job, *place)
        if state := b"".join(bytes(chunk[0]) for chunk in self._state.get()):
            copy.restore(state)
        letters = sorted((Letter(*row) for row in rows), key=lambda letter: (letter.seq, letter.channel))
        for letter in copy.run(letters):
            yield Row(**letter._asdict())
        state = copy.snapshot()
        self._state.put([(state[at : at + _CHUNK],) for at in range(0, len(state), _CHUNK)])

    def close(self) -> None:
        """Do nothing: all there is is in the store."""
