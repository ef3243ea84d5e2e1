"""The slice ring: partial aggregates of the slices that some definitions share, and how their windows leave.

Slices are kept as the panes of windows side by side: in a ring (``slicing/panes/pane_ring.py``), and those that do not
fit it, of a time far away or of groups too sparse, in a table.  Windows are put together from the ring's slices by
``operators/slicing/panes/slice_windows.py``; slices of the table are added to these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.kernels.partials import ALIVE, HIGH, LOW, LOWEST, NO_WINDOW
from oop_engine.operators.kernels.slices import SPAN_CUT, SPAN_DONE
from oop_engine.operators.slicing.checks import AT_ONCE
from oop_engine.operators.slicing.output import Output, Stamps
from oop_engine.operators.slicing.panes.open_spans import OpenGrid
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.panes.shared_slices import Slicing
from oop_engine.operators.slicing.panes.sleeping_groups import SleepingGroups
from oop_engine.operators.slicing.panes.slice_windows import Assembly, SliceWindows
from oop_engine.operators.slicing.stores.grid_cells import GridCells
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates, narrow
from oop_engine.operators.values.columns import Integers, by_slot, filled_up, rows_of, spread
from oop_engine.system.knobs import knob

__all__ = ["SliceRing"]

_SLICES = knob(__name__, "_SLICES", 1 << 14)  # looked at together, besides those of the longest window
_EACH = knob(__name__, "_EACH", 8)  # how much longer a slice of a group takes than of one among many
_SOME = knob(__name__, "_SOME", 32)  # groups that are worth looking at together
_FIRST = np.zeros(1, np.int64)  # the slot of the one group, where there is no key


class SliceRing:
    """Open slices of the groups, by slot: these are kept as windows side by side."""

    def __init__(self, output: Output, slicing: Slicing, assembly: Assembly = "auto") -> None:
        self.slicing, self._output = slicing, output
        self.ring = PaneRing(output.parts, slicing.base)
        self._grid = OpenGrid(0, slicing.base, output.stamp)
        self._cells = GridCells(self._grid, output.parts, self.ring, output.starts)
        self._spans, self._table = self._grid.spans, self._cells.table
        extents: list[Any] = [output.definitions[number] for number in slicing.shape[3].tolist()]
        self._stamps = Stamps(extents, output.stamp)
        self._done = np.full(0, NEVER)  # (groups,)  windows that end by here have left
        self._over = NEVER  # the same for all groups
        self._is_ahead = False  # whether windows of some group that end later have left
        self._sleeping = SleepingGroups(slicing)
        self._windows = SliceWindows(slicing, self.ring, assembly, grouped=output.grouped)
        self.least_stamp, self.living = self._stamps.least, self._spans.living

    @property
    def alive(self) -> int:
        return int(self._spans.counts[ALIVE])

    def state(self) -> State:
        own = self._windows.nbytes + self._done.nbytes + self._sleeping.nbytes
        return self._cells.state() + State(nbytes=own)

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        return self._stamps.of_each(bounds)

    def copied(self, slots: Integers) -> None:
        return None

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        """Add tuples to their slices; ``groups`` are known by now.  O(tuples), in kernels."""
        if groups > len(self._spans.of):
            self._spans.reserve(groups)
            self._done = filled_up(self._done, len(self._spans.of), NEVER)
        if self.slicing.gaps and not (inside := self.slicing.inside(times)).all():
            page, times, slots = page.filter(inside), times[inside], slots[inside]
        if not times.size:
            return
        try:
            left = self.ring.add(page, times, slots, self._spans)
            if left.size:
                self._cells.add_left(self.ring, page, times, slots, left)
        except WindowOverflowError as error:  # in a slice: say in which window
            window = self.slicing.window(self.slicing.cut(error.start))
            raise WindowOverflowError(error.column, error.slot, *window) from None
        self._windows.touch(times)
        self._sleeping.wake(slots)

    def add_late(self, page: Page, times: Integers, slots: Integers, bounds: Integers) -> None:
        self._done[slots] = np.maximum(self._done[slots], self.slicing.base.closed_by(bounds))
        self._is_ahead = True
        self.add(page, times, slots, len(self._spans))

    def most_until(self, slots: Integers | None, bounds: Integers | int) -> float:
        last = int(bounds if slots is None else np.asarray(bounds).max())
        lowest, cut = int(self._spans.counts[LOWEST]), self.slicing.cut(last)
        if lowest >= cut:
            return 0.0
        ring, longest, rate = self.ring, self.slicing.longest, self.slicing.rate
        windows = min(cut, ring.high + longest) - max(self._over, ring.low)
        in_ring = max(windows, 0) * ring.groups if ring.used else 0
        most: float = (in_ring + len(self._table) * longest) * rate
        if most > AT_ONCE and slots is not None:
            low, high = self._spans.of[slots].astype(float).T
            cuts = self.slicing.base.closed_by(bounds).astype(float)
            each = np.minimum(high + longest, cuts) - np.maximum(
                low, np.maximum(self._done[slots], self._over)
            )
            most = min(most, float(np.maximum(each, 0).sum() * rate))
        elif most > AT_ONCE and self._over > NEVER and last < FOREVER:
            groups = self._sleeping.closing(self._spans.of, self._groups_until(cut), self._over, cut)
            most = min(most, max(cut - self._over, 0) * groups * rate)
        if most > AT_ONCE and len(self._table):
            _, at = self._table.owner(self._table.used)
            each = np.minimum(at + longest, cut) - np.maximum(at, self._over)
            most = min(most, float(in_ring + np.maximum(each, 0).sum()) * rate)
        return max(most, 1.0)

    def close(self, slots: Integers | None, bounds: Integers | int) -> list[WindowStates]:
        if slots is not None:
            return self._close_some(slots, self.slicing.base.closed_by(bounds))
        cut = self.slicing.cut(int(bounds))
        if cut <= self._over:
            return []
        slots = self._groups_until(cut)
        found = self._close_alike(slots, cut) if slots.size else []
        self._sleeping.settle(self._spans.of, cut)
        self._over = cut
        self._is_ahead = self._is_ahead and bool((self._done > cut).any())
        return found

    def _groups_until(self, cut: int) -> Integers:
        """Return the groups with windows that close."""
        if len(self._spans.of) == 1 and not self._is_ahead:  # no key: to ask all groups would take longer
            return _FIRST[: int(self._spans.of[0, LOW] < cut)]
        return self._sleeping.until(self._spans.of, self._done if self._is_ahead else None, cut)

    def _close_some(self, slots: Integers, cuts: Integers) -> list[WindowStates]:
        low, done = self._spans.of[slots, LOW], np.maximum(self._done[slots], self._over)
        some = np.flatnonzero((low < cuts) & (low != NO_WINDOW) & (done < cuts))
        if not some.size:
            return []
        self._is_ahead = True
        self._windows.forget()
        return self._close_groups(slots[some], cuts[some], whole=False)

    def _close_alike(self, slots: Integers, cut: int) -> list[WindowStates]:
        """Close windows of all groups, at once where all close the same ones and have most of their slices."""
        first, last = self._reach(slots)
        first, last = max(first, self.ring.low), min(last, self.ring.high, cut - 1)
        ends = min(cut, last + self.slicing.longest)
        apart = self._is_ahead or len(self._table) or int(slots[-1]) >= self.ring.groups
        cuts = np.full(slots.size, cut)
        apart = apart or ends - max(first, self._over) > _SLICES
        if apart or (slots.size > 1 and not _full(*self._spans.of[slots].T)):
            return self._close_groups(slots, cuts, whole=not self._is_ahead)
        found = self._windows.of_all((first, last, self._over, cut)) if first <= last else []
        self._forget(slots, cuts)
        return found

    def _reach(self, slots: Integers) -> tuple[int, int]:
        """Return the lowest and the highest slice of some groups."""
        if slots.size == 1:
            low, high = self._spans.of[slots[0]].tolist()
            return low, high
        low, high = self._spans.of[slots].T
        return int(low.min()), int(high.max())

    def _close_groups(self, slots: Integers, cuts: Integers, *, whole: bool) -> list[WindowStates]:
        """Close windows of groups; ``whole``: the others have none that close."""
        done = np.maximum(self._done[slots], self._over)
        found = list(self._from_ring(slots, done, cuts, whole=whole))
        if len(self._table):
            found = self._with_table(found, slots, done, cuts)
        self._done[slots] = cuts
        self._forget(slots, cuts)
        return found

    def _from_ring(
        self, slots: Integers, done: Integers, cuts: Integers, *, whole: bool
    ) -> Iterator[WindowStates]:
        low, high = self.ring.low, self.ring.high
        inside = slots < self.ring.groups
        if not inside.all():
            slots, done, cuts = slots[inside], done[inside], cuts[inside]
        if high < low or not slots.size:
            return
        lowest, highest = self._spans.of[slots].T
        spans = np.stack([np.maximum(lowest, low), np.minimum(highest, high), done, cuts])
        # A gap may be long, so not all that has come is looked at together.
        least = int(max(spans[LOW].min(), done.min()))
        last = int(min(spans[HIGH].max() + self.slicing.longest, cuts.max()))
        for begin in range(least, last, _SLICES):
            part = spans.copy()
            if begin > least:
                part[SPAN_DONE] = np.maximum(done, begin)
            if begin + _SLICES < last:
                part[SPAN_CUT] = np.minimum(cuts, begin + _SLICES)
            part[LOW] = np.maximum(part[LOW], np.maximum(part[SPAN_DONE], low) - self.slicing.longest)
            yield from self._stretch(slots, part, whole=whole)

    def _stretch(self, slots: Integers, spans: Integers, *, whole: bool) -> Iterator[WindowStates]:
        np.minimum(spans[HIGH], spans[SPAN_CUT] - 1, out=spans[HIGH])
        some = spans[LOW] <= spans[HIGH]
        if not some.all():
            slots, spans = slots[some], spans[:, some]
            if not slots.size:
                return
        lowest, highest, done, cuts = spans
        if whole and (done == done[0]).all() and (cuts == cuts[0]).all() and _full(lowest, highest):
            yield from self._windows.of_all(_span(spans))
        else:
            yield from self._by_span(slots, spans)

    def _by_span(self, slots: Integers, spans: Integers) -> Iterator[WindowStates]:
        """Take groups with the same cuts together, where they are many and have most of their slices."""
        order = np.lexsort((slots, spans[SPAN_CUT], spans[SPAN_DONE]))
        slots, spans = slots[order], spans[:, order]
        begins = np.flatnonzero(np.append(True, (np.diff(spans[SPAN_DONE:]) != 0).any(axis=0)))
        sizes = np.diff(begins, append=slots.size)
        alone = np.repeat(sizes < _SOME, sizes)
        for begin, size in zip(begins[sizes >= _SOME].tolist(), sizes[sizes >= _SOME].tolist(), strict=True):
            some = slice(begin, begin + size)
            if _full(*spans[:SPAN_DONE, some]):
                yield from self._windows.of_some(slots[some], _span(spans[:, some]))
            else:
                alone[some] = True
        if alone.any():
            yield from self._windows.of_each(slots[alone], spans[:, alone].T.copy())

    def _with_table(
        self, found: list[WindowStates], slots: Integers, done: Integers, cuts: Integers
    ) -> list[WindowStates]:
        """Add the slices of the table to the windows that close.  O(slices there x windows of each)."""
        rows = self._table.find(slots, self._spans.of[slots, LOW], cuts)
        of, at = self._table.owner(rows)
        states = self._table.states.take(rows)
        order = np.argsort(slots)
        row = order[np.searchsorted(slots, of, sorter=order)]
        begin, units, found = done[row], self.slicing.units, list(found)
        upto = units(np.minimum(cuts[row], at + self.slicing.longest))
        for step, length, offset, number in self.slicing.shape.T.tolist():
            first = (units(np.maximum(begin, at)) - offset) // step
            last = (np.minimum(upto, units(at) + length) - offset) // step - 1
            of_slice, wids = spread(first, np.maximum(last - first + 1, 0))
            ends = self.slicing.moment(offset + (wids + 1) * step)
            found.append(WindowStates(of[of_slice], ends, rows_of(states, of_slice), number))
        return [self._cells.united(found)]

    def _forget(self, slots: Integers, cuts: Integers) -> None:
        """Forget the slices that no window needs which ends behind the cut of its group."""
        groups, needed, spans = self.ring.groups, self.slicing.needed(cuts), self._spans.of
        if groups == len(spans) == 1:
            self.ring.forget(needed)
        elif self._spans.few(slots):
            self.ring.forget_some(slots, spans[slots, LOW], needed)
        elif self.ring.used:
            inside = slots < groups
            self.ring.forget(by_slot(slots[inside], needed[inside], groups, NEVER))
        if len(self._table):
            self._table.remove(self._table.find(slots, spans[slots, LOW], needed))
        self._spans.close_below(slots, needed)
        self._done[slots[spans[slots, HIGH] == NEVER]] = NEVER  # of no meaning where there is no slice

    def rename(self, kept: Integers, slots: Integers) -> None:
        self._cells.rename(kept, slots)
        self._done = self._done[kept]
        self._sleeping.forget()

    def save(self) -> dict[str, Any]:
        more = {"done": narrow(self._done), "over": [self._over, self._is_ahead]}
        return {**self._cells.save(), **more, "slices": [self.slicing.period, self.slicing.slices]}

    def load(self, saved: Saved, groups: int) -> None:
        self.slicing.check(saved)
        self._cells.load(saved, groups)
        over = saved.part("over")
        self._done = filled_up(saved.integers("done", (None,)), len(self._spans.of), NEVER)[
            : len(self._spans.of)
        ]
        self._over, self._is_ahead = over.integer(0), over.flag(1)
        self._sleeping.forget()


def _full(lowest: Integers, highest: Integers) -> bool:
    """Tell whether groups reach over most of the slices that any of them reaches over."""
    if lowest.size == 1:
        return True
    slices = int(highest.max()) - int(lowest.min()) + 1
    return lowest.size * slices <= _EACH * int((highest - lowest + 1).sum())


def _span(spans: Integers) -> tuple[int, int, int, int]:
    """Return the one span of groups with the same cuts."""
    done, cut = spans[SPAN_DONE:, 0].tolist()
    return int(spans[LOW].min()), int(spans[HIGH].max()), done, cut
