"""Versions: results of windows before they are final, and the changes that correct them.

    early     a page touched the window, its end has not been passed by the watermark, and the trigger ``early`` fires
    on_time   a watermark passes its end
    late      a page touched it, behind that, and the trigger ``late`` fires
    final     punctuation passes its end: the window is forgotten

A version leaves if the result differs from that of the last one.  Versions that are out are kept with their rows
(``version_table.py``) until they are final, so the row that is taken back is the one that was put out; those on time
that no tuple came behind follow from their windows, and are not kept.  Windows are read without being taken out or from
a copy that is closed (``reading.py``).  Sessions merge: versions of parts of a session are taken back with the version
that replaces them.  Of windows that are folded in time order, and of revision streams, versions are results as if the
watermark were punctuation (on time, late), or as if the stream had ended (early); one that is no result any more is
taken back.  A page is one moment: triggers are asked once a page and window.

Where no version comes early, a window of a grid that a watermark has passed has one version out, that on time, and as
long as no tuple comes to it, its rows follow from the window.  So it need not be kept a second time.  Right before the
first tuple that comes behind the watermark the version is *noted*: put into the table of versions.  Of most windows
none ever is.  A window in which there was no tuple on time is noted with the version -1: none is out.  Once a trigger
has fired rows follow from the window again; where nobody asks for numbers of versions, it leaves the table.  If the
trigger fires for every tuple, none comes there: windows are read before and behind the tuples of a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from oop_engine.core.groups.group_index import occurring
from oop_engine.core.operator import Emission
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, GroupWise, Linear, Punctuation, Watermark
from oop_engine.operators.slicing.revised.prompt import Prompt
from oop_engine.operators.slicing.revised.reading import Copies, Readable, Touched, closing_between, opened
from oop_engine.operators.slicing.revised.reviewing import EARLY, LATE, ON_TIME, Mask
from oop_engine.operators.slicing.revised.version_runs import Versioned
from oop_engine.operators.slicing.revised.version_table import taken
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.triggers import WindowView
from oop_engine.operators.values.columns import Integers

__all__ = ["Versions"]


class Versions(Prompt):
    """Which versions leave, and when: by pages, the watermark, the arrival clock, requests, punctuation."""

    def look(self, page: Page) -> Iterator[Emission]:
        """Fold the tuples of a page in, and put out the versions that triggers ask for."""
        if not len(page):
            return
        self._waiting.hear(page)
        page = self._asks.with_matches(page)
        if self._net is not None:
            self.add(page, page.times)
        times, slots = page.times, self._slots_of(page)
        if self._emit.early is None and not self._waiting.active and self._net is None:
            yield from self._look_behind(page, slots)
            return
        if self._net is None:
            self._fold(page, times, slots)
        else:
            self._make_room(page)
        yield from self._ask_about(Touched(times, slots), slots)
        if self._net is None:
            self._forget_dead()

    def _look_behind(self, page: Page, every: Integers) -> Iterator[Emission]:
        """Do so where windows ahead of the watermark need not be looked at; ``every``: the groups of tuples."""
        if self._prompt and not len(self._table):
            yield from self._answer(page, every)
            return
        times, slots, bounds = self._behind(page, every)
        if not times.size:
            self._fold(page, page.times, every)
            self._forget_dead()
            return
        windows = Touched(times, slots, bounds)
        self._note(self._read(self._lean, windows), self._expected)
        self._fold(page, page.times, every)
        yield from self._ask_about(windows, slots)
        self._forget_dead()

    def clock(self, now: int) -> Iterator[Emission]:
        """Learn that the arrival clock shows ``now``: put out the versions of windows that wait too long."""
        if self._waiting.active:
            self._waiting.tick(now)
            if (slots := occurring(self._waiting.columns[0], len(self._groups))).size:
                yield from self._ask_all(slots)

    def request(self, page: Page) -> Iterator[Emission]:
        """Put out versions of the groups that a page of requests names."""
        names = [name for name in self._by if name in page.schema.names]
        slots = np.arange(len(self._groups))
        if names and len(page):
            rows = page.batch.select(names)
            slots, _ = self._matching.of(GroupWise(rows, np.zeros(len(page), np.int64)))
        if slots.size and len(page):
            self._asks.asked = True
            yield from self._ask_all(occurring(slots, len(self._groups)))
            self._asks.asked = False

    def _ask_all(self, slots: Integers) -> Iterator[Emission]:
        self._note(self._read(self._lean, partial(opened, slots=slots)), self._expected)
        yield from self._ask_about(partial(opened, slots=slots), slots)

    def _ask_about(self, windows: Callable[[Readable], WindowStates], slots: Integers) -> Iterator[Emission]:
        """Put out the versions of ``windows``, and of those of ``slots`` that have to be read from copies."""
        yield from self._ask(self._read(self._in_place, windows))
        if self._copied:
            yield from self._ask_copies(occurring(slots, len(self._groups)))

    def _note(self, found: list[WindowStates], expected: Callable[[Integers], Integers]) -> None:
        """Put the versions on time of windows into the table, of those that the bounds ``expected`` have passed."""
        if not sum(some.slots.size for some in found):
            return
        windows = self._output.ordered(found)
        new = self._passed(windows, expected(windows.slots)) & ~self._known(windows)
        if not new.any():
            return
        windows = windows.take(np.flatnonzero(new))
        extents, counts = self._extents(windows), windows.states[self._counts[0]][0]
        timings, versions = np.full(counts.size, ON_TIME), np.zeros(counts.size, np.int64)
        state = np.zeros((counts.size, self._asks.width), np.int64)
        rows = self._rows_of(windows)
        if state.size:
            nothing = taken(self._table.none.rows, 0 * counts - 1)
            view = WindowView(
                counts, extents[2], extents[3], expected(windows.slots), rows, nothing, self._asks.schema,
                self._matches(windows), 0 * counts, asked=False,
            )  # fmt: skip
            state = self._asks.after(view, state, timings)
        self._table.put(Versioned(*extents, counts, versions, timings, state, rows))

    def _ask(self, found: list[WindowStates]) -> Iterator[Emission]:
        """Put out the versions of windows that triggers ask for."""
        if sum(some.slots.size for some in found):
            together = self._output.ordered(found)
            expected = self._expected(together.slots)
            timings = np.where(self._passed(together, expected), LATE, EARLY)
            yield from self._review(together, timings, expected, forced=False)

    def _ask_copies(self, slots: Integers) -> Iterator[Emission]:
        """Do so for the windows of some groups that have to be read from copies."""
        copies, linear = self._copies(), self._input.expected
        passed = copies.close(slots, self._expected(slots), linear)
        rest = []
        if self._emit.early is not None:
            rest = copies.close(slots, np.full(slots.size, FOREVER), FOREVER)
        found = [*passed, *rest]
        looked = partial(self._looked_at, slots)
        if not found:
            yield from self._take_back(looked)
            return
        timings = np.repeat([LATE, EARLY], [sum(f.slots.size for f in some) for some in (passed, rest)])
        together = WindowStates.joined([some._replace(starts=self._output.starts(some)) for some in found])
        expected = self._expected(together.slots)
        yield from self._review(together, timings, expected, forced=False, looked=looked)

    def _looked_at(self, asked: Integers, slots: Integers, numbers: Integers, ends: Integers) -> Mask:
        """Tell which windows are among those that were read from copies, when the groups ``asked`` were."""
        looked: Mask = self._is_copied[numbers] & (np.isin(slots, asked) | self._whole[numbers])
        if self._emit.early is None:  # those that no bound has passed were not looked at
            looked &= ends <= self._expected(slots)
        return looked

    def _copies(self) -> Copies:
        groups, page = len(self._groups), None
        if self._net is not None:
            page = self._net.content()
            slots = self._slots_of(page)
            groups = len(self._groups)
            self._make_room(page)
        copies = Copies(self._make, self._copied, self.stores, self._output.definitions, groups)
        if page is not None and len(page):
            copies.add(page, slots)
        return copies

    def _make_room(self, page: Page) -> None:
        """Let stores know of all groups, also of those whose rows wait: they get no tuple yet."""
        for store in self.stores:
            store.add(page.slice(0, 0), page.times[:0], page.times[:0], len(self._groups))

    def take(self, punctuation: Punctuation) -> Iterator[Emission]:
        """Put out the versions that a watermark asks for, or those that punctuation makes final."""
        if not isinstance(punctuation, Watermark):
            yield from super().take(punctuation)  # which asks for the bounds before
            if isinstance(punctuation, Linear | GroupWise) and self._is_of_groups(punctuation):
                self._input.advance(0, punctuation)
        elif self._is_of_groups(punctuation.of):
            if isinstance(punctuation.of, Linear) and not self._input.groups:
                linear = self._input.expected
                self._input.advance(0, punctuation)
                yield from self._on_time(None, linear, self._input.expected, linear)
            else:
                yield from self._of_groups(punctuation)
            for grown in self._progress.advance(0, Watermark(self._stamped(punctuation.of))):
                yield 0, grown

    def _is_of_groups(self, bound: Linear | GroupWise) -> bool:
        return isinstance(bound, Linear) or set(bound.attributes) <= set(self._by)

    def _stamped(self, bound: Linear | GroupWise) -> Linear | GroupWise:
        """Return the least stamp of the windows that a watermark has not passed."""
        if isinstance(bound, Linear):
            return Linear(min(store.least_stamp(bound.below) for store in self.stores))
        none = np.empty(0, np.int64)
        least = [store.least_stamps(none, none, bound.below) for store in self.stores]
        return GroupWise(bound.groups, np.minimum.reduce(least))

    def _of_groups(self, watermark: Watermark) -> Iterator[Emission]:
        """Do so where groups have bounds of their own, before or behind it."""
        slots, linear = np.arange(len(self._groups)), self._input.expected
        before = self._expected(slots)
        self._input.advance(0, watermark)
        expected = self._expected(slots)
        if (fallen := np.flatnonzero(expected < before)).size:  # groups that have ended are known no more
            self._note([opened(store, fallen) for store in self._lean], before.__getitem__)
        grown = np.flatnonzero(expected > before)
        yield from self._on_time(slots[grown], before[grown], expected[grown], linear)

    def _on_time(
        self, slots: Integers | None, before: Integers | int, expected: Integers | int, linear: int
    ) -> Iterator[Emission]:
        """Put out versions of windows of ``slots[i]`` that ``expected[i]`` has passed, and ``before[i]`` had not.

        ``slots`` None: of all groups, whose bounds are one number.  ``linear``: the bound of the stream before.
        """
        grown = expected > before
        if not self._emit.on_time or not (grown if isinstance(grown, bool) else grown.any()):
            return
        found: list[WindowStates] = []
        if self._lean:
            closing = partial(closing_between, slots=slots, after=before, until=expected)
            windows = self._output.ordered(self._read(self._lean, closing))
            noted = len(self._table) > 0
            if noted and (known := self._known(windows)).any():  # of a group that had ended, and goes on
                found, windows = [windows.take(np.flatnonzero(known))], windows.take(np.flatnonzero(~known))
            for page in self._first(windows, ON_TIME):
                yield 0, page
        if self._others or self._copied:
            everyone = np.arange(len(self._groups)) if slots is None else slots
            low, high = (np.broadcast_to(bound, everyone.shape) for bound in (before, expected))
            found += self._not_lean(everyone, low, high, linear)
        if sum(some.slots.size for some in found):
            together = self._output.ordered(found)
            timings = np.full(together.slots.size, ON_TIME)
            yield from self._review(together, timings, self._expected(together.slots), forced=True)

    def _not_lean(
        self, slots: Integers, before: Integers, expected: Integers, linear: int
    ) -> list[WindowStates]:
        """Return such windows of the other stores: read in place, and from copies."""
        found = self._read(self._others, partial(closing_between, slots=slots, after=before, until=expected))
        most = int(expected.max(initial=self._input.expected))
        if self._copied and (self._net is not None or any(self.stores[n].due(most) for n in self._copied)):
            copies = self._copies()
            copies.close(slots, before, linear)
            found += copies.close(slots, expected, self._input.expected)
        return found
