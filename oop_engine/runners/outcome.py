"""Outcome: the results and figures of a run, and their collector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.graphs.html import table_html
from oop_engine.core.graphs.statistics import LateTuples, Statistics
from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.groups.in_python import rows_of
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.runners.dispatch import Result

__all__ = ["Collector", "Outcome"]

T = TypeVar("T", bound=np.generic)
_SHOWN = 20  # rows in a notebook


@dataclass
class Outcome:
    """The results and figures of a run.

    ``results``: a table a sink, rows in the order they came.  ``emitted``: for each row the
    virtual time when it came, int64, in the unit of the attribute.  Behind an operator of several inputs it is,
    with ``on="local"``, exact to a page: never too early, and no later than the end of the pages that had begun to
    arrive by then; for pages of one moment each it is exact.  ``waited_s``: for each row
    the wall seconds since the punctuation that released it was made.  ``tuples``: how many went in.
    ``wall_s`` and ``cpu_s`` are the graph's own, without reading the feeds and compiling kernels; with
    asynchronous feeds (``arun``) the waiting for them is in ``wall_s``.  ``schemas``: of the sinks.
    """

    results: dict[str, pa.Table]
    emitted: dict[str, NDArray[np.int64]]
    waited_s: dict[str, NDArray[np.float64]]
    statistics: Statistics
    tuples: int
    wall_s: float
    cpu_s: float
    schemas: Mapping[str, Schema] = field(default_factory=dict)

    @property
    def late(self) -> LateTuples:
        """The tuples that came behind a bound: how many (``total``), and at which operators."""
        return self.statistics.late

    @property
    def behind(self) -> LateTuples:
        """The tuples that came behind punctuation inside the graph, which somebody in it has broken."""
        return self.statistics.behind

    def final(self, sink: str) -> pa.Table:
        """Return the net content of a revision stream: the rows that were put out more often than taken back.

        Rows are in the order of their first sight, without the column of changes; of a plain stream they are all
        there is.  O(rows).
        """
        schema, table = self.schemas[sink], self.results[sink]
        if schema.change is None:
            return table
        rows = table.select(schema.plain().names).combine_chunks()
        index = GroupIndex(rows.schema.types)
        slots = index.encode([column.combine_chunks() for column in rows.columns], rows.num_rows)
        counts = np.zeros(len(index), np.int64)
        np.add.at(counts, slots, table.column(schema.change).to_numpy())
        left = np.repeat(np.arange(len(index)), np.maximum(counts, 0))
        return pa.Table.from_arrays(index.keys(left), schema=rows.schema)

    def _repr_html_(self) -> str:
        """Return the first results of each sink, for a notebook."""
        shown = (
            table_html(
                f"{name}: {table.num_rows:,} rows", table.column_names, rows_of(table.slice(0, _SHOWN))
            )
            for name, table in self.results.items()
        )
        return "".join([f"<p>{self.tuples:,} tuples in {self.wall_s:.3g} s</p>", *shown])


class Collector:
    """Keeps the results of the sinks, each with its schema in ``schemas``."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        self._pages: dict[str, list[Page]] = {name: [] for name in schemas}
        self._emitted: dict[str, list[NDArray[np.int64]]] = {name: [] for name in schemas}
        self._waited: dict[str, list[NDArray[np.float64]]] = {name: [] for name in schemas}

    def __call__(self, result: Result) -> None:
        """Take a result."""
        if isinstance(page := result.message, Page):
            self._pages[result.sink].append(page)
            self._emitted[result.sink].append(np.full(len(page), result.now))
            self._waited[result.sink].append(np.full(len(page), result.waited_s))

    def outcome(self, statistics: Statistics, tuples: int, wall_s: float, cpu_s: float) -> Outcome:
        """Return the results, and the figures of the run.  O(rows)."""
        return Outcome(
            {name: _table(schema, self._pages[name]) for name, schema in self._schemas.items()},
            {name: _joined(parts, np.int64) for name, parts in self._emitted.items()},
            {name: _joined(parts, np.float64) for name, parts in self._waited.items()},
            statistics,
            tuples,
            wall_s,
            cpu_s,
            self._schemas,
        )


def _table(schema: Schema, pages: list[Page]) -> pa.Table:
    return pa.Table.from_batches([page.batch for page in pages], schema=schema.fields)


def _joined(parts: list[NDArray[T]], dtype: type[T]) -> NDArray[T]:
    return np.concatenate(parts) if parts else np.empty(0, dtype)
