"""Reading: windows as they are now, put together without taking them out, or taken out of a copy.

Windows that are folded in time order, landmark windows and lists of values are put together when a bound completes
them; rows that may be taken back are not folded at all until then.  So such stores are copied (``Copies``), by the
snapshot that they can make of themselves, and the copy is closed: by the watermark, and then as if the stream had
ended.  O(state) each time, so all that a page touches is looked at together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

import numpy as np

from oop_engine.core.groups.group_index import occurring
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.snapshot import pack, unpack
from oop_engine.operators.kernels.partials import LOW, USED, once
from oop_engine.operators.slicing.panes import pane_windows
from oop_engine.operators.slicing.revised.extents import within
from oop_engine.operators.slicing.store import Store, bounds_of
from oop_engine.operators.slicing.stores.session_store import SessionStore
from oop_engine.operators.slicing.stores.window_store import WindowStore
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers, new_rows, spread
from oop_engine.operators.windows import Definition
from oop_engine.system.knobs import knob

__all__ = ["Copies", "Readable", "Touched", "closing_between", "named", "opened", "readable"]

_NAME = "copy"
_MARKS = knob(__name__, "_MARKS", 1 << 20)  # bytes: pairs of group and window that may be marked
Readable = WindowStore | SessionStore
"""The stores whose windows can be read: those of a grid, in panes or a table, and sessions."""


def readable(store: Store) -> TypeGuard[Readable]:
    """Tell whether windows can be read: of a grid, and sessions."""
    return type(store) is WindowStore or isinstance(store, SessionStore)


def opened(store: Readable, slots: Integers) -> WindowStates:
    """Return all open windows of some groups."""
    if isinstance(store, SessionStore):
        return store.windows_of(slots)
    return store.between(slots, NEVER, FOREVER)


def named(store: WindowStore, of: Integers, wids: Integers) -> WindowStates:
    """Return the open windows ``wids[i]`` of the groups ``of[i]``, which are by number, then group, each once."""
    if (
        store.panes is not None and store.panes.length > 1
    ):  # of a window that has left some panes may be there
        known = of < len(store.opened.of)
        of, wids = of[known], wids[known]
        there = wids >= store.opened.of[of, LOW]
        of, wids = of[there], wids[there]
    rows = store.partials.find(of, wids, wids + 1, 0) if store.partials.counts[USED] else of[:0]
    each = None if store.panes is None else pane_windows.read_each(store.panes, of, wids, store.number)
    return store.with_table(each, rows)


class Touched:
    """The windows that tuples go into, at ``times``, of the groups ``slots``: read as often as they are asked for.

    ``bounds``: of each tuple or all; windows of grids are those that it completes.  O(windows) the first time, where
    few groups are far apart O(n log n); of sessions O(runs held) each time.
    """

    def __init__(self, times: Integers, slots: Integers, bounds: Integers | int = FOREVER) -> None:
        self._times, self._slots, self._bounds = times, slots, bounds
        self._windows: dict[
            int, tuple[Integers, Integers]
        ] = {}  # groups and numbers of windows, by definition

    def __call__(self, store: Readable) -> WindowStates:
        times, slots = self._times, self._slots
        if isinstance(store, SessionStore):
            found = store.windows_of(occurring(slots, int(slots.max(initial=-1)) + 1))
            assert found.starts is not None
            none = np.zeros_like(found.slots), np.zeros_like(slots)
            at = within((found.slots, none[0], found.starts, found.ends), (slots, none[1], times, times))
            return found.take(occurring(at[at >= 0], found.slots.size))
        if store.number not in self._windows:
            self._windows[store.number] = self._of(store)
        return named(store, *self._windows[store.number])

    def _of(self, store: WindowStore) -> tuple[Integers, Integers]:
        """Return the groups and numbers of windows, each once, by number, then group."""
        first, last = store.extents.wids(self._times)
        cuts = np.atleast_1d(store.extents.closed_by(self._bounds))
        found, fits = once(self._slots, first, last, cuts, max(_MARKS, 8 * first.size))
        if not fits:
            at, wids = spread(first, np.maximum(np.minimum(last + 1, cuts) - first, 0))
            of = self._slots[at]
            order = np.lexsort((of, wids))
            found = np.stack([of, wids])[:, order[new_rows(wids[order], of[order])]]
        return found[0], found[1]


def closing_between(
    store: Readable, slots: Integers | None, after: Integers | int, until: Integers | int
) -> WindowStates:
    """Return the windows of ``slots[i]`` that are complete by ``until[i]`` and not by ``after[i]``.

    ``slots`` None: of all groups of a grid, by bounds that are numbers.
    """
    if slots is not None and isinstance(store, SessionStore):
        found = store.windows_of(slots)
        gone, done = (found.ends < bounds_of(found.slots, slots, by) for by in (after, until))
        return found.take(np.flatnonzero(done & ~gone))
    assert isinstance(store, WindowStore)
    return store.between(slots, after, until)


class Copies:
    """Copies of ``stores``, which ``make`` makes empty: those of ``numbers``; ``definitions`` are all there are."""

    def __init__(self, make: Callable[[], Sequence[Store]], numbers: Sequence[int], stores: Sequence[Store],
                 definitions: Sequence[Definition], groups: int) -> None:  # fmt: skip
        fresh = make()
        self._groups = groups
        self._stores = [fresh[n].load(unpack(_NAME, pack(_NAME, stores[n].save())), groups) for n in numbers]
        self._whole = [definitions[n].whole_stream for n in numbers]

    def add(self, page: Page, slots: Integers) -> None:
        """Add tuples, of known groups, to the copies alone."""
        for store in self._stores:
            store.add(page, page.times, slots, self._groups)

    def close(self, slots: Integers, bounds: Integers, below: int) -> list[WindowStates]:
        """Return the windows of ``slots[i]`` that ``bounds[i]`` completes; where windows are the stream's, ``below``.

        Each window is returned once.
        """
        found: list[WindowStates] = []
        known = bounds > NEVER
        for store, whole in zip(self._stores, self._whole, strict=True):
            if whole:
                found += store.close(None, below) if below > NEVER else []
            elif known.any():
                found += store.close(slots[known], bounds[known])
        return [some for some in found if some.slots.size]
