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
from oop_engine.spark.tasks.record import NOTE, Letter, unpack_letter

__all__ = ["Outlets", "ToSink", "batch_results"]

Outlets: TypeAlias = Mapping[int, tuple[str, Schema]]
"""The sink of the graph and the schema, by the number of the edge that records carry."""


@dataclass(frozen=True)
class ToSink:
    """Hands results to the sink's part in tasks; notes follow what that returns.  No part: results pass."""

    work: SinkWork | None
    outlets: Outlets
    batch: int

    def __call__(self, letters: Iterator[Letter]) -> Iterator[Letter]:
        """Yield what is to reach the driver."""
        if self.work is None:
            yield from letters
            return
        notes: list[Letter] = []
        partition = _partition()
        edges = {name: edge for edge, (name, _) in self.outlets.items()}
        for receipt in self.work(self.batch, partition, _results(letters, self.outlets, notes)):
            yield Letter(0, edges[receipt.sink], partition, 0, receipt.tuples, receipt.body)
        yield from notes


def batch_results(work: SinkWork | None, outlets: Outlets, letters: Iterable[Letter]) -> BatchResults:
    """Return what ``ToSink`` has let through to the driver, without the notes."""
    if work is None:
        return BatchResults(tables=_tables(outlets, letters))
    receipts = (Receipt(outlets[letter.edge][0], letter.tuples, letter.body) for letter in letters)
    return BatchResults(tuple(receipts))


def _results(
    letters: Iterable[Letter], outlets: Outlets, notes: list[Letter]
) -> Iterator[tuple[str, Message]]:
    """Yield results with the names of their sinks, and put notes aside."""
    for letter in letters:
        if letter.edge == NOTE:
            notes.append(letter)
            continue
        name, schema = outlets[letter.edge]
        for message in unpack_letter(schema, letter.body):
            if not isinstance(message, Signal):
                yield name, message


def _tables(outlets: Outlets, letters: Iterable[Letter]) -> dict[str, pa.Table]:
    found: dict[str, list[pa.RecordBatch]] = {name: [] for name, _ in outlets.values()}
    for letter in letters:
        name, schema = outlets[letter.edge]
        found[name] += [m.batch for m in unpack_letter(schema, letter.body) if isinstance(m, Page)]
    return {n: pa.Table.from_batches(found[n], schema=schema.fields) for n, schema in outlets.values()}


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())
