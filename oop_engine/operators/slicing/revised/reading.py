"""Reading: windows as they are now, put together without taking them out, or taken out of a copy.

A *look* returns windows of a store that are open, as often as it is called; stores of grids and sessions allow it.

Windows that are folded in time order, landmark windows and lists of values are put together when a bound completes
them; rows that may be taken back are not folded at all until then.  So such stores are copied (``Copies``), and the
copy is closed: by the watermark, and then as if the stream had ended.  That costs the state of the groups that are
asked for, so all that a page touches is looked at together.  Where a tuple of one group concerns windows of others
(landmark windows, those of the whole stream), all groups are copied; a store that cannot copy some is saved as a whole.
"""

# Invariant   Looks change nothing.  A definition is in `copied`, or its store is in `grids` or `sessions`.

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from oop_engine.core.groups.group_index import GroupIndex, occurring
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.snapshot import pack, unpack
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.kernels.partials import once
from oop_engine.operators.slicing.closing import Closing
from oop_engine.operators.slicing.panes.kept_rows import KeptRows
from oop_engine.operators.slicing.revised.extents import within
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.stores.session_store import SessionStore
from oop_engine.operators.slicing.stores.window_store import WindowStore
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates
from oop_engine.operators.values.columns import Integers, by_slot, new_rows, spread
from oop_engine.operators.windows import Definition, Extents
from oop_engine.system.knobs import knob

__all__ = ["Copies", "Expected", "Look", "Reading", "touched"]

_NAME = "copy"
_CELLS = knob(__name__, "_CELLS", 4)
"""Of windows on time, for each tuple of a page: with more, windows are looked for by the tuples."""
_MARKS = knob(__name__, "_MARKS", 1 << 20)  # bytes: pairs of group and window that may be marked
Look = Callable[[], WindowStates]


class Expected:
    """The watermark of each of the ``groups``, whose columns are ``by``, or its punctuation, whichever is larger."""

    def __init__(self, groups: GroupIndex, by: Sequence[str]) -> None:
        self.bounds = Progress(tables=IN_KERNELS)
        self._groups, self._by = groups, list(by)

    def __call__(self, slots: Integers) -> Integers:
        """Return the bounds of some groups, int64 (n,).  O(1) each."""
        if not self.bounds.groups:
            return np.full(slots.size, self.bounds.expected)
        return self.bounds.expected_of(pa.RecordBatch.from_arrays(self._groups.keys(slots), names=self._by))


