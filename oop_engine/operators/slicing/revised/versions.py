"""Versions: results of windows before they are final, and the changes that correct them.

    early     a page touched the window, its end has not been passed by the watermark, and the trigger ``early`` fires
    on_time   a watermark passes its end
    late      a page touched it, behind that, and the trigger ``late`` fires
    final     punctuation passes its end: the window is forgotten

Windows are read without being taken out or from a copy that is closed (``reading.py``), and set against the versions
that are out (``review.py``).  Of windows that are folded in time order, and of revision streams, versions are results
as if the watermark were punctuation (on time, late), or as if the stream had ended (early).  A page is one moment:
triggers are asked once a page and window.
"""

# Composition `Closing` has the windows and their groups; it asks `Review` for the results of those that close.
#             `Reading` looks at windows, `Review` keeps the versions that are out, `Expected` the watermarks.
#             Each writes its own fields alone.

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from oop_engine.core.groups.group_index import occurring
from oop_engine.core.operator import Emission, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Linear, Punctuation, Watermark
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.slicing.closing import Closing
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.revised.emitted import SLOT, AskedTriggers
from oop_engine.operators.slicing.revised.reading import Expected, Look, Reading
from oop_engine.operators.slicing.revised.review import EARLY, LATE, ON_TIME, Mask, Review
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.triggers import Emit
from oop_engine.operators.values.columns import Integers

__all__ = ["Versions"]


