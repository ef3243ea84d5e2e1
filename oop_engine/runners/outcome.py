"""Outcome: the results and figures of a run, and their collector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import UnknownNameError, UsageError
from oop_engine.core.graphs.html import table_html
from oop_engine.core.graphs.statistics import LateTuples, Statistics
from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.groups.in_python import rows_of
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.schema import Schema
from oop_engine.runners.dispatch import Result
from oop_engine.system.shown import shown
from oop_engine.traces.table_writing import write_table

__all__ = ["BySink", "Collector", "OnlyTable", "Outcome", "in_a_table"]

T = TypeVar("T", bound=np.generic)
V = TypeVar("V")
_SHOWN = 20  # rows in a notebook
_SINKS, _REASONS, _NAME, _LINE = 20, 5, 40, 100  # the most sinks and reasons that are printed, and characters


class BySink(dict[str, V]):
    """A value for each sink; another name is an ``UnknownNameError`` with the names there are.

    >>> BySink({"counts": 1})["count"]
    Traceback (most recent call last):
    oop_engine.core.errors.UnknownNameError: there is no sink 'count'; the sinks are 'counts'; did you mean counts?
    """

    def __missing__(self, name: object) -> NoReturn:
        names = ", ".join(map(repr, self)) or "none: results were handed over as they came"
        msg = f"there is no sink {name!r}; the sinks are {names}{did_you_mean(name, self)}"
        raise UnknownNameError(msg)


class OnlyTable:
    """The results of one sink, wherever the graph ran: as a table, data frames or a file."""

    results: dict[str, pa.Table]

    @property
    def table(self) -> pa.Table:
        """The results of the only sink; raises ``UsageError`` if there are several, or results are not kept."""
        if len(self.results) != 1:
            there = f"there are the sinks {', '.join(self.results)}: take results[name]"
            msg = f"table: {there if self.results else 'results are not kept: they went to the sinks as they came'}"
            raise UsageError(msg)
        return next(iter(self.results.values()))

    def to_pandas(self) -> Any:
        """Return ``table`` as a data frame of pandas."""
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """Return ``table`` as a data frame of Polars, which must be installed."""
        import polars

        return polars.from_arrow(self.table)

    def write(self, path: str | Path) -> int:
        """Write ``table`` into a file in the format of its suffix; return the rows.  Raises ``TraceError``."""
        return write_table(path, self.table)


@dataclass(repr=False)
class Outcome(OnlyTable):
    """The results and figures of a run; printed, a table of its sinks.

    ``results``: a table a sink, rows in the order they came.  ``emitted``: for each row the
    virtual time when it came, int64, in the unit of the attribute; where pages went in as a whole (``flat_out``, and
    most queries over one file), the arrival of the first row of the page.  Behind an operator of several inputs it is,
    with ``on="local"``, exact to a page: never too early, and no later than the end of the pages that had begun to
    arrive by then; for pages of one moment each it is exact.  ``waited_s``: for each row
    the wall seconds since the punctuation that released it was made.  ``tuples``: how many went in.
    ``wall_s`` and ``cpu_s`` are the graph's own, without reading the feeds and compiling kernels; with
    asynchronous feeds (``arun``) the waiting for them is in ``wall_s``.  ``schemas``: of the sinks.
    ``end``: the virtual time at which the last source ended; results of that time may have waited for the end alone.
    ``refused``: by source and reason, how many rows were left out (see ``bad_rows`` of ``replay``).
    A name that is no sink's is a ``UsageError``, and a ``KeyError``, with the names there are.
    """

    results: dict[str, pa.Table]
    emitted: dict[str, NDArray[np.int64]]
    waited_s: dict[str, NDArray[np.float64]]
    statistics: Statistics
    tuples: int
    wall_s: float
    cpu_s: float
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    refused: dict[str, dict[str, int]] = field(default_factory=dict)
    end: int = NEVER

    def __repr__(self) -> str:
        """Return a table of the sinks, with late and refused rows and the seconds."""
        return in_a_table("Outcome", self.results, self.tuples, self.wall_s, self.late, self.refused)

    @property
    def late(self) -> LateTuples:
        """The tuples that came behind a bound: how many (``total``), and at which operators."""
        return self.statistics.late

    @property
    def behind(self) -> LateTuples:
        """The tuples that came behind punctuation inside the graph, which somebody in it has broken."""
        return self.statistics.behind

    def rows(self, sink: str) -> list[dict[str, Any]]:
        """Return the results of a sink as dictionaries, in the order they came, as ``Gathered`` and pages have them.

        Moments that Python has no value for are texts or integers (``core/groups/in_python.py``).  O(rows).
        """
        return rows_of(self.results[sink])

    def final(self, sink: str) -> pa.Table:
        """Return the net content of a revision stream: the rows that were emitted more often than retracted.

        Rows are in the order of their first sight, without the column of changes; of a plain stream they are all
        there is.  O(rows).
        """
        schema, table = self.schemas[sink], self.results[sink]
        if schema.change is None:
            return table
        rows = table.drop_columns([schema.change]).combine_chunks()
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

    def outcome(
        self,
        statistics: Statistics,
        tuples: int,
        wall_s: float,
        cpu_s: float,
        refused: dict[str, dict[str, int]],
        end: int = NEVER,
    ) -> Outcome:
        """Return the results, and the figures of the run.  O(rows)."""
        return Outcome(
            BySink({name: _table(schema, self._pages[name]) for name, schema in self._schemas.items()}),
            BySink({name: _joined(parts, np.int64) for name, parts in self._emitted.items()}),
            BySink({name: _joined(parts, np.float64) for name, parts in self._waited.items()}),
            statistics,
            tuples,
            wall_s,
            cpu_s,
            BySink(self._schemas),
            refused,
            end,
        )


def _table(schema: Schema, pages: list[Page]) -> pa.Table:
    return pa.Table.from_batches([page.batch for page in pages], schema=schema.fields)


def _joined(parts: list[NDArray[T]], dtype: type[T]) -> NDArray[T]:
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def in_a_table(
    title: str,
    results: Mapping[str, Any],
    rows: int,
    wall_s: float,
    late: LateTuples,
    refused: Mapping[str, Mapping[str, int]],
) -> str:
    """Return the sinks of a run with their rows, and the rows that are late or refused; at most 3,000 characters."""
    lines = [f"{title}: {rows:,} rows in {wall_s:.3g} s"]
    cut = {_cut(name, _NAME): table for name, table in list(results.items())[:_SINKS]}
    width = max(map(len, ["sink", *cut]))
    if cut:
        lines.append(f"  {'sink':{width}}  {'rows':>12}  columns")
    for name, table in cut.items():
        lines.append(f"  {name:{width}}  {table.num_rows:>12,}  {_cut(', '.join(table.column_names), 60)}")
    if len(results) > _SINKS:
        lines.append(f"  and {len(results) - _SINKS} more sinks")
    lines.append(f"  late: {late.total:,}" + (f" ({_cut(str(late), _LINE)})" if late.total else ""))
    total = sum(sum(reasons.values()) for reasons in refused.values())
    lines.append(f"  refused: {total:,}")
    reasons = [(source, *each) for source, rows in refused.items() for each in rows.items()]
    for source, reason, count in sorted(reasons, key=lambda each: -each[2])[:_REASONS]:
        lines.append(f"    {count:,} of {_cut(source, _NAME)}: {_cut(reason, _LINE)}")
    return "\n".join(lines)


def _cut(text: str, most: int) -> str:
    text = shown(text).replace("\n", " ")
    return text if len(text) <= most else f"{text[: most - 1]}…"
