"""Replaced: rows that replace earlier ones of their keys, or add to them, as the revision stream they stand for.

``Emit(mode="accumulating")`` puts new versions out alone, and ``mode="discarding"`` their differences to the last ones,
for sinks that know rows by their keys.  With the keys each such row is a pair of changes: the version before is taken
back, the new one is emitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.core.values.arrow_data import no_rows
from oop_engine.operators.slicing.tagger import ranks

__all__ = ["Replaced"]

Integers = NDArray[np.int64]
_CHANGE = "change of a row"


class Replaced:
    """The last row of each key of a stream of ``schema``; ``adds``: the columns that are differences.

    ``revised`` is the schema of the revision stream.
    """

    def __init__(self, schema: Schema, keys: Sequence[str], adds: Sequence[str] = ()) -> None:
        fields = pa.schema([*schema.fields, (_CHANGE, pa.int8())])
        self.revised = Schema(fields, schema.progressing, schema.unit, _CHANGE)
        self._keys, self._adds = list(keys), list(adds)
        self._index = GroupIndex([schema.type_of(name) for name in keys])
        self._rows = no_rows(schema.fields)  # the last of each key, by slot

    def changes(self, page: Page) -> Iterator[Page]:
        """Yield the changes that the rows of a page are.  O(rows + keys) a page."""
        slots = self._index.encode([page.column(name) for name in self._keys], len(page))
        turns = ranks(slots)  # of one key the rows of a page come one after the other
        for turn in range(int(turns.max(initial=-1)) + 1):
            rows = np.flatnonzero(turns == turn)
            yield self._replaced(slots[rows], page.batch.take(pa.array(rows)))

    def _replaced(self, slots: Integers, rows: pa.RecordBatch) -> Page:
        known = self._rows.num_rows
        there = slots < known
        before = self._rows.take(pa.array(slots[there]))
        for name in self._adds:
            last = self._rows.column(name).take(pa.array(np.where(there, slots, 0), mask=~there))
            at = rows.schema.get_field_index(name)
            rows = rows.set_column(
                at, rows.schema.field(at), pc.add(last.fill_null(0), rows.column(at).fill_null(0))
            )
        self._keep(slots, rows)
        both = pa.concat_batches([before, rows])
        changes = np.repeat(np.array([-1, 1], np.int8), [before.num_rows, rows.num_rows])
        batch = pa.RecordBatch.from_arrays([*both.columns, pa.array(changes)], schema=self.revised.fields)
        return Page(self.revised, batch)

    def _keep(self, slots: Integers, rows: pa.RecordBatch) -> None:
        at = np.arange(len(self._index))
        at[slots] = self._rows.num_rows + np.arange(slots.size)
        self._rows = pa.concat_batches([self._rows, rows]).take(pa.array(at))
