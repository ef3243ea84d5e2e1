"""Monoids: how states of partial aggregates are combined, in all loops of ``kernels/loops.py``.

A monoid is an empty named tuple: Numba compiles each loop for its type, so that ``combine`` is a few instructions of
the loop, and nothing is decided there.  A state is a tuple of numbers.

Source: lift, combine and lower after Tangwongsan, Hirzel, Schneider, Wu, VLDB 2015.
"""

# Layout       A state is a tuple of numbers, one of each column; a column has a row for each state.  Wide sums are
#              words of 64 bits, int64, the lowest first, of which all but the uppermost one are meant unsigned.
#              steps[3, n]: written by a plan, taken by a loop in order; a step a column
#                STEP_TO  the row that is written; below 0: result ~to
#                STEP_A   the row that is read
#                STEP_B   the row that is combined with it; none: row A is copied
#              fold_steps: rows are cells of one column of states; STEP_B is below 0 where there is none
#              fold_rows:  rows from 0 on are scratch, those below 0 are ~row of the ring; STEP_B is sliding.ALONE where
#              there is none
# Invariant    combine is associative and commutative (of floats but for the last digits): plans choose the order.
#              without(combine(a, b), b) is a, to the last bit, where there is a `without`.
#              Where `wraps` is defined, a loop gives up at the first state that does not fit; else every state does.
#              A method returns the types of the columns: Numba would compile a loop anew for each mixture.
# Not obvious  Signs stand in for comparisons: x >> 63 is -1 below 0 and else 0, and (x ^ y) is below 0 where the signs
#              of x and y differ.  So loops have no branch in a sum, and most become vector instructions.
#              (x ^ _TOP) < (y ^ _TOP) compares x and y as unsigned numbers: a sum of words that is less than one of its
#              sides has a carry.
#              NaN is the one number that differs from itself: x != x.
#              A compiled kernel has the numbers of rows in it, and Numba's cache looks at the kernel's own file alone:
#              if they change, touch every file that imports them.
# Tried        Integer sums that must fit in each state: whether a window had a sum or an error then depended on the
#              order of its values.  So Carried counts how often it wrapped, and only results are checked.

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

__all__ = [
    "STEP_A", "STEP_B", "STEP_TO", "Carried", "Checked", "Counted", "Largest", "LargestCounted", "Loops",
    "Moments", "Monoid", "Multiplied", "Narrow", "Smallest", "SmallestCounted", "Squares", "Summed",
    "Total", "Triple", "Weighted", "Words", "above", "below",
]  # fmt: skip

STEP_TO, STEP_A, STEP_B = range(3)
_LEAST_NARROW, _MOST_NARROW = -(2**31), 2**31 - 1
_TOP = np.int64(np.iinfo(np.int64).min)


class Monoid(NamedTuple):
    """Base of all: has ``combine``, or ``better``.

    Methods are compiled; they take and return tuples of numbers, always of the types of the columns.
    """

    def lift(self, given):
        """Return the state of one tuple."""
        return given

    def combine(self, a, b):
        """Return the state of ``a`` and ``b`` together: associative and commutative."""

    def better(self, a, b):
        """Return whether ``b`` replaces ``a``, where the state of two is one of the two."""

    def add(self, state, given):
        """Return ``state`` with one more tuple, where that is cheaper than to combine it with what ``lift`` returns."""

    def without(self, a, b):
        """Return what ``b`` was combined with to ``a``, exactly; zeros are the state of no values."""

    def wraps(self, b, both):
        """Return a negative integer if ``both``, of some state and ``b``, does not fit its type, else another one."""
        return 0


class Counted(Monoid):
    """How many: int64."""

    def lift(self, given):
        return (1,)

    def combine(self, a, b):
        return (a[0] + b[0],)

    def without(self, a, b):
        return (a[0] - b[0],)


class Summed(Monoid):
    """Sum of floats."""

    def combine(self, a, b):
        return (a[0] + b[0],)


class Checked(Monoid):
    """Sum of integers, int64, which must not wrap."""

    def combine(self, a, b):
        return (a[0] + b[0],)

    def without(self, a, b):
        return (a[0] - b[0],)

    def wraps(self, b, both):
        # Where the sign of the sum differs from those of both sides.
        a = both[0] - b[0]
        return (both[0] ^ a) & (both[0] ^ b[0])


class Narrow(Checked):
    """The same in int32."""

    def wraps(self, b, both):
        return -np.int64((both[0] < _LEAST_NARROW) | (both[0] > _MOST_NARROW))


class Carried(Monoid):
    """Exact sum of integers of 64 bits: int64, which wraps, and how often it wrapped upwards, int32, mostly 0.

    The sum is ``state[0] + 2**64 * state[1]``.  Loops that add tuples write the second column only where one wraps.
    """

    def lift(self, given):
        return np.int64(given[0]), np.int32(0)

    def combine(self, a, b):
        # All bits where the sum wraps: they let the direction through, 1 where the other is not below 0, else -1.
        left, right = np.int64(a[0]), np.int64(b[0])
        low = left + right
        wrapped = ((low ^ left) & (low ^ right)) >> 63
        return low, np.int32(a[1] + b[1] + (wrapped & ((right >> 63) | 1)))

    def without(self, a, b):
        # A difference wraps where its sides differ in sign, and it differs from the left one.
        left, right = np.int64(a[0]), np.int64(b[0])
        low = left - right
        wrapped = ((left ^ right) & (low ^ left)) >> 63
        return low, np.int32(a[1] - b[1] - (wrapped & ((right >> 63) | 1)))


