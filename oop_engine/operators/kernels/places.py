# Long: where tuples go, by groups and without them.
"""Places: where tuples go, in one pass over a page: the code (slot) of an integer key, the cell of a slot and pane.

A key's place is its distance from the ``lowest`` one, where ``near``; else it is found by hashing and linear
probing, and ``places`` are a power of two.  places int32: the code of the key there, or -1; keys int64 (room,):
by code.  Called by ``oop_engine.operators.keys.key_table``.

Cells are those of a ring of panes (``panes.py``).

Without groups, tuples go to few panes side by side.  A cell that is written for one tuple has to be waited for by the
next, so a block is taken together: where it has very few panes, by how much there is from the start of each on, in
vector instructions and without a division; else in lanes that take turns.  Tuples are counted and a sum is added up in
one number for both: value * 2**13 + 1.
"""

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.panes import row_of
from oop_engine.operators.kernels.partials import NO_WINDOW
from oop_engine.system.kernel import njit
from oop_engine.system.knobs import kernel_knob

__all__ = [
    "BLOCK",
    "PAGE_PANES",
    "WIDE",
    "encode",
    "fill",
    "find",
    "pairs",
    "pane_rows",
    "place",
    "place_sums",
    "sum_times",
    "tally",
]

NEVER = np.iinfo(np.int64).min
BLOCK = kernel_knob(__name__, "BLOCK", 512)
"""Tuples at a time: notes about them stay in the nearest cache."""
WIDE = kernel_knob(__name__, "WIDE", 64)
"""Panes of a block of one group at most, that are added up together."""
PAGE_PANES = kernel_knob(__name__, "PAGE_PANES", 1024)
"""Panes of a page of one group at most, that are added up together."""
_FEW = kernel_knob(__name__, "_FEW", 8)  # cells
_LANES, _ASKED = 4, 6  # lanes; panes that are asked for one at a time
_SAFE = np.int64(1) << 53  # so many times a block of them fits 64 bits
_STRETCH = 8 * BLOCK  # tuples whose count and sum share a number ...
_BITS = 13  # ... of which the count has so many bits, ...
_NARROW = np.int64(1) << 37  # ... and values fit if they are below this
_EXACT = np.int64(1) << 50  # the quotient of a time below this and a half is exact to the pane
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
    if near:
        for i in range(len(values)):
            away = np.uint64(np.int64(values[i]) - lowest)
            codes[i] = places[away] if away < last else -1
        return
    rows = np.empty(BLOCK, np.uint64)
    for start in range(0, len(values), BLOCK):
        some, its = values[start : start + BLOCK], codes[start : start + BLOCK]
        for k in range(_at_once(some, shift, keys, places, its, rows)):
            its[rows[k]] = places[_place(np.int64(some[rows[k]]), shift, keys, places)]


@njit(cache=True, nogil=True)
def _at_once(values, shift, keys, places, codes, rows):
    """Write the codes of values that are at their first place, -1 of all others; return how many these are.

    ``rows`` uint64 (BLOCK,), written: which ones these are.  Places and keys are read in loops of their own, without a
    branch that depends on them: one look-up does not wait for another.
    """
    for i in range(np.uint64(len(values))):  # unsigned: no index is below 0
        codes[i] = places[np.uint64(np.int64(values[i])) * SPREAD >> shift]
    left = np.uint64(0)
    for i in range(np.uint64(len(values))):
        code = codes[i]
        same = (code >= 0) & (keys[np.uint64(max(code, 0))] == np.int64(values[i]))
        codes[i] = code if same else -1
        rows[left] = i
        left += np.uint64(not same)
    return left


