"""Emitted: an ``Emit`` in action.

Its triggers, asked about windows, with the columns that they need and the windows that wait; the schema of versions of
results, and which windows and aggregates can have them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import GraphError
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Count, Part, Sum
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.revised.extents import Extents
from oop_engine.operators.triggers import AfterChange, AfterDelay, AfterMatch, Emit, Trigger, WindowView
from oop_engine.operators.triggers.basic import fired, state_after
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.values.expressions import evaluate, mask_of
from oop_engine.operators.windows import Over

__all__ = ["SLOT", "AskedTriggers", "Waiting", "versioned_schema"]

Mask = NDArray[np.bool_]
_EARLY, _LATE = 0, 2  # timings
SLOT, NUMBER, START, END, MOMENT = range(5)  # of windows that wait


class AskedTriggers:
    """The triggers of ``emit`` over tuples of ``given``.

    A predicate becomes a column of the tuples, null where it is not true, and the count of its values a partial
    aggregate of each window: so it is known of every window, whatever merges.  ``schema`` has those ``columns``;
    ``parts`` counts tuples, then them.
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
        counts = [Count(), *map(Count, self.columns)]
        self.parts: list[Part] = [part for count in counts for part in count.parts(self.schema)]

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

    ``columns`` int64 (5, n), rows ``SLOT`` to ``MOMENT``: windows that wait, and since when.
    ``active``: whether a trigger asks for it; else none waits.
    """

    def __init__(self, *, active: bool) -> None:
        self.active = active
        self.columns = np.empty((MOMENT + 1, 0), np.int64)
        self._clock: int | None = None  # the time that it showed last

    @property
    def now(self) -> int:
        """The moment: the latest arrival, or the time that the clock showed."""
        return 0 if self._clock is None else self._clock

    def hear(self, page: Page) -> None:
        """Learn of arrivals."""
        if self.active and page.arrival is not None:
            self.tick(int(page.arrival.max()))

    def tick(self, now: int) -> None:
        """Learn that the clock shows ``now``; windows that came when nobody knew wait from now on."""
        if self._clock is None:
            self.columns[MOMENT] = now
        self._clock = now if self._clock is None else max(now, self._clock)

    def since(self, windows: Extents, match: Callable[[Extents, Extents], Integers]) -> Integers:
        """Take windows out; return since when each of ``windows`` waits, now if it did not."""
        slots, numbers, starts, ends, moments = self.columns
        place = match(windows, (slots, numbers, starts, ends))
        known = place >= 0
        since = np.full(windows[0].size, self.now)
        np.minimum.at(since, place[known], moments[known])
        self.columns = self.columns[:, ~known]
        return since

    def put(self, windows: list[Integers]) -> None:
        """Let windows wait: slots, definitions, extents, moments."""
        if self.active:
            self.columns = np.hstack([self.columns, np.stack(windows)])

    def forget(self, looked: Callable[[Integers, Integers, Integers], Mask]) -> None:
        """Let go of windows, by slots, definitions and ends: they are there no more."""
        self.columns = self.columns[:, ~looked(*self.columns[[SLOT, NUMBER, END]])]

    def rename(self, slots: Integers) -> None:
        self.columns[SLOT] = slots[self.columns[SLOT]]

    def save(self) -> dict[str, Any] | None:
        return {"columns": self.columns, "clock": self._clock} if self.active else None

    def load(self, saved: Saved, groups: int) -> None:
        if self.active:
            saved = saved.part("waiting")
            self.columns = saved.integers("columns", (MOMENT + 1, None))
            self._clock = None if saved["clock"] is None else saved.integer("clock")
            Saved({"slots": self.columns[SLOT]}).integers("slots", (None,), least=0, below=groups)


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
        if emit.mode != "retracting" and (why := one.varying):
            msg = f"{place}: mode={emit.mode!r} is for windows whose extents are fixed by a grid (Tumbling, Sliding, "
            msg += f"Landmark); the extents of {name!r} {why}: use 'retracting'"
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
