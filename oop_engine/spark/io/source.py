"""The data source of Spark that reads our traces, runs their heads and puts out letters.

One task a source and micro-batch.  The offset is the number of slices that have been read, for
each source; one more than there are says that the source has ended.  Where there are shards, the
version of their map is in the offset too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from oop_engine.spark.io.segments import Files
from oop_engine.spark.plan.assignments import MapFolder
from oop_engine.spark.plan.balance import Maps
from oop_engine.spark.state.manifest import Manifest
from oop_engine.spark.state.state_files import HEADS, States
from oop_engine.spark.tasks.job import Job, PackedJob
from oop_engine.spark.tasks.record import DDL, Letter
from oop_engine.spark.tasks.rows import batches_of
from oop_engine.spark.tasks.source_chain import HeadRun
from oop_engine.spark.tasks.task_metrics import state_note

__all__ = ["LetterSource"]

Offset = dict[str, int]
_MAP = "(map)"  # beside the sources; none can have this name


class LetterSource(DataSource):
    """``spark.read.format("oop-engine").option("job", job.to_text())``, or ``readStream``."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "oop-engine"

    def schema(self) -> str:
        """Return the columns of letters."""
        return DDL

    def reader(self, schema: Any) -> DataSourceReader:
        """Return a reader of everything there is."""
        return _BatchReader(PackedJob(self.options["job"]))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """Return a reader of micro-batches."""
        return _StreamReader(PackedJob(self.options["job"]))


class _Part(InputPartition):
    """Slices of one source, the map of the shards then, and the file with the state of its head ("": there is none)."""

    def __init__(self, source: str, start: int, stop: int, maps: Maps | None = None, state: str = "") -> None:
        super().__init__(source)
        self.source, self.start, self.stop, self.maps, self.state = source, start, stop, maps, state


class _BatchReader(DataSourceReader):
    def __init__(self, packed: PackedJob) -> None:
        self._packed = packed

    @property
    def _job(self) -> Job:
        return self._packed.job

    def partitions(self) -> list[InputPartition]:
        return [_Part(source, 0, stop) for source, stop in _available(self._job).items()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        yield from batches_of(_head(self._job, partition).run(partition.start, partition.stop))


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, packed: PackedJob) -> None:
        self._packed = packed
        self._maps = MapFolder(packed.job.maps) if packed.job.maps else None
        self._target: Offset | None = None

    @property
    def _job(self) -> Job:
        return self._packed.job

    def initialOffset(self) -> Offset:
        nothing = dict.fromkeys(self._job.sources, 0)
        return nothing if self._maps is None else nothing | {_MAP: self._maps.newest()}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxFiles(self._job.slices_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = _available(self._job)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        there = self._target or _available(self._job)
        most = max(there.values()) if isinstance(limit, ReadAllAvailable) else self._job.slices_per_batch
        latest = {source: max(start[source], min(there[source], start[source] + most)) for source in there}
        if self._maps is None:
            return latest
        moved = any(
            latest[source] > start[source] for source in there
        )  # a new map alone is no reason for a batch
        return latest | {_MAP: self._maps.newest() if moved else start[_MAP]}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        maps = None if self._maps is None else self._maps.read(end[_MAP])
        read = ((source, start[source], end[source]) for source in self._job.sources)
        return [_Part(source, at, to, maps, self._state_at(source, at)) for source, at, to in read if to > at]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        yield from batches_of(self._letters(partition))

    def commit(self, end: Offset) -> None:
        """Do nothing: slices stay where they are."""

    def _letters(self, part: _Part) -> Iterator[Letter]:
        states = States.of_checkpoint(self._job.heads)
        head = _head(self._job, part)
        if part.state:
            head.restore(states.load(part.source, part.state))
        yield from head.run(part.start, part.stop)
        yield state_note(f"{HEADS}{part.source}", states.save(part.source, part.stop, head.snapshot()))

    def _state_at(self, source: str, slices: int) -> str:
        """Return the file with the state of the head of ``source`` after so many slices."""
        if not slices:
            return ""
        folder = Path(self._job.heads).parent
        return (Manifest.read(folder) or Manifest(folder)).state_at(f"{HEADS}{source}", slices)


def _available(job: Job) -> Offset:
    for slices in job.sources.values():
        if isinstance(slices, Files) and slices.known:
            slices.look()
    return {name: slices.count() + slices.ended() for name, slices in job.sources.items()}


def _head(job: Job, part: _Part) -> HeadRun:
    head = next(head for head in job.cut.heads if head.source == part.source)
    return HeadRun(job.cut, head, job.addresses, job.sources[part.source], part.maps)
