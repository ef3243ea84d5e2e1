"""Kernels of the window joins' index: tuples by bucket of their key, large buckets by key and time."""

# Layout       entries[first[b] : first[b + 1]]   the tuples of bucket b: CODE of the key, and TIME from ``base`` on
#              rows[entry]                        which tuple an entry is
#              matches                            pairs of a probe and an entry, in two arrays
# Invariant    A bucket of at most CROWD entries is as it came; a larger one is sorted by code, then time.
#              A run is never changed: one that lost many tuples is gathered into another one.
# Not obvious  Times are distances to ``base``, so that 32 bits do where a run is short: half the memory to search.
#              ``time - since <= span`` as uint64 is both comparisons in one: an earlier time wraps to a large number.
#              The two may themselves wrap, by the same 2**64, so the difference is right whatever ``base`` is.
#              Codes may be hashes: that two rows have one does not show that their keys are equal.  The caller
#              compares the keys of the matches (``hashing.equal_values``).
#              Whether an entry matches cannot be foreseen: a match is written first, and its place moves on by 0 or 1.

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.kernels.time_order import time_order
from oop_engine.system.kernel import njit
from oop_engine.system.knobs import kernel_knob

__all__ = [
    "CROWD", "Entries", "by_other", "come", "earliest", "gathered", "indexed", "latest", "match", "spans", "take",
    "times_of",
]  # fmt: skip

CROWD = kernel_knob(__name__, "CROWD", 16)
"""The most entries of a bucket that are looked at one by one; larger ones are sorted."""

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]
Entries = NDArray[np.int64] | NDArray[np.int32]
"""(n, 2): code and time, of 32 bits where they fit."""

# Columns of entries.
CODE, TIME = range(2)

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio
_CROWD, _ONE = np.uint64(CROWD), np.uint64(1)


@njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _bucket(code, bits):  # type: ignore[no-untyped-def]
    mixed = (np.uint64(code) ^ (np.uint64(code) >> np.uint64(32))) * _SPREAD
    return (mixed >> np.uint64(32)) >> np.uint64(32 - bits)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def spans(a: Ints, b: Ints) -> tuple[int, int, int, int]:
    """Return the least and the largest of each of two arrays, int64 (n,), n at least 1, in one call; O(n)."""
    least_a = most_a = a[0]
    least_b = most_b = b[0]
    for i in range(a.size):
        least_a, most_a = min(least_a, a[i]), max(most_a, a[i])
        least_b, most_b = min(least_b, b[i]), max(most_b, b[i])
    return least_a, most_a, least_b, most_b


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _sort(entries, rows):  # type: ignore[no-untyped-def]
    """Sort entries by code and time, and their rows with them, in place; return how many codes there are."""
    size = rows.size
    values, ordered = np.empty(size, np.int64), np.empty((size, 2), np.int64)
    tuples = np.empty(size, np.int32)
    for i in range(size):
        values[i] = entries[i, TIME]
    # By time first: the second order keeps that of equal codes.
    by_time = time_order(values)
    for i in range(size):
        values[i] = entries[by_time[i], CODE]
    by_code = time_order(values)
    for i in range(size):
        at = by_time[by_code[i]]
        ordered[i, 0], ordered[i, 1], tuples[i] = entries[at, 0], entries[at, 1], rows[at]
    codes = np.int64(0)
    for i in range(size):
        codes += i == 0 or ordered[i, 0] != ordered[i - 1, 0]
        entries[i, 0], entries[i, 1], rows[i] = ordered[i, 0], ordered[i, 1], tuples[i]
    return codes


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _settled(first, entries, rows):  # type: ignore[no-untyped-def]
    """Sort each large bucket by code and time, in place; return how many codes there are in all."""
    codes = np.int64(0)
    for bucket in range(first.size - 1):
        begin, stop = np.uint64(first[bucket]), np.uint64(first[bucket + 1])
        if stop - begin > _CROWD:
            codes += _sort(entries[begin:stop], rows[begin:stop])
            continue
        # Of few entries each is compared with those before it: a code counts where it is the first of its kind.
        for i in range(begin, stop):
            new = np.int64(1)
            for k in range(begin, i):
                new &= entries[k, CODE] != entries[i, CODE]
            codes += new
    return codes


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def indexed(
    codes: Ints, times: Ints, tuples: Rows, base: int, bits: int, entries: Entries
) -> tuple[Rows, Rows, np.int64]:  # fmt: skip
    """Put tuples into ``2**bits`` buckets by their codes, each large one sorted by code and time.

    ``codes, times``: int64 (rows,), and ``tuples``: int32 (rows,); bits at most 31.  ``entries`` (rows, 2), written:
    the code of each tuple, and its time from ``base`` on.  Returns ``first``, int32 (2**bits + 1,), where each bucket
    begins and the one before ends; ``rows``, int32 (rows,), which of the ``tuples`` each entry is; and how many codes
    there are in all.  O(rows), and O(n log n) of a large bucket's n.
    """
    size = codes.size
    first = np.zeros((1 << bits) + 2, np.int32)
    buckets = np.empty(size, np.uint32)
    for i in range(size):
        bucket = _bucket(codes[i], bits)
        buckets[i] = bucket
        first[bucket + _ONE + _ONE] += 1
    # Counted two places behind, so that sums are the begins one place behind; and the pass that puts the tuples into
    # their places makes these the ends, which are the begins of the next buckets.
    for bucket in range(2, first.size):
        first[bucket] += first[bucket - 1]
    rows = np.empty(size, np.int32)
    for i in range(size):
        after = np.uint64(buckets[i]) + _ONE
        at = np.uint64(first[after])
        first[after] += 1
        entries[at, CODE], entries[at, TIME], rows[at] = codes[i], times[i] - base, tuples[i]
    first = first[:-1]
    return first, rows, _settled(first, entries, rows)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def gathered(
    entries: Entries, rows: Rows, base: int, living: NDArray[np.bool_], oldest: int,
    codes: Ints, times: Ints, more: Rows,
) -> tuple[Ints, Ints, Rows]:  # fmt: skip
    """Return the code, time and row of the tuples of a run that are alive, and of some more behind them; O(rows).

    ``entries, base``: as of ``indexed``, and ``rows``: int32 (entries,), those of the run; alive are those that
    ``living``, bool (entries,), tells, or if it is empty those not below ``oldest``.  ``codes, times``: int64 (more,),
    and ``more``: int32 (more,), those of the others.
    """
    most = rows.size + codes.size
    pairs, tuples, size = np.empty((2, most), np.int64), np.empty(most, np.int32), 0
    for i in range(rows.size):
        time = entries[i, TIME] + base
        pairs[0, size], pairs[1, size], tuples[size] = entries[i, CODE], time, rows[i]
        size += living[i] if living.size else time >= oldest
    for i in range(codes.size):
        pairs[0, size], pairs[1, size], tuples[size] = codes[i], times[i], more[i]
        size += 1
    return pairs[0, :size], pairs[1, :size], tuples[:size]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _lower(entries, base, at, stop, code, time):  # type: ignore[no-untyped-def]
    while at < stop:
        middle = (at + stop) >> _ONE
        middle_code = entries[middle, CODE]
        if middle_code < code or (middle_code == code and entries[middle, TIME] + base < time):
            at = middle + _ONE
        else:
            stop = middle
    return at


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _end_of_span(entries, at, stop, code, since, span):  # type: ignore[no-untyped-def]
    """Return the end of the entries of a code with times in a span, which begin ``at``; O(log of how many)."""
    # Steps that double, then halve: few entries match as a rule, however many the bucket has.
    step = _ONE
    while at + step <= stop:
        last = at + step - _ONE
        if entries[last, CODE] != code or np.uint64(entries[last, TIME] - since) > span:
            break
        at += step
        step += step
    while step > _ONE:
        step >>= _ONE
        last = at + step - _ONE
        if at + step > stop or entries[last, CODE] != code:
            continue
        if np.uint64(entries[last, TIME] - since) <= span:
            at += step
    return at


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _write(probe, at, stop, probes, matches, begin):  # type: ignore[no-untyped-def]
    """Write the matches of a probe with the entries from ``at`` on, while there is room; return where both end."""
    many = min(np.int64(stop - at), probes.size - begin)
    for k in range(many):
        probes[begin + k], matches[begin + k] = probe, np.int64(at) + k
    return begin + many, at + np.uint64(many)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def match(
    codes: Ints, low: Ints, high: Ints,
    first: Rows, entries: Entries, bits: int, extent: Ints,
    resume: Ints, probes: Rows, matches: Rows,
) -> int:  # fmt: skip
    """Find, for each probe, the entries of its code with ``low <= time <= high``.

    ``codes, low, high``: int64 (probes,); the next three are as of ``indexed``.  ``extent``: int64 (3,), no
    entry that counts is older or newer; and ``base``.  ``resume``: int64 (2,), the probe and the entry to begin with,
    at first 0 and 0.  ``probes, matches``: int32 (more than 16,), take the probe and the entry of each match.  Returns
    how many there are.  When these arrays are full the rest has to wait: ``resume`` then tells where it begins, and is
    (probes, 0) when nothing is left.  O(1) a probe and match, and O(log n) a probe in a bucket of many
    entries n.
    """
    matched: int = 0
    room = probes.size - CROWD  # a small bucket is looked at as a whole, so it must have room as a whole
    oldest, newest, base = extent[0], extent[1], extent[2]
    for i in range(resume[0], codes.size):
        code, lowest, span = codes[i], low[i], np.uint64(high[i] - low[i])
        if lowest > newest or high[i] < oldest:
            continue
        since = lowest - base  # may wrap, and a difference to it wraps back
        bucket = _bucket(code, bits)
        at, stop = np.uint64(first[bucket]), np.uint64(first[bucket + _ONE])
        if stop - at > _CROWD:  # sorted: the matches lie side by side, and may be cut where room ends
            at = max(_lower(entries, base, at, stop, code, lowest), np.uint64(resume[1]))
            resume[1] = 0
            stop = _end_of_span(entries, at, stop, code, since, span)
            matched, at = _write(i, at, stop, probes, matches, matched)
            if at < stop:
                resume[0], resume[1] = i, at
                return matched
            continue
        if matched > room:
            resume[0] = i
            return matched
        for k in range(at, stop):  # whether it matches is hard to foretell: written before it is asked
            probes[matched], matches[matched] = i, k
            matched += (entries[k, CODE] == code) & (np.uint64(entries[k, TIME] - since) <= span)
    resume[0] = codes.size
    return matched


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def latest(
    codes: Ints, low: Ints, high: Ints, first: Rows, entries: Entries, base: int, bits: int,
    best: Ints, has_best: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Find, for each probe, the largest time of its code with ``low <= time <= high``.

    Arguments as of ``match``.  ``best``: int64 (probes,), and ``has_best``: bool (probes,), whether there is one;
    they are written where the time is larger.  O(log n) a probe in a bucket of many entries n.
    """
    for i in range(codes.size):
        code, bucket = codes[i], _bucket(codes[i], bits)
        at, stop = np.uint64(first[bucket]), np.uint64(first[bucket + _ONE])
        if stop - at > _CROWD:
            after = _lower(entries, base, at, stop, code, high[i])
            if after < stop and entries[after, CODE] == code and entries[after, TIME] + base == high[i]:
                after += _ONE
            at, stop = max(at + _ONE, after) - _ONE, after
        for k in range(at, stop):
            time = entries[k, TIME] + base
            if (
                entries[k, CODE] == code
                and low[i] <= time <= high[i]
                and not (has_best[i] and best[i] >= time)
            ):
                best[i], has_best[i] = time, True


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def earliest(codes, low, first, entries, base, bits, best):  # type: ignore[no-untyped-def]
    """Lower ``best``, int64 (probes,), to the least time of each probe's code from ``low`` on."""
    for i, code in enumerate(codes):
        bucket = _bucket(code, bits)
        at, stop = np.uint64(first[bucket]), np.uint64(first[bucket + _ONE])
        if stop - at > _CROWD:
            at = _lower(entries, base, at, stop, code, low[i])  # the first one of the code is the earliest
            stop = min(at + _ONE, stop)
        for k in range(at, stop):
            time = entries[k, TIME] + base
            if entries[k, CODE] == code and low[i] <= time < best[i]:
                best[i] = time


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def take(values, rows, out):  # type: ignore[no-untyped-def]
    """Write ``values[rows[i]]`` to ``out[i]``; values (n,), rows int32 (m,) from 0 to n, out (m,)."""
    for i in range(len(rows)):
        out[i] = values[np.uint32(rows[i])]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def times_of(entries: Entries, base: int, which: Rows, out: Ints) -> None:
    """Write the times of some entries; ``entries, base``: as of ``indexed``, ``which``: int32 (m,), out: int64 (m,)."""
    for i in range(which.size):
        out[i] = entries[np.uint32(which[i]), TIME] + base


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def by_other(rows: Rows, others: Rows, entries: Rows, counts: Rows) -> tuple[Rows, Rows, Rows]:
    """Return matches in the order of the ``others``: those, and of each its row and the entry of that.

    ``rows, others``: int32 (matches,), the rows of both sides; ``entries``: int32 (rows of the one side,).
    ``counts``: int32 (rows of the other side + 1,), zeros, written.  O(matches + rows).
    """
    for other in others:
        counts[other + 1] += 1
    for i in range(1, counts.size):
        counts[i] += counts[i - 1]
    sorted_, of_rows, of_entries = np.empty_like(rows), np.empty_like(rows), np.empty_like(rows)
    for i in range(rows.size):
        at = counts[others[i]]
        counts[others[i]] += 1
        sorted_[at], of_rows[at], of_entries[at] = others[i], rows[i], entries[rows[i]]
    return sorted_, of_rows, of_entries


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def come(rows: Rows, entries: Rows, others: Rows, below: int, begin: int) -> tuple[Rows, Rows]:
    """Return the matches with ``others < below``: their rows, counted from ``begin`` on, and their entries.

    All int32 (matches,).
    """
    of_rows, of_entries, count = np.empty(rows.size, np.int32), np.empty(rows.size, np.int32), 0
    for i in range(rows.size):  # whether it has come is hard to foretell: written before it is asked
        of_rows[count], of_entries[count] = rows[i] - begin, entries[i]
        count += others[i] < below
    return of_rows[:count], of_entries[:count]
