"""Kernels of a table of fixed size: which entry a tuple goes to, and which entries leave for it.

A *life* is the time from when an entry is put in until it leaves: lives of a page are numbered, so that
partial aggregates can be taken together in bulk, whatever became of their place.
"""

# Layout       cells[place, GROUP | PANE | LIFE]     the table: GROUP -1: free; LIFE -1: none in this page yet
#              begun[life, ...] and left[n, ...]     columns as in ``EntryLives``
#              scan                                  a sweep over the table for old entries, kept from page to page
# Invariant    scan[OLD] entries have a pane below scan[BELOW]; scan[USED] places are not free.
#              An entry that was there before the page gets a life at its first tuple, or when it leaves.
# Not obvious  The sweep goes on where it stopped (scan[AT]): an entry costs one look for each round, not one a tuple.
#              A group has one home, or with ``probe`` two places: nothing is ever moved, so a full home evicts.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oop_engine.system.kernel import njit

__all__ = ["AT", "BELOW", "GROUP", "LIFE", "OLD", "PANE", "SINCE", "USED", "EntryLives", "EntryRule", "walk"]

Integers = NDArray[np.int64]

GROUP, PANE, LIFE = range(3)  # columns of ``cells``
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
        cells[at, GROUP],
        cells[at, PANE],
        before,
    )
    cells[at, LIFE] = number
    counts[0] += 1


@njit(cache=True, nogil=True)
def _evict(cells, scan, at, tuple_, lives):
    if cells[at, LIFE] < 0:  # it has had no tuple of this page
        _life(cells, at, 1, lives)
    left, counts = lives.left, lives.counts
    left[counts[1], 0], left[counts[1], 1] = cells[at, LIFE], tuple_
    counts[1] += 1
    if cells[at, PANE] < scan[BELOW]:
        scan[OLD] -= 1
    scan[USED] -= 1
    cells[at, GROUP] = cells[at, LIFE] = -1


@njit(cache=True, nogil=True)
def _evict_next_old(cells, scan, tuple_, lives):
    at = scan[AT] % len(cells)
    while cells[at, GROUP] < 0 or cells[at, PANE] >= scan[BELOW]:
        at = (at + 1) % len(cells)
    _evict(cells, scan, at, tuple_, lives)
    scan[AT] = at + 1


@njit(cache=True, nogil=True)
def _begin_pane(cells, scan, pane, tuple_, lives):
    """Evict old entries, and make the others old; panes come in order."""
    while scan[OLD] > 0:
        _evict_next_old(cells, scan, tuple_, lives)
    scan[BELOW], scan[OLD], scan[AT] = pane, scan[USED], 0


@njit(cache=True, nogil=True)
def _place(cells, scan, home, group, pane, probe):
    """Return where a group and pane go: where they are, or a free place, or an old one, or their home."""
    after = (home + 1) % len(cells) if probe else home
    for at in (home, after):
        if cells[at, GROUP] == group and cells[at, PANE] == pane:
            return at
    for at in (home, after):
        if cells[at, GROUP] < 0:
            return at
    # Both are taken: an old entry gives way before a new one does.
    return after if cells[home, PANE] >= scan[BELOW] > cells[after, PANE] else home


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
        # An old entry leaves for each so many tuples, so few are left when a pane begins.
        scan[SINCE] += 1
        if rule.every and scan[SINCE] >= rule.every:
            scan[SINCE] = 0
            if scan[OLD] > 0:
                _evict_next_old(cells, scan, i, lives)
        at = _place(cells, scan, homes[i], group, pane, rule.probe)
        if cells[at, GROUP] != group or cells[at, PANE] != pane:
            if cells[at, GROUP] >= 0:
                while rule.ordered and cells[at, PANE] >= scan[BELOW] and scan[OLD] > 0:
                    _evict_next_old(cells, scan, i, lives)
                _evict(cells, scan, at, i, lives)
            cells[at, GROUP], cells[at, PANE] = group, pane
            scan[USED] += 1
            _life(cells, at, 0, lives)
        elif cells[at, LIFE] < 0:
            _life(cells, at, 1, lives)
        rows[i] = cells[at, LIFE]
