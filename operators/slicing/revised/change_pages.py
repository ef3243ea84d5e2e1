"""Change pages: the schema of versions of results, which windows and aggregates can have them, and their pages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.errors import GraphError
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Count, Sum
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.revised.version_table import Versioned
from oop_engine.operators.triggers import Emit
from oop_engine.operators.windows import Extents, Over

__all__ = ["TIMINGS", "ChangePages", "versioned_schema"]

TIMINGS = ["early", "on_time", "late", "final"]

Integers = NDArray[np.int64]


def versioned_schema(
    output: Output, emit: Emit, aggregates: Sequence[object], tuples: Schema, place: str
) -> Schema:
    """Return the schema of versions; raise ``GraphError`` if windows or aggregates cannot have them."""
    schema, names = output.schema, output.schema.names
    for name, one in zip(output.names, output.definitions, strict=True):
        if one.over is not Over.ATTRIBUTE:
            msg = (
                f"{place}: emit is for windows that a late tuple may change; those of {name!r} count tuples as they "
                "arrive, and are final once they are full: leave emit out, or count by time (order='time')"
            )
            raise GraphError(msg)
        if not isinstance(one, Extents) and emit.mode != "retracting":
            msg = (
                f"{place}: extents of {name!r} follow from tuples, so versions are taken back; got "
                f"mode={emit.mode!r}: use 'retracting'"
            )
            raise GraphError(msg)
    whole = all(isinstance(one, Count) or (isinstance(one, Sum) and _is_whole(schema, name))
                for name, one in zip(names[len(names) - len(aggregates) :], aggregates, strict=True))  # fmt: skip
    if emit.mode == "discarding" and not whole:
        msg = f"{place}: versions add up, mode='discarding', of Count and Sum of integers alone: use 'retracting'"
        raise GraphError(msg)
    for trigger in (emit.early, emit.late):
        if trigger is not None:
            trigger.check(names, tuples, place)
    more = [("version", pa.int32()), ("timing", pa.dictionary(pa.int8(), pa.string()))] if emit.info else []
    change = "change" if emit.mode == "retracting" else None
    more += [] if change is None else [(change, pa.int8())]
    if clash := [name for name, _ in more if name in names]:
        msg = f"{place}: emit adds the columns {', '.join(name for name, _ in more)}; there is {clash[0]!r}: rename it"
        raise GraphError(msg)
    fields = pa.schema([*schema.fields, *(pa.field(name, kind) for name, kind in more)])
    return Schema(fields, schema.progressing, schema.unit, change)


def _is_whole(schema: Schema, name: str) -> bool:
    return bool(pa.types.is_integer(schema.type_of(name)))


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