class Versions:
    """Which versions ``emit`` puts out, and when: by pages, the watermark, the arrival clock, requests, punctuation.

    ``make`` makes the stores for a schema and columns to read: those of the triggers are among them.  ``out`` is the
    schema of versions.
    """

    def __init__(
        self, output: Output, schema: Schema, by: tuple[str, ...],
        make: Callable[[Schema, Sequence[str]], Sequence[Store]], emit: Emit, out: Schema,
    ) -> None:  # fmt: skip
        self._output, self._by, self._emit = output, by, emit
        self._asks = AskedTriggers(emit, schema)
        output.add_parts(self._asks.parts)
        make_all = partial(make, self._asks.schema.plain(), self._asks.columns)
        self.closing = Closing(output, self._asks.schema, by, make_all())
        self._expected = Expected(self.closing.groups, by)
        self._reading = Reading(self.closing, make_all, output.definitions)
        self._review = Review(
            output, self.closing.groups, self._asks, emit, out, self._reading, self._expected
        )
        self.closing.revised_by(self._review)
        self._whole = np.array([one.whole_stream for one in output.definitions])

    def state(self) -> State:
        """Return the state: that of the windows, and a partial aggregate for each version."""
        tuples, partials, groups, nbytes = self.closing.state()
        nbytes += self._review.table.nbytes + self._expected.bounds.nbytes
        return State(tuples, partials + len(self._review.table), groups, nbytes)

    def look(self, page: Page) -> Iterator[Page]:
        """Fold the tuples of a page in, and put out the versions that triggers ask for."""
        if not len(page):
            return
        self._review.waiting.hear(page)
        page = self._asks.with_matches(page)
        if self.closing.net is not None:
            self.closing.add(page, page.times)
            yield from self._ask_copies(self._reading.slots_of(page))
            return
        slots = self.closing.groups.encode_page(page, self.closing.by)
        kept, bounds = None, self._expected.bounds
        if self._review.prompt and not bounds.groups:
            kept = self._reading.kept(bounds.expected, page.rows)
        if kept is not None:
            self.closing.fold(page, page.times, slots)
            touched = partial(self._touched, page, slots)
            yield from self._review.corrected(
                *self._reading.changed(kept, bounds.expected, touched), grown=True
            )
        elif (seen := self._looked_at(page, slots))[0].size:
            yield from self._fold(page, slots, *seen)
        else:
            self.closing.fold(page, page.times, slots)
        self.closing.forget_dead()

    def _touched(self, page: Page, slots: Integers) -> tuple[list[Look], list[Look]]:
        return self._reading.touched(*self._looked_at(page, slots))

    def _looked_at(self, page: Page, slots: Integers) -> tuple[Integers, Integers, Integers | int]:
        """Return times, groups and bounds (of each or all) of the tuples whose windows are looked at.

        All, by no bound; or those that come behind a watermark, or punctuation, where no window ahead has a version.
        """
        times, bounds = page.times, self._expected.bounds
        if self._emit.early is not None or self._asks.delays:
            return times, slots, FOREVER
        if bounds.groups:
            expected = self._expected(slots)
            behind = np.flatnonzero(times < expected)
            return times[behind], slots[behind], expected[behind]
        behind = np.flatnonzero(times < bounds.expected)
        return times[behind], slots[behind], bounds.expected

    def _fold(
        self, page: Page, slots: Integers, times: Integers, groups: Integers, bounds: Integers | int
    ) -> Iterator[Page]:
        """Fold tuples in; put out versions of windows that tuples at ``times`` go into, and of copied ones."""
        prompt = self._review.prompt
        grids, sessions = self._reading.touched(times, groups, bounds)
        before = self._reading.read(grids if self._review.lean else ())
        if not prompt:
            self._note(before, self._expected)
        self.closing.fold(page, page.times, slots)
        if prompt:
            was, now = self._output.ordered(before), self._output.ordered(self._reading.read(grids))
            yield from self._review.corrected(WindowStates.joined([was, now]), now.places_of(was))
        else:
            yield from self._ask([*grids, *sessions], groups)

    def clock(self, now: int) -> Iterator[Page]:
        """Learn that the arrival clock shows ``now``: put out the versions of windows that wait too long."""
        waiting = self._review.waiting
        if waiting.active:
            waiting.tick(now)
            if (slots := occurring(waiting.columns[SLOT], len(self.closing.groups))).size:
                yield from self._ask_all(slots)

    def request(self, page: Page) -> Iterator[Page]:
        """Put out versions of the groups that a page of requests names."""
        names = [name for name in self._by if name in page.schema.names]
        slots = np.arange(len(self.closing.groups))
        if names and len(page):
            rows = page.batch.select(names)
            slots, _ = self.closing.matching.of(GroupWise(rows, np.zeros(len(page), np.int64)))
        if slots.size and len(page):
            yield from self._ask_all(occurring(slots, len(self.closing.groups)), asked=True)

    def _ask_all(self, slots: Integers, *, asked: bool = False) -> Iterator[Page]:
        grids, sessions = self._reading.between(slots, NEVER, FOREVER)
        self._note(self._reading.read(grids if self._review.lean else ()), self._expected)
        yield from self._ask([*grids, *sessions], slots, asked=asked)

    def _note(self, found: list[WindowStates], expected: Callable[[Integers], Integers]) -> None:
        """Put the versions on time of windows into the table, of those that the bounds ``expected`` have passed."""
        if any(some.slots.size for some in found):
            windows = self._output.ordered(found)
            self._review.note(windows, expected(windows.slots))

    def _ask(self, looks: list[Look], slots: Integers, *, asked: bool = False) -> Iterator[Page]:
        """Put out the versions that triggers ask for: of windows in sight, and of those of ``slots`` that are copied.

        ``asked``: a request is being answered.
        """
        found = self._reading.read(looks)
        if any(some.slots.size for some in found):
            windows = self._output.ordered(found)
            expected = self._expected(windows.slots)
            timings = np.where(self._review.passed(windows, expected), LATE, EARLY)
            yield from self._review.review(windows, timings, expected, asked=asked)
        if self._reading.copied:
            yield from self._ask_copies(slots, asked=asked)

    def _ask_copies(self, slots: Integers, *, asked: bool = False) -> Iterator[Page]:
        """Do so for the windows of some groups that have to be read from copies."""
        slots = occurring(slots, len(self.closing.groups))
        copies, rest = self._reading.copies(slots), list[WindowStates]()
        passed = copies.close(slots, self._expected(slots), self._expected.bounds.expected)
        if self._emit.early is not None:
            rest = copies.close(slots, np.full(slots.size, FOREVER), FOREVER)
        found, looked = [*passed, *rest], partial(self._is_looked_at, slots)
        if not found:
            yield from self._review.take_back(looked)
            return
        timings = np.repeat([LATE, EARLY], [sum(f.slots.size for f in some) for some in (passed, rest)])
        windows = WindowStates.joined([some._replace(starts=self._output.starts(some)) for some in found])
        expected = self._expected(windows.slots)
        yield from self._review.review(windows, timings, expected, asked=asked, looked=looked)

    def _is_looked_at(self, asked: Integers, slots: Integers, numbers: Integers, ends: Integers) -> Mask:
        """Tell which windows are among those that were read from copies, when the groups ``asked`` were."""
        looked: Mask = np.isin(numbers, self._reading.copied) & (np.isin(slots, asked) | self._whole[numbers])
        if self._emit.early is None:  # those that no bound has passed were not looked at
            looked &= ends <= self._expected(slots)
        return looked

    def take(self, punctuation: Punctuation) -> Iterator[Emission]:
        """Put out the versions that a watermark asks for, or those that punctuation makes final."""
        if not isinstance(punctuation, Watermark):
            yield from self.closing.take(punctuation)  # which asks for the bounds before
            if isinstance(punctuation, Linear | GroupWise) and self._is_of_groups(punctuation):
                self._expected.bounds.advance(0, punctuation)
        elif self._is_of_groups(punctuation.of):
            for page in self._of_watermark(punctuation):
                yield 0, page
            for grown in self.closing.progress.advance(0, Watermark(self._stamped(punctuation.of))):
                yield 0, grown

    def _is_of_groups(self, bound: Linear | GroupWise) -> bool:
        return isinstance(bound, Linear) or set(bound.attributes) <= set(self._by)

    def _stamped(self, bound: Linear | GroupWise) -> Linear | GroupWise:
        """Return the least stamp of the windows that a watermark has not passed."""
        stores, none = self.closing.stores, np.empty(0, np.int64)
        if isinstance(bound, Linear):
            return Linear(min(store.least_stamp(bound.below) for store in stores))
        least = [store.least_stamps(none, none, bound.below) for store in stores]
        return GroupWise(bound.groups, np.minimum.reduce(least))

    def _of_watermark(self, watermark: Watermark) -> Iterator[Page]:
        """Put out the versions on time, by one bound, or where groups have bounds of their own, before or behind it."""
        bounds = self._expected.bounds
        linear, one = bounds.expected, isinstance(watermark.of, Linear) and not bounds.groups
        slots = np.arange(0 if one else len(self.closing.groups))
        before = self._expected(slots)
        bounds.advance(0, watermark)
        if one:
            yield from self._on_time(None, linear, bounds.expected, linear)
            return
        expected = self._expected(slots)
        if self._review.lean and (fallen := np.flatnonzero(expected < before)).size:  # ended: known no more
            grids, _ = self._reading.between(fallen, NEVER, FOREVER)
            self._note(self._reading.read(grids), lambda slots: before[slots])
        grown = np.flatnonzero(expected > before)
        yield from self._on_time(slots[grown], before[grown], expected[grown], linear)

    def _on_time(
        self, slots: Integers | None, before: Integers | int, expected: Integers | int, linear: int
    ) -> Iterator[Page]:
        """Put out versions of windows of ``slots[i]`` that ``expected[i]`` has passed, and ``before[i]`` had not.

        ``slots`` None: of all groups, whose bounds are one number.  ``linear``: the bound of the stream before.
        """
        if not self._emit.on_time or not np.any(expected > before):
            return
        grids, sessions = self._reading.between(slots, before, expected)
        found = list[WindowStates]()
        if self._review.lean and grids:
            windows = self._output.ordered(self._reading.read(grids))
            if (known := self._review.known(windows)).any():  # of a group that had ended, and goes on
                found, windows = [windows.take(np.flatnonzero(known))], windows.take(np.flatnonzero(~known))
            yield from self._review.first(windows, ON_TIME)
        found += self._reading.read([*(() if self._review.lean else grids), *sessions])
        if self._reading.copied:
            everyone = np.arange(len(self.closing.groups)) if slots is None else slots
            low, high = (np.broadcast_to(bound, everyone.shape) for bound in (before, expected))
            found += self._closed_copies(everyone, low, high, linear)
        if any(some.slots.size for some in found):
            windows = self._output.ordered(found)
            timings = np.full(windows.slots.size, ON_TIME)
            yield from self._review.review(windows, timings, self._expected(windows.slots), forced=True)

    def _closed_copies(
        self, slots: Integers, before: Integers, expected: Integers, linear: int
    ) -> list[WindowStates]:
        """Return the windows of copies that close by the bounds ``expected``, and not by those ``before``."""
        below = self._expected.bounds.expected
        most = int(expected.max(initial=below))
        if self.closing.net is None and not any(
            self.closing.stores[n].most_until(None, most) for n in self._reading.copied
        ):
            return []
        copies = self._reading.copies(slots)
        copies.close(slots, before, linear)
        return copies.close(slots, expected, below)

    def save(self) -> dict[str, Any]:
        own = {"input": self._expected.bounds.save()}
        return self.closing.save() | self._review.save() | own

    def load(self, saved: Saved) -> None:
        self.closing.load(saved)
        self._review.load(saved)
        self._expected.bounds.load(saved.part("input"))
