"""Between the records that tasks exchange and a sink, which is given pages, punctuation and tables only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.runners.dispatch import Signal
from oop_engine.spark.io.sink import BatchResults, Receipt, SinkWork
from oop_engine.spark.tasks.record import METRICS, Record, unpack_messages

__all__ = ["Outlets", "ToSink", "batch_results"]

Outlets: TypeAlias = Mapping[int, tuple[str, Schema]]
"""The sink of the graph and the schema, by the number of the edge that records carry."""


@dataclass(frozen=True)
class ToSink:
    """Hands results to the sink's part in tasks; metrics follow its receipts.  No part: results pass."""

    work: SinkWork | None
    outlets: Outlets
    batch: int

    def __call__(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield the records for the driver."""
        if self.work is None:
            yield from records
            return
        metrics: list[Record] = []
        partition = _partition()
        edges = {name: edge for edge, (name, _) in self.outlets.items()}
        for receipt in self.work(self.batch, partition, _results(records, self.outlets, metrics)):
            yield Record(0, edges[receipt.sink], partition, 0, receipt.tuples, receipt.body)
        yield from metrics


def batch_results(work: SinkWork | None, outlets: Outlets, records: Iterable[Record]) -> BatchResults:
    """Return the receipts that ``ToSink`` has let through to the driver, without the metrics."""
    if work is None:
        return BatchResults(tables=_tables(outlets, records))
    receipts = (Receipt(outlets[record.edge][0], record.tuples, record.body) for record in records)
    return BatchResults(tuple(receipts))


def _results(
    records: Iterable[Record], outlets: Outlets, metrics: list[Record]
) -> Iterator[tuple[str, Message]]:
    """Yield results with the names of their sinks, and put metrics aside."""
    for record in records:
        if record.edge == METRICS:
            metrics.append(record)
            continue
        name, schema = outlets[record.edge]
        for message in unpack_messages(schema, record.body):
            if not isinstance(message, Signal):
                yield name, message


def _tables(outlets: Outlets, records: Iterable[Record]) -> dict[str, pa.Table]:
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name, _ in outlets.values()}
    for record in records:
        name, schema = outlets[record.edge]
        batches[name] += [m.batch for m in unpack_messages(schema, record.body) if isinstance(m, Page)]
    return {n: pa.Table.from_batches(batches[n], schema=schema.fields) for n, schema in outlets.values()}


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())
