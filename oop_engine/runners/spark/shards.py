"""The shards of a cut graph in Spark: a shuffle by target, and operators that keep nothing behind it.

What a shard is sent in a micro-batch it works on and forgets: no state store, nothing to restore, and the next
batch may send the same keys elsewhere.  Letters for others pass by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from oop_engine.runners.spark.copy import Copy
from oop_engine.runners.spark.job import Job
from oop_engine.runners.spark.letters import DDL, Letter
from oop_engine.runners.spark.level import places_of
from oop_engine.runners.spark.source import batch_of, letters_of
from oop_engine.runners.spark.stages import SHARDS

__all__ = ["add_shards"]


def add_shards(letters: DataFrame, job: Job) -> DataFrame:
    """Return the letters that the shards make of ``letters``."""
    return letters.repartition("target").mapInArrow(_in_shards(job), DDL)


def _in_shards(job: Job) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        places = places_of(job, SHARDS)
        own: dict[int, list[Letter]] = {}
        for batch in batches:
            others: list[Letter] = []
            for letter in letters_of(batch):
                to = own.setdefault(letter.target, []) if letter.target in places else others
                to.append(letter)
            if others:
                yield batch_of(others)
        for target, mine in own.items():
            number, shard = places[target]
            copy = Copy(job.cut, job.cut.components[number], job.addresses, shard)
            mine.sort(key=lambda letter: (letter.seq, letter.channel))
            yield batch_of(list(copy.run(mine)))

    return run
