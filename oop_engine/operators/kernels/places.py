"""Places: where tuples go, in one pass over a page: the code (slot) of an integer key, the cell of a slot and pane.

Called by ``oop_engine.operators.keys.key_table`` and ``oop_engine.operators.slicing.panes.pane_ring``.
"""

# Layout       places[n] int32  the code of the key there, or -1: free.  A key's place is its distance from the
#                               `lowest` one, where `near`; else its hash, or the next free place (n a power of two)
#              keys[room]       the key of each code
#              sizes[2]         CODES there are; NULL: the code of null, or -1
#              tuples[cells]    how many there are in each cell of a ring of panes (panes.py); spans, turns: as there
#              counts[3]        as of partials.py
#              totals[lane, at] value << 13 | count of pane `at`, added up: a sum and a count in one number
# Invariant    Between a hashed key and its home no place is free; at least half of the places are.
#              Of a cell with tuples the windows are in spans: only tuples that make a new cell look at their group.
#              No count or sum runs into the other: a stretch has 8 * BLOCK = 4096 tuples, less than 2**13, and with
#              values below 2**37 (_NARROW) their sum takes at most 49 of the 50 bits beside it.
# Not obvious  Unsigned indices: Numba tests a signed one for below 0 and adds the length; unsigned ones are used as
#              they are.
#              Unsigned distances: a key or time below the first becomes a huge number, so one comparison finds both.
#              No branch where the data decides (which cell is new, which key is not at home): the processor cannot
#              foresee it.  The row is written in any case, and the counter goes on by 0 or 1.
#              Quotients are of floats, times 1 / slide: a division of integers is no vector instruction.  Below 2**53
#              they are one off at most, which the rest tells; with half a unit added, below 2**50, they are exact.
#              Blocks of BLOCK tuples: panes and cells of a block stay in the nearest cache from pass to pass.
#              Without groups a cell that was written for a tuple has to be waited for by the next: so a block is added
#              up pane by pane, where it has very few, or in lanes that take turns.
# Tried        ns a tuple: a branch for a new cell 7.7, none 5.5; a branch for each probe of 100,000 hashed keys 9,
#              places and keys in loops of their own 3.6; pairs of group and pane by hash 14, by a place for each 4;
#              of one group a write for each tuple 1.9, a cell at a time .5.

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.panes import TURN, row_of
from oop_engine.operators.kernels.partials import ALIVE, HIGH, LOW, LOWEST, NO_WINDOW, SHIFT
from oop_engine.system.kernel import njit
from oop_engine.system.knobs import kernel_knob

__all__ = [
    "BLOCK", "CODES", "NULL", "PAGE_PANES", "WIDE", "encode", "fill", "find", "pairs", "pane_rows", "place",
    "place_sums", "sum_times", "tally",
]  # fmt: skip

NEVER = np.iinfo(np.int64).min
CODES, NULL = range(2)
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
    # Hashed: those that are not at home, few of most blocks, are looked for one by one.
    rows = np.empty(BLOCK, np.uint64)
    for start in range(0, len(values), BLOCK):
        block, out = values[start : start + BLOCK], codes[start : start + BLOCK]
        for k in range(_at_once(block, shift, keys, places, out, rows)):
            out[rows[k]] = places[_place(np.int64(block[rows[k]]), shift, keys, places)]


