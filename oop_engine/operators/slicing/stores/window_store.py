"""The window store: WID, a partial aggregate for each open (group, window) of one grid, or Paned-WID, by panes.

Tuples that do not fit the ring of panes, of a time far away or of groups too sparse, go to partial aggregates in a
table; a window may lie in both.  ``every``: a group has all windows from its first to its last one with a tuple; the
next one that may be empty exists only once a later tuple has come, so the punctuation stays behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Part
from oop_engine.operators.kernels import panes as kernels
from oop_engine.operators.kernels.partials import ALIVE, HIGH, LOW, LOWEST, NO_WINDOW, USED, once
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.checks import AT_ONCE, check_gap
from oop_engine.operators.slicing.output import Stamp, Stamps
from oop_engine.operators.slicing.panes import pane_windows
from oop_engine.operators.slicing.panes.open_spans import OpenSpans
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.partials import Partials, States
from oop_engine.operators.slicing.store import Reach, Store
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates
from oop_engine.operators.values.columns import Integers, begins_of, looked_up, new_rows, spread
from oop_engine.operators.windows import Extents
from oop_engine.system.knobs import knob

__all__ = ["WindowStore"]

_APART = knob(__name__, "_APART", 16)
"""Groups for each one whose windows are closed: with more, the others are not looked at."""
_MORE = knob(__name__, "_MORE", 8)  # room grows by an eighth: every pane has room for every group
_FLOOR = knob(__name__, "_FLOOR", 1 << 23)  # bytes: a rectangle so small may be as empty as it likes
_SPARSE = knob(__name__, "_SPARSE", 16)  # cells of the rectangle for each one in use: then groups are sparse
_FEW = knob(__name__, "_FEW", 500)
"""Cells; fewer are sooner looked for group by group, unless all is added up."""
_ALL = knob(__name__, "_ALL", 64)  # groups that are sooner looked at than searched
_MARKS = knob(__name__, "_MARKS", 1 << 20)  # bytes: pairs of group and window that may be marked
_MANY = knob(__name__, "_MANY", 1000)  # tuples; fewer that do not fit tell nothing


class WindowStore:
    """Open windows of ``extents``, the definition ``number``; ``panes``: by panes, as far as they fit.

    ``still``: windows can be read at any time.  ``shared``: others put windows together from these.
    ``heir`` makes the store that takes over when groups turn out to be sparse: few panes of the rectangle are used, or
    most tuples do not fit it.
    """

    def __init__(
        self, number: int, extents: Extents, parts: Sequence[Part], stamp: Stamp,
        *, panes: bool, every: bool = False, heir: Callable[[], WindowStore] | None = None, still: bool = False,
        shared: bool = False,
    ) -> None:  # fmt: skip
        self.number, self.extents, self.parts, self.every = number, extents, parts, every
        self.by_spans = every  # spans tell which windows may leave
        self.stamps = Stamps([extents], stamp)
        self.partials = Partials(parts)
        self.opened = OpenSpans()
        self.panes = PaneRing(parts, extents, still=still, alone=not shared) if panes else None
        self._heir = heir
        self._seen = self._refused = 0  # tuples, and those that did not fit the ring
        self._leaves = False  # another store takes over before the next page
        self._most = 0  # panes in use at the last look
        self._ahead = NEVER  # the first window that no group has closed before the others

    @property
    def alive(self) -> int:
        return int(self.partials.counts[ALIVE])

    def state(self) -> State:
        partials, alive, _ = self.partials.counts.tolist()
        held = self.partials.nbytes + self.opened.nbytes + (self.partials.lists and self.partials.list_bytes)
        if self.panes is not None:
            partials, held = partials + self.panes.used, held + self.panes.nbytes
        return State(0, partials, alive, held)

    def counts(self) -> dict[str, int]:
        return {}

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        if groups > len(self.opened.of):
            self.grow(groups)
        if self.panes is None or not times.size:
            self.add_to_table(page, times, slots, *self.wids(page, times))
            return
        left = self.panes.add(page, times, slots, self.opened, self.partials.counts)
        self._seen, self._refused = self._seen + slots.size, self._refused + left.size
        if left.size:
            self.add_to_table(page.take(left), times[left], slots[left], *self.extents.wids(times[left]))
            if left.size > self.panes.used:  # it has the wrong panes: let it begin anew
                self.give_up_panes()

    def add_late(self, page: Page, times: Integers, slots: Integers, bounds: Integers) -> None:
        first, last = self.wids(page, times)
        self.add_to_table(page, times, slots, np.maximum(first, self.extents.closed_by(bounds)), last)

    def wids(self, page: Page, times: Integers) -> tuple[Integers, Integers]:
        """Return the first and the last window of each tuple."""
        return self.extents.wids(times)

    def grow(self, groups: int) -> None:
        """Make room for so many groups."""
        size = max(groups, len(self.opened.of) + len(self.opened.of) // _MORE)
        self.opened.grow(size)

    def add_to_table(
        self, page: Page, times: Integers, slots: Integers, first: Integers, last: Integers
    ) -> None:
        """Add tuples to the windows ``first`` to ``last`` (inclusive), a partial aggregate each."""
        try:
            self.partials.add(page, times, slots, self.opened, first, np.maximum(last - first + 1, 0))
        except SumOverflowError as error:
            raise self._overflow_in(error) from None

    def give_up_panes(self) -> None:
        """Move the panes to the table of windows, as they are now."""
        assert self.panes is not None
        low, high = self.opened.of.T
        alive = np.flatnonzero(low != NO_WINDOW)
        found = pane_windows.take(self.panes, alive, low[alive], high[alive] + 1)
        wids = self.extents.closed_by(found.ends) - 1
        try:
            self.partials.merge(found.slots, wids, found.states, self.opened)
        except SumOverflowError as error:
            raise self._overflow_in(error) from None
        self.panes.clear()

    def due(self, bound: int) -> bool:
        lowest = int(self.partials.counts[LOWEST])
        return lowest != NO_WINDOW and bound >= self.extents.origin + (lowest + 1) * self.extents.slide

    def close(self, slots: Integers | None, bounds: Integers | int) -> Iterable[WindowStates]:
        cuts = self.extents.closed_by(bounds)
        if slots is None:
            cut, (_, alive, lowest) = int(cuts), self.partials.counts.tolist()
            if lowest >= cut:
                return []
            if (ring := self._swept(lowest)) is not None:
                parts = pane_windows.take_all(ring, lowest, cut, alive, self.number)
                if parts is not None:
                    kernels.reopen_all(self.opened.of, self.opened.least, cut, self.partials.counts)
                    return parts
        by_group, (slots, cuts) = slots is not None, self._each(slots, cuts)
        some, low, stop, after = self._closing(slots, cuts, ahead=by_group)
        if not some.size:
            return []
        if self.every:
            return self._close_every(some, low, stop, slots[cuts == FOREVER])
        found = self.take(some, low, stop)
        self.reopen(some, after)
        return [found] if found.slots.size else []

    def forget(self, slots: Integers | None, bounds: Integers | int) -> None:
        """Forget the windows that ``close`` would take out, unread: in a table, or in panes that are ``still``.

        ``close`` by these bounds, or later ones, follows: it finds nothing there, and notes the windows that are open.
        """
        cuts, ring = self.extents.closed_by(bounds), self.panes
        if slots is None and ring is not None and not self.partials.counts[USED]:
            ring.forget_all(int(cuts))
            if ring.length > 1:  # panes are of windows that are still open, too
                kernels.reopen_all(self.opened.of, self.opened.least, int(cuts), self.partials.counts)
            return
        some, low, stop, after = self._closing(*self._each(slots, cuts), ahead=slots is not None)
        if ring is not None:
            ring.forget_windows(some, low, stop)
        if self.partials.counts[USED]:
            self.partials.remove(self.partials.find(some, low, stop, len(self.opened.of)))
        self.reopen(some, after)

    def between(self, slots: Integers | None, after: Integers | int, until: Integers | int) -> WindowStates:
        """Return the open windows of ``slots[i]`` that ``until[i]`` completes and ``after[i]`` does not.

        Each group is named once; None: all, by bounds that are numbers.  In panes that are ``still``, or a table.
        """
        low, stop = self.extents.closed_by(after), self.extents.closed_by(until)
        if slots is None:
            _, alive, lowest = self.partials.counts.tolist()
            if (ring := self._swept(max(lowest, int(low)))) is not None:
                read = pane_windows.read_all(ring, max(lowest, int(low)), int(stop), alive, self.number)
                if read is not None:
                    return read
            slots = self.opened.below(int(stop))
        sides = (np.ascontiguousarray(np.broadcast_to(one, slots.shape)) for one in (low, stop))
        room = np.empty((3, slots.size), np.int64)
        some, first, last = room[:, : kernels.between(self.opened.of, slots, *sides, room)]
        rows = (
            self.partials.find(some, first, last, len(self.opened.of))
            if self.partials.counts[USED]
            else some[:0]
        )
        if self.panes is None:
            return self.with_table(None, rows)
        return self.with_table(
            pane_windows.take(self.panes, some, first, last, self.number, forget=False), rows
        )

    def touched(self, times: Integers, slots: Integers, bounds: Integers | int) -> Callable[[], WindowStates]:
        """Return how to read the windows that tuples go into and ``bounds``, of each or all, complete.

        Of groups that are known by then; in panes that are ``still``, or a table.  O(windows), where few groups are far
        apart O(n log n).
        """
        first, last = self.extents.wids(times)
        cuts = np.atleast_1d(self.extents.closed_by(bounds))
        found, fits = once(slots, first, last, cuts, max(_MARKS, 8 * first.size))
        if not fits:
            at, wids = spread(first, np.maximum(np.minimum(last + 1, cuts) - first, 0))
            groups = slots[at]
            order = np.lexsort((groups, wids))
            found = np.stack([groups, wids])[:, order[new_rows(wids[order], groups[order])]]
        return partial(self._read, *found)

    def ending(self, slots: Integers, ends: Integers) -> WindowStates:
        """Return the open windows of ``slots[i]`` that end at ``ends[i]``, each named once; read as in ``between``."""
        wids = self.extents.closed_by(ends) - 1
        order = np.lexsort((slots, wids))
        return self._read(slots[order], wids[order])

    def _read(self, slots: Integers, wids: Integers) -> WindowStates:
        """Return the open windows ``wids[i]`` of ``slots[i]``, which are by number, then group, each once."""
        if self.panes is not None and self.panes.length > 1:  # panes of a window that has left may be there
            known = slots < len(self.opened.of)
            slots, wids = slots[known], wids[known]
            there = wids >= self.opened.of[slots, LOW]
            slots, wids = slots[there], wids[there]
        rows = self.partials.find(slots, wids, wids + 1, 0) if self.partials.counts[USED] else slots[:0]
        each = None if self.panes is None else pane_windows.read_each(self.panes, slots, wids, self.number)
        return self.with_table(each, rows)

    def _swept(self, lowest: int) -> PaneRing | None:
        """Return the panes if windows of all groups, from ``lowest`` on, may be put together by a sweep.

        So it is if all are there, with a tuple each, and no group has closed one of them before.
        """
        ring = self.panes
        if ring is None or self.every or self.partials.counts[USED] or lowest < self._ahead:
            return None
        return ring if ring.used > _FEW or (ring.summed and ring.length == 1) else None

    def _each(self, slots: Integers | None, cuts: Integers) -> tuple[Integers, Integers]:
        """Return groups, and the first window that each leaves open; None: those with one below, by one cut."""
        if slots is not None:
            return slots, cuts
        of = self.opened.of
        slots = self.opened.below(int(cuts)) if len(of) > _ALL else np.arange(len(of))
        each = np.empty(slots.size, np.int64)  # np.full takes twice as long
        each.fill(cuts)
        return slots, each

    def _closing(self, slots: Integers, cuts: Integers, *, ahead: bool) -> Integers:
        """Return int64 (4, n): who has windows below its cut, from which to which (exclusive), and the lowest then.

        ``ahead``: other groups may have some of these windows open still.
        """
        room = np.empty((4, slots.size), np.int64)
        found: Integers = room[:, : kernels.closing(self.opened.of, slots, cuts, *room)]
        if ahead and found.size:
            self._ahead = max(self._ahead, int(found[2].max()))
        return found

    def _close_every(
        self, slots: Integers, low: Integers, stop: Integers, over: Integers
    ) -> list[WindowStates]:
        """Close windows with and without a tuple; groups stay open behind their last one, but those ``over``."""
        found = self.take(slots, low, stop)
        of, wids = spread(low, stop - low)
        at = looked_up(found.slots, slots, np.cumsum(stop - low) - stop, 0)
        states = States(self.parts, of.size)
        states.put(at + self.extents.closed_by(found.ends) - 1, found.states)
        _, ends = self.extents.extent(wids)
        self.reopen(slots, np.where(np.isin(slots, over), NO_WINDOW, stop))
        return [WindowStates(slots[of], ends, states.columns, self.number)]

    def take(self, slots: Integers, low: Integers, stop: Integers) -> WindowStates:
        """Take out windows ``low[i]`` to ``stop[i]`` (exclusive) of ``slots[i]``; panes and table may both have one."""
        in_panes = None
        if self.panes is not None:
            in_panes = pane_windows.take(self.panes, slots, low, stop, self.number)
            if not self.partials.counts[USED]:
                return in_panes
        rows = self.partials.find(slots, low, stop, len(self.opened.of))
        found = self.with_table(in_panes, rows)
        self.partials.remove(rows)
        return found

    def with_table(self, in_panes: WindowStates | None, rows: Integers) -> WindowStates:
        """Return windows that panes have together with those in ``rows`` of the table."""
        if in_panes is not None and not rows.size:
            return in_panes
        of, wids = self.partials.owner(rows)
        ends, states = self.extents.extent(wids)[1], self.partials.states.take(rows)
        held = WindowStates(of, ends, states, self.number)
        return held if in_panes is None else self.united([in_panes, held])

    def united(self, found: Sequence[WindowStates]) -> WindowStates:
        """Return windows in order, the states of those that are there twice combined."""
        if any(some.starts is not None for some in found):
            found = [some._replace(starts=self.starts(some)) for some in found]
        together = WindowStates.ordered(found)
        numbers = np.broadcast_to(together.number, together.slots.shape)
        kept = begins_of(together.ends, numbers, together.slots)
        if kept.size == numbers.size:
            return together
        once = together.take(kept)
        try:
            states = self.partials.states.reduced(together.states, kept)
        except SumOverflowError as error:
            start, end = self.starts(once)[error.at], once.ends[error.at]
            raise WindowOverflowError(error.column, once.slots[error.at], start, end) from None
        return once._replace(states=states, in_order=True)

    def starts(self, found: WindowStates) -> Integers:
        """Return where windows start."""
        return found.ends - (self.extents.range or 0)

    def reopen(self, slots: Integers, low: Integers) -> None:
        """Note that the lowest open window of some groups is another now, or that there is none."""
        kernels.reopen(self.opened.of, self.opened.least, slots, low, self.partials.counts)

    def few(self, slots: Integers) -> bool:
        """Tell whether groups are so few that the others are not looked at."""
        return _APART * slots.size < len(self.opened.of)

    def least_stamp(self, bound: int) -> int:
        if self.every and self.alive:
            bound = min(bound, self.extents.origin + self.partials.lowest * self.extents.slide)
        return self.stamps.least(bound)

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        if self.every:
            low = self.opened.of[slots, LOW]
            some = np.flatnonzero(low != NO_WINDOW)
            bounds = bounds.copy()
            np.minimum.at(bounds, of[some], self.extents.origin + low[some] * self.extents.slide)
        return self.stamps.of_each(bounds)

    def most_until(self, bound: int, slots: Integers | None = None) -> float:
        if slots is not None and self.few(slots):
            return self._most_of(slots, bound)
        if self.by_spans:
            cut = float(int(self.extents.closed_by(bound)))
            return self.open_until(max(cut - self.partials.lowest, 0.0) * self.alive, bound)
        windows = int(self.partials.counts[USED])  # all of a table is in memory already
        if self.panes is not None and self.panes.used:
            windows += self.most_of(self.panes, bound)
        return float(windows)

    def open_until(self, most: float, bound: int) -> float:
        """Return how many windows end by ``bound``, where so many at most are too many for one step; else that number.

        O(blocks + groups of which some window ends, and those beside them).
        """
        if most <= AT_ONCE:
            return most
        return min(most, self._most_of(self.opened.below(int(self.extents.closed_by(bound))), bound))

    def _most_of(self, slots: Integers, bound: int) -> float:
        """Return how many windows some groups have open that end by ``bound``."""
        low, high = self.opened.of[slots].T
        behind = self._stop(np.full(slots.size, self.extents.closed_by(bound)), high)
        return float(np.maximum(behind.astype(float) - low.astype(float), 0).sum())

    def most_of(self, ring: PaneRing, bound: int) -> int:
        """Return how many windows of a ring can leave at most by ``bound``."""
        low = max(ring.low // ring.step, int(self.partials.counts[LOWEST]))
        behind, groups = (ring.high + ring.length) // ring.step, min(ring.groups, ring.used)
        if (behind - low) * groups > AT_ONCE:  # else all of them may
            behind = min(int(self.extents.closed_by(bound)), behind)
        return max(behind - low, 0) * groups

    def reach(self, slots: Integers | None, bounds: Integers | int) -> Reach:
        cuts = self.extents.closed_by(bounds)
        if self.every:  # a group may put out too many windows without a tuple
            of = np.arange(len(self.opened.of)) if slots is None else slots
            low, high = self.opened.of[of].T
            check_gap(self.extents, of, low, self._stop(cuts, high), self.state().partials)
        if self.by_spans:
            return self.reaching([(*self._between(cuts), self.alive)] if self.alive else [])
        return self.reaching([] if self.panes is None else [self.panes.reach])

    def _stop(self, cuts: Integers, high: Integers) -> Integers:
        """Return behind which windows groups put out none, by their cuts and highest windows."""
        return np.minimum(cuts, np.where(high == NEVER, high, high + 1))

    def reaching(self, spans_of: list[tuple[int, int, int]]) -> Reach:
        """Return the reach of windows from ... to (exclusive), of so many groups."""
        first, behind, groups = np.array(spans_of, np.int64).reshape(-1, 3).T
        origin, slide = self.extents.origin, self.extents.slide
        return origin + first * slide, origin + behind * slide, groups / slide

    def _between(self, cuts: Integers) -> tuple[int, int]:
        """Return the lowest open window, and the first one behind all that may leave.  O(groups)."""
        return self.partials.lowest, int(self.opened.of[:, HIGH].max(initial=NEVER + 1)) + 1

    def living(self, groups: int) -> NDArray[np.bool_]:
        return np.asarray(self.opened.of[:groups, LOW] != NO_WINDOW)

    def rename(self, kept: Integers, slots: Integers) -> None:
        self.opened = self.opened.kept(kept)
        self.partials.rename(slots)
        if self.panes is not None:
            self.panes.rename(slots, len(self.opened.of))

    def copied(self, slots: Integers) -> Store | None:
        return None

    def consider(self) -> None:
        of = self.panes
        if self._heir is None or of is None:
            return
        panes = of.high - of.low + 1 if of.used else 0  # a ring without tuples is saved without panes
        area = panes * of.groups  # there is room for more panes, at most as many again
        empty = area > max(_FLOOR // of.cell_bytes, _SPARSE * max(self._most, of.used))
        refused = self._refused > max(_MANY, self._seen / 2)
        self._most, self._seen, self._refused = of.used, 0, 0
        self._leaves = empty or refused

    def successor(self) -> Store:
        return self if self._heir is None or not self._leaves else self._heir().take_over(self)

    def take_over(self, before: WindowStore) -> Store:
        """Go on with the windows of another store; return this one."""
        self.partials, self.opened = before.partials, before.opened
        return self

    def save(self) -> dict[str, Any]:
        panes = None if self.panes is None else self.panes.save()
        held = {"partials": self.partials.save(), "panes": panes, "spans": self.opened.save()}
        looked = [self._most, self._seen, self._refused]
        return (
            held
            if self._heir is None
            else {**held, "adapted": False, "looked": looked, "leaves": self._leaves}
        )

    def load(self, saved: Saved, groups: int) -> Store:
        if self._heir is not None and saved.flag("adapted"):
            return self._heir().load(saved, groups)
        if self._heir is not None:
            looked = saved.part("looked")
            self._most, self._seen, self._refused = (looked.integer(i, least=0) for i in range(3))
            self._leaves = "leaves" in saved and saved.flag("leaves")
        self.partials.load(saved.part("partials"), groups)
        if self.panes is not None:
            self.panes.clear() if saved["panes"] is None else self.panes.load(saved.part("panes"))
        room = 0 if self.panes is None else self.panes.groups
        self.opened = OpenSpans.loaded(saved.part("spans"), groups, room)
        self.partials.note(self.opened.alive, self.opened.lowest)
        low = self.opened.of[:, LOW]
        self._ahead = int(low[low != NO_WINDOW].max(initial=NEVER))
        return self

    def _overflow_in(self, error: SumOverflowError) -> WindowOverflowError:
        """Return the error of an overflow in a row of the table."""
        (slot,), (wid,) = self.partials.owner(np.array([error.at]))
        (start,), (end,) = self.extents.extent(np.array([wid]))
        return WindowOverflowError(error.column, slot, start, end)
