"""Spark's own DataFrames as sources: files, Kafka, ``rate``, tables, whatever Spark can read.

Spark tells no order of arrival: it deals files to partitions by their size.  So the rows of a micro-batch are taken
by their times (``Subtask``), and of one that is read in a batch no bound comes before the end (``at_rest``).  A
streaming DataFrame never ends: windows that its punctuation leaves open stay in the state of the query.

This way every row is turned from Spark's form into columns, at about a microsecond of processor time each;
folders of traces (``Files``) are read without that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from oop_engine.core.errors import ContractError, TraceError, UsageError
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.core.values.column import column as column_of
from oop_engine.core.values.kinds import converts
from oop_engine.runners.dispatch import Signal
from oop_engine.spark.io.frame_types import arrow_type_of, spark_way_out
from oop_engine.spark.plan.routing import Router
from oop_engine.spark.tasks.job import Job
from oop_engine.spark.tasks.record import DDL
from oop_engine.spark.tasks.task_metrics import frame_record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["check_frames", "is_frame", "page_of", "quoted", "records_of_frame"]

_LAST = 1 << 38  # behind all batches of a partition, and all partitions
_BATCHES = 1 << 20  # Arrow batches of a partition


def is_frame(feed: object) -> bool:
    """Return whether a feed is a DataFrame of Spark."""
    return hasattr(feed, "isStreaming") and hasattr(feed, "mapInArrow")


def check_frames(frames: Mapping[str, DataFrame], schemas: Mapping[str, Schema], *, batch: bool) -> None:
    """Raise ``UsageError`` or ``TraceError`` if a DataFrame cannot be the source it is to be."""
    for name, frame in frames.items():
        for field in schemas[name].fields:
            _check_column(name, frame, field, schemas[name].unit)
        if frame.isStreaming == batch:
            kinds = ("read", "batch=True") if batch else ("readStream", "batch=False")
            msg = (
                f"source {name!r}: {kinds[1]} needs a DataFrame made by spark.{kinds[0]}; got the other kind"
            )
            raise UsageError(msg)


def _check_column(source: str, frame: DataFrame, field: pa.Field, unit: str) -> None:
    """Raise ``TraceError`` unless a DataFrame has a column once, of a type that has values of ``field``."""
    columns = [other for other in frame.schema if other.name == field.name]
    if not columns:
        got = ", ".join(frame.columns)
        msg = f"source {source!r}: its DataFrame has no column {field.name!r}; it has {got}: select or rename before"
        raise TraceError(msg)
    if len(columns) > 1 or not _is_found(frame, field.name):
        same = ", ".join(name for name in frame.columns if name.lower() == field.name.lower())
        must = f"its DataFrame must have one column {field.name!r}"
        msg = f"source {source!r}: {must}; it has {same}: drop or rename before"
        raise TraceError(msg)
    [column] = columns
    kind = arrow_type_of(column.dataType)
    if kind is None or not converts(kind, field.type):
        given = column.dataType.simpleString()
        out = spark_way_out(field.name, kind, field.type, unit)
        msg = f"source {source!r}: {field.name!r} must be {field.type}; its DataFrame has {given}: {out}"
        raise TraceError(msg)


def _is_found(frame: DataFrame, name: str) -> bool:
    """Return whether Spark finds a column by its name: by default it takes ``ts`` and ``TS`` for one."""
    from pyspark.errors import AnalysisException

    try:
        frame.select(quoted(name))
    except AnalysisException:
        return False
    return True


def quoted(name: str) -> str:
    """Return the name of a column as Spark reads it: no field of a struct, no ``*``."""
    return "`" + name.replace("`", "``") + "`"


def records_of_frame(frame: DataFrame, source: str, schema: Schema, job: Job) -> DataFrame:
    """Return the rows of ``frame`` as records; rows without a time are left out and counted."""
    from pyspark.sql import functions as F

    # By numbers: PySpark reads the names of columns again, as Spark does.
    columns = frame.select(*(F.col(quoted(name)).alias(f"_{at}") for at, name in enumerate(schema.names)))
    records = columns.mapInArrow(_to_records(job, source, schema), DDL)
    if frame.isStreaming:
        return records
    one_row = frame.sparkSession.range(1)
    return records.union(one_row.mapInArrow(_the_end(job, source), DDL))


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
            page = page_of(batch, source, schema)
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


def page_of(batch: pa.RecordBatch, source: str, schema: Schema) -> Page:
    """Return rows in the types of ``schema``; raises ``ContractError`` for a value that its column has not."""
    known = batch.filter(batch.column(schema.names.index(schema.progressing)).is_valid())
    columns = [
        _column(values, field, f"source {source!r}: {field.name!r}")
        for values, field in zip(known.columns, schema.fields, strict=True)
    ]
    return Page(schema, pa.RecordBatch.from_arrays(columns, schema=schema.fields))


def _column(values: pa.Array, field: pa.Field, place: str) -> pa.Array:
    if values.null_count and not field.nullable:
        msg = f"{place} must not be null, for its field is not nullable: leave such rows out before, with frame.filter"
        raise ContractError(msg)
    return column_of(values, field.type, place)
