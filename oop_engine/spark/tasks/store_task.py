"""The levels of a cut graph with their states in Spark's state store: ``transformWithState``.

A key group is a grouping key, and its state the snapshot of its subtask.  Slower than files (``level``):
an operator of Spark with a task in Python of its own for each level, and a store that is opened and committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from oop_engine.spark.plan.pieces import SHARDS
from oop_engine.spark.tasks.job import PackedJob
from oop_engine.spark.tasks.record import DDL, Record
from oop_engine.spark.tasks.rows import in_task
from oop_engine.spark.tasks.stage_task import InShards, places_of, subtask_at
from oop_engine.system.knobs import knob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["through_store"]

_CHUNK = knob(
    __name__, "_CHUNK", 1 << 20
)  # bytes; larger values slow Spark's state store down more than their size


def through_store(records: DataFrame, packed: PackedJob) -> DataFrame:
    """Return the records to sinks that follow from ``records``, which are of a streaming query."""
    job = packed.job
    if job.cut.at(SHARDS):
        records = records.repartition(job.partitions, "target").mapInArrow(in_task(InShards(packed)), DDL)
    for level in range(1, job.cut.levels + 1):
        processor = _Processor(packed, level)
        records = records.groupBy("target").transformWithState(processor, DDL, "append", "None")
    return records


class _Processor(StatefulProcessor):
    """Runs the subtasks of a level; the snapshot of each is kept in chunks."""

    def __init__(self, packed: PackedJob, level: int) -> None:
        self._packed, self._level = packed, level

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getListState("snapshot", "chunk binary")
        self._places = places_of(self._packed.job, self._level)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Run one subtask, or let records pass by that are for later levels."""
        place = self._places.get(key[0])
        if place is None:
            yield from rows
            return
        subtask = subtask_at(self._packed.job, *place)
        if state := b"".join(bytes(chunk[0]) for chunk in self._state.get()):
            subtask.restore(state)
        for record in subtask.run_all(Record(*row) for row in rows):
            yield Row(**record._asdict())
        state = subtask.snapshot()
        self._state.put([(state[at : at + _CHUNK],) for at in range(0, len(state), _CHUNK)])

    def close(self) -> None:
        """Do nothing: all there is is in the store."""
