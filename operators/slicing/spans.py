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

__all__ = ["loaded_spans", "no_spans", "saved_spans", "with_room"]

Integers = NDArray[np.int64]

_FAR = 1 << 62  # windows; no extent reaches so far


def no_spans(groups: int) -> Integers:
    """Return the spans of groups that have no window: lowest open and highest."""
    return np.tile([NO_WINDOW, NEVER], (groups, 1))


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
    rows = saved.integers(1, (None,), least=0, below=groups)
    low = saved.integers(2, rows.shape, least=0, below=_FAR)
    # below low: a group that waits for its next
    high = saved.integers(3, rows.shape, least=-_FAR, below=_FAR)
    spans = no_spans(max(room, groups))
    spans[rows] = np.stack([low, high], axis=1) + lowest
    return spans
