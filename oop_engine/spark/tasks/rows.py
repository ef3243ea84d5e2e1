"""Letters as the rows that Spark carries, and what a task does with them: steps, one behind the other."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import pyarrow as pa

from oop_engine.spark.tasks.record import COLUMNS, FIELDS, Letter

__all__ = ["Step", "Work", "batch_of", "batches_of", "in_task", "letters_of"]

Step: TypeAlias = Callable[[Iterator[Letter]], Iterator[Letter]]
"""What a task does with letters, and the letters that follow."""
Work: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""The same of rows, as ``mapInArrow`` wants it."""

_BATCH_BYTES = 16 << 20
_settling = 4  # tasks: one of each kind, and of a second query


def in_task(*steps: Step) -> Work:
    """Return ``steps`` as the work of one task: what one yields is what the next one takes."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        letters: Iterator[Letter] = (letter for batch in batches for letter in letters_of(batch))
        for step in steps:
            letters = step(letters)
        yield from batches_of(letters)
        settle()

    return work


def settle() -> None:
    """Keep what a worker has loaded for its first tasks out of the search for garbage.

    PySpark searches after every task, and looks at each object of every package: 25 ms, as long as a small task.
    """
    global _settling
    if _settling:
        _settling -= 1
        gc.collect()
        gc.freeze()


def batches_of(letters: Iterable[Letter]) -> Iterator[pa.RecordBatch]:
    """Put letters together, some megabytes at a time.  O(bytes)."""
    waiting: list[Letter] = []
    size = 0
    for letter in letters:
        waiting.append(letter)
        size += len(letter.body)
        if size > _BATCH_BYTES:
            yield batch_of(waiting)
            waiting, size = [], 0
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
