"""The intrinsics of ``kernels/loops.py`` as Python: for debuggers, coverage and ``NUMBA_DISABLE_JIT=1``.

Names and arguments are those of the intrinsics without their underscore.  Integers are as wide as compiled code has
them: 64 bits, in which sums wrap.
"""

# Layout       columns: a tuple of arrays, and a state is a tuple of their items in one row.
# Invariant    Each function returns what its intrinsic does, to the last bit; tests compare the two.
# Not obvious  Reading a narrow cell gives a wide number, as in compiled code, where a number is widened before it
#              is added to; writing cuts it again.

from __future__ import annotations

import numpy as np

from oop_engine.operators.kernels.monoids import Carried, Monoid

__all__ = ["at", "both", "cell", "chosen", "cut", "fill", "less", "more", "put", "rows", "sliced", "wraps"]


def at(columns, row):
    """Return the state in a row."""
    return tuple(_wide(column[row]) for column in columns)


def put(columns, row, state):
    """Write a state into a row, cut to the types of the columns."""
    for column, value in zip(columns, state, strict=True):
        column[row] = np.asarray(value).astype(column.dtype)


def cell(monoid, columns, row):
    """Return the state that a tuple is added to; how often a ``Carried`` wrapped is 0 in it."""
    state = at(columns, row)
    return (state[0], np.int64(0)) if isinstance(monoid, Carried) else state


def fill(monoid, columns, row, state):
    """Write such a state back; the wraps of a ``Carried`` meanwhile are added."""
    if isinstance(monoid, Carried):
        state = state[0], columns[1][row] + state[1]
    put(columns, row, state)


def chosen(other, a, b):
    """Return ``b`` if ``other``, else ``a``."""
    return b if other else a


def rows(ring, begin, cells, place):
    """Return row ``place`` of ``cells``, or the slots of row ``~place`` of ``ring`` from ``begin`` on, by column."""
    if place >= 0:
        return tuple(column[place] for column in cells)
    return tuple(
        column[~place, begin : begin + scratch.shape[1]] for column, scratch in zip(ring, cells, strict=True)
    )


def cut(columns, row, begin, end):
    """Return a stretch of a row, by column."""
    return tuple(column[row, begin:end] for column in columns)


def sliced(columns, begin, end):
    """Return rows ``begin`` to ``end`` (exclusive), by column."""
    return tuple(column[begin:end] for column in columns)


def both(monoid, a, b):
    """Return whether the state of both does not fit (negative: so it is), and that state."""
    # The same questions, in the same order, as the overload asks of the class while it is compiled.
    if type(monoid).combine is Monoid.combine:
        return 0, chosen(monoid.better(a, b), a, b)
    state = monoid.combine(a, b)
    return monoid.wraps(b, state), state


def more(monoid, current, given):
    """Return whether ``current`` changes by a tuple (negative: it does not fit), and to which state."""
    kind = type(monoid)
    if kind.combine is Monoid.combine:
        lifted = monoid.lift(given)
        return int(monoid.better(current, lifted)), lifted
    if kind.wraps is Monoid.wraps and kind.add is not Monoid.add:
        return 1, monoid.add(current, given)
    lifted = monoid.lift(given)
    state = monoid.combine(current, lifted)
    return int(monoid.wraps(lifted, state)) | 1, state


def wraps(monoid, b, state):
    """Return a negative integer if ``state``, of some state and ``b``, does not fit."""
    return monoid.wraps(b, state)


def less(monoid, a, b):
    """Return the state that ``b`` was combined with to ``a``."""
    return monoid.without(a, b)


def _wide(value):
    """Return an integer in 64 bits; other values are as they are."""
    # Unsigned ones stay unsigned: hashes and registers are compared as such.
    if value.dtype.kind in "bi":
        return np.int64(value)
    return np.uint64(value) if value.dtype.kind == "u" else value
