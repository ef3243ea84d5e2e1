"""Kernels of the window joins' index: tuples by bucket of their key, large buckets by key and time."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from oop_engine.operators.kernels.time_order import time_order

__all__ = ["CROWD", "latest", "match", "scatter", "settle"]

CROWD = 16
"""The most entries of a bucket that are looked at one by one; larger ones are sorted."""

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio
_CROWD, _ONE = np.uint64(CROWD), np.uint64(1)


@njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _bucket(code, bits):  # type: ignore[no-untyped-def]
    mixed = np.uint64(code)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _SPREAD
    return (mixed >> np.uint64(32)) >> np.uint64(32 - bits)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def scatter(codes: Ints, times: Ints, bits: int) -> tuple[Rows, Ints, Rows]:
    """Put tuples into ``2**bits`` buckets by their codes, in a bucket as they come; O(rows).

    ``codes, times``: int64 (rows,); bits at most 31.  Returns ``first``, int32 (2**bits + 1,),
    where each bucket begins and the one before ends; ``entries``, int64 (rows, 2), the code and
    time of each tuple; and ``rows``, int32 (rows,), which tuple it is.
    """
    size = codes.size
    first = np.zeros((1 << bits) + 2, np.int32)
    buckets = np.empty(size, np.uint32)
    for i in range(size):
        bucket = _bucket(codes[i], bits)
        buckets[i] = bucket
        first[bucket + _ONE + _ONE] += 1
    for bucket in range(2, first.size):
        first[bucket] += first[bucket - 1]
    entries, rows = np.empty((size, 2), np.int64), np.empty(size, np.int32)
    for i in range(size):
        after = np.uint64(buckets[i]) + _ONE
        at = np.uint64(first[after])
        first[after] += 1
        entries[at, 0], entries[at, 1], rows[at] = codes[i], times[i], i
    return first[:-1], entries, rows


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _sort(entries, rows):  # type: ignore[no-untyped-def]
    """Sort entries by code and time, and their rows with them, in place; return how many codes there are."""
    size = rows.size
    values, held, tuples = np.empty(size, np.int64), np.empty((size, 2), np.int64), np.empty(size, np.int32)
    for i in range(size):
        values[i] = entries[i, 1]
    by_time = time_order(values)
    for i in range(size):
        values[i] = entries[by_time[i], 0]
    by_code = time_order(values)
    for i in range(size):
        at = by_time[by_code[i]]
        held[i, 0], held[i, 1], tuples[i] = entries[at, 0], entries[at, 1], rows[at]
    codes = np.int64(0)
    for i in range(size):
        codes += i == 0 or held[i, 0] != held[i - 1, 0]
        entries[i, 0], entries[i, 1], rows[i] = held[i, 0], held[i, 1], tuples[i]
    return codes


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def settle(first: Rows, entries: Ints, rows: Rows) -> np.int64:
    """Sort each large bucket by code and time, in place; return how many codes there are in all.

    Arguments as ``scatter`` returned them.  O(entries), and O(n log n) of a large bucket's n.
    """
    codes = np.int64(0)
    for bucket in range(first.size - 1):
        begin, stop = np.uint64(first[bucket]), np.uint64(first[bucket + 1])
        if stop - begin > _CROWD:
            codes += _sort(entries[begin:stop], rows[begin:stop])
            continue
        for i in range(begin, stop):
            new = np.int64(1)
            for k in range(begin, i):
                new &= entries[k, 0] != entries[i, 0]
            codes += new
    return codes


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _lower(entries, at, stop, code, time):  # type: ignore[no-untyped-def]
    while at < stop:
        middle = (at + stop) >> _ONE
        found = entries[middle, 0]
        if found < code or (found == code and entries[middle, 1] < time):
            at = middle + _ONE
        else:
            stop = middle
    return at


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def match(
    codes: Ints, low: Ints, high: Ints,
    first: Rows, entries: Ints, bits: int, extent: Ints,
    resume: Ints, probes: Rows, matches: Rows,
) -> int:  # fmt: skip
    """Find, for each probe, the entries of its code with ``low <= time <= high``.

    ``codes, low, high``: int64 (probes,); the next three are as ``scatter`` and ``settle`` left
    them.  ``extent``: int64 (2,), no entry that counts is older or newer.  ``resume``: int64 (2,),
    the probe and the entry to begin with, at first 0 and 0.  ``probes, matches``: int32 (more
    than 16,), take the probe and the entry of each match.  Returns how many there are.  When these
    arrays are full the rest has to wait: ``resume`` then tells where it begins, and is (probes, 0)
    when nothing is left.  O(1) a probe and match, and O(log n) a probe in a bucket of many
    entries n.
    """
    found, room = 0, probes.size - CROWD
    oldest, newest = extent[0], extent[1]
    for i in range(resume[0], codes.size):
        code, lowest, span = codes[i], low[i], np.uint64(high[i] - low[i])
        if lowest > newest or high[i] < oldest:
            continue
        bucket = _bucket(code, bits)
        at, stop = np.uint64(first[bucket]), np.uint64(first[bucket + _ONE])
        if stop - at > _CROWD:
            at = max(_lower(entries, at, stop, code, lowest), np.uint64(resume[1]))
            resume[1] = 0
            while at < stop and entries[at, 0] == code and np.uint64(entries[at, 1] - lowest) <= span:
                if found > room:
                    resume[0], resume[1] = i, at
                    return found
                probes[found], matches[found] = i, at
                found += 1
                at += _ONE
            continue
        if found > room:
            resume[0] = i
            return found
        for k in range(at, stop):  # whether it matches is hard to foretell: written before it is asked
            probes[found], matches[found] = i, k
            found += (entries[k, 0] == code) & (np.uint64(entries[k, 1] - lowest) <= span)
    resume[0] = codes.size
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def latest(
    codes: Ints, low: Ints, high: Ints, first: Rows, entries: Ints, bits: int, best: Ints, found: NDArray[np.bool_]
) -> None:  # fmt: skip
    """Find, for each probe, the largest time of its code with ``low <= time <= high``.

    Arguments as of ``match``.  ``best``: int64 (probes,), and ``found``: bool (probes,), whether there is one;
    they are written where the time is larger.  O(log n) a probe in a bucket of many entries n.
    """
    for i in range(codes.size):
        code, bucket = codes[i], _bucket(codes[i], bits)
        at, stop = np.uint64(first[bucket]), np.uint64(first[bucket + _ONE])
        if stop - at > _CROWD:
            after = _lower(entries, at, stop, code, high[i])
            if after < stop and entries[after, 0] == code and entries[after, 1] == high[i]:
                after += _ONE
            at, stop = max(at + _ONE, after) - _ONE, after
        for k in range(at, stop):
            time = entries[k, 1]
            if entries[k, 0] == code and low[i] <= time <= high[i] and not (found[i] and best[i] >= time):
                best[i], found[i] = time, True