@njit(cache=True, nogil=True)
def encode(values, valid, near, lowest, keys, places, sizes, codes, begin):
    """As ``find``, from row ``begin`` on, but values that have none get the next code; return where it stopped.

    valid bool (rows,), false where the value is null, or (0,) if nowhere.  sizes int64 (2,) is kept up to
    date: how many codes there are, and that of null, or -1.  It stops before a value for which there is no
    room: neither a place, nor a key, nor, hashed, half of the places free.
    """
    known, shift, last = len(valid) == 0, _shift(len(places)), np.uint64(len(places))
    if known and not near:
        return _encode_hashed(values, shift, keys, places, sizes, codes, begin)
    i = begin
    while True:
        if known:
            i = _seen(values, lowest, places, codes, i)
        if i == len(values):
            return i
        value, new = np.int64(values[i]), sizes[0]
        if not (known or valid[i]):
            if sizes[1] < 0:
                if new == len(keys):
                    return i
                sizes[0], sizes[1] = new + 1, new
            codes[i] = sizes[1]
            i += 1
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
        i += 1


@njit(cache=True, nogil=True)
def _encode_hashed(values, shift, keys, places, sizes, codes, begin):
    """As ``encode``, of hashed values, none of which is null."""
    rows = np.empty(BLOCK, np.uint64)
    for start in range(begin, len(values), BLOCK):
        some, its = values[start : start + BLOCK], codes[start : start + BLOCK]
        for k in range(_at_once(some, shift, keys, places, its, rows)):
            i, new = rows[k], sizes[0]
            at = _place(np.int64(some[i]), shift, keys, places)
            if places[at] < 0:
                if new == len(keys) or 2 * new >= len(places):
                    return start + np.int64(i)
                places[at], keys[new], sizes[0] = new, np.int64(some[i]), new + 1
            its[i] = places[at]
    return len(values)


@njit(cache=True, nogil=True)
def _seen(values, lowest, places, codes, begin):
    """Write the codes of values that have one, from row ``begin`` on; return the first row whose value has none."""
    last = np.uint64(len(places))
    for i in range(np.uintp(begin), np.uintp(len(values))):  # unsigned: no index is below 0
        away = np.uint64(np.int64(values[i]) - lowest)
        if away >= last or places[away] < 0:
            return np.int64(i)
        codes[i] = places[away]
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
def pane_rows(slots, times, grid, places, rows, first):
    """Number pairs of slot and pane by first sight; return how many there are.

    ``grid``: where the first slide begins, how long each is, how many panes it has (1 or 2), and where in it the second
    one begins.  All slides together are less than 2**53 long.  places int32 (panes, slots), -1 each.  Writes the number
    of each row, and the first row of each number, int64 (rows,).
    """
    many, free, cells = 0, places.ravel(), np.empty(BLOCK, np.int64)
    for start in range(0, len(slots), BLOCK):
        its = rows[start : start + BLOCK]
        _pane_cells(grid, places.shape[1], slots[start : start + BLOCK], times[start : start + BLOCK], cells)
        for i in range(len(its)):
            at = np.uintp(cells[i])  # unsigned: no index is below 0
            if free[at] < 0:
                free[at], first[many] = many, start + i
                many += 1
            its[i] = free[at]
    return many


@njit(cache=True, nogil=True)
def _pane_cells(grid, groups, slots, times, cells):
    """Write the place of each pair of slot and pane.  Vector instructions; a quotient of floats is one off at most."""
    begin, slide, step, edge = grid
    share = 1.0 / slide
    for i in range(len(slots)):
        away = times[i] - begin
        pane = np.int64(np.float64(away) * share)
        rest = away - pane * slide
        off = np.int64(rest >= slide) - np.int64(rest < 0)
        second = (step > 1) & (rest - off * slide >= edge)
        cells[i] = ((pane + off) * step + second) * groups + slots[i]


