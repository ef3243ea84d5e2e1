"""Records as the rows that Spark carries, and the steps of a task, one behind the other."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import pyarrow as pa

from oop_engine.spark.tasks.record import COLUMNS, FIELDS, Record
from oop_engine.system.knobs import knob

__all__ = ["TaskStep", "Work", "batch_of", "batches_of", "in_task", "records_of"]

TaskStep: TypeAlias = Callable[[Iterator[Record]], Iterator[Record]]
"""A step of a task: records in, and the records that follow."""
Work: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""The same of rows, as ``mapInArrow`` wants it."""

_BATCH_BYTES = knob(__name__, "_BATCH_BYTES", 16 << 20)
_settling = 4  # tasks: one of each kind, and of a second query


def in_task(*steps: TaskStep) -> Work:
    """Return ``steps`` as the work of one task: each takes the records that the one before yields."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        records: Iterator[Record] = (record for batch in batches for record in records_of(batch))
        for step in steps:
            records = step(records)
        yield from batches_of(records)
        settle()

    return work


def settle() -> None:
    """Keep the modules that a worker has loaded for its first tasks out of the search for garbage.

    PySpark searches after every task, and looks at each object of every package: 25 ms, as long as a small task.
    """
    global _settling
    if _settling:
        _settling -= 1
        gc.collect()
        gc.freeze()


def batches_of(records: Iterable[Record]) -> Iterator[pa.RecordBatch]:
    """Put records together, some megabytes at a time.  O(bytes)."""
    waiting: list[Record] = []
    size = 0
    for record in records:
        waiting.append(record)
        size += len(record.body)
        if size > _BATCH_BYTES:
            yield batch_of(waiting)
            waiting, size = [], 0
    if waiting:
        yield batch_of(waiting)


def batch_of(records: list[Record]) -> pa.RecordBatch:
    """Return records as rows."""
    columns = zip(*records, strict=True) if records else [[] for _ in COLUMNS]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, FIELDS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=FIELDS)


def records_of(batch: pa.RecordBatch) -> Iterator[Record]:
    """Yield rows as records."""
    for values in zip(*(column.to_pylist() for column in batch.select(COLUMNS).columns), strict=True):
        yield Record(*values)
