"""Closing: which windows a punctuation completes, their results, and the punctuation behind them.

The theory is short.  A window is complete once no tuple can come before its end.  A linear punctuation with bound ``b``
completes, in every group, the windows with ``end <= b``; a group-wise one does so for the groups it names; a joint one
for the groups all of whose values are below their bounds (thesis 7.2), and ends here.  So each punctuation is a bound
for some groups.  A window that has left never comes again, for its bound holds for ever.

The results still to come have a least stamp, and that is the punctuation behind the results: the end (or start) of the
earliest window that may still be put out.  It grows with the bound, except where windows without a tuple are results
too: whether those exist is known only when a later tuple has come, so until then the punctuation stays behind them.

Windows leave by their end, then in the order of definitions, then of groups, whichever store they come from.  Where one
bound completes very many, it is taken in steps, so that memory has the results of a step, not of all.

A tuple that comes behind a bound all the same (``keys/behind.py``) counts in windows of a grid that are still open,
and is left out of all others, for a result that has left is final.

A row that may be taken back is in no partial aggregate yet: sums could be subtracted from, a maximum could not.  So
rows of a revision stream wait, each distinct one once with a count, until a bound has passed them (``NetRows``).

Stores (``store.py``) keep the window state and find the windows that are complete; they know neither keys nor results.
Results leave once, or correct versions that are out: then ``Finals`` makes them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import chain
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.change import OpenWindows
from oop_engine.core.errors import ContractError
from oop_engine.core.fitted import is_below
from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.groups.in_python import rows_of
from oop_engine.core.operator import Emission, State
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Joint, Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.keys.behind import BehindGroups
from oop_engine.operators.keys.group_match import GroupMatch
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.revisions.net_rows import NetRows
from oop_engine.operators.slicing.checks import AT_ONCE, LongGapError
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.store import Holder, Store
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates
from oop_engine.operators.values.columns import Integers, by_slot
from oop_engine.operators.windows import Definition, is_grid
from oop_engine.system.knobs import knob

__all__ = ["Closing", "Finals"]

_DEAD = knob(
    __name__, "_DEAD", 4096
)  # groups without a window that may stay: those that come back need not be learnt again


class Finals(Holder, Protocol):
    """Results of windows that close, of which versions may be out."""

    def settle(self, slots: Integers | None, bounds: Any) -> Iterable[Emission]:
        """Forget windows whose results are out, before others close by these bounds; return corrections of them."""

    def results(self, closed: WindowStates) -> Iterable[Page]:
        """Return the results of windows that have been taken out, in order."""


class Closing:
    """Open windows of the groups of ``by``, kept in ``stores``; ``schema`` is that of the tuples."""

    def __init__(
        self, output: Output, schema: Schema, by: tuple[str, ...], stores: Iterable[Store] = ()
    ) -> None:
        self._output, self.by, self._progressing = output, by, schema.progressing
        self.stores = list(stores)
        self._finals: Finals | None = None
        self._more: tuple[Holder, ...] = ()  # those that keep something of groups, beside stores
        self.net = None if schema.change is None else NetRows(schema)
        self.groups = GroupIndex([schema.type_of(name) for name in by], IN_KERNELS)
        self.matching = GroupMatch(self.groups, by)
        self.progress = Progress(tables=IN_KERNELS)
        self._asked, self._newest = False, NEVER  # the largest time since somebody asked for open windows
        self.behind = BehindGroups(by, self.groups)

    def revised_by(self, finals: Finals) -> None:
        """Let ``finals`` make the results of windows that close."""
        self._finals, self._more = finals, (finals,)

    def replace_stores(self, stores: Iterable[Store]) -> None:
        """Go on with other stores, in which there is room for all groups."""
        self.stores = list(stores)

    def counts(self) -> dict[str, int]:
        """Return how many tuples came behind a bound."""
        return {"behind": (self.behind if self.net is None else self.net.behind).count}

    def state(self) -> State:
        """Return the state: tuples, partial aggregates, the groups that have some, bytes."""
        tuples = partials = alive = 0
        held = self.groups.nbytes + self.progress.nbytes + self.behind.nbytes
        held += self.matching.nbytes if self.matching.coarse else 0
        for store in self.stores:
            more = store.state()
            tuples, partials, held = tuples + more.tuples, partials + more.partials, held + more.nbytes
            alive = max(alive, more.groups)
        found = State(tuples, partials, alive, held)
        return found if self.net is None else found + self.net.state()

    def slowest(self, most: int) -> list[tuple[dict[str, Any], int]]:
        """Return the groups with open windows whose bounds are least, each with its bound.  O(groups)."""
        if not self.by or not self.progress.groups:
            return []
        alive = np.flatnonzero(self.living(self.groups.size))
        keys = pa.RecordBatch.from_arrays(self.groups.keys(alive), names=list(self.by))
        bounds = self.progress.bounds(keys)
        least = np.argsort(bounds, kind="stable")[:most]
        return list(zip(rows_of(keys.take(least)), bounds[least].tolist(), strict=True))

    def open_windows(self, names: Container[str], most: int) -> list[OpenWindows]:
        """Return the open windows of the definitions of these names, at most so many.  O(groups).

        The newest tuple is that since the first call: who is never asked pays nothing.
        """
        self._asked = True
        if not any(store.alive for store in self.stores):
            return []
        alive = np.flatnonzero(self.living(self.groups.size))
        below = int(self.behind.bounds(alive).min(initial=FOREVER))
        given = zip(self._output.names, self._output.definitions, strict=True)
        asked = [(name, one) for name, one in given if name in names]
        return [_open(name, one, below, self._newest) for name, one in asked[:most]]

    def add(self, page: Page, times: Integers) -> None:
        """Fold tuples in, at ``times``; groups may move.  O(tuples), in kernels.  Rows of a revision stream wait."""
        if self.net is not None:
            self.net.add(page)
            self.net.tidy()
        elif times.size:
            self.fold(page, times, self.groups.encode_page(page, self.by))
            if self.groups.size > _DEAD:
                self.forget_dead()

    def fold(self, page: Page, times: Integers, slots: Integers) -> None:
        """Fold in tuples of groups that are known, and stay where they are."""
        known = self.groups.size
        least, greatest = page.reach_of(times)
        if self._asked:
            self._newest = max(self._newest, greatest)
        try:
            if least < self.behind.highest:
                page, times, slots = self._timely(page, times, slots, known)
            for store in self.stores:
                store.add(page, times, slots, known)
        except WindowOverflowError as error:
            raise self.overflow(error) from None

    def _timely(
        self, page: Page, times: Integers, slots: Integers, known: int
    ) -> tuple[Page, Integers, Integers]:
        """Return the tuples that are behind no bound; of the others let those count that can."""
        behind = self.behind.of(times, slots)
        if not behind.any():
            return page, times, slots
        late, bounds = (page.filter(behind), times[behind], slots[behind]), self.behind.bounds(slots[behind])
        for store in self.stores:
            store.add(page.slice(0, 0), times[:0], slots[:0], known)  # let it have room for the groups
            store.add_late(*late, bounds)
        return page.filter(~behind), times[~behind], slots[~behind]

    def take(self, punctuation: Punctuation) -> Iterator[Emission]:
        """Put out the windows that a punctuation completes, and the punctuation behind them."""
        if self.net is not None:
            if not isinstance(punctuation, Linear | GroupWise):
                return iter(())  # joint bounds end here
            if self.net.knows(punctuation) and (page := self.net.take(punctuation)) is not None:
                self.fold(page, page.times, self.groups.encode_page(page, self.by))
        match punctuation:
            case Linear(below):
                return self._linear(below)
            case GroupWise() if set(punctuation.attributes) <= set(self.by):
                return self._group_wise(punctuation)
            case Joint():
                return self._joint(dict(punctuation.bounds))
        return iter(())

    def _linear(self, below: int) -> Iterator[Emission]:
        behind, most, least = self.behind, self._most(None, below), FOREVER
        if most:
            for bound in (below,) if most <= AT_ONCE else self._steps(None, below):
                if self._finals is not None:
                    yield from self._finals.settle(None, bound)
                for page in self._closed(None, bound):
                    yield 0, page
        for holder in (*self.stores, *self._more):
            least = min(least, holder.least_stamp(below))
        for grown in self.progress.advance_linear(0, least):
            yield 0, grown
        if below > behind.linear:
            behind.linear = below
            if below > behind.highest:
                behind.highest = below
        self.forget_dead()

    def _group_wise(self, punctuation: GroupWise) -> Iterator[Emission]:
        slots, of = self.matching.of(punctuation)
        yield from self._close(slots, punctuation.below[of])
        holders = (*self.stores, *self._more)
        least = np.minimum.reduce([one.least_stamps(slots, of, punctuation.below) for one in holders])
        for grown in self.progress.advance(0, GroupWise.unchecked(punctuation.groups, least)):
            yield 0, grown
        self.behind.raise_to(slots, of, punctuation)
        self.forget_dead()

    def _joint(self, bounds: dict[str, int]) -> Iterator[Emission]:
        """Close the groups all of whose values are below their bounds; nothing is passed on."""
        below = bounds.pop(self._progressing, FOREVER)
        if not set(bounds) <= set(self.by):
            return
        done = np.ones(len(self.groups), np.bool_)
        keys = dict(zip(self.by, self.groups.keys(np.arange(len(self.groups))), strict=True))
        for name, bound in bounds.items():
            done &= is_below(keys[name], bound)
        slots = np.flatnonzero(done)
        yield from self._close(slots, np.full(slots.size, below))
        self.forget_dead()

    def _close(self, slots: Integers, bounds: Integers) -> Iterator[Emission]:
        if not slots.size:
            return
        for by in (bounds,) if self._most(slots, bounds) <= AT_ONCE else self._steps(slots, bounds):
            if self._finals is not None:
                yield from self._finals.settle(slots, by)
            for page in self._closed(slots, by):
                yield 0, page

    def _most(self, slots: Integers | None, bounds: Any) -> float:
        """Return how many windows of all groups, or of ``slots``, may leave by their bounds; 0: none does."""
        most = 0.0
        try:
            for store in self.stores:
                most += store.most_until(slots, bounds)
        except LongGapError as error:
            raise self._output.gap(error.extents, error.low, error.stop, self._keys_of(error.slot)) from None
        return most

    def _steps(self, slots: Integers | None, bounds: Any) -> Iterator[Any]:
        """Yield bounds on the way to ``bounds``, so that not too many windows are in memory together, and these.

        By bisection, after the windows of the step before have left: O(log of event time) looks at stores a step.  What
        a store still counts below that step, since it counts windows at most, is no reason for a shorter one.
        """

        def by(bound: int) -> Any:
            return bound if slots is None else np.minimum(bounds, bound)

        def most(bound: int) -> float:
            try:
                return self._most(slots, by(bound))
            except ContractError:  # in lulls, which the end of the stream does not have
                return float(FOREVER)

        step, gone, last = NEVER, 0.0, int(np.max(bounds))
        while self._most(slots, bounds) - gone > AT_ONCE:
            low, high = step, last
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if most(middle) - gone > AT_ONCE else (middle, high)
            step = low if low > step and most(low) > gone else high  # the windows of one end leave together
            if step == last:
                break
            yield by(step)
            gone = left if (left := most(step)) < FOREVER else 0.0
        yield bounds

    def _closed(self, slots: Integers | None, bounds: Any) -> Iterable[Page]:
        """Close the windows of all groups, or of ``slots``, that end by their bounds; return their results."""
        found = list[WindowStates]()
        try:
            for store in self.stores:
                closed = store.close(slots, bounds)
                if len(self.stores) == 1 and not isinstance(closed, list):
                    return self._in_parts(closed)
                for some in closed:
                    if some.slots.size:
                        found.append(some)
        except WindowOverflowError as error:
            raise self.overflow(error) from None
        if not found:
            return ()
        one = len(found) == 1 and found[0].in_order
        return self._results(found[0] if one else self._output.ordered(found))

    def _in_parts(self, found: Iterable[WindowStates]) -> Iterator[Page]:
        """Yield the results of windows that come in order, each part before the next one is put together."""
        try:
            yield from chain.from_iterable(map(self._results, found))  # no name keeps a part
        except WindowOverflowError as error:
            raise self.overflow(error) from None

    def _results(self, closed: WindowStates) -> Iterable[Page]:
        """Return the results of windows that have been taken out, in order."""
        if self._finals is not None:
            return self._finals.results(closed)
        return self._output.pages(self.groups.keys(closed.slots), closed)

    def forget_dead(self) -> None:
        """Drop the groups that have no window, once they are most of all."""
        known = self.groups.size
        if not self.by or known == 0:
            return
        alive = 0
        for store in self.stores:
            alive = max(alive, store.alive)
        if alive > 0 and known <= 2 * alive + _DEAD:
            return
        kept = np.flatnonzero(self.living(known))
        self.behind.forget(kept)
        self.groups.keep(kept)
        slots = by_slot(kept, np.arange(kept.size), known, -1)
        for holder in (*self.stores, *self._more):
            holder.rename(kept, slots)

    def living(self, groups: int) -> NDArray[np.bool_]:
        """Tell which groups have an open window, or a version that is out."""
        holders = (*self.stores, *self._more)
        living: NDArray[np.bool_] = np.logical_or.reduce([one.living(groups) for one in holders])
        return living

    def overflow(self, error: WindowOverflowError) -> ContractError:
        """Return the error of a sum that does not fit, with the keys of its group."""
        return self._output.overflow(error.column, error.start, error.end, self._keys_of(error.slot))

    def _keys_of(self, slot: int) -> dict[str, Any]:
        return dict(zip(self.by, self.groups.keys(np.array([slot])), strict=True))

    def save(self) -> dict[str, Any]:
        stores = [store.save() for store in self.stores]
        own = {"progress": self.progress.save(), "behind": self.behind.save()}
        if self.net is not None:
            own["net"] = self.net.save()
        return {"groups": self.groups.save(), "stores": stores, **own}

    def load(self, saved: Saved) -> None:
        self.groups.load(saved.part("groups"))
        groups, states = len(self.groups), saved.parts("stores", len(self.stores))
        for store, state in zip(self.stores, states, strict=True):
            store.load(state, groups)
        self.progress.load(saved.part("progress"))
        self.behind.load(saved.part("behind"))
        if self.net is not None:
            self.net.load(saved.part("net"))


def _open(name: str, definition: Definition, below: int, newest: int) -> OpenWindows:
    if not is_grid(definition):
        return OpenWindows(name, None)
    if len(ends := definition.between(below, newest)) < 2:
        return OpenWindows(name, None, *ends)
    (start, _), (last, _) = ends
    return OpenWindows(name, (last - start) // definition.slide + 1, *ends)