@njit(cache=True, nogil=True)
def place(geometry, grid, tuples, spans, counts, turns, slots, times, rows, stops):
    """Count each tuple in its cell, from a first one on until a cell may have more than a limit, a power of two.

    ``grid``: where pane ``low`` begins, and how long each is, all of them together less than 2**53.  ``stops``: the
    first tuple, and the limit.  tuples integers (cells,), in which the limit + 512 fits, spans int64 (slots, 2): lowest
    open and highest window, counts int64 (3,) as in ``Table``, and turns int64 (4, groups), or (4, 0) where all are as
    they were made, are updated.  rows int64 (tuples,): the cells, -1 for a tuple that is left out; or (0,) where nobody
    asks, and all are in a cell that there is.  Returns how many cells are new, how many tuples are left out, where it
    stopped, and whether a cell may have more than the limit.
    """
    (begin, slide), (done, limit) = grid, stops
    used, missed, over, panes = 0, 0, False, np.empty(BLOCK, np.int64)
    cells, fresh = np.empty(BLOCK, np.int64), np.empty(BLOCK + 1, np.int64)
    while done < len(slots) and not over:  # so many at a time that notes about them stay in the nearest cache
        start, done = done, min(done + BLOCK, len(slots))
        some, its = slots[start:done], cells[: done - start]
        missed += _cells(geometry, begin, slide, some, times[start:done], panes, its)
        new, bits = _count_few(tuples, its, fresh) if geometry.groups == 1 else _count(tuples, its, fresh)
        _wake(geometry, spans, counts, turns, some, panes, fresh[:new])
        used, over = used + new, bits >= limit
        if len(rows):
            kept = rows[start:done]
            for i in range(len(its)):
                kept[i] = its[i]
    return used, missed, done, over


@njit(cache=True, nogil=True)
def _cells(geometry, begin, slide, slots, times, panes, cells):
    """Write the pane and the cell of each tuple, -1 for one that is left out; return how many are.

    The quotient of floats is one off at most.  Vector instructions: no branch, and nothing of the ring is touched.
    """
    _, _, low, high, _, groups, _ = geometry
    room, share, missed = np.uint64((high - low + 1) * slide), 1.0 / slide, 0
    for i in range(len(slots)):
        away = times[i] - begin
        inside = (times[i] >= begin) & (np.uint64(away) < room) & (slots[i] < groups)
        pane = np.int64(np.float64(away) * share)
        rest = away - pane * slide
        pane += low + np.int64(rest >= slide) - np.int64(rest < 0)
        panes[i], cells[i] = pane, row_of(geometry, pane) * groups + slots[i] if inside else -1
        missed += not inside
    return missed


@njit(cache=True, nogil=True)
def _count(tuples, cells, fresh):
    """Count tuples in their cells; write which of them made a new one.

    Returns how many did, and the bits that there are in numbers of tuples of a cell before its last one.
    """
    new, bits = np.uintp(0), np.int64(0)
    for i in range(len(cells)):
        if cells[i] >= 0:
            cell = np.uintp(cells[i])  # unsigned: no index is below 0
            count = np.int64(tuples[cell])
            fresh[new] = i  # no branch: whether a cell is new cannot be foreseen
            new += np.uintp(count == 0)
            bits |= count
            tuples[cell] = count + 1
    return np.int64(new), bits


@njit(cache=True, nogil=True)
def _count_few(tuples, cells, fresh):
    """Do so where cells are few, as of one group: a cell at a time, in vector instructions."""
    low, high, new, bits = cells[0], cells[0], 0, np.int64(0)
    for i in range(len(cells)):
        low, high = min(low, cells[i]), max(high, cells[i])
    if high - low >= _FEW:
        return _count(tuples, cells, fresh)
    for cell in range(max(low, 0), high + 1):
        count = 0
        for i in range(len(cells)):
            count += cells[i] == cell
        if count and not tuples[cell]:
            at = 0
            while cells[at] != cell:
                at += 1
            fresh[new] = at
            new += 1
        tuples[cell] += count
        bits |= np.int64(tuples[cell])
    return new, bits


