"""Sinks: where results go, once each.  The protocol, and how to write one: ``sink``.

    Memory         exactly once while the process lives   results as tables, for tests and replays (the default)
    Parquet        exactly once                           a folder of files for each sink of the graph
    Delta          exactly once                           a Delta table for each sink of the graph
    ForeachBatch   as often as your function makes it     it is given the number of the batch

A start with the checkpoint of a query looks whether the files of ``Parquet`` and ``Delta`` are as they were written.

"Exactly once" holds over kills of driver and tasks at any moment, with a checkpoint; a power cut may take
files that the operating system had not written yet.  ``Parquet`` and ``Delta`` write to a folder of this machine,
or one that driver and all tasks have under the same path; for an object store there is ``ForeachBatch``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from oop_engine.core.schema import Schema
from oop_engine.spark.io.delta import Delta
from oop_engine.spark.io.parquet import Parquet
from oop_engine.spark.io.sink import BatchResults, Lasting, Receipt, Sink, SinkWork

__all__ = [
    "BatchResults",
    "Delta",
    "ForeachBatch",
    "Lasting",
    "Memory",
    "Parquet",
    "Receipt",
    "Sink",
    "SinkWork",
]


@dataclass
class ForeachBatch:
    """Hands the results of each micro-batch to ``function(results, batch)`` at the driver.

    ``results`` has a table for each sink of the graph.  The same batch may come again after a restart,
    with the same rows: a function that overwrites its rows of that number is exactly once.
    """

    function: Callable[[dict[str, pa.Table], int], None]
    exactly_once: str = "at least once; exactly once if the function is idempotent in the number of the batch"

    def start(self, schemas: Mapping[str, Schema], query: str) -> None:
        """Do nothing."""

    def worker(self) -> SinkWork | None:
        """Return None: the function runs at the driver."""

    def commit(self, batch: int, results: BatchResults) -> None:
        """Call the function."""
        self.function(dict(results.tables), batch)


@dataclass
class Memory:
    """Keeps results by batch; ``results()`` puts them together."""

    exactly_once: str = "exactly once while the process lives"
    batches: dict[int, Mapping[str, pa.Table]] = field(default_factory=dict)

    def start(self, schemas: Mapping[str, Schema], query: str) -> None:
        """Start with empty tables."""
        self.batches = {-1: {name: schema.fields.empty_table() for name, schema in schemas.items()}}

    def worker(self) -> SinkWork | None:
        """Return None: results are kept at the driver."""

    def commit(self, batch: int, results: BatchResults) -> None:
        """Keep the results under the number of the batch."""
        self.batches[batch] = results.tables

    def results(self) -> dict[str, pa.Table]:
        """Return all results so far, by sink."""
        names = self.batches.get(-1, {})
        return {name: pa.concat_tables(t[name] for t in self.batches.values()) for name in names}
