"""Asked triggers: those of an ``Emit``, asked about windows; and the columns that they need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Count, Part
from oop_engine.operators.slicing.closing import Integers
from oop_engine.operators.triggers import AfterDelay, AfterMatch, Emit, Trigger, WindowView
from oop_engine.operators.values.expressions import evaluate, mask_of

__all__ = ["AskedTriggers"]

Mask = NDArray[np.bool_]
_EARLY, _LATE = 0, 2  # timings


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
                fires |= (timings == timing) & trigger.fires(view, part)
        return fires

    def after(self, view: WindowView, state: Integers, timings: Integers) -> Integers:
        """Return the state of triggers of windows that fire; a trigger was asked where the timing is its own."""
        parts = zip((_EARLY, _LATE), self._triggers, self._parts(state), strict=True)
        after: Integers = np.hstack([
            part if one is None else one.after(view, part, timings == timing) for timing, one, part in parts
        ])  # fmt: skip
        return after

    def _parts(self, state: Integers) -> list[Integers]:
        return [state[:, : self._first], state[:, self._first :]]
