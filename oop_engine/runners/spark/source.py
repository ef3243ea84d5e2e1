"""The data source of Spark that reads our traces, runs their heads and puts out letters.

One task a source and micro-batch.  The offset is the number of slices that have been read, for
each source; one more than there are says that the source has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from oop_engine.runners.spark.head_run import HeadRun
from oop_engine.runners.spark.head_states import HeadStates
from oop_engine.runners.spark.job import Job
from oop_engine.runners.spark.letters import COLUMNS, DDL, FIELDS, Letter

__all__ = ["LetterSource", "batch_of", "letters_of"]

Offset = dict[str, int]
_BATCH_BYTES = 16 << 20


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
        return _BatchReader(Job.from_text(self.options["job"]))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """Return a reader of micro-batches."""
        return _StreamReader(Job.from_text(self.options["job"]))


class _Part(InputPartition):
    """Slices of one source."""

    def __init__(self, source: str, start: int, stop: int) -> None:
        super().__init__(source)
        self.source, self.start, self.stop = source, start, stop


class _BatchReader(DataSourceReader):
    def __init__(self, job: Job) -> None:
        self._job = job

    def partitions(self) -> list[InputPartition]:
        return [_Part(source, 0, stop) for source, stop in _available(self._job).items()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        yield from _batches(_head(self._job, partition.source).run(partition.start, partition.stop))


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, job: Job) -> None:
        self._job = job
        self._target: Offset | None = None

    def initialOffset(self) -> Offset:
        return dict.fromkeys(self._job.sources, 0)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxFiles(self._job.slices_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = _available(self._job)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        there = self._target or _available(self._job)
        most = max(there.values()) if isinstance(limit, ReadAllAvailable) else self._job.slices_per_batch
        return {source: max(at, min(there[source], at + most)) for source, at in start.items()}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        return [_Part(source, at, end[source]) for source, at in start.items() if end[source] > at]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        states = HeadStates(self._job.states)
        head = _restored(self._job, partition, states)
        yield from _batches(head.run(partition.start, partition.stop))
        states.save(partition.source, partition.stop, head.snapshot())

    def commit(self, end: Offset) -> None:
        """Do nothing: slices stay where they are."""


def _available(job: Job) -> Offset:
    return {name: slices.count() + slices.ended() for name, slices in job.sources.items()}


def _head(job: Job, source: str) -> HeadRun:
    head = next(head for head in job.cut.heads if head.source == source)
    return HeadRun(job.cut, head, job.addresses, job.sources[source])


def _restored(job: Job, part: _Part, states: HeadStates) -> HeadRun:
    """Return a head that has read all before ``part``; again, if the state of then is gone."""
    head = _head(job, part.source)
    if part.start == 0:
        return head
    state = states.load(part.source, part.start)
    if state is None:
        for _ in head.run(0, part.start):
            pass
    else:
        head.restore(state)
    return head


def _batches(letters: Iterator[Letter]) -> Iterator[pa.RecordBatch]:
    """Put letters together, some megabytes at a time."""
    waiting: list[Letter] = []
    for letter in letters:
        waiting.append(letter)
        if sum(len(w.body) for w in waiting) > _BATCH_BYTES:
            yield batch_of(waiting)
            waiting = []
    if waiting:
        yield batch_of(waiting)


def batch_of(letters: list[Letter]) -> pa.RecordBatch:
    """Return letters as rows."""
    columns = zip(*letters, strict=True) if letters else [[] for _ in COLUMNS]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, FIELDS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=FIELDS)


def letters_of(batch: pa.RecordBatch) -> Iterator[Letter]:
    """Yield rows as letters."""
    for values in zip(*(column.to_pylist() for column in batch.select(COLUMNS).columns), strict=True):
        yield Letter(*values)
