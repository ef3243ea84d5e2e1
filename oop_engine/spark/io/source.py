"""The data source of Spark that reads our traces, runs their source chains and emits records.

One task a source and micro-batch.  The offset is the number of segments that have been read, for
each source; one more than there are is the end of the source.  Where there are shards, the
version of their assignment is in the offset too; where an operator may change, the number of its changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
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

from oop_engine.core.change import Change
from oop_engine.spark.io.segments import Files
from oop_engine.spark.plan.assignments import AssignmentFolder
from oop_engine.spark.plan.balance import Assignments
from oop_engine.spark.state.ledger import Ledger
from oop_engine.spark.state.manifest import Manifest
from oop_engine.spark.state.state_files import SOURCE_CHAINS, StateFiles
from oop_engine.spark.tasks.job import Job, PackedJob
from oop_engine.spark.tasks.record import DDL, Record
from oop_engine.spark.tasks.rows import batches_of
from oop_engine.spark.tasks.source_chain import SourceChainRun
from oop_engine.spark.tasks.task_metrics import state_record

__all__ = ["RecordSource"]

Offset = dict[str, int]
_ASSIGNMENT, _CHANGES = "(map)", "(changes)"  # beside the sources; none can have these names


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
    """Segments of one source, the assignments of then, the file with the state of its chain ("": there is none).

    And all changes until then, as they were written down.
    """

    def __init__(
        self, source: str, start: int, stop: int, assignments: Assignments | None = None, state: str = "",
        changes: Sequence[list[Any]] = (),
    ) -> None:  # fmt: skip
        super().__init__(source)
        self.source, self.start, self.stop, self.assignments = source, start, stop, assignments
        self.state, self.changes = state, changes


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
        # A job is unpacked at the first call: PySpark hides an error of the constructor behind one of its own,
        # "cannot access local variable 'reader'".
        self._packed = packed
        self._target: Offset | None = None

    @property
    def _job(self) -> Job:
        return self._packed.job

    @cached_property
    def _assignments(self) -> AssignmentFolder | None:
        return AssignmentFolder(self._job.assignments) if self._job.assignments else None

    def initialOffset(self) -> Offset:
        return dict.fromkeys(self._job.sources, 0) | self._versions()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxFiles(self._job.segments_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = _available(self._job)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        there = self._target or _available(self._job)
        most = max(there.values()) if isinstance(limit, ReadAllAvailable) else self._job.segments_per_batch
        latest = {source: max(start[source], min(there[source], start[source] + most)) for source in there}
        if all(latest[source] == start[source] for source in there):
            return start  # a new assignment or change alone is no reason for a batch
        return latest | self._versions()

    def _versions(self) -> Offset:
        """Return the newest assignments, and how many changes there are."""
        maps = {} if self._assignments is None else {_ASSIGNMENT: self._assignments.newest()}
        return maps | ({_CHANGES: len(self._changes())} if self._job.changes else {})

    def _changes(self) -> list[list[Any]]:
        """Return the changes so far, as they were written down."""
        return Ledger(Path(self._job.changes)).lines() if self._job.changes else []

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        assignments = None if self._assignments is None else self._assignments.read(end[_ASSIGNMENT])
        changes = self._changes()[: end.get(_CHANGES, 0)]
        read = ((source, start[source], end[source]) for source in self._job.sources)
        return [
            _Part(source, at, to, assignments, self._state_at(source, at), changes)
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
        yield from chain.run(part.start, part.stop, [*map(Change.of_frame, part.changes)])
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
