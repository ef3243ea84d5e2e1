"""The protocol of a sink: the part that runs in tasks, and the commit at the driver.

A sink of your own is an object with these methods; nothing has to be registered::

    class Lines:
        exactly_once = "exactly once"

        def start(self, schemas, query): ...

        def worker(self): ...  # None: results come to the driver as tables

        def commit(self, batch, results): ...

    run_on_spark(graph, feeds, sink=Lines())

Spark may run a micro-batch again, after a failure or a restart.  It then has the same number and gives the
same results, so a sink is exactly once if writing batch ``n`` a second time changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from oop_engine.core.errors import UsageError
from oop_engine.core.operator import Message
from oop_engine.core.schema import Schema

__all__ = ["BatchResults", "Lasting", "Receipt", "Sink", "SinkWork", "check_sink"]


_METHODS = ("start", "worker", "commit")


@dataclass(frozen=True)
class Receipt:
    """The receipt of a task for a sink of the graph: tuples written, and the values that the commit needs."""

    sink: str
    tuples: int
    body: bytes = b""


SinkWork: TypeAlias = Callable[[int, int, Iterable[tuple[str, Message]]], Iterable[Receipt]]
"""The part in a task: micro-batch, partition, and results -> receipts.

A result is a sink of the graph, by its name, and a page or punctuation that reached it.
"""


@dataclass(frozen=True)
class BatchResults:
    """The receipts and tables of a micro-batch at the driver.

    ``receipts``: of all tasks.  ``tables``: where nothing is done in tasks, the results, by sink of the graph.
    """

    receipts: tuple[Receipt, ...] = ()
    tables: Mapping[str, pa.Table] = field(default_factory=dict)

    @property
    def tuples(self) -> int:
        """How many results there are."""
        came = sum(int(table.num_rows) for table in self.tables.values())
        return came + sum(receipt.tuples for receipt in self.receipts)

    def of(self, sink: str) -> list[Receipt]:
        """Return the receipts for one sink of the graph."""
        return [receipt for receipt in self.receipts if receipt.sink == sink]


class Sink(Protocol):
    """``exactly_once``: the guarantee, in a few words.

    ``start`` and ``commit`` run at the driver; the value of ``worker`` runs in tasks, and is pickled for each batch.
    """

    exactly_once: str

    def start(self, schemas: Mapping[str, Schema], query: str) -> None:
        """Check that results of ``schemas`` (by sink) can be written; called before anything runs.

        ``query``: a name that only this query has, the same after a restart.
        """
        ...

    def worker(self) -> SinkWork | None:
        """Return the part in tasks; None: there is none, and results come to the driver as tables."""
        ...

    def commit(self, batch: int, results: BatchResults) -> Mapping[str, int] | None:
        """Make the results of ``batch`` visible, once all its tasks have succeeded; it may come again.

        May return names and bytes of the files with these results, for ``check`` of a ``Lasting`` sink.
        """
        ...


@runtime_checkable
class Lasting(Protocol):
    """The methods of a sink, besides, whose results are to stay where they are."""

    def check(self, made: Mapping[str, int]) -> None:
        """Make sure that files are there as they were written: names, and bytes of each; called after ``start``.

        ``made``: those of all micro-batches that will not run again.
        """
        ...


def check_sink(sink: object) -> None:
    """Raise ``UsageError`` unless ``sink`` has the methods of a sink of Spark."""
    if not isinstance(sink, type) and all(callable(getattr(sink, name, None)) for name in _METHODS):
        return
    wanted = "start, worker and commit (Parquet, Delta, ForeachBatch, Memory, or one of your own)"
    got = f"the class {sink.__name__}" if isinstance(sink, type) else f"{sink!r:.80} ({type(sink).__name__})"
    msg = f"run on Spark: sink must be an object with {wanted}; got {got}{_way_out(sink)}"
    raise UsageError(msg)


def _way_out(sink: object) -> str:
    if isinstance(sink, type):
        return ": give an object of it"
    if hasattr(sink, "prepare") or hasattr(sink, "write"):
        return ": a sink of a service (serve) writes in one process, where tasks of Spark are many"
    if isinstance(sink, str | PurePath):
        return f": Parquet({str(sink)!r})"
    return ": ForeachBatch(function)" if callable(sink) else ""
