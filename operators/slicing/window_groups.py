"""Window groups: what ``Aggregate`` and ``WindowAggregate`` keep, close and promise.

Every kind of punctuation is first turned into one thing: for some groups, the first window
that is still open (a *cut*).  What is below its group's cut is complete and leaves.

Two definitions need windows in which no tuple came: ``empty=True`` (all windows between a
group's first and last one) and landmark windows (all windows from a group's first one to
the stream's last one, for they hold the earlier tuples).  Whether such a window exists is
known only when a later tuple has come, so until then the promise stays behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError
from oop_engine.core.fitted import is_below
from oop_engine.core.group_index import GroupIndex
from oop_engine.core.operator import Emission, State
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Joint, Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.kernels import spans
from oop_engine.operators.keys.group_match import matching
from oop_engine.operators.keys.key_table import KeyTable
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.closed import Closed, joined, narrow
from oop_engine.operators.slicing.pane_ring import Panes, PaneSumOverflowError
from oop_engine.operators.slicing.partials import NO_WINDOW, Partials
from oop_engine.operators.slicing.window_dense import Dense
from oop_engine.operators.slicing.window_limits import AT_ONCE, pauses, too_long
from oop_engine.operators.slicing.window_results import Results

__all__ = ["WindowGroups"]

Integers = NDArray[np.int64]

_FAR = 1 << 62  # windows; no extent reaches so far
_DEAD = 4096  # groups without a window that may stay: those that come back need not be learnt again
_MORE = 8  # room grows by an eighth: every pane has room for every group


class WindowGroups:
    """Open windows of the groups of ``by``; ``schema`` is that of the input."""

    def __init__(
        self, results: Results, schema: Schema, by: tuple[str, ...], *, empty: bool, panes: bool = False
    ) -> None:
        self._results = results
        self._schema = schema
        self._by = by
        self._groups = GroupIndex([schema.type_of(name) for name in by], KeyTable)
        self._partials = Partials(results.parts)
        self._spans = _no_spans(0)  # (groups, 2)  lowest open, highest window
        self._promised = Progress()
        self._dense = Dense(results) if empty or results.extents.landmark else None
        self._panes = Panes(results.parts, results.extents) if panes else None
        self._refused = 0  # tuples that did not fit the ring

    def state(self) -> State:
        """Return what is held: partial aggregates, the groups that have some, bytes."""
        in_panes = 0 if self._panes is None else len(self._panes)
        return State(0, len(self._partials) + in_panes, self._partials.alive, self.nbytes)

    @property
    def nbytes(self) -> int:
        """Bytes that are held, with the room there is for more."""
        held = self._partials.nbytes + self._groups.nbytes + self._spans.nbytes + self._promised.nbytes
        return held if self._panes is None else held + self._panes.nbytes

    def add(self, page: Page, times: Integers, first: Integers, last: Integers) -> None:
        """Add tuples at ``times`` to the windows ``first`` to ``last`` (inclusive)."""
        if len(page):
            self._add(page, times, self._slots(page), first, last)
            self._forget_dead()

    def add_at(self, page: Page, times: Integers) -> None:
        """Add tuples at ``times`` to the windows they are in, by panes where that is the way."""
        if self._panes is None or not len(page):
            self.add(page, times, *self._results.extents.wids(times))
            return
        slots = self._slots(page)
        try:
            left = self._panes.add(page, times, slots, self._spans, self._partials.counts)
        except PaneSumOverflowError as error:
            raise self._overflow(error.column, error.slot, error.wid) from None
        self._refused += left.size
        if left.size:
            self._add(page.take(left), times[left], slots[left], *self._results.extents.wids(times[left]))
            if left.size > len(self._panes):  # it has the wrong panes: let it begin anew
                self._give_up_panes()
        self._forget_dead()

    def _slots(self, page: Page) -> Integers:
        slots = self._groups.encode([page.column(name) for name in self._by], len(page))
        if len(self._groups) > len(self._spans):
            size = max(len(self._groups), len(self._spans) + len(self._spans) // _MORE)
            self._spans = np.concatenate([self._spans, _no_spans(size - len(self._spans))])
        return slots

    def _add(self, page: Page, times: Integers, slots: Integers, first: Integers, last: Integers) -> None:
        widths = np.maximum(last - first + 1, 0)
        if self._results.extents.landmark:  # kept where it came; closing adds it to all later ones
            widths = (last >= first).astype(np.int64)
        if self._dense:
            self._dense.note(first[widths > 0])
        try:
            self._partials.add(page, times, slots, self._spans, first, widths)
        except SumOverflowError as error:
            raise self._overflow(error.column, *self._partials.owner(np.array([error.at]))) from None

    def _give_up_panes(self) -> None:
        """Move what is in panes to the table of windows, as it is now."""
        assert self._panes is not None
        low, high = self._spans.T
        alive = np.flatnonzero(low != NO_WINDOW)
        try:
            self._partials.merge(self._panes.take(alive, low[alive], high[alive] + 1), self._spans)
        except SumOverflowError as error:
            raise self._overflow(error.column, *self._partials.owner(np.array([error.at]))) from None
        self._panes.clear()

    def take(self, punctuation: Punctuation) -> Iterator[Emission]:
        """Close what a promise (about the positions in windows) completes, and pass it on."""
        match punctuation:
            case Linear(below):
                yield from self._linear(below)
            case GroupWise() if set(punctuation.attributes) <= set(self._by):
                yield from self._group_wise(punctuation)
            case Joint():
                yield from self._joint(dict(punctuation.bounds))
        self._forget_dead()

    def save(self) -> dict[str, Any]:
        """Return everything for a snapshot."""
        return {
            "groups": self._groups.save(),
            "partials": self._partials.save(),
            "panes": None if self._panes is None else self._panes.save(),
            "spans": self._save_spans(),
            "promised": self._promised.save(),
            "latest": self._dense.latest if self._dense else 0,
        }

    def load(self, saved: Saved) -> None:
        """Take what ``save`` returned."""
        self._groups.load(saved.part("groups"))
        self._partials.load(saved.part("partials"), len(self._groups))
        if self._panes is not None and saved["panes"] is not None:
            self._panes.load(saved.part("panes"))
        self._load_spans(saved.part("spans"))
        self._promised.load(saved.part("promised"))
        if self._dense:
            self._dense.latest = saved.integer("latest")

    def _save_spans(self) -> list[Any]:
        known = self._spans[: len(self._groups)]
        alive = known[:, 0] != NO_WINDOW
        low, high = known[alive].T
        lowest = int(low.min()) if low.size else 0
        return [lowest, np.packbits(alive), narrow(low - lowest), narrow(high - lowest)]

    def _load_spans(self, saved: Saved) -> None:
        groups = len(self._groups)
        lowest = saved.integer(0, least=-_FAR, most=_FAR)
        rows = np.flatnonzero(saved.bits(1, groups))
        low = saved.integers(2, rows.shape, least=0, below=_FAR)
        high = saved.integers(
            3, rows.shape, least=-_FAR, below=_FAR
        )  # below low: a group that waits for its next
        self._spans = _no_spans(groups if self._panes is None else max(groups, self._panes.rectangle.groups))
        self._spans[rows] = np.stack([low, high], axis=1) + lowest

    def _linear(self, below: int) -> Iterator[Emission]:
        cut = int(self._results.extents.closed_by(below))
        if cut > self._partials.lowest:
            everyone = np.arange(len(self._groups))
            yield from self._close(everyone, np.full(everyone.size, cut), over=cut == FOREVER)
        if self._dense:
            cut = min(cut, self._partials.lowest)
        yield from self._say(Linear(int(self._results.promise(cut))))

    def _group_wise(self, punctuation: GroupWise) -> Iterator[Emission]:
        cuts = self._results.extents.closed_by(punctuation.below)
        slots, of = matching(self._groups, self._by, punctuation)
        yield from self._close(slots, cuts[of])
        if self._dense:
            np.minimum.at(cuts, of, self._spans[slots, 0])
        yield from self._say(GroupWise(punctuation.groups, self._results.promise(cuts)))

    def _joint(self, bounds: dict[str, int]) -> Iterator[Emission]:
        """Close the groups all of whose values are below their bounds; nothing is passed on."""
        below = bounds.pop(self._schema.progressing, FOREVER)
        if not set(bounds) <= set(self._by):
            return
        done = np.ones(len(self._groups), np.bool_)
        keys = dict(zip(self._by, self._groups.keys(np.arange(len(self._groups))), strict=True))
        for name, bound in bounds.items():
            done &= is_below(keys[name], bound)
        slots = np.flatnonzero(done)
        cut = int(self._results.extents.closed_by(below))
        yield from self._close(slots, np.full(slots.size, cut))

    def _close(self, slots: Integers, cuts: Integers, *, over: bool = False) -> Iterator[Emission]:
        if self._dense:
            low = self._spans[:, 0].take(slots)
            some = np.flatnonzero((low < cuts) & (low != NO_WINDOW))
            slots, cuts, low = slots[some], cuts[some], low[some]
            pages = self._close_dense(slots, cuts, low, self._spans[slots, 1], over=over) if some.size else ()
        else:
            pages = self._close_plain(slots, cuts)
        for page in pages:
            yield 0, page

    def _close_plain(self, slots: Integers, cuts: Integers) -> Iterator[Page]:
        some, low, stop = np.empty((3, slots.size), np.int64)
        many = spans.closing(self._spans, slots, cuts, some, low, stop)
        if not many:
            return iter(())
        some, low, stop = some[:many], low[:many], stop[:many]
        between = self._pauses(low, stop)
        return self._close_below(some, low, stop) if not between else self._in_parts(some, low, stop, between)

    def _in_parts(self, some: Integers, low: Integers, stop: Integers, between: list[int]) -> Iterator[Page]:
        """Close as many windows at a time as should be in memory together."""
        for upto in between:
            part = low < np.minimum(stop, upto)
            if part.any():
                yield from self._close_below(some[part], low[part], np.minimum(stop[part], upto))
                low = np.maximum(low, upto)
        rest = low < stop
        yield from self._close_below(some[rest], low[rest], stop[rest])

    def _close_below(self, some: Integers, low: Integers, stop: Integers) -> Iterator[Page]:
        try:
            closed = self._closed(some, low, stop)
        except PaneSumOverflowError as error:
            raise self._overflow(error.column, error.slot, error.wid) from None
        keys = self._groups.keys(closed.slots)
        self._reopen(some, np.where(stop > self._spans[some, 1], NO_WINDOW, stop))
        return self._results.pages(keys, closed.wids, closed.states)

    def _pauses(self, low: Integers, stop: Integers) -> list[int]:
        """Return where to pause between windows ``low[i]`` to ``stop[i]``, so that few results are there at a time.

        A table has what it puts out in memory already: that cannot become much more.
        """
        least, most = int(low.min()), int(stop.max())
        if (most - least) * low.size <= AT_ONCE:
            return []
        first, behind, weights = self._reach()
        return pauses(
            np.clip(first, least, most),
            np.clip(behind, least, most),
            np.minimum(weights, low.size),
            AT_ONCE,
        )

    def _reach(self) -> tuple[Integers, Integers, NDArray[np.float64]]:
        """Get ready to close many windows; return between which they are, and of how many groups."""
        spans = [] if self._panes is None else [self._panes.reach]
        first, behind, groups = np.array(spans, np.int64).reshape(-1, 3).T
        return first, behind, groups.astype(float)

    def _closed(self, slots: Integers, low: Integers, stop: Integers) -> Closed:
        """Take out windows, sorted; one may lie in panes and in the table."""
        groups = len(self._groups)
        if self._panes is None:
            return self._partials.pop(slots, low, stop, groups).by_window(groups)
        closed = self._panes.take(slots, low, stop)
        if not len(self._partials):
            return closed.by_window(groups)
        closed = joined([closed, self._partials.pop(slots, low, stop, groups)]).by_window(groups)
        return self._united(closed)

    def _united(self, closed: Closed) -> Closed:
        """Combine the states of windows that are there twice, one behind the other."""
        same = (closed.slots[1:] == closed.slots[:-1]) & (closed.wids[1:] == closed.wids[:-1])
        twice = np.flatnonzero(same)
        if not twice.size:
            return closed
        one, other = closed.take(twice), closed.take(twice + 1)
        try:
            both = self._partials.states.combine(one.states, other.states)
        except SumOverflowError as error:
            raise PaneSumOverflowError(error.column, one.slots[error.at], one.wids[error.at]) from None
        for state, together in zip(closed.states, both, strict=True):
            for column, new in zip(state, together, strict=True):
                column[twice] = new
        return closed.take(np.flatnonzero(np.concatenate([[True], ~same])))

    def _close_dense(
        self, slots: Integers, cuts: Integers, low: Integers, high: Integers, *, over: bool
    ) -> Iterator[Page]:
        assert self._dense is not None
        stop = self._dense.stop(cuts, high)
        if (most := too_long(low, stop, len(self._partials))) >= 0:
            raise self._gap(slots[most], low[most], stop[most])
        try:
            closing = self._dense.closing(self._partials, slots, low, stop, len(self._groups))
        except SumOverflowError as error:
            raise self._overflow(error.column, *self._dense.overflown) from None
        keys = self._groups.keys(np.sort(slots))
        self._reopen(slots, np.where(self._dense.ended(cuts, over=over), NO_WINDOW, np.maximum(low, stop)))
        if over:
            self._partials.clear()
        return self._dense.pages(closing, keys)

    def _reopen(self, slots: Integers, low: Integers) -> None:
        """Note that the lowest open window of some groups is another now, or that there is none."""
        spans.reopen(self._spans, slots, low, self._partials.counts)

    def _say(self, promise: Linear | GroupWise) -> Iterator[Emission]:
        for said in self._promised.advance(0, promise):
            yield 0, said

    def _forget_dead(self) -> None:
        """Drop the groups that have no window, once they are most of all."""
        alive, known = self._partials.alive, len(self._groups)
        if not self._by or known == 0 or (alive > 0 and known <= 2 * alive + _DEAD):
            return
        kept = np.flatnonzero(self._living())
        self._groups.keep(kept)
        slots = np.full(known, -1)
        slots[kept] = np.arange(kept.size)
        self._rename(kept, slots)

    def _living(self) -> NDArray[np.bool_]:
        """Tell which groups have a window."""
        living: NDArray[np.bool_] = self._spans[: len(self._groups), 0] != NO_WINDOW
        return living

    def _rename(self, kept: Integers, slots: Integers) -> None:
        """Let only the groups ``kept`` stay; group ``g`` gets the slot ``slots[g]``, -1: none."""
        self._spans = self._spans[kept]
        self._partials.rename(slots)
        if self._panes is not None:
            self._panes.rename(slots, len(self._spans))

    def _gap(self, slot: np.int64, low: np.int64, stop: np.int64) -> ContractError:
        keys = dict(zip(self._by, self._groups.keys(np.array([slot])), strict=True))
        return self._results.gap(int(low), int(stop), keys)

    def _overflow(self, column: str | None, slot: Any, wid: Any) -> ContractError:
        """Return the error for a group and a window, integers or arrays of one."""
        keys = dict(zip(self._by, self._groups.keys(np.ravel(slot)), strict=True))
        return self._results.overflow(column, int(np.ravel(wid)[0]), keys)


def _no_spans(groups: int) -> Integers:
    return np.tile([NO_WINDOW, NEVER], (groups, 1))