class Reading:
    """The windows of ``closing``, of the ``definitions``, one a store, as they are; ``make`` makes its stores empty."""

    def __init__(
        self, closing: Closing, make: Callable[[], Sequence[Store]], definitions: Sequence[Definition]
    ) -> None:
        self._closing, self._make, self._definitions = closing, make, definitions
        self.grids, self.sessions, self.copied = list[WindowStore](), list[SessionStore](), list[int]()
        for number, store in enumerate(closing.stores):
            if closing.net is None and type(store) is WindowStore:
                self.grids.append(store)
            elif closing.net is None and type(store) is SessionStore:
                self.sessions.append(store)
            else:
                self.copied.append(number)

    def read(self, looks: Iterable[Look]) -> list[WindowStates]:
        """Return windows.  Raises ``ContractError`` if a sum of a window in panes and in the table does not fit."""
        try:
            return [look() for look in looks]
        except WindowOverflowError as error:
            raise self._closing.overflow(error) from None

    def between(
        self, slots: Integers | None, after: Integers | int, until: Integers | int
    ) -> tuple[list[Look], list[Look]]:
        """Return looks at the windows of grids, and of sessions, that bounds ``until`` complete and ``after`` do not.

        Of ``slots[i]``, by ``until[i]``; None: of all groups, by bounds that are numbers.
        """
        grids: list[Look] = [partial(store.between, slots, after, until) for store in self.grids]
        return grids, [partial(store.between, slots, after, until) for store in self.sessions]

    def touched(
        self, times: Integers, slots: Integers, bounds: Integers | int
    ) -> tuple[list[Look], list[Look]]:
        """Return looks at the windows that tuples go into; of grids at those that ``bounds``, of each, complete."""
        grids: list[Look] = [
            partial(store.read, *touched(store.grid.extents, times, slots, bounds)) for store in self.grids
        ]
        return grids, [partial(_around, store, times, slots) for store in self.sessions]

    def kept(self, bound: int, tuples: int) -> KeptRows | None:
        """Return the panes of windows that a bound completes, of a lone grid, where that pays for so many tuples."""
        [store, *more] = self.grids
        grid, ring = store.grid, store.cells.ring
        if more or ring is None or len(store.cells.table):
            return None
        cut = int(grid.extents.closed_by(bound))
        return KeptRows.of(ring, grid.spans.lowest, cut, _CELLS * tuples, grid.number)

    def changed(
        self, kept: KeptRows, bound: int, touched: Callable[[], tuple[list[Look], list[Look]]]
    ) -> tuple[WindowStates, Integers]:
        """Return windows that have changed, as they were, then as they are; and where among these the first are."""
        [store] = self.grids
        if not len(store.cells.table):
            return kept.changes(store.grid.spans.lowest, int(store.grid.extents.closed_by(bound)))
        [now] = self.read(touched()[0])  # some tuples have gone to a table
        was = kept.before(now)
        return WindowStates.joined([was, now]), now.places_of(was)

    def slots_of(self, page: Page) -> Integers:
        """Return the groups of tuples that are not folded in, and let stores know of them."""
        slots, none = self._closing.groups.encode_page(page, self._closing.by), page.slice(0, 0)
        for store in self._closing.stores:
            store.add(none, none.times, none.times, len(self._closing.groups))
        return slots

    def copies(self, slots: Integers) -> Copies:
        """Return copies of the stores that have to be closed, with the rows that wait to be final folded in.

        Of some groups, unless a window is of the whole stream.
        """
        net = self._closing.net
        page = None if net is None else net.content()
        rows = None if page is None else self.slots_of(page)
        copies = Copies([self._copied(number, np.unique(slots)) for number in self.copied])
        if page is not None and rows is not None and len(page):
            copies.add(page, rows)
        return copies

    def _copied(self, number: int, slots: Integers) -> tuple[Store, Integers, bool]:
        """Return a copy of a store, the groups whose windows it has, and whether these are the stream's."""
        store, groups = self._closing.stores[number], len(self._closing.groups)
        of_stream = self._definitions[number].whole_stream
        if of_stream:
            slots = np.arange(groups)
        elif (part := store.copied(slots)) is not None:
            return part, slots, of_stream
        copy = self._make()[number]
        copy.load(unpack(_NAME, pack(_NAME, store.save())), groups)
        if slots.size < groups:
            copy.rename(slots, by_slot(slots, np.arange(slots.size), groups, -1))
        return copy, slots, of_stream


def _around(store: SessionStore, times: Integers, slots: Integers) -> WindowStates:
    """Return the open sessions that tuples are in."""
    found = store.between(slots, NEVER, FOREVER)
    assert found.starts is not None
    sessions = found.slots, 0 * found.slots, found.starts, found.ends
    at = within(sessions, (slots, 0 * slots, times, times))
    return found.take(occurring(at[at >= 0], found.slots.size))


def touched(extents: Extents, times: Integers, slots: Integers, bounds: Integers | int) -> Integers:
    """Return the groups and windows that tuples go into and ``bounds``, of each or all, complete, int64 (2, n).

    By number, then group, each once.  O(windows), where few groups are far apart O(n log n).
    """
    first, last = extents.wids(times)
    cuts = np.atleast_1d(extents.closed_by(bounds))
    found: Integers
    found, fits = once(slots, first, last, cuts, max(_MARKS, 8 * first.size))
    if not fits:
        at, wids = spread(first, np.maximum(np.minimum(last + 1, cuts) - first, 0))
        groups = slots[at]
        order = np.lexsort((groups, wids))
        found = np.stack([groups, wids])[:, order[new_rows(wids[order], groups[order])]]
    return found


class Copies:
    """Copies of ``stores``, each with the groups whose windows it has, and whether these are the stream's."""

    def __init__(self, stores: Sequence[tuple[Store, Integers, bool]]) -> None:
        self._stores = stores

    def add(self, page: Page, slots: Integers) -> None:
        """Add tuples, of known groups, to the copies alone."""
        for store, its, _ in self._stores:
            rows = np.flatnonzero(np.isin(slots, its))
            some = page.take(rows)
            store.add(some, some.times, its.searchsorted(slots[rows]), its.size)

    def close(self, slots: Integers, bounds: Integers, below: int) -> list[WindowStates]:
        """Return the windows of ``slots[i]``, of those that are here, that ``bounds[i]`` completes.

        Where windows are the stream's, those that ``below`` does.  Each window is returned once.
        """
        found, known = list[WindowStates](), bounds > NEVER
        for store, its, of_stream in self._stores:
            if of_stream:
                closed = store.close(None, below) if below > NEVER else ()
            else:
                closed = store.close(its.searchsorted(slots[known]), bounds[known])
            found += [some._replace(slots=its[some.slots]) for some in closed if some.slots.size]
        return found
