"""Places: where tuples go, in one pass over a page: the code (slot) of an integer key, the cell of a slot and pane.

A key's place is its distance from the ``lowest`` one, where ``near``; else it is found by hashing and linear
probing, and ``places`` are a power of two.  places int32: the code of the key there, or -1; keys int64 (room,):
by code.  Called by ``oop_engine.operators.keys.key_table``.

Cells are those of a ring of panes (``panes.py``).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from oop_engine.operators.kernels.partials import NO_WINDOW

__all__ = ["encode", "fill", "find", "pairs", "place"]

NEVER = np.iinfo(np.int64).min
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio


@njit(cache=True, nogil=True)
def _shift(places):
    """Return by how many bits a hash is shifted to become a place."""
    bits = 0
    while (1 << bits) < places:
        bits += 1
    return np.uint64(64 - bits)


@njit(cache=True, nogil=True)
def _place(value, shift, keys, places):
    """Return where a value is, or the free place where it would be."""
    home = np.uint64(value) * SPREAD >> shift
    at = np.int64(home)
    while places[at] >= 0 and keys[places[at]] != value:
        at = (at + 1) & (len(places) - 1)
    return at


@njit(cache=True, nogil=True)
def find(values, near, lowest, keys, places, codes):
    """Write the code of each value, integers (rows,), into ``codes`` int64 (rows,); -1 if it has none."""
    shift, last = _shift(len(places)), np.uint64(len(places))
    for i in range(len(values)):
        value = np.int64(values[i])
        if near:
            away = np.uint64(value - lowest)
            codes[i] = places[away] if away < last else -1
        else:
            codes[i] = places[_place(value, shift, keys, places)]


@njit(cache=True, nogil=True)
def encode(values, valid, near, lowest, keys, places, sizes, codes, begin):
    """As ``find``, from row ``begin`` on, but values that have none get the next code; return where it stopped.

    valid bool (rows,), false where the value is null, or (0,) if nowhere.  sizes int64 (2,) is kept up to
    date: how many codes there are, and that of null, or -1.  It stops before a value for which there is no
    room: neither a place, nor a key, nor, hashed, half of the places free.
    """
    known, shift, last = len(valid) == 0, _shift(len(places)), np.uint64(len(places))
    for i in range(begin, len(values)):
        value, new = np.int64(values[i]), sizes[0]
        if not (known or valid[i]):
            if sizes[1] < 0:
                if new == len(keys):
                    return i
                sizes[0], sizes[1] = new + 1, new
            codes[i] = sizes[1]
            continue
        away = np.uint64(value - lowest)
        if near and away >= last:
            return i
        at = np.int64(away) if near else _place(value, shift, keys, places)
        if places[at] < 0:
            if new == len(keys) or not (near or 2 * new < len(places)):
                return i
            places[at], keys[new], sizes[0] = new, value, new + 1
        codes[i] = places[at]
    return len(values)


@njit(cache=True, nogil=True)
def fill(sizes, near, lowest, keys, places):
    """Put all keys but null, which has none, to their places, ``places`` being free."""
    shift = _shift(len(places))
    for code in range(sizes[0]):
        if code != sizes[1]:
            at = keys[code] - lowest if near else _place(keys[code], shift, keys, places)
            places[at] = code


@njit(cache=True, nogil=True)
def pairs(one, two, lowest, wide, places, numbers, first):
    """Number pairs of integers by first sight; return how many there are.

    ``one``, ``two`` int64 (rows,) from ``lowest`` on, two integers, the second less than ``wide`` above; places
    int32, -1 each, one for each pair that there may be.  Writes the number of each row, and the first row of each
    number, int64 (rows,).
    """
    low, least, many = lowest[0], lowest[1], 0
    for i in range(len(one)):
        at = (one[i] - low) * wide + two[i] - least
        if places[at] < 0:
            places[at], first[many] = many, i
            many += 1
        numbers[i] = places[at]
    return many


@njit(cache=True, nogil=True)
def place(geometry, tuples, spans, counts, turns, slots, panes, rows, fresh):
    """Count each tuple in its cell; return how many cells are new, and how many tuples are left out.

    tuples integers (cells,), spans int64 (slots, 2): lowest open and highest window, counts
    int64 (3,) as in ``Table``, and turns int64 (4, groups) are updated.  rows int64 (tuples,): the cells,
    -1 for a tuple that is left out; fresh int64 (tuples + 1,): which tuples made a new one.
    """
    step, length, _, _, _, groups = geometry
    if groups == 1:
        new, out = _count_runs(geometry, tuples, slots, panes, rows, fresh)
    else:
        new, out = _count(geometry, tuples, slots, panes, rows, fresh)
    alive, lowest = counts[1], counts[2]
    for k in range(new):
        pane, slot = panes[fresh[k]], slots[fresh[k]]
        first, last = pane, pane + length - 1
        if step > 1:  # a division takes as long as all the rest
            first, last = pane // step, (pane + length) // step - 1
        asleep = spans[slot, 0] == NO_WINDOW
        alive += asleep
        turns[0, slot] = NEVER if asleep else turns[0, slot]
        spans[slot, 0] = min(spans[slot, 0], first)
        spans[slot, 1] = max(spans[slot, 1], last)
        lowest = min(lowest, first)
    counts[1], counts[2] = alive, lowest
    return new, out


@njit(cache=True, nogil=True)
def _count(geometry, tuples, slots, panes, rows, fresh):
    """Count each tuple in its cell; write rows and fresh, as of ``place``, and return how many are new and left out."""
    _, _, low, high, mask, groups = geometry
    new, out = 0, 0
    for i in range(len(slots)):
        pane, slot = panes[i], slots[i]
        if pane < low or pane > high or slot >= groups:
            rows[i] = -1
            out += 1
            continue
        cell = (pane & mask) * groups + slot
        rows[i] = cell
        fresh[new] = i  # no branch: whether a cell is new cannot be foreseen
        new += tuples[cell] == 0
        tuples[cell] += 1
    return new, out


@njit(cache=True, nogil=True)
def _count_runs(geometry, tuples, slots, panes, rows, fresh):
    """Do so for one group: neighbours are mostly of one pane, so they are counted before the cell is written."""
    _, _, low, high, mask, _ = geometry
    new, out, last, cell, count = 0, 0, NEVER, 0, 0  # no pane is NEVER
    for i in range(len(slots)):
        if panes[i] != last or slots[i]:
            tuples[cell] += count
            last, count = panes[i], 0
            if last < low or last > high or slots[i]:
                last, rows[i] = NEVER, -1
                out += 1
                continue
            cell = last & mask
            fresh[new] = i
            new += tuples[cell] == 0
        count += 1
        rows[i] = cell
    tuples[cell] += count
    return new, out