@njit(cache=True, nogil=True)
def _wake(geometry, spans, counts, turns, slots, panes, fresh):
    """Note the windows of the tuples that made new cells."""
    step, length = geometry.step, geometry.length
    alive, lowest = counts[1], counts[2]
    for row in fresh:
        at = np.uintp(row)  # unsigned: no index is below 0
        pane, slot = panes[at], np.uintp(slots[at])
        first, last = pane, pane + length - 1
        if step > 1:  # a division takes as long as all the rest
            first, last = pane // step, (pane + length) // step - 1
        low, high = spans[slot, 0], spans[slot, 1]
        asleep = low == NO_WINDOW
        alive += asleep
        if turns.shape[1]:
            turns[0, slot] = NEVER if asleep else turns[0, slot]
        spans[slot, 0], spans[slot, 1] = min(low, first), max(high, last)
        lowest = min(lowest, first)
    counts[1], counts[2] = alive, lowest


@njit(cache=True, nogil=True)
def place_sums(geometry, grid, tuples, known, slots, times, given, sums, carries, limit):
    """Count the tuples of a page without groups in their panes, all of which the ring has, and add up one column.

    ``grid``: the page's first pane, when it begins, how long each is, and of how many there are tuples: at most
    ``PAGE_PANES``.  ``known``: spans, counts and turns as in ``place``.  given integers (n,) are added to sums int64
    (room,); both (0,): there is nothing to add up.  ``carries`` as in ``sum_times``.  Returns how many panes are new,
    and how many tuples are done.  It stops before values that are too large to share a number with a count, panes that
    are too long, and a cell with more tuples than ``limit``.  O(tuples + panes for each stretch of them).
    """
    first, begin, slide, wide = grid
    totals, cells = np.empty((_LANES, wide), np.int64), np.empty(BLOCK, np.int64)
    packed, fresh, panes = np.ones(BLOCK, np.int64), np.arange(wide), np.empty(wide, np.int64)
    new, done = 0, 0
    while done < len(times) and wide * slide < _EXACT:
        bits, stop = np.int64(0), min(done + _STRETCH, len(times))
        totals[:] = 0
        for start in range(done, stop, BLOCK):
            some = times[start : min(start + BLOCK, stop)]
            if len(given):
                bits |= _pack(given[start : start + len(some)], packed)
            if wide <= _ASKED:
                _from_each(some, begin, slide, packed[: len(some)], totals[0])
            else:
                _in_lanes(some, begin, slide, packed[: len(some)], totals, cells)
        if bits >= _NARROW or _united(geometry, first, totals, tuples) > limit:
            break
        for at in range(wide):
            pane, count = first + at, totals[0, at] & ((1 << _BITS) - 1)
            cell = row_of(geometry, pane)
            if count and not tuples[cell]:
                panes[new] = pane
                new += 1
            tuples[cell] += count
            if len(given):
                _add(sums, carries, cell, totals[0, at] >> _BITS)
        done = stop
    _wake(geometry, *known, slots, panes, fresh[:new])
    return new, done


@njit(cache=True, nogil=True)
def _pack(given, packed):
    """Write value * 2**13 + 1 for each value; return the bits that there are in values."""
    bits = np.int64(0)
    for i in range(len(given)):  # vector instructions
        value = np.int64(given[i])
        packed[i] = (value << _BITS) + 1
        bits |= value ^ (value >> 63)
    return bits


@njit(cache=True, nogil=True)
def _united(geometry, first, totals, tuples):
    """Add lanes up in the first one; return how many tuples a cell will have at most."""
    most = np.int64(0)
    for at in range(totals.shape[1]):
        for lane in range(1, _LANES):
            totals[0, at] += totals[lane, at]
        count = totals[0, at] & ((1 << _BITS) - 1)
        most = max(most, np.int64(tuples[row_of(geometry, first + at)]) + count)
    return most


