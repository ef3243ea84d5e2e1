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
from oop_engine.core.punctuation import NEVER
from oop_engine.core.snapshot import pack, unpack
from oop_engine.operators.slicing.panes import pane_windows
from oop_engine.operators.slicing.partials import NO_WINDOW
from oop_engine.operators.slicing.revised.version_table import within
from oop_engine.operators.slicing.store import Store, bounds_of
from oop_engine.operators.slicing.stores.session_store import SessionStore
from oop_engine.operators.slicing.stores.window_store import WindowStore
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers, new_rows, spread
from oop_engine.operators.windows import Definition

__all__ = ["Copies", "Readable", "closing_between", "opened", "readable", "touched"]

_NAME = "copy"
Readable = WindowStore | SessionStore
"""The stores whose windows can be read: those of a grid, in panes or a table, and sessions."""


def readable(store: Store) -> TypeGuard[Readable]:
    """Tell whether windows can be read: of a grid, and sessions."""
    return type(store) is WindowStore or isinstance(store, SessionStore)


def opened(store: Readable, slots: Integers) -> WindowStates:
    """Return all open windows of some groups."""
    if isinstance(store, SessionStore):
        return store.windows_of(slots)
    return _between(store, slots, np.array(-NO_WINDOW), np.array(NO_WINDOW))


def touched(store: Readable, times: Integers, slots: Integers) -> WindowStates:
    """Return the windows that tuples have just gone into.  O(n log n) for n windows, of sessions O(runs held)."""
    if isinstance(store, SessionStore):
        found = store.windows_of(occurring(slots, int(slots.max(initial=-1)) + 1))
        assert found.starts is not None
        none = np.zeros_like(found.slots), np.zeros_like(slots)
        of = within((found.slots, none[0], found.starts, found.ends), (slots, none[1], times, times))
        return found.take(occurring(of[of >= 0], found.slots.size))
    first, last = store.extents.wids(times)
    at, wids = spread(first, np.maximum(last - first + 1, 0))
    of = slots[at]
    known = of < len(store.spans)
    order = np.lexsort((of[known], wids[known]))
    of, wids = of[known][order], wids[known][order]
    new = new_rows(wids, of) & (wids >= store.spans[of, 0])  # those below have left
    of, wids = of[new], wids[new]
    rows = store.partials.find(of, wids, wids + 1, 0)
    each = None if store.panes is None else pane_windows.read_each(store.panes, of, wids, store.number)
    return store.with_table(each, rows)


def closing_between(
    store: Readable, slots: Integers, after: Integers | int, until: Integers | int
) -> WindowStates:
    """Return the windows of ``slots[i]`` that are complete by ``until[i]`` and not by ``after[i]``."""
    if isinstance(store, SessionStore):
        found = store.windows_of(slots)
        gone, done = (found.ends < bounds_of(found.slots, slots, by) for by in (after, until))
        return found.take(np.flatnonzero(done & ~gone))
    return _between(store, slots, store.extents.closed_by(after), store.extents.closed_by(until))


def _between(store: WindowStore, slots: Integers, low: Integers, stop: Integers) -> WindowStates:
    """Return the open windows ``low[i]`` to ``stop[i]`` (exclusive) of ``slots[i]``, each group once."""
    known = slots < len(store.spans)
    lows, stops = (np.broadcast_to(one, known.shape)[known] for one in (low, stop))
    lowest, highest = store.spans[slots[known]].T
    first, last = np.maximum(lowest, lows), np.minimum(stops, highest + 1)
    some = np.flatnonzero(first < last)  # of a group without a window the lowest one is above all
    where = slots[known][some], first[some], last[some]
    rows = store.partials.find(*where, len(store.spans)) if store.partials.counts[0] else some[:0]
    if store.panes is None:
        return store.with_table(None, rows)
    return store.with_table(pane_windows.take(store.panes, *where, store.number, forget=False), rows)


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
