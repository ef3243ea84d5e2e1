"""Spans: the lowest open and the highest window of each group, int64 (groups, 2), as stores of grids keep them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.punctuation import NEVER
from oop_engine.core.saved import Saved
from oop_engine.core.snapshot import Later
from oop_engine.operators.slicing.partials import NO_WINDOW
from oop_engine.operators.slicing.window_states import narrow

__all__ = ["as_slice", "loaded_spans", "no_spans", "saved_spans", "with_room"]

Integers = NDArray[np.int64]

_FAR = 1 << 62  # windows; no extent reaches so far


def no_spans(groups: int) -> Integers:
    """Return the spans of groups that have no window: lowest open and highest."""
    spans = np.empty((groups, 2), np.int64)
    spans[:, 0], spans[:, 1] = NO_WINDOW, NEVER
    return spans


def with_room(spans: Integers, groups: int) -> Integers:
    """Return spans with room for so many groups."""
    return np.concatenate([spans, no_spans(groups - len(spans))])


def saved_spans(spans: Integers) -> Later:
    """Return spans for a snapshot.  O(groups) for the copy."""
    copied = spans.copy()
    return Later(lambda: _narrowed(copied))


def _narrowed(spans: Integers) -> list[Any]:
    alive = np.flatnonzero(spans[:, 0] != NO_WINDOW)
    low, high = spans[alive].T
    lowest = int(low.min()) if low.size else 0
    return [lowest, narrow(alive), narrow(low - lowest), narrow(high - lowest)]


def loaded_spans(saved: Saved, groups: int, room: int) -> Integers:
    """Return the spans of a snapshot of so many groups, with ``room`` for at least as many."""
    lowest = saved.integer(0, least=-_FAR, most=_FAR)
    rows = saved.narrow(1, (None,), least=0, below=groups)
    low = saved.narrow(2, rows.shape, least=0, below=_FAR)
    # below low: a group that waits for its next
    high = saved.narrow(3, rows.shape, least=-_FAR, below=_FAR)
    spans, where = no_spans(max(room, groups)), as_slice(rows)
    spans[where, 0], spans[where, 1] = low, high
    spans[where] += lowest
    return spans


def as_slice(places: Integers) -> Integers | slice:
    """Return the same places as a slice where they are one after the other, as of many groups they mostly are."""
    if not places.size or places[-1] - places[0] != places.size - 1 or not (places[1:] > places[:-1]).all():
        return places
    return slice(int(places[0]), int(places[-1]) + 1)
