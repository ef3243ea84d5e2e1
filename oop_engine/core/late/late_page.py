"""Late pages: columns that are made when they are read.

To copy columns is most of the work of a match, and an aggregate behind a join may read the time alone.  Of a page of
a few rows of numbers most of the cost is that of its Arrow objects, and an aggregate needs none of them
(``packed_rows``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.late.packing import Packing
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.system.knobs import knob

__all__ = ["FEW", "LateColumns", "LatePage", "packed_rows"]

FEW = knob(__name__, "FEW", 64)
"""The most rows that are packed."""

Ints = NDArray[np.int64]


class LateColumns:
    """Columns of ``schema``; ``make`` makes the one at a place, when it is first asked for."""

    def __init__(self, schema: Schema, make: Callable[[int], pa.Array]) -> None:
        self._schema, self._make = schema, make
        self._made: dict[int, pa.Array] = {}

    def column(self, name: str) -> pa.Array:
        """Return one column."""
        return self._at(self._schema.names.index(name))

    def batch(self) -> pa.RecordBatch:
        """Return all columns."""
        columns = [self._at(place) for place in range(len(self._schema.fields))]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema.fields)

    def _at(self, place: int) -> pa.Array:
        if place not in self._made:
            self._made[place] = self._make(place)
        return self._made[place]


class LatePage(Page):
    """``rows`` rows of ``schema``, without an arrival.

    ``make`` returns the column at a place of the schema, and ``make_times``, where that is sooner than to make the
    column, the progressing attribute, int64 (rows,).
    They are called when that is asked for, so they must not depend on a state that changes.  ``column`` makes one
    column, and ``batch`` all of them.

    >>> import pyarrow as pa
    >>> schema = Schema({"ts": pa.int64(), "n": pa.int64()}, "ts", "s")
    >>> page = LatePage(schema, 2, lambda place: pa.array([place, 7]), lambda: np.array([0, 7]))
    >>> page.times, page.column("n").to_pylist(), page.batch.num_rows
    (array([0, 7]), [1, 7], 2)
    """

    __slots__ = ("_make_times",)
    late: ClassVar = True

    def __init__(
        self,
        schema: Schema,
        rows: int,
        make: Callable[[int], pa.Array],
        make_times: Callable[[], Ints] | None = None,
    ) -> None:
        self.schema, self.arrival, self.reach, self._made = schema, None, None, {}
        self.columns, self.rows, self._make_times = LateColumns(schema, make), rows, make_times

    def __getattr__(self, name: str) -> Any:
        """Make the columns when they are first read; from then on they are an attribute as of any page.

        And nothing is kept that they were made of: of a few rows that is a hundred times as much.
        """
        if name == "batch":
            self.times, self.batch = self.times, self.columns.batch()
            self.columns = self.batch
            del self._make_times
            return self.batch
        if name == "_progressing":
            self._progressing = self.column(self.schema.progressing)
            return self._progressing
        if name == "times" and self._make_times is not None:
            self.times = self._make_times()
            return self.times
        return super().__getattr__(name)  # type: ignore[misc]

    def __reduce__(self) -> Any:
        return Page, (self.schema, self.batch)

    def settled(self) -> Page:
        """Return a page of the same rows that holds its columns, and nothing that they were to be made of."""
        return Page(self.schema, self.batch)


class _PackedRows(LatePage):
    """A few rows of numbers."""

    __slots__ = ("_packed", "_packing")
    whole: ClassVar = True

    def __init__(self, schema: Schema, packing: Packing, packed: list[bytes], rows: int) -> None:
        name, own = schema.progressing, schema.times_are_int64
        times = partial(packing.numbers, packed, name) if own else partial(_widened, packing, packed, name)
        super().__init__(schema, rows, partial(packing.column, packed), times)
        self._packing, self._packed = packing, packed

    def numbers(self, name: str) -> NDArray[Any] | None:
        return self._packing.numbers(self._packed, name)


def _widened(packing: Packing, packed: list[bytes], name: str) -> Ints:
    return packing.numbers(packed, name).astype(np.int64)


def packed_rows(schema: Schema, rows: Sequence[Sequence[Any]]) -> Page | None:
    """Return a page of 1 to ``FEW`` rows, of values in the order of the columns; None where ``Page.of`` has to judge.

    >>> page = packed_rows(Schema({"ts": pa.int64(), "v": pa.float64()}, "ts", "s"), [(3, 0.5)])
    >>> page.times, page.numbers("v"), page.to_pylist()
    (array([3]), array([0.5]), [{'ts': 3, 'v': 0.5}])
    """
    packing = schema.packing
    if packing is None or not 1 <= len(rows) <= FEW or (packed := packing.packed(rows)) is None:
        return None
    return _PackedRows(schema, packing, packed, len(rows))
