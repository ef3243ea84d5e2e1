"""Last versions: of some windows the versions that are out, and pages that correct them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.operators.slicing.revised.version_table import Versioned, equal_rows
from oop_engine.operators.triggers import Emit

__all__ = ["TIMINGS", "ChangePages", "LastVersions", "same_rows"]

TIMINGS = ["early", "on_time", "late", "final"]

Integers = NDArray[np.int64]


class LastVersions:
    """Of ``windows`` the versions out: how many, tuples, last version, timing, state of triggers, the place of one.

    ``out``: places of versions in ``held``; ``of``: the window of each.  ``added``: which columns of state add up where
    windows merge; of the others the largest counts, bool (width,).
    """

    def __init__(
        self, windows: int, of: Integers, out: Integers, held: Versioned, added: NDArray[np.bool_]
    ) -> None:
        self.many, self.counts = np.zeros(windows, np.int64), np.zeros(windows, np.int64)
        self.versions, self.place = np.full(windows, -1), np.full(windows, -1)
        self.timings = np.zeros(windows, np.int64)
        self.state = np.zeros((windows, held.state.shape[1]), np.int64)
        np.add.at(self.many, of, 1)
        np.add.at(self.counts, of, held.counts[out])
        np.maximum.at(self.versions, of, held.versions[out])
        sums = self.state.copy()
        np.maximum.at(self.state, of, held.state[out])
        np.add.at(sums, of, held.state[out])
        self.state[:, added] = sums[:, added]
        self.place[of], self.timings[of] = out, held.timings[out]


def same_rows(
    rows: pa.RecordBatch, before: pa.RecordBatch, last: LastVersions, columns: int
) -> NDArray[np.bool_]:
    """Tell for which windows one version is out, and it has these results in the last ``columns``."""
    one: NDArray[np.bool_] = last.many == 1
    if one.all():
        return equal_rows(rows, before, columns)
    one[one] = equal_rows(rows.filter(pa.array(one)), before.filter(pa.array(one)), columns)
    return one


class ChangePages:
    """Pages of the schema ``out``, as ``emit`` asks for them; ``aggregated``: how many aggregates there are."""

    def __init__(self, emit: Emit, out: Schema, aggregated: int) -> None:
        self._emit, self._out, self._aggregated = emit, out, aggregated

    def first(self, rows: pa.RecordBatch, timing: int) -> Page:
        """Return a page of the first versions of windows."""
        if self._emit.mode == "discarding":
            nothing = [pa.nulls(rows.num_rows, kind) for kind in rows.schema.types]
            rows = _difference(
                rows, pa.RecordBatch.from_arrays(nothing, schema=rows.schema), self._aggregated
            )
        put_out = np.ones(rows.num_rows, np.int8) if self._emit.mode == "retracting" else None
        zeros = np.zeros(rows.num_rows if self._emit.info else 0, np.int64)
        return self._made(rows, zeros, zeros + timing, put_out)

    def page(
        self, gone: Versioned, new: Versioned, before: pa.RecordBatch, leaves: NDArray[np.bool_]
    ) -> Page:
        """Return a page of changes: rows that are taken back, then those that are put out.

        ``before``: the rows that were out, of the windows looked at; ``leaves``: of which of them a version is new.
        """
        if self._emit.mode == "retracting":
            rows = pa.concat_batches([gone.rows, new.rows])
            info = [np.concatenate([gone[i], new[i]]) for i in (5, 6)]
            changes = np.repeat([-1, 1], [gone.slots.size, new.slots.size]).astype(np.int8)
        else:
            rows, info, changes = new.rows, [new.versions, new.timings], None
            if self._emit.mode == "discarding":
                rows = _difference(rows, before.filter(pa.array(leaves)), self._aggregated)
        return self._made(rows, info[0], info[1], changes)

    def _made(
        self, rows: pa.RecordBatch, versions: Integers, timings: Integers, changes: NDArray[np.int8] | None
    ) -> Page:
        columns = list(rows.columns)
        if self._emit.info:
            timing = pa.DictionaryArray.from_arrays(pa.array(timings.astype(np.int8)), pa.array(TIMINGS))
            columns += [pa.array(versions.astype(np.int32)), timing]
        if changes is not None:
            columns.append(pa.array(changes))
        return Page(self._out, pa.RecordBatch.from_arrays(columns, schema=self._out.fields))


def _difference(rows: pa.RecordBatch, before: pa.RecordBatch, aggregated: int) -> pa.RecordBatch:
    """Return rows with the last ``aggregated`` columns as the difference to those before."""
    plain = rows.num_columns - aggregated
    columns = rows.columns[:plain]
    for now, last in zip(rows.columns[plain:], before.columns[plain:], strict=True):
        columns.append(pc.subtract(now.fill_null(0), last.fill_null(0)))
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)
