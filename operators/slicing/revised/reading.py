"""Reading: windows as they are now, put together without taking them out."""

from __future__ import annotations

from typing import TypeGuard

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import GroupIndex, occurring
from oop_engine.operators.keys.key_table import KeyTable
from oop_engine.operators.slicing.partials import NO_WINDOW
from oop_engine.operators.slicing.revised.version_table import within
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.stores.session_store import SessionStore
from oop_engine.operators.slicing.stores.window_store import WindowStore
from oop_engine.operators.slicing.window_states import WindowStates

__all__ = ["Readable", "closing_between", "opened", "readable", "touched"]

Integers = NDArray[np.int64]
Readable = WindowStore | SessionStore
"""The stores whose windows can be read: partial aggregates of windows in a table, and sessions of one gap."""


def readable(store: Store) -> TypeGuard[Readable]:
    """Tell whether windows can be read: of a grid from the table, and sessions."""
    return type(store) is WindowStore or isinstance(store, SessionStore)


def opened(store: Readable, slots: Integers) -> WindowStates:
    """Return all open windows of some groups."""
    if isinstance(store, SessionStore):
        return store.windows_of(slots)
    slots = slots[slots < len(store.spans)]
    low, high = store.spans[slots].T
    some = np.flatnonzero(low != NO_WINDOW)
    return _states(store, *_in_table(store, slots[some], low[some], high[some] + 1))


def touched(store: Readable, times: Integers, slots: Integers) -> WindowStates:
    """Return the windows that tuples have just gone into.  O(windows of the tuples), of sessions O(runs held)."""
    if isinstance(store, SessionStore):
        found = store.windows_of(occurring(slots, int(slots.max(initial=-1)) + 1))
        assert found.starts is not None
        none = np.zeros_like(found.slots), np.zeros_like(slots)
        of = within((found.slots, none[0], found.starts, found.ends), (slots, none[1], times, times))
        return found.take(occurring(of[of >= 0], found.slots.size))
    first, last = store.extents.wids(times)
    panes = GroupIndex([pa.int64()] * 3, KeyTable)
    panes.encode([pa.array(slots), pa.array(first), pa.array(last)])
    of, first, last = (column.to_numpy() for column in panes.keys(np.arange(len(panes))))
    widths = np.maximum(last - first + 1, 0)
    rows = np.repeat(np.arange(of.size), widths)
    wids = first[rows] + np.arange(rows.size) - np.repeat(np.cumsum(widths) - widths, widths)
    wanted = GroupIndex([pa.int64(), pa.int64()], KeyTable)
    wanted.encode([pa.array(of[rows]), pa.array(wids)])
    found_of, found_wids, at = _in_table(store, of[rows], wids, wids + 1)
    some = wanted.find([pa.array(found_of), pa.array(found_wids)]) >= 0
    return _states(store, found_of[some], found_wids[some], at[some])


def closing_between(store: Readable, slots: Integers, after: Integers, until: Integers) -> WindowStates:
    """Return the windows of ``slots[i]`` that are complete by ``until[i]`` and not by ``after[i]``."""
    if isinstance(store, SessionStore):
        found = store.windows_of(slots)
        bounds = np.full((2, int(slots.max(initial=-1)) + 1), 0)
        bounds[:, slots] = after, until
        done = [store.complete(found, bounds[side, found.slots]) for side in (0, 1)]
        return found.take(np.flatnonzero(done[1] & ~done[0]))
    low, stop = store.extents.closed_by(after), store.extents.closed_by(until)
    return _states(store, *_in_table(store, slots, np.maximum(low, store.partials.lowest), stop))


def _in_table(
    store: WindowStore, slots: Integers, low: Integers, stop: Integers
) -> tuple[Integers, Integers, Integers]:
    """Return slots, windows and rows of the table between the least and the largest window asked of each group."""
    groups = len(store.spans)
    least, most = np.full(groups, NO_WINDOW), np.full(groups, -NO_WINDOW)
    np.minimum.at(least, slots, low)
    np.maximum.at(most, slots, stop)
    some = np.flatnonzero(least < most)
    rows = store.partials.find(some, least[some], most[some], groups)
    return (*store.partials.owner(rows), rows)


def _states(store: WindowStore, slots: Integers, wids: Integers, rows: Integers) -> WindowStates:
    starts, ends = store.extents.extent(wids)
    return WindowStates(slots, ends, store.partials.states.take(rows), store.number, starts)
