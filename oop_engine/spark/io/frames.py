"""Spark's own DataFrames as sources: files, Kafka, ``rate``, tables, whatever Spark can read.

Spark tells no order of arrival, so rows come in the order of their micro-batches, and within one in that of
partitions.  Generators of punctuation take them so, in one place (see ``stages``).  A streaming DataFrame never
ends: windows that its punctuation leaves open stay in the state of the query.  One that is read in a batch ends.

This way every row is turned from Spark's form into columns, at about a microsecond of processor time each;
folders of traces (``Files``) are read without that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from oop_engine.core.errors import TraceError, UsageError
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.runners.dispatch import Signal
from oop_engine.spark.plan.routing import Router
from oop_engine.spark.tasks.job import Job
from oop_engine.spark.tasks.record import DDL
from oop_engine.spark.tasks.task_metrics import frame_record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["check_frames", "is_frame", "records_of_frame"]

_LAST = 1 << 38  # behind all batches of a partition, and all partitions
_BATCHES = 1 << 20  # Arrow batches of a partition


def is_frame(feed: object) -> bool:
    """Tell whether a feed is a DataFrame of Spark."""
    return hasattr(feed, "isStreaming") and hasattr(feed, "mapInArrow")


def check_frames(frames: Mapping[str, DataFrame], schemas: Mapping[str, Schema], *, batch: bool) -> None:
    """Raise ``UsageError`` or ``TraceError`` if a DataFrame cannot be the source it is to be."""
    for name, frame in frames.items():
        missing = [column for column in schemas[name].names if column not in frame.columns]
        if missing:
            got = ", ".join(frame.columns)
            msg = f"source {name!r}: its DataFrame has no column {missing[0]!r}; it has {got}: select or rename before"
            raise TraceError(msg)
        if frame.isStreaming == batch:
            kinds = ("read", "batch=True") if batch else ("readStream", "batch=False")
            msg = (
                f"source {name!r}: {kinds[1]} needs a DataFrame made by spark.{kinds[0]}; got the other kind"
            )
            raise UsageError(msg)


def records_of_frame(frame: DataFrame, source: str, schema: Schema, job: Job) -> DataFrame:
    """Return the rows of ``frame`` as records; rows without a time are left out and counted."""
    columns = frame.select(*schema.names)
    records = columns.mapInArrow(_to_records(job, source, schema), DDL)
    if frame.isStreaming:
        return records
    one = frame.sparkSession.range(1)
    return records.union(one.mapInArrow(_the_end(job, source), DDL))


def _router(job: Job, source: str) -> tuple[Router, tuple[str, ...]]:
    chain = next(chain for chain in job.cut.chains if chain.source == source)
    return Router(job.cut, job.addresses, chain.outlets), tuple(chain.outlets)


Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _to_records(job: Job, source: str, schema: Schema) -> Work:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from oop_engine.spark.tasks.rows import batch_of

        router, outlets = _router(job, source)
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        rows = refused = 0
        for number, batch in enumerate(batches):
            page = _page(batch, schema)
            rows, refused = rows + len(page), refused + batch.num_rows - len(page)
            for outlet in outlets:
                router.say(outlet, page)
            yield batch_of(list(router.records(partition * _BATCHES + number)))
        yield batch_of([frame_record(source, partition, rows, refused)])

    return run


def _the_end(job: Job, source: str) -> Work:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from oop_engine.spark.tasks.rows import batch_of

        router, outlets = _router(job, source)
        if sum(batch.num_rows for batch in batches):
            for outlet in outlets:
                router.say(outlet, Signal.END)
            yield batch_of(list(router.records(_LAST)))

    return run


def _page(batch: pa.RecordBatch, schema: Schema) -> Page:
    """Return rows in the types of ``schema``; times finer than its unit are cut off."""
    known = batch.filter(batch.column(schema.progressing).is_valid())
    columns = [_cast(known.column(field.name), field.type) for field in schema.fields]
    return Page(schema, pa.RecordBatch.from_arrays(columns, schema=schema.fields))


def _cast(column: Any, kind: pa.DataType) -> Any:
    return column.cast(kind, safe=not pa.types.is_timestamp(kind))