@njit(cache=True, nogil=True)
def _at_once(values, shift, keys, places, codes, rows):
    """Write the codes of values that are at their first place, -1 of all others; return how many these are.

    ``rows`` uint64 (BLOCK,), written: which ones these are.  Places and keys are read in loops of their own, without a
    branch that depends on them: one look-up does not wait for another.
    """
    for i in range(np.uint64(len(values))):
        codes[i] = places[np.uint64(np.int64(values[i])) * SPREAD >> shift]
    # Code 0 stands in for a place that is free, so that there is always a key to read.
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
    """Write codes as ``find`` does, from row ``begin`` on; new values get the next code.  Return where it stopped.

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
        # Here is a null, or a value without a code, or any value where there are nulls.
        value, new = np.int64(values[i]), sizes[CODES]
        if not (known or valid[i]):
            if sizes[NULL] < 0:
                if new == len(keys):
                    return i
                sizes[CODES], sizes[NULL] = new + 1, new
            codes[i] = sizes[NULL]
            i += 1
            continue
        # The caller makes room, and goes on with this row.
        away = np.uint64(value - lowest)
        if near and away >= last:
            return i
        at = np.int64(away) if near else _place(value, shift, keys, places)
        if places[at] < 0:
            if new == len(keys) or not (near or 2 * new < len(places)):
                return i
            places[at], keys[new], sizes[CODES] = new, value, new + 1
        codes[i] = places[at]
        i += 1


@njit(cache=True, nogil=True)
def _encode_hashed(values, shift, keys, places, sizes, codes, begin):
    """Write the codes of hashed values, none of which is null, as ``encode`` does."""
    rows = np.empty(BLOCK, np.uint64)
    for start in range(begin, len(values), BLOCK):
        block, out = values[start : start + BLOCK], codes[start : start + BLOCK]
        for k in range(_at_once(block, shift, keys, places, out, rows)):
            i, new = rows[k], sizes[CODES]
            # Looked for again: an earlier row of the block may have entered the same value.
            at = _place(np.int64(block[i]), shift, keys, places)
            if places[at] < 0:
                if new == len(keys) or 2 * new >= len(places):
                    return start + np.int64(i)
                places[at], keys[new], sizes[CODES] = new, np.int64(block[i]), new + 1
            out[i] = places[at]
    return len(values)


@njit(cache=True, nogil=True)
def _seen(values, lowest, places, codes, begin):
    """Write the codes of values that have one, from row ``begin`` on; return the first row whose value has none."""
    last = np.uint64(len(places))
    for i in range(np.uintp(begin), np.uintp(len(values))):
        away = np.uint64(np.int64(values[i]) - lowest)
        if away >= last or places[away] < 0:
            return np.int64(i)
        codes[i] = places[away]
    return len(values)


@njit(cache=True, nogil=True)
def fill(sizes, near, lowest, keys, places):
    """Put all keys but null, which has none, to their places, ``places`` being free."""
    shift = _shift(len(places))
    for code in range(sizes[CODES]):
        if code != sizes[NULL]:
            at = keys[code] - lowest if near else _place(keys[code], shift, keys, places)
            places[at] = code


@njit(cache=True, nogil=True)
def pairs(a, b, lowest, wide, places, numbers, first):
    """Number pairs of integers by first sight; return how many there are.

    ``a``, ``b`` int64 (rows,) from ``lowest`` on, two integers, the second less than ``wide`` above; places
    int32, -1 each, one for each pair that there may be.  Writes the number of each row, and the first row of each
    number, int64 (rows,).
    """
    low_a, low_b, many = lowest[0], lowest[1], 0
    for i in range(len(a)):
        at = (a[i] - low_a) * wide + b[i] - low_b
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
        numbers = rows[start : start + BLOCK]
        _pane_cells(grid, places.shape[1], slots[start : start + BLOCK], times[start : start + BLOCK], cells)
        for i in range(len(numbers)):
            at = np.uintp(cells[i])
            if free[at] < 0:
                free[at], first[many] = many, start + i
                many += 1
            numbers[i] = free[at]
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
        # The rest tells by how much the quotient is off; where a slide has two panes, it also tells which one it is.
        off = np.int64(rest >= slide) - np.int64(rest < 0)
        second = (step > 1) & (rest - off * slide >= edge)
        cells[i] = ((pane + off) * step + second) * groups + slots[i]


@njit(cache=True, nogil=True)
def place(geometry, grid, tuples, known, slots, times, rows, stops):
    """Count each tuple in its cell, from a first one on until a cell may have more than a limit, a power of two.

    ``grid``: where pane ``low`` begins, and how long each is, all of them together less than 2**53.  ``stops``: the
    first tuple, and the limit.  tuples integers (cells,), in which the limit + 512 fits.  ``known``: spans int64
    (slots, 2), block_lows int64 (blocks,), counts int64 (3,), as in ``partials``, and turns int64 (4, groups), or
    (4, 0) where no stack has turned yet; all are updated.  rows int64 (tuples,): the cells, -1 for a tuple that is left
    out; or (0,) if they are not needed, and all are in a cell of the ring.  Returns how many cells are new, how many
    tuples are left out, where it stopped, and whether a cell may have more than the limit.
    """
    (begin, slide), (done, limit) = grid, stops
    used, missed, over, panes = 0, 0, False, np.empty(BLOCK, np.int64)
    cells, fresh = np.empty(BLOCK, np.int64), np.empty(BLOCK + 1, np.int64)
    while done < len(slots) and not over:
        start, done = done, min(done + BLOCK, len(slots))
        block, placed = slots[start:done], cells[: done - start]
        missed += _cells(geometry, begin, slide, block, times[start:done], panes, placed)
        new, bits = (
            _count_few(tuples, placed, fresh) if geometry.groups == 1 else _count(tuples, placed, fresh)
        )
        _wake(geometry, known, block, panes, fresh[:new])
        # The limit is a power of two: all numbers together have such a bit if one of them has reached it.
        used, over = used + new, bits >= limit
        if len(rows):
            block_rows = rows[start:done]
            for i in range(len(placed)):
                block_rows[i] = placed[i]
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
            cell = np.uintp(cells[i])
            count = np.int64(tuples[cell])
            fresh[new] = i
            new += np.uintp(count == 0)
            bits |= count
            tuples[cell] = count + 1
    return np.int64(new), bits


@njit(cache=True, nogil=True)
def _count_few(tuples, cells, fresh):
    """Count tuples as ``_count`` does where cells are few, as of one group: cell by cell, in vector instructions."""
    low, high, new, bits = cells[0], cells[0], 0, np.int64(0)
    for i in range(len(cells)):
        low, high = min(low, cells[i]), max(high, cells[i])
    # A pass over the block for each cell: that pays where they are very few.  Cell -1 is of tuples that are left out.
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
def _wake(geometry, known, slots, panes, fresh):
    """Note the windows of the tuples that made new cells."""
    (spans, block_lows, counts, turns), step, length = known, geometry.step, geometry.length
    alive, lowest = counts[ALIVE], counts[LOWEST]
    for row in fresh:
        at = np.uintp(row)
        pane, slot = panes[at], np.uintp(slots[at])
        first, last = pane, pane + length - 1
        # The windows of a pane.  A division takes as long as all the rest, and most slides are one pane.
        if step > 1:
            first, last = pane // step, (pane + length) // step - 1
        low, high = spans[slot, LOW], spans[slot, HIGH]
        asleep = low == NO_WINDOW
        alive += asleep
        # The stacks of a group that was asleep are over: its next window begins new ones.
        if turns.shape[1]:
            turns[TURN, slot] = NEVER if asleep else turns[TURN, slot]
        spans[slot, LOW], spans[slot, HIGH] = min(low, first), max(high, last)
        block, lowest = slot >> np.uintp(SHIFT), min(lowest, first)
        if first < block_lows[block]:  # seldom, so a branch is sooner than a store each time
            block_lows[block] = first
    counts[ALIVE], counts[LOWEST] = alive, lowest


@njit(cache=True, nogil=True)
def place_sums(geometry, grid, tuples, known, slots, times, given, sums, carries, limit):
    """Count the tuples of a page without groups in their panes, all of which the ring has, and add up one column.

    ``grid``: the page's first pane, when it begins, how long each is, and of how many there are tuples: at most
    ``PAGE_PANES``.  ``known`` as in ``place``.  given integers (n,) are added to sums int64
    (room,); both (0,): there is nothing to add up.  ``carries`` as in ``sum_times``.  Returns how many panes are new,
    and how many tuples are done.  It stops before values that are too large to share a number with a count, panes that
    are too long, and a cell with more tuples than ``limit``.  O(tuples + panes for each stretch of them).
    """
    first, begin, slide, wide = grid
    totals, cells = np.empty((_LANES, wide), np.int64), np.empty(BLOCK, np.int64)
    packed, fresh, panes = np.ones(BLOCK, np.int64), np.arange(wide), np.empty(wide, np.int64)
    new, done = 0, 0
    while done < len(times) and wide * slide < _EXACT:
        # A stretch, block by block: pack values with counts, and add them up by panes of the page.
        bits, stop = np.int64(0), min(done + _STRETCH, len(times))
        totals[:] = 0
        for start in range(done, stop, BLOCK):
            block = times[start : min(start + BLOCK, stop)]
            if len(given):
                bits |= _pack(given[start : start + len(block)], packed)
            if wide <= _ASKED:
                _from_each(block, begin, slide, packed[: len(block)], totals[0])
            else:
                _in_lanes(block, begin, slide, packed[: len(block)], totals, cells)
        # Nothing of the ring is written before it is sure that the stretch fits.
        if bits >= _NARROW or _united(geometry, first, totals, tuples) > limit:
            break
        # Add the stretch to the ring.  The shift keeps the sign, and floors away the count below.
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
    _wake(geometry, known, slots, panes, fresh[:new])
    return new, done


@njit(cache=True, nogil=True)
def _pack(given, packed):
    """Write value * 2**13 + 1 for each value; return the bits that there are in values."""
    bits = np.int64(0)
    for i in range(len(given)):  # vector instructions
        # A value below 0 counts by the bits of its complement: the sign takes none.
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
    earliest, latest = times[0], times[0]
    for i in range(len(times)):
        earliest, latest = min(earliest, times[i]), max(latest, times[i])
    first = (earliest - begin) // slide
    wide = (latest - begin) // slide - first + 1
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
    # A comparison for each tuple and pane, in vector instructions.  The first pane takes all: none is before it.
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
    # Neighbours write to lanes of their own, so none waits for the one before; the last few go to the first lane.
    whole = np.uintp(len(times) // _LANES * _LANES)
    for i in range(np.uintp(0), whole, lanes):
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
        block, added = times[start : start + BLOCK], given[start : start + BLOCK]
        bits = np.int64(0)
        for i in range(len(added)):
            bits |= np.int64(added[i]) ^ (np.int64(added[i]) >> 63)
        # By panes, where no total of the block can wrap and it has few panes; else tuple by tuple.
        first, wide = (
            tally(block, begin, slide, added, totals, cells) if bits < _SAFE else (np.int64(0), np.int64(0))
        )
        for at in range(wide):
            _add(sums, carries, row_of(geometry, low + first + at), totals[0, at])
        if wide == 0:
            for i in range(len(added)):
                cell = row_of(geometry, low + (block[i] - begin) // slide)
                _add(sums, carries, cell, np.int64(added[i]))


@njit(cache=True, nogil=True)
def _add(sums, carries, cell, value):
    """Add a value to a cell; count where the sum wraps."""
    before = sums[cell]
    # The sum wraps if it differs in sign from both; it wraps upwards if the value is not below 0.
    after = before + value
    sums[cell] = after
    if (after ^ before) & (after ^ value) < 0 and len(carries):
        carries[cell] += (value >> 63) | 1
