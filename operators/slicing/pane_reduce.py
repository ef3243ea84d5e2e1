"""Pane reduction: states of many rows together, in one pass for a kind instead of one for each halving.

What ``oop_engine.operators.slicing.components`` combines two by two is here reduced by ``numpy.ufunc.reduceat``,
for the kinds where that gives the same; the others are left to halving.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.aggregates import Arrays, Part

__all__ = ["reduced"]

Integers = NDArray[np.int64]

_SAFE = 2.0**62


def reduced(part: Part, state: Arrays, starts: Integers) -> Arrays | None:
    """Return the states of the rows from each of ``starts`` (ascending, the first 0) to the next, together.

    None: this kind has no quick way, or an integer sum comes near 64 bits.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        match part.kind:
            case "count" | "sum":
                return _sum(state[0], starts)
            case "min" | "max":
                return (_extreme(part, state[0], starts),)
            case "first" | "last":
                return _edge(part, state, starts)
            case "moments":
                return _moments(state, starts)
    return None


def _sum(column: NDArray[Any], starts: Integers) -> Arrays | None:
    if column.dtype.kind == "i":
        largest = max(float(column.max()), -float(column.min()))
        if largest * float(_lengths(column.size, starts).max()) >= _SAFE:
            return None
    return (np.add.reduceat(column, starts),)


def _extreme(part: Part, column: NDArray[Any], starts: Integers) -> NDArray[Any]:
    """Return the best value; NaN only where there is nothing else."""
    best = np.fmax if part.kind in ("max", "last") else np.fmin
    values: NDArray[Any] = best.reduceat(column, starts)
    return values


def _edge(part: Part, state: Arrays, starts: Integers) -> Arrays:
    """Return the best of the values at the first time, or the last."""
    values, when = state
    edge = (np.maximum if part.kind == "last" else np.minimum).reduceat(when, starts)
    there = when == np.repeat(edge, _lengths(when.size, starts))
    return _extreme(part, np.where(there, values, _nothing(part)), starts), edge


def _nothing(part: Part) -> np.generic:
    if part.floating:
        return np.float64("nan")
    limits = np.iinfo(np.int64)
    return np.int64(limits.min if part.kind == "last" else limits.max)


def _moments(state: Arrays, starts: Integers) -> Arrays:
    """Return numbers, means and sums of squares about them (Chan, Golub, LeVeque, for any number of parts)."""
    number, mean, squares = state
    lengths = _lengths(number.size, starts)
    total = np.add.reduceat(number, starts)
    known = number > 0
    weighted = np.add.reduceat(
        np.where(known, number * (mean / np.repeat(np.maximum(total, 1), lengths)), 0.0), starts
    )
    away = np.where(known, mean - np.repeat(weighted, lengths), 0.0)
    return total, weighted, np.add.reduceat(squares + number * away * away, starts)


def _lengths(rows: int, starts: Integers) -> Integers:
    return np.diff(starts, append=rows)
