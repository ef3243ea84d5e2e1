"""Library sketches: how states are kept that are sketches of a library, as lists of the one sketch, in its bytes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.operators.aggregates import Arrays
from oop_engine.operators.aggregates.ragged import Ragged
from oop_engine.operators.aggregates.sort_keys import decoded
from oop_engine.operators.slicing.accumulator import register_accumulator
from oop_engine.operators.slicing.accumulators.lists import Lists, column_of, state_of
from oop_engine.operators.slicing.compiled import numbers, valid
from oop_engine.operators.values.columns import Integers, begins_of

__all__ = ["LibrarySketches"]


@register_accumulator("kll", "tdigest", "frequent")
class LibrarySketches(Lists):
    """Keeps a list of at most one sketch.  A call of Python a page and group, and one a merge."""

    flat = (pa.nulls(0, pa.binary()),)  # pa.array would load pandas, where it is installed

    def prepare(self, page: Page, times: Integers) -> Arrays:
        column = decoded(page.column(self.part.column or ""))
        values = column.drop_null()
        if self.part.kind != "frequent":
            values = numbers(values, pa.float64())
        return state_of(Ragged.of(valid(column).astype(np.int64), (values,), column.type))

    def add(self, state: Arrays, rows: Integers, inputs: Arrays) -> None:
        order = np.argsort(rows, kind="stable")
        values = column_of(inputs)[order].compact()
        rows = np.repeat(rows[order], values.lengths)
        starts = begins_of(rows)
        bounds = pairwise([*starts.tolist(), rows.size])
        made = [self._sketch(values.flat[0][lo:hi]) for lo, hi in bounds]
        column = column_of(state)
        fresh = self._listed(np.bincount(rows[starts], minlength=column.size), made)
        column.become(column_of(self.combine(state, state_of(fresh))) if column.values else fresh)

    def _sketch(self, values: Any) -> bytes:
        from oop_engine.operators.aggregates.library_sketches import empty_sketch

        sketch = empty_sketch(self.part.kind, int(self.part.parameter))
        if isinstance(values, np.ndarray):
            sketch.update(values.copy())  # it takes no array that is read only
        else:
            for pair in pc.value_counts(values).to_pylist():
                sketch.update(pair["values"], pair["counts"])
        return bytes(sketch.serialize())

    def reduce(self, state: Arrays, starts: Integers) -> Arrays:
        column = column_of(state).compact()
        counts = np.append(0, np.cumsum(column.lengths))
        first = np.append(starts, column.size)
        found = column.flat[0].to_pylist()
        runs = [found[lo:hi] for lo, hi in zip(counts[first[:-1]], counts[first[1:]], strict=True)]
        merged = [self._merged(run) for run in runs if run]
        return state_of(self._listed(np.array(list(map(bool, runs))), merged))

    def _merged(self, sketches: list[bytes]) -> bytes:
        if len(sketches) == 1:
            return sketches[0]
        from oop_engine.operators.aggregates.library_sketches import empty_sketch, sketch_of

        merged = empty_sketch(self.part.kind, int(self.part.parameter))
        for data in sketches:
            merged.merge(sketch_of(self.part.kind, data))
        return bytes(merged.serialize())

    def _listed(self, lengths: NDArray[Any], sketches: list[bytes]) -> Ragged:
        return Ragged.of(lengths.astype(np.int64), (pa.array(sketches, pa.binary()),), self.kind)

    def _checked(self, column: Ragged) -> Ragged:
        from oop_engine.operators.aggregates.library_sketches import sketch_of

        try:
            for data in column.flat[0].to_pylist():
                sketch_of(self.part.kind, data)
        except ValueError as error:
            raise SnapshotError(str(error)) from None
        if (column.lengths > 1).any():
            msg = "there must be one sketch at most"
            raise SnapshotError(msg)
        return column
