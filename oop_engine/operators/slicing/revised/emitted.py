"""Emitted: an ``Emit`` in action.

Its triggers, asked about windows, with the columns that they need and the windows that wait; the schema and pages of
versions of results, and which windows and aggregates can have them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.errors import GraphError
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Count, Part, Sum
from oop_engine.operators.aggregates.base import column_of
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.revised.extents import Extents
from oop_engine.operators.slicing.revised.version_runs import Versioned
from oop_engine.operators.slicing.revised.version_table import before_each, same_results
from oop_engine.operators.triggers import AfterChange, AfterDelay, AfterMatch, Emit, Trigger, WindowView
from oop_engine.operators.triggers.basic import fired, state_after
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.values.expressions import evaluate, mask_of
from oop_engine.operators.windows import Extents as Grid
from oop_engine.operators.windows import Over
from oop_engine.operators.windows.intervals import Stretches

__all__ = ["TIMINGS", "AskedTriggers", "ChangePages", "Waiting", "versioned_schema"]

TIMINGS = ["early", "on_time", "late", "final"]

Mask = NDArray[np.bool_]
_EARLY, _LATE = 0, 2  # timings
_COLUMNS = 5  # of windows that wait
_CHANGES, _CHANGE = np.array([-1, 1], np.int8), pa.int8()


class AskedTriggers:
    """The triggers of ``emit`` over tuples of ``given``.

    A predicate becomes a column of the tuples, null where it is not true, and the count of its values a partial
    aggregate of each window: so it is known of every window, whatever merges.  ``schema`` has those ``columns``, and
    ``parts`` counts them.  ``asked``: a request is being answered.
    """

    def __init__(self, emit: Emit, given: Schema) -> None:
        self._triggers = emit.early, emit.late
        widths = [0 if one is None else one.width for one in self._triggers]
        self.width, self._first = sum(widths), widths[0]
        self.adds = np.array([a for one in self._triggers if one is not None for a in one.adds], np.bool_)
        self._matching = [one for one in emit.triggers if isinstance(one, AfterMatch)]
        self.delays = any(isinstance(one, AfterDelay) for one in emit.triggers)
        self.columns = [f"match {number}" for number in range(len(self._matching))]
        fields = pa.schema([*given.fields, *((name, pa.bool_()) for name in self.columns)])
        self.schema = Schema(fields, given.progressing, given.unit, given.change)
        self.parts: list[Part] = [part for name in self.columns for part in Count(name).parts(self.schema)]
        self.asked = False

    def with_matches(self, page: Page) -> Page:
        """Return a page with a column for each predicate: true, or null."""
        if not self._matching:
            return page
        given = [one.predicate for one in self._matching]
        found = evaluate("AfterMatch", given, [pa.bool_()] * len(given), page.batch)
        true = [pa.array(np.ones(len(page), np.bool_), mask=~mask_of(one)) for one in found]
        batch = pa.RecordBatch.from_arrays([*page.batch.columns, *true], schema=self.schema.fields)
        return page.with_batch(self.schema, batch)

    def matches(self, counts: Sequence[Integers]) -> dict[Trigger, Integers]:
        """Return by trigger how many tuples of each window match, by the counts that ``parts`` have."""
        return dict(zip(self._matching, counts, strict=True))

    def fires(self, view: WindowView, state: Integers, timings: Integers) -> Mask:
        """Tell for which windows the trigger of their timing fires."""
        fires = np.zeros(timings.size, np.bool_)
        for timing, trigger, part in zip((_EARLY, _LATE), self._triggers, self._parts(state), strict=True):
            if trigger is not None and (timings == timing).any():
                fires |= (timings == timing) & fired(trigger, view, part)
        return fires

    def after(self, view: WindowView, state: Integers, timings: Integers) -> Integers:
        """Return the state of triggers of windows that fire; a trigger was asked where the timing is its own."""
        parts = zip((_EARLY, _LATE), self._triggers, self._parts(state), strict=True)
        after: Integers = np.hstack([
            part if one is None else state_after(one, view, part, timings == timing) for timing, one, part in parts
        ])  # fmt: skip
        return after

    def _parts(self, state: Integers) -> list[Integers]:
        return [state[:, : self._first], state[:, self._first :]]


class Waiting:
    """Since when windows have tuples that are in no version, on the arrival clock (``AfterDelay``).

    Slots, definitions, extents and moments of windows that wait; ``clock``: the time that it showed last.  ``active``:
    whether a trigger asks for it; else none waits.
    """

    def __init__(self, *, active: bool) -> None:
        self.active = active
        self.columns = np.empty((_COLUMNS, 0), np.int64)
        self.clock: int | None = None

    @property
    def now(self) -> int:
        """The moment: the latest arrival, or the time that the clock showed."""
        return 0 if self.clock is None else self.clock

    def hear(self, page: Page) -> None:
        """Learn of arrivals."""
        if self.active and page.arrival is not None:
            self.tick(int(page.arrival.max()))

    def tick(self, now: int) -> None:
        """Learn that the clock shows ``now``; windows that came when nobody knew wait from now on."""
        if self.clock is None:
            self.columns[-1] = now
        self.clock = now if self.clock is None else max(now, self.clock)

    def since(self, windows: Extents, match: Callable[[Extents, Extents], Integers]) -> Integers:
        """Take windows out; return since when each of ``windows`` waits, now if it did not."""
        slots, numbers, starts, ends, moments = self.columns
        of = match(windows, (slots, numbers, starts, ends))
        known = of >= 0
        since = np.full(windows[0].size, self.now)
        np.minimum.at(since, of[known], moments[known])
        self.columns = self.columns[:, ~known]
        return since

    def put(self, columns: list[Integers]) -> None:
        """Let windows wait: slots, definitions, extents, moments."""
        if self.active:
            self.columns = np.hstack([self.columns, np.stack(columns)])

    def forget(self, looked: Callable[[Integers, Integers, Integers], NDArray[np.bool_]]) -> None:
        """Let go of windows, by slots, definitions and ends: they are there no more."""
        slots, numbers, _, ends, _ = self.columns
        self.columns = self.columns[:, ~looked(slots, numbers, ends)]

    def rename(self, slots: Integers) -> None:
        self.columns[0] = slots[self.columns[0]]

    def save(self) -> dict[str, Any] | None:
        return {"columns": self.columns, "clock": self.clock} if self.active else None

    def load(self, saved: Saved, groups: int) -> None:
        self.columns = saved.integers("columns", (_COLUMNS, None))
        self.clock = None if saved["clock"] is None else saved.integer("clock")
        Saved({"slots": self.columns[0]}).integers("slots", (None,), least=0, below=groups)


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
        if not isinstance(one, Grid) and emit.mode != "retracting":
            msg = f"{place}: mode={emit.mode!r} is for windows whose extents are fixed by a grid (Tumbling, Sliding, "
            msg += f"Landmark); {_why_no_grid(name, one)}: use 'retracting'"
            raise GraphError(msg)
    if emit.mode == "discarding":
        _check_adds_up(schema.fields, aggregates, place)
    for trigger in (emit.early, emit.late):
        if trigger is not None:
            trigger.check(names, tuples, place)
            for leaf in trigger.leaves():
                if isinstance(leaf, AfterChange):
                    leaf.check_type(schema.type_of(leaf.name), place)
    more = [("version", pa.int32()), ("timing", pa.dictionary(pa.int8(), pa.string()))] if emit.info else []
    change = "change" if emit.mode == "retracting" else None
    more += [] if change is None else [(change, pa.int8())]
    if clash := [name for name, _ in more if name in names]:
        msg = f"{place}: emit adds the columns {', '.join(name for name, _ in more)}; there is {clash[0]!r}: rename it"
        raise GraphError(msg)
    fields = pa.schema([*schema.fields, *(pa.field(name, kind) for name, kind in more)])
    return Schema(fields, schema.progressing, schema.unit, change)


def _why_no_grid(name: str, one: object) -> str:
    """Return why versions of a window may not be replaced by its key, or added to it."""
    if isinstance(one, Stretches):
        return f"the extents of {name!r} are given, and their versions are emitted as retractions alone"
    return (
        f"the extents of {name!r} follow from tuples, so a late one may end a window: it needs a retraction"
    )


def _check_adds_up(fields: pa.Schema, aggregates: Sequence[object], place: str) -> None:
    """Raise ``GraphError`` in the name of ``place`` unless differences of all results add up to their last versions."""
    for field, one in zip([*fields][len(fields) - len(aggregates) :], aggregates, strict=True):
        if isinstance(one, Count | Sum) and pa.types.is_integer(field.type):
            continue
        got = f"{type(one).__name__} ({field.type})"
        why = "whose rounding errors stay" if isinstance(one, Sum) else "whose differences do not add up"
        msg = f"{place}: mode='discarding' emits differences, which add up for Count and Sum of integers alone; got "
        msg += f"{field.name!r}: {got}, {why}: use 'retracting' or 'accumulating'"
        raise GraphError(msg)


class ChangePages:
    """Pages of results of the schema ``out``, as ``emit`` asks for them."""

    def __init__(self, emit: Emit, out: Schema, output: Output) -> None:
        self._emit, self._out = emit, out
        self._aggregated, self._counted = output.aggregated, output.counted
        self._progressing = out.names.index(out.progressing)

    def first(self, columns: list[pa.Array], timing: int) -> Page:
        """Return a page of the first versions of windows."""
        rows = len(columns[0])
        if self._emit.mode == "discarding":
            none = [column.take(pa.nulls(rows, pa.int64())) for column in columns]
            columns = _difference(columns, none, self._aggregated)
        changes = _CHANGES[1:].repeat(rows) if self._emit.mode == "retracting" else None
        info = (np.zeros(rows, np.int64), np.full(rows, timing)) if self._emit.info else ()
        return self._made(columns, *info, changes=changes)

    def page(
        self, gone: Versioned, new: Versioned, before: pa.RecordBatch, leaves: NDArray[np.bool_]
    ) -> Page:
        """Return a page of changes: rows that are taken back, then those that are put out.

        ``before``: the rows that were out, of the windows looked at; ``leaves``: of which of them a version is new.
        """
        if self._emit.mode == "retracting":
            info = [np.concatenate([gone[i], new[i]]) for i in (5, 6)]
        else:
            info = [new.versions, new.timings]
        rows = pa.concat_batches([gone.rows, new.rows]).columns
        return self._changed(rows, gone.slots.size, lambda: before.filter(pa.array(leaves)).columns, *info)

    def corrected(self, columns: list[pa.Array], at: Integers, *, grown: bool) -> Page | None:
        """Return a page of the changes of windows; None: there is none.

        The first rows are out; those behind are the windows as they are now, the ``at[i]``-th the one of row ``i``; of
        all others there is no version yet.  ``grown``: each window has more tuples now.
        """
        was, gone, leaves = columns, at.size, None
        differ = grown and self._counted
        if not differ and (same := same_results(columns, gone, at, self._aggregated)).any():
            leaves = np.ones(len(columns[0]) - gone, np.bool_)
            leaves[at[same]] = False
            some = np.flatnonzero(np.concatenate([~same, leaves]))
            columns, gone = [column.take(pa.array(some)) for column in columns], int(np.count_nonzero(~same))
        if not len(columns[0]):
            return None
        return self._changed(columns, gone, lambda: before_each(was, at, leaves))

    def _changed(
        self, columns: list[pa.Array], gone: int, last: Callable[[], list[pa.Array]], *info: Integers
    ) -> Page:
        """Return a page of ``columns``, of which the first rows, ``gone`` many, are taken back.

        ``last``: makes the columns of those that the rows behind replace.  ``info``: versions and timings.
        """
        if self._emit.mode == "retracting":
            changes = _CHANGES.repeat([gone, len(columns[0]) - gone])
            return self._made(columns, *info, changes=changes)
        columns = [column[gone:] for column in columns]
        if self._emit.mode == "discarding":
            columns = _difference(columns, last(), self._aggregated)
        return self._made(columns, *info)

    def _made(
        self, columns: list[pa.Array], *info: Integers, changes: NDArray[np.int8] | None = None
    ) -> Page:
        progressing = columns[self._progressing]
        if self._emit.info:
            versions, timings = info
            timing = pa.DictionaryArray.from_arrays(pa.array(timings.astype(np.int8)), pa.array(TIMINGS))
            columns = [*columns, pa.array(versions.astype(np.int32)), timing]
        if changes is not None:
            columns = [*columns, column_of(changes, _CHANGE)]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._out.fields)
        return Page(self._out, batch, _progressing=progressing)


def _difference(columns: list[pa.Array], before: list[pa.Array], aggregated: int) -> list[pa.Array]:
    """Return columns, the last ``aggregated`` ones as the difference to those before."""
    found = columns[:-aggregated]
    for now, last in zip(columns[-aggregated:], before[-aggregated:], strict=True):
        found.append(pc.subtract(now.fill_null(0), last.fill_null(0)))
    return found
