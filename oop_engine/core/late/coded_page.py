"""Coded pages: text as codes and their texts, as files of columns store it, until it is read as text.

A file has each text once in many rows, and a key needs only the code of its text: to make texts of the codes, and codes
of the texts again, is most of the work of reading keys.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.late.late_page import LateColumns
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema

__all__ = ["CodedPage"]


class CodedPage(Page):
    """A page of ``schema`` whose columns are those of ``coded``; some of these are dictionaries of the schema's types.

    ``key`` returns a column as it is there; ``column`` makes texts of one, and ``batch`` of all.  Slices and rows that
    are taken stay coded.  The progressing attribute is no dictionary, and has no null.

    >>> import pyarrow as pa
    >>> schema = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
    >>> coded = pa.record_batch({"ts": pa.array([1, 2]), "k": pa.array(["a", "a"]).dictionary_encode()})
    >>> page = CodedPage(schema, coded)
    >>> page.key("k").type, page.column("k").to_pylist()
    (DictionaryType(dictionary<values=string, indices=int32, ordered=0>), ['a', 'a'])
    """

    __slots__ = ("_coded",)
    late: ClassVar = True

    def __init__(
        self, schema: Schema, coded: pa.RecordBatch, arrival: NDArray[np.int64] | None = None
    ) -> None:
        self.schema, self.arrival, self.reach, self._made = schema, arrival, None, {}
        self._coded, self.rows = coded, coded.num_rows
        self._progressing = coded.column(schema.progressing)
        self.columns = LateColumns(schema, partial(_decoded, coded))

    def __getattr__(self, name: str) -> Any:
        """Make all columns when they are first read together."""
        if name == "batch":
            self.batch = self.columns = self.columns.batch()
            return self.batch
        return super().__getattr__(name)  # type: ignore[misc]

    def __reduce__(self) -> Any:
        return Page, (self.schema, self.batch, self.arrival)

    def key(self, name: str) -> pa.Array:
        """Return one column, as codes if it has them."""
        return self._coded.column(name)

    def slice(self, start: int, stop: int) -> Page:
        """Return rows ``start`` to ``stop`` (exclusive), without copying."""
        arrival = None if self.arrival is None else self.arrival[start:stop]
        page = CodedPage(self.schema, self._coded.slice(start, stop - start), arrival)
        page.times = self.times[start:stop]
        return page

    def filter(self, mask: NDArray[np.bool_]) -> Page:
        """Return the rows where ``mask`` is true, in order."""
        arrival = None if self.arrival is None else self.arrival[mask]
        return CodedPage(self.schema, self._coded.filter(pa.array(mask)), arrival)

    def take(self, rows: NDArray[np.int64]) -> Page:
        """Return the rows of the given numbers, in that order."""
        arrival = None if self.arrival is None else self.arrival[rows]
        return CodedPage(self.schema, self._coded.take(pa.array(rows)), arrival)

    def without_arrival(self) -> Page:
        """Return the page as the inside of the graph sees it."""
        if self.arrival is None:
            return self
        page = CodedPage(self.schema, self._coded)
        page.times, page.reach = self.times, self.reach
        return page

    def owned(self) -> Page:
        """Return a page for one who keeps it: without the codes, which would be kept beside the texts."""
        return self.settled().owned()

    def settled(self) -> Page:
        """Return a page of the same rows that has its columns."""
        return Page(self.schema, self.batch, self.arrival)


def _decoded(coded: pa.RecordBatch, place: int) -> pa.Array:
    column = coded.column(place)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
