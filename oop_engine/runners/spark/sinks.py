"""Sinks: where results go, once each.

Spark may run a micro-batch again, after a failure or a restart.  It then has the same number and gives the
same results, so a sink is exactly once if writing batch ``n`` a second time changes nothing.

    Memory         exactly once while the process lives          results as tables, for tests and replays
    ForeachBatch   as often as your function makes it            it is given the number of the batch
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from oop_engine.page import Page
from oop_engine.runners.spark.letters import Letter, unpack_letter
from oop_engine.schema import Schema

__all__ = ["ForeachBatch", "Memory", "Outlets", "Sink", "tables"]

Outlets = Mapping[int, tuple[str, Schema]]
"""The sink of the graph and the schema, by the number of the edge that letters carry."""


class Sink(Protocol):
    """``exactly_once``: what may be relied on, in a few words.

    ``work`` runs in tasks, on letters that carry results, and yields what is to reach the driver;
    ``commit`` runs at the driver, once all tasks of a batch have succeeded, and may run again.
    """

    exactly_once: str

    def start(self, schemas: Mapping[str, Schema]) -> None:
        """Check that results of ``schemas`` (by sink) can be written; called before anything runs."""
        ...

    def work(self, batch: int, schemas: Outlets, letters: Iterable[Letter]) -> Iterator[Letter]:
        """Take letters with results."""
        ...

    def commit(self, batch: int, schemas: Outlets, letters: list[Letter]) -> None:
        """Make the results of ``batch`` visible, all of them or none."""
        ...


@dataclass
class ForeachBatch:
    """Hands the results of each micro-batch to ``function(results, batch)`` at the driver.

    ``results`` has a table for each sink of the graph.  The same batch may come again after a restart,
    with the same rows: a function that overwrites what it wrote under that number is exactly once.
    """

    function: Callable[[dict[str, pa.Table], int], None]
    exactly_once: str = "at least once; exactly once if the function is idempotent in the number of the batch"

    def start(self, schemas: Mapping[str, Schema]) -> None:
        """Do nothing."""

    def work(self, batch: int, schemas: Outlets, letters: Iterable[Letter]) -> Iterator[Letter]:
        """Let letters pass."""
        yield from letters

    def commit(self, batch: int, schemas: Outlets, letters: list[Letter]) -> None:
        """Call the function."""
        self.function(tables(schemas, letters), batch)


@dataclass
class Memory:
    """Keeps results by batch; ``results()`` puts them together."""

    exactly_once: str = "exactly once while the process lives"
    batches: dict[int, dict[str, pa.Table]] = field(default_factory=dict)

    def start(self, schemas: Mapping[str, Schema]) -> None:
        """Start with empty tables."""
        self.batches = {-1: {name: schema.fields.empty_table() for name, schema in schemas.items()}}

    def work(self, batch: int, schemas: Outlets, letters: Iterable[Letter]) -> Iterator[Letter]:
        """Let letters pass."""
        yield from letters

    def commit(self, batch: int, schemas: Outlets, letters: list[Letter]) -> None:
        """Keep the results under the number of the batch."""
        self.batches[batch] = tables(schemas, letters)

    def results(self) -> dict[str, pa.Table]:
        """Return all results so far, by sink."""
        names = self.batches.get(-1, {})
        return {name: pa.concat_tables(t[name] for t in self.batches.values()) for name in names}


def tables(schemas: Outlets, letters: Iterable[Letter]) -> dict[str, pa.Table]:
    """Return the results in ``letters``, a table for each sink."""
    found: dict[str, list[pa.RecordBatch]] = {name: [] for name, _ in schemas.values()}
    for letter in letters:
        name, schema = schemas[letter.edge]
        found[name] += [m.batch for m in unpack_letter(schema, letter.body) if isinstance(m, Page)]
    return {
        name: pa.Table.from_batches(found[name], schema=schema.fields) for name, schema in schemas.values()
    }