@njit(cache=True, nogil=True)
def tally(times, begin, slide, given, totals, cells):
    """Add ``given`` integers (n,) up by panes; return the first pane, and of how many.

    Pane 0 begins at ``begin``, each is ``slide`` long; times int64 (n,) are none before it.  Written: totals int64
    (4, WIDE), of which row 0 has the totals; cells int64 (BLOCK,), scratch.  0 panes: there are more than ``WIDE``, or
    they are too long.
    """
    least, greatest = times[0], times[0]
    for i in range(len(times)):
        least, greatest = min(least, times[i]), max(greatest, times[i])
    first = (least - begin) // slide
    wide = (greatest - begin) // slide - first + 1
    if wide > WIDE or wide * slide >= _EXACT:
        return first, np.int64(0)
    totals[:, :wide] = 0
    if wide <= _ASKED:
        _from_each(times, begin + first * slide, slide, given, totals[0, :wide])
    else:
        _in_lanes(times, begin + first * slide, slide, given, totals[:, :wide], cells)
        for lane in range(1, _LANES):
            for at in range(wide):
                totals[0, at] += totals[lane, at]
    return first, wide


@njit(cache=True, nogil=True)
def _from_each(times, begin, slide, given, totals):
    """Add up pane by pane: the total from its start on, less that from the next one on."""
    later = np.int64(0)
    for at in range(len(totals) - 1, -1, -1):
        start, total = begin + at * slide, np.int64(0)
        for i in range(len(given)):
            total += np.int64(given[i]) if at == 0 or times[i] >= start else np.int64(0)
        totals[at], later = totals[at] + total - later, total


@njit(cache=True, nogil=True)
def _in_lanes(times, begin, slide, given, totals, cells):
    """Add up tuple by tuple.  Half a unit keeps the quotient from the edge of a pane by more than it may be wrong."""
    share, lanes = 1.0 / slide, np.uintp(_LANES)
    for i in range(len(times)):
        cells[i] = np.int64((np.float64(times[i] - begin) + 0.5) * share)
    whole = np.uintp(len(times) // _LANES * _LANES)
    for i in range(np.uintp(0), whole, lanes):  # unsigned: no index is below 0
        for lane in range(lanes):
            totals[lane, np.uintp(cells[i + lane])] += np.int64(given[i + lane])
    for i in range(whole, np.uintp(len(times))):
        totals[0, np.uintp(cells[i])] += np.int64(given[i])


@njit(cache=True, nogil=True)
def sum_times(geometry, begin, slide, times, given, sums, carries):
    """Add ``given`` integers (n,) to ``sums`` int64 (room,) of the panes of one group.

    ``carries`` int32 (room,): how often each sum wrapped upwards (``monoids.Carried``); (0,): none can wrap.
    Pane ``low`` of the ring begins at ``begin``, each is ``slide`` long, and all times are in a pane that it has.
    O(tuples).
    """
    totals, cells = np.empty((_LANES, WIDE), np.int64), np.empty(BLOCK, np.int64)
    low = geometry.low
    for start in range(0, len(times), BLOCK):
        some, its = times[start : start + BLOCK], given[start : start + BLOCK]
        bits = np.int64(0)
        for i in range(len(its)):
            bits |= np.int64(its[i]) ^ (np.int64(its[i]) >> 63)
        first, wide = (
            tally(some, begin, slide, its, totals, cells) if bits < _SAFE else (np.int64(0), np.int64(0))
        )
        for at in range(wide):
            _add(sums, carries, row_of(geometry, low + first + at), totals[0, at])
        if wide == 0:
            for i in range(len(its)):
                cell = row_of(geometry, low + (some[i] - begin) // slide)
                _add(sums, carries, cell, np.int64(its[i]))


@njit(cache=True, nogil=True)
def _add(sums, carries, cell, value):
    """Add a value to a cell; count where the sum wraps."""
    held = sums[cell]
    both = held + value
    sums[cell] = both
    if (both ^ held) & (both ^ value) < 0 and len(carries):
        carries[cell] += (value >> 63) | 1
