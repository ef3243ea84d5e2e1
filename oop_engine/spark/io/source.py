"""The data source of Spark that reads our traces, runs their source chains and puts out records.

One task a source and micro-batch.  The offset is the number of segments that have been read, for
each source; one more than there are says that the source has ended.  Where there are shards, the
version of their assignment is in the offset too.
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
from oop_engine.spark.plan.assignments import AssignmentFolder
from oop_engine.spark.plan.balance import Assignments
from oop_engine.spark.state.manifest import Manifest
from oop_engine.spark.state.state_files import SOURCE_CHAINS, StateFiles
from oop_engine.spark.tasks.job import Job, PackedJob
from oop_engine.spark.tasks.record import DDL, Record
from oop_engine.spark.tasks.rows import batches_of
from oop_engine.spark.tasks.source_chain import SourceChainRun
from oop_engine.spark.tasks.task_metrics import state_record

__all__ = ["RecordSource"]

Offset = dict[str, int]
_ASSIGNMENT = "(map)"  # beside the sources; none can have this name


class RecordSource(DataSource):
    """``spark.read.format("oop-engine").option("job", job.to_text())``, or ``readStream``."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "oop-engine"

    def schema(self) -> str:
        """Return the columns of records."""
        return DDL

    def reader(self, schema: Any) -> DataSourceReader:
        """Return a reader of everything there is."""
        return _BatchReader(PackedJob(self.options["job"]))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """Return a reader of micro-batches."""
        return _StreamReader(PackedJob(self.options["job"]))


class _Part(InputPartition):
    """Segments of one source, the assignments of then, and the file with the state of its chain ("": there is none)."""

    def __init__(
        self, source: str, start: int, stop: int, assignments: Assignments | None = None, state: str = ""
    ) -> None:
        super().__init__(source)
        self.source, self.start, self.stop, self.assignments, self.state = (
            source,
            start,
            stop,
            assignments,
            state,
        )


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
        yield from batches_of(_chain(self._job, partition).run(partition.start, partition.stop))


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, packed: PackedJob) -> None:
        self._packed = packed
        self._assignments = AssignmentFolder(packed.job.assignments) if packed.job.assignments else None
        self._target: Offset | None = None

    @property
    def _job(self) -> Job:
        return self._packed.job

    def initialOffset(self) -> Offset:
        nothing = dict.fromkeys(self._job.sources, 0)
        return nothing if self._assignments is None else nothing | {_ASSIGNMENT: self._assignments.newest()}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxFiles(self._job.segments_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = _available(self._job)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        there = self._target or _available(self._job)
        most = max(there.values()) if isinstance(limit, ReadAllAvailable) else self._job.segments_per_batch
        latest = {source: max(start[source], min(there[source], start[source] + most)) for source in there}
        if self._assignments is None:
            return latest
        moved = any(
            latest[source] > start[source] for source in there
        )  # a new assignment alone is no reason for a batch
        return latest | {_ASSIGNMENT: self._assignments.newest() if moved else start[_ASSIGNMENT]}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        assignments = None if self._assignments is None else self._assignments.read(end[_ASSIGNMENT])
        read = ((source, start[source], end[source]) for source in self._job.sources)
        return [
            _Part(source, at, to, assignments, self._state_at(source, at))
            for source, at, to in read
            if to > at
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        yield from batches_of(self._records(partition))

    def commit(self, end: Offset) -> None:
        """Do nothing: segments stay where they are."""

    def _records(self, part: _Part) -> Iterator[Record]:
        states = StateFiles.of_checkpoint(self._job.chains)
        chain = _chain(self._job, part)
        if part.state:
            chain.restore(states.load(part.source, part.state))
        yield from chain.run(part.start, part.stop)
        yield state_record(
            f"{SOURCE_CHAINS}{part.source}", states.save(part.source, part.stop, chain.snapshot())
        )

    def _state_at(self, source: str, segments: int) -> str:
        """Return the file with the state of the source chain of ``source`` after so many segments."""
        if not segments:
            return ""
        folder = Path(self._job.chains).parent
        return (Manifest.read(folder) or Manifest(folder)).state_at(f"{SOURCE_CHAINS}{source}", segments)


def _available(job: Job) -> Offset:
    for segments in job.sources.values():
        if isinstance(segments, Files) and segments.known:
            segments.look()
    return {name: segments.count() + segments.ended() for name, segments in job.sources.items()}


def _chain(job: Job, part: _Part) -> SourceChainRun:
    chain = next(chain for chain in job.cut.chains if chain.source == part.source)
    return SourceChainRun(job.cut, chain, job.addresses, job.sources[part.source], part.assignments)
