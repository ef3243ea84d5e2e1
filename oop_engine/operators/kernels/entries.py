"""Kernels of a table of fixed size: which entry a tuple goes to, and which entries leave for it.

A *life* is the time from when an entry is put in until it leaves: lives of a page are numbered, so that
partial aggregates can be taken together in bulk, whatever became of their place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.system.kernel import njit

__all__ = ["AT", "BELOW", "OLD", "SINCE", "USED", "EntryLives", "EntryRule", "walk"]

Integers = NDArray[np.int64]

SINCE, AT, OLD, BELOW, USED = range(5)
"""Of ``scan``: tuples since an old entry was let go for them, where to look for the next one, how many old entries
there are, below which pane they are old, how many entries are taken."""


class EntryRule(NamedTuple):
    """``every``: an old entry leaves for each so many tuples, 0: none.  ``probe``: two places are looked at.

    ``ordered``: entries of a pane leave before those of the next, and a tuple of a new pane makes the others old.
    """

    every: int
    probe: bool
    ordered: bool


class EntryLives(NamedTuple):
    """The lives of a page, by number, and the order in which they leave.

    ``begun`` int64 (lives, 4): place, group, pane, and 1 if it was there before the page.  ``left`` int64 (lives, 2):
    life, and the tuple that it left for.  ``counts`` int64 (2,): how many there are of each.
    """

    begun: Integers
    left: Integers
    counts: Integers


@njit(cache=True, nogil=True)
def _life(cells, at, before, lives):
    begun, counts = lives.begun, lives.counts
    number = counts[0]
    begun[number, 0], begun[number, 1], begun[number, 2], begun[number, 3] = (
        at,
        cells[at, 0],
        cells[at, 1],
        before,
    )
    cells[at, 2] = number
    counts[0] += 1


@njit(cache=True, nogil=True)
def _leave(cells, scan, at, tuple_, lives):
    if cells[at, 2] < 0:
        _life(cells, at, 1, lives)
    left, counts = lives.left, lives.counts
    left[counts[1], 0], left[counts[1], 1] = cells[at, 2], tuple_
    counts[1] += 1
    if cells[at, 1] < scan[BELOW]:
        scan[OLD] -= 1
    scan[USED] -= 1
    cells[at, 0] = cells[at, 2] = -1


@njit(cache=True, nogil=True)
def _leave_next_old(cells, scan, tuple_, lives):
    at = scan[AT] % len(cells)
    while cells[at, 0] < 0 or cells[at, 1] >= scan[BELOW]:
        at = (at + 1) % len(cells)
    _leave(cells, scan, at, tuple_, lives)
    scan[AT] = at + 1


@njit(cache=True, nogil=True)
def _begin_pane(cells, scan, pane, tuple_, lives):
    """Let old entries leave, and make the rest old; panes come in order."""
    while scan[OLD] > 0:
        _leave_next_old(cells, scan, tuple_, lives)
    scan[BELOW], scan[OLD], scan[AT] = pane, scan[USED], 0


@njit(cache=True, nogil=True)
def _place(cells, scan, home, group, pane, probe):
    """Return where a group and pane go: where they are, or a free place, or an old one, or their home."""
    after = (home + 1) % len(cells) if probe else home
    for at in (home, after):
        if cells[at, 0] == group and cells[at, 1] == pane:
            return at
    for at in (home, after):
        if cells[at, 0] < 0:
            return at
    return after if cells[home, 1] >= scan[BELOW] > cells[after, 1] else home


@njit(cache=True, nogil=True)
def walk(cells, scan, rule, groups, panes, homes, rows, lives):
    """Put tuples into a table one by one; write the life of each into ``rows``.

    cells int64 (slots, 3): group, -1 if free; pane; life, -1 if it has none in this page.  scan int64 (5,).
    groups, panes, homes, rows int64 (tuples,); lives has room for slots + tuples.
    """
    for i in range(len(groups)):
        group, pane = groups[i], panes[i]
        if rule.ordered and pane > scan[BELOW]:
            _begin_pane(cells, scan, pane, i, lives)
        scan[SINCE] += 1
        if rule.every and scan[SINCE] >= rule.every:
            scan[SINCE] = 0
            if scan[OLD] > 0:
                _leave_next_old(cells, scan, i, lives)
        at = _place(cells, scan, homes[i], group, pane, rule.probe)
        if cells[at, 0] != group or cells[at, 1] != pane:
            if cells[at, 0] >= 0:
                while rule.ordered and cells[at, 1] >= scan[BELOW] and scan[OLD] > 0:
                    _leave_next_old(cells, scan, i, lives)
                _leave(cells, scan, at, i, lives)
            cells[at, 0], cells[at, 1] = group, pane
            scan[USED] += 1
            _life(cells, at, 0, lives)
        elif cells[at, 2] < 0:
            _life(cells, at, 1, lives)
        rows[i] = cells[at, 2]
