"""A query: a job that runs on a session of Spark, micro-batch after micro-batch, or all at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import reduce
from typing import TYPE_CHECKING, Any

from oop_engine.spark.asked_changes import AskedChanges
from oop_engine.spark.io.feeds import schemas_of
from oop_engine.spark.io.frames import records_of_frame
from oop_engine.spark.io.sink import Sink
from oop_engine.spark.io.to_sink import ToSink, batch_results
from oop_engine.spark.outcome import BatchDone, ShardDone
from oop_engine.spark.plan.assignments import Control
from oop_engine.spark.plan.balance import Balance, Move
from oop_engine.spark.plan.pieces import SHARDS, Cut
from oop_engine.spark.session.failures import failure_of
from oop_engine.spark.session.waiting import interruptible
from oop_engine.spark.state.checkpoint import Checkpoint
from oop_engine.spark.tasks.job import Job
from oop_engine.spark.tasks.record import DDL, METRICS
from oop_engine.spark.tasks.rows import in_task, records_of
from oop_engine.spark.tasks.stage_task import through_levels
from oop_engine.spark.tasks.task_metrics import Totals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming import DataStreamReader

__all__ = ["SparkQuery"]


class SparkQuery:
    """A job on a session of Spark: it runs micro-batches, or one batch, and gathers the results and metrics."""

    def __init__(
        self,
        spark: SparkSession,
        job: Job,
        frames: Mapping[str, DataFrame],
        sink: Sink,
        checkpoint: Checkpoint,
        on_batch: Callable[[BatchDone], None] | None,
        balance: Balance,
    ) -> None:
        from oop_engine.spark.io.source import RecordSource

        spark.dataSource.register(RecordSource)
        self._spark, self._job, self._frames, self._sink = spark, job, frames, sink
        self._kept = checkpoint
        self._packed = job.packed()
        self._stored = not job.subtasks  # in Spark's store
        self._on_batch = on_batch or (lambda done: None)
        edges = [edge for edge in job.cut.edges if edge.component is None]
        self._schemas = {edge.number: (edge.sink, edge.schema) for edge in edges}
        self._control = Control(balance, job.cut, job.assignments) if job.assignments else None
        self._changes = AskedChanges(job, checkpoint, frames)
        self._last = time.perf_counter()
        self.totals = Totals()
        self.batches: list[BatchDone] = []

    @property
    def cut(self) -> Cut:
        """The graph as it was cut up."""
        return self._job.cut

    @property
    def moves(self) -> list[Move]:
        """When key groups were moved."""
        return [] if self._control is None else self._control.moves

    def in_batches(self, *, follow: bool) -> None:
        """Run a streaming query until everything has been read, or for ever."""
        with failure_of():  # a source in Python is made by a worker, which may lack a package
            records = self._records(self._spark.readStream)
        if self._stored:
            from oop_engine.spark.tasks.store_task import through_store

            records = through_store(records, self._packed)
        writer = records.writeStream.foreachBatch(self._batch).option(
            "checkpointLocation", str(self._kept.folder / "spark")
        )
        trigger: dict[str, Any] = {"processingTime": "0 seconds"} if follow else {"availableNow": True}
        with failure_of():
            query = writer.trigger(**trigger).start()
            try:
                interruptible(query.awaitTermination, query.stop)
            finally:
                with suppress(Exception):  # it has failed, or its JVM is gone: the exception has the reason
                    query.stop()

    def all_at_once(self) -> None:
        """Run one batch."""
        with failure_of():
            records = self._records(self._spark.read)
            interruptible(lambda: self._batch(records, None), self._spark.sparkContext.cancelAllJobs)

    def _records(self, reader: DataFrameReader | DataStreamReader) -> DataFrame:
        """Return the records of all sources."""
        schemas = schemas_of(self._job.cut.plan)
        parts = [
            records_of_frame(frame, name, schemas[name], self._job) for name, frame in self._frames.items()
        ]
        if self._job.sources:
            parts.append(reader.format("oop-engine").option("job", self._packed.text).load())
        return reduce(lambda left, right: left.union(right), parts)

    def _batch(self, records: DataFrame, number: int | None) -> None:
        """Run the tasks of a micro-batch, or of everything, hand results to the sink, add up the metrics."""
        work = self._sink.worker()
        to_sink = ToSink(work, self._schemas, number or 0)
        states = {} if number is None else self._kept.begin(number)
        if self._stored and number is not None:
            done = records.mapInArrow(in_task(to_sink), DDL)
        else:
            done = through_levels(records, self._packed, batch=number, states=states, last=to_sink)
        arrived = [record for part in done.toArrow().to_batches() for record in records_of(part)]
        results = batch_results(work, self._schemas, (record for record in arrived if record.edge != METRICS))
        made = self._sink.commit(number or 0, results)
        before = self.totals.tuples
        self.totals.take(record for record in arrived if record.edge == METRICS)
        if number is not None:
            self._kept.end(number, self.totals.states, made)
        self._tell(number or 0, before, results.tuples)

    def _tell(self, number: int, before: int, results: int) -> None:
        """Say that a micro-batch is done; ``before``: tuples until then."""
        if self._control is not None:
            self._control.take(number, self.totals.loads())
        now = time.perf_counter()
        done = BatchDone(
            number, self.totals.tuples - before, results, now - self._last, self._shards(), self._changes.ask
        )
        self._last = now
        self.batches.append(done)
        self._on_batch(done)

    def _shards(self) -> tuple[ShardDone, ...]:
        spent = self.totals.spent()
        return tuple(
            ShardDone(component.name, shard, *spent.get((component.name, shard), (0, 0.0)))
            for component in self._job.cut.at(SHARDS)
            for shard in range(component.groups)
        )
