"""The rows a window join emits: pairs, and tuples alone with nulls in place of the other side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.operators.joining.index import PAGE_ROWS
from oop_engine.operators.joining.terms import JoinTerms

__all__ = ["JoinOutput", "in_pages"]


class JoinOutput:
    """Rows of the terms over two ``inputs``."""

    def __init__(self, terms: JoinTerms, inputs: tuple[Schema, Schema]) -> None:
        self._inputs = inputs
        self._pairs = terms.kind.pairs
        self._full = all(terms.kind.alone)
        joins = self._pairs or terms.residual is not None
        self._fields = terms.pair_schema(*inputs).fields if joins else pa.schema([])

    def pairs(self, left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
        """Return joined tuples, row by row."""
        columns = [*left.columns, *right.columns]
        if self._full:
            earlier = np.minimum(
                *(Page(schema, b).times for schema, b in zip(self._inputs, (left, right), strict=True))
            )
            columns.insert(0, self._time(earlier))
        return pa.RecordBatch.from_arrays(columns, schema=self._fields)

    def alone(self, side: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return tuples of a side (0: left, 1: right) that have matched nothing."""
        if not self._pairs:
            return batch
        nulls = [pa.nulls(batch.num_rows, field.type) for field in self._inputs[1 - side].fields]
        columns = [*batch.columns, *nulls] if side == 0 else [*nulls, *batch.columns]
        if self._full:
            columns.insert(0, self._time(Page(self._inputs[side], batch).times))
        return pa.RecordBatch.from_arrays(columns, schema=self._fields)

    def _time(self, times: NDArray[np.int64]) -> pa.Array:
        return pa.array(times).cast(self._fields.field(0).type)


def in_pages(batches: Iterable[pa.RecordBatch | Page]) -> Iterator[pa.RecordBatch | Page]:
    """Yield all rows in batches of at most ``PAGE_ROWS``: small ones together, large ones and pages not copied."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if isinstance(batch, Page):
            yield batch
            continue
        if rows and rows + batch.num_rows > PAGE_ROWS:
            yield _together(waiting)
            waiting, rows = [], 0
        for begin in range(0, batch.num_rows - PAGE_ROWS + 1, PAGE_ROWS):
            yield batch.slice(begin, PAGE_ROWS)
        if left := batch.num_rows % PAGE_ROWS:
            waiting.append(batch if left == batch.num_rows else batch.slice(batch.num_rows - left))
            rows += left
    if rows:
        yield _together(waiting)


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