class Total(Monoid):
    """Sum of integers in 128 bits: the lower 64, unsigned, and the upper 64, both as int64."""

    def lift(self, given):
        # The upper word is the sign.
        value = np.int64(given[0])
        return value, value >> 63

    def combine(self, a, b):
        low = a[0] + b[0]
        return low, a[1] + b[1] + ((low ^ _TOP) < (a[0] ^ _TOP))

    def without(self, a, b):
        return a[0] - b[0], a[1] - b[1] - ((a[0] ^ _TOP) < (b[0] ^ _TOP))


class Squares(Total):
    """Sum of the squares of integers of 32 bits, as ``Total`` has it."""

    def lift(self, given):
        # Below 2**64: it fits the lower word, which is meant unsigned.
        value = np.int64(given[0])
        return value * value, np.int64(0)


class Words(Total):
    """Sum of integers that are given in words, as ``Total`` has it."""

    def lift(self, given):
        return given


class Triple(Monoid):
    """Sum of integers that are given in two words, in three: 192 bits."""

    def lift(self, given):
        return given[0], given[1], given[1] >> 63

    def combine(self, a, b):
        # The middle word may carry twice, but not both times at once: of its own sum, and of the carry from below.
        low, middle = a[0] + b[0], a[1] + b[1]
        carry = np.int64((low ^ _TOP) < (a[0] ^ _TOP))
        more = middle + carry
        over = np.int64((middle ^ _TOP) < (a[1] ^ _TOP)) + np.int64((more ^ _TOP) < (middle ^ _TOP))
        return low, more, a[2] + b[2] + over

    def without(self, a, b):
        middle, borrow = a[1] - b[1], np.int64((a[0] ^ _TOP) < (b[0] ^ _TOP))
        over = np.int64((a[1] ^ _TOP) < (b[1] ^ _TOP)) + np.int64((middle ^ _TOP) < (borrow ^ _TOP))
        return a[0] - b[0], middle - borrow, a[2] - b[2] - over


class Smallest(Monoid):
    """Least state: its last column decides, of equal ones the one before; NaN gives way to any number."""

    def better(self, a, b):
        return below(b, a)


class Largest(Monoid):
    """Greatest state: its last column decides, of equal ones the one before; NaN gives way to any number."""

    def better(self, a, b):
        return above(b, a)


class SmallestCounted(Monoid):
    """How often the least value occurs, int64, and that value, as ``Smallest`` has it."""

    def lift(self, given):
        return (1, *given)

    def combine(self, a, b):
        # One is less, or both are equal and their numbers are added up; NaN is equal to NaN here.
        if below(b[1:], a[1:]):
            return b
        return a if below(a[1:], b[1:]) else (a[0] + b[0], *a[1:])


class LargestCounted(SmallestCounted):
    """How often the greatest value occurs, int64, and that value, as ``Largest`` has it."""

    def combine(self, a, b):
        if above(b[1:], a[1:]):
            return b
        return a if above(a[1:], b[1:]) else (a[0] + b[0], *a[1:])


class Weighted(Monoid):
    """Sums of floats, of values times weights and of weights."""

    def lift(self, given):
        return given[0] * given[1], float(given[1])

    def combine(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class Multiplied(Monoid):
    """Product of floats, ``m * 2 ** e`` with ``m`` in [0.5, 1): it leaves the range of floats in the result alone."""

    def lift(self, given):
        return math.frexp(given[0])

    def combine(self, a, b):
        # The product of two such numbers is 0, or not below 0.25: exponents alone become large or small.
        m, e = math.frexp(a[0] * b[0])
        return m, a[1] + b[1] + e


class Moments(Monoid):
    """Count, mean and sum of squared deviations: of values after Welford, of states after Chan, Golub, LeVeque."""

    def lift(self, given):
        return 1, given[0], 0.0

    def combine(self, a, b):
        n, mean, squares = a
        m, other, more = b
        # One side alone is taken as it is: 0 * infinity would be NaN.
        if n == 0 or m == 0:
            return n + m, mean if m == 0 else other, squares if m == 0 else more
        away, total = other - mean, n + m
        return total, mean + away * m / total, squares + (more + away * away * n * m / total)

    def add(self, state, given):
        n, mean, squares = state
        n, away = n + 1, given[0] - mean
        mean += away / n
        return n, mean, squares + away * (given[0] - mean)


def below(a, b):
    """Return whether state ``a`` is below ``b``, in the order of ``Smallest``; ``kernels/loops.py`` compiles it."""
    return _decided(a, b, lambda x, y: x < y)


def above(a, b):
    """Return whether state ``a`` is above ``b``, in the order of ``Largest``; ``kernels/loops.py`` compiles it."""
    return _decided(a, b, lambda x, y: x > y)


def _decided(a, b, before):
    """Return whether ``a`` comes before ``b``: the last column decides, NaN being behind every number."""
    for x, y in zip(reversed(a), reversed(b), strict=True):
        if before(x, y) or (y != y and x == x):
            return True
        if x != y and (x == x or y == y):
            return False
    return False


class Loops(NamedTuple):
    """The loops by name; in ``kernels/loops.py``, which describes them."""

    add_rows: Callable[..., int]
    update: Callable[..., int]
    add_runs: Callable[..., int]
    slide: Callable[..., int]
    merge: Callable[..., int]
    reduce: Callable[..., int]
    fold_steps: Callable[..., int]
    fold_rows: Callable[..., tuple[int, int]]
    totals: Callable[..., tuple[int, int]]
