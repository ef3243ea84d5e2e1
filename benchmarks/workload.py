"""Workload: a question, its data, what is right, the floor, and the graph that answers it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.data import Columns
from oop_engine import Graph, Page, Schema

__all__ = ["PAGE", "Workload", "pages_of", "values"]

PAGE = 65_536


class Workload(ABC):
    """A question that is asked of every contender.

    Results are columns: ``keys``, which tell the rows apart, and one that is compared.
    ``rows``: of the full run.  ``schema``: of the stream, or of each of the streams.
    """

    question: ClassVar[str]
    rows: ClassVar[int] = 5_000_000
    keys: ClassVar[tuple[str, ...]]
    schema: ClassVar[Schema]
    ours: ClassVar[tuple[str, ...]] = ("floor", "engine", "in order")
    """Ways of ours to answer."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def data(self, rows: int) -> Columns:
        """Return the input, in order of arrival."""

    @abstractmethod
    def reference(self, columns: Columns) -> Columns:
        """Return what is right, computed in NumPy from the definition."""

    @abstractmethod
    def floor(self, columns: Columns) -> Callable[[], Columns]:
        """Return the single-purpose loop, with room made for its results."""

    @abstractmethod
    def graph(self) -> Graph:
        """Return the query."""

    def feed(self, columns: Columns, page: int) -> Iterator[tuple[str, Page]]:
        """Yield the source and the next page (at most ``page`` rows) of the input."""
        for cut in pages_of(self.schema, columns, page):
            yield "tuples", cut

    @abstractmethod
    def results(self, found: dict[str, pa.Table]) -> Columns:
        """Return the results of the graph, a table for each sink, as columns."""


def pages_of(schema: Schema, columns: Columns, page: int) -> Iterator[Page]:
    """Cut ``columns`` into pages of ``page`` rows, which share their memory."""
    arrays = [pa.array(columns[field.name]).cast(field.type) for field in schema.fields]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema.fields)
    for start in range(0, batch.num_rows, page):
        yield Page(schema, batch.slice(start, page))


def values(table: pa.Table, name: str) -> NDArray[Any]:
    """Return a column as NumPy has it; times are int64."""
    column = table.column(name)
    found: NDArray[Any] = (
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    ).to_numpy()
    return found
