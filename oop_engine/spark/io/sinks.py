"""Sinks: where results go, once each.

Spark may run a micro-batch again, after a failure or a restart.  It then has the same number and gives the
same results, so a sink is exactly once if writing batch ``n`` a second time changes nothing.

    Memory         exactly once while the process lives   results as tables, for tests and replays (the default)
    Parquet        exactly once                           a folder of files for each sink of the graph
    Delta          exactly once                           a Delta table for each sink of the graph
    ForeachBatch   as often as your function makes it     it is given the number of the batch

A start with the checkpoint of a query looks whether the files of ``Parquet`` and ``Delta`` are as they were written.

"Exactly once" holds over kills of driver and tasks at any moment, with a checkpoint; a power cut may take
what the operating system had not written yet.  ``Parquet`` and ``Delta`` write to a folder of this machine,
or one that driver and all tasks have under the same path; for an object store there is ``ForeachBatch``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.spark.io.delta import Delta
from oop_engine.spark.io.parquet import Outlets, Parquet
from oop_engine.spark.tasks.record import NOTE, Letter, unpack_letter

__all__ = [
    "Delta",
    "ForeachBatch",
    "Lasting",
    "Memory",
    "Outlets",
    "Parquet",
    "Sink",
    "SinkWork",
    "ToSink",
    "tables",
]

SinkWork: TypeAlias = Callable[[int, Outlets, Iterable[Letter]], Iterator[Letter]]
"""What a sink does in tasks: batch, outlets and letters with results -> letters for the driver."""


class Sink(Protocol):
    """``exactly_once``: what may be relied on, in a few words.

    What ``worker`` returns runs in tasks, on letters that carry results, and yields what is to reach the
    driver; it is pickled for each batch.  ``commit`` runs at the driver, once all tasks of a batch have
    succeeded, and may run again for the same batch.
    """

    exactly_once: str

    def start(self, schemas: Mapping[str, Schema], query: str) -> None:
        """Check that results of ``schemas`` (by sink) can be written; called before anything runs.

        ``query``: a name that only this query has, the same after a restart.
        """
        ...

    def worker(self) -> SinkWork:
        """Return what is done in tasks."""
        ...

    def commit(self, batch: int, outlets: Outlets, letters: list[Letter]) -> Mapping[str, int] | None:
        """Make the results of ``batch`` visible.

        May return names and bytes of the files with these results, for ``check`` of a ``Lasting`` sink.
        """
        ...


@runtime_checkable
class Lasting(Protocol):
    """What a sink has besides whose results are to stay where they are."""

    def check(self, made: Mapping[str, int]) -> None:
        """Make sure that files are there as they were written: names, and bytes of each; called after ``start``.

        ``made``: those of all micro-batches that will not run again.
        """
        ...


@dataclass(frozen=True)
class ToSink:
    """Hands results to the sink's part in tasks; notes follow what that yields."""

    sink: SinkWork
    schemas: Outlets
    batch: int

    def __call__(self, letters: Iterator[Letter]) -> Iterator[Letter]:
        """Yield what is to reach the driver."""
        notes: list[Letter] = []
        yield from self.sink(self.batch, self.schemas, _results(letters, notes))
        yield from notes


def _results(letters: Iterator[Letter], notes: list[Letter]) -> Iterator[Letter]:
    """Yield results, and put notes aside."""
    for letter in letters:
        if letter.edge == NOTE:
            notes.append(letter)
        else:
            yield letter


@dataclass
class ForeachBatch:
    """Hands the results of each micro-batch to ``function(results, batch)`` at the driver.

    ``results`` has a table for each sink of the graph.  The same batch may come again after a restart,
    with the same rows: a function that overwrites what it wrote under that number is exactly once.
    """

    function: Callable[[dict[str, pa.Table], int], None]
    exactly_once: str = "at least once; exactly once if the function is idempotent in the number of the batch"

    def start(self, schemas: Mapping[str, Schema], query: str) -> None:
        """Do nothing."""

    def worker(self) -> SinkWork:
        """Let letters pass."""
        return _pass

    def commit(self, batch: int, outlets: Outlets, letters: list[Letter]) -> None:
        """Call the function."""
        self.function(tables(outlets, letters), batch)


@dataclass
class Memory:
    """Keeps results by batch; ``results()`` puts them together."""

    exactly_once: str = "exactly once while the process lives"
    batches: dict[int, dict[str, pa.Table]] = field(default_factory=dict)

    def start(self, schemas: Mapping[str, Schema], query: str) -> None:
        """Start with empty tables."""
        self.batches = {-1: {name: schema.fields.empty_table() for name, schema in schemas.items()}}

    def worker(self) -> SinkWork:
        """Let letters pass."""
        return _pass

    def commit(self, batch: int, outlets: Outlets, letters: list[Letter]) -> None:
        """Keep the results under the number of the batch."""
        self.batches[batch] = tables(outlets, letters)

    def results(self) -> dict[str, pa.Table]:
        """Return all results so far, by sink."""
        names = self.batches.get(-1, {})
        return {name: pa.concat_tables(t[name] for t in self.batches.values()) for name in names}


def tables(outlets: Outlets, letters: Iterable[Letter]) -> dict[str, pa.Table]:
    """Return the results in ``letters``, a table for each sink."""
    found: dict[str, list[pa.RecordBatch]] = {name: [] for name, _ in outlets.values()}
    for letter in letters:
        name, schema = outlets[letter.edge]
        found[name] += [m.batch for m in unpack_letter(schema, letter.body) if isinstance(m, Page)]
    return {
        name: pa.Table.from_batches(found[name], schema=schema.fields) for name, schema in outlets.values()
    }


def _pass(batch: int, outlets: Outlets, letters: Iterable[Letter]) -> Iterator[Letter]:
    yield from letters
