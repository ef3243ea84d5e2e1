"""Combinations that are counted, for the least of the last values: two stacks' kernels, and subtract-on-evict.

Kernels run as Python, with a combination that counts, so a count is one of the code that plans run.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.kernels.loops import add_runs, slide
from oop_engine.operators.slicing.row_slides import RowPanes
from oop_engine.operators.windows import Extents

__all__ = ["combined", "evictions"]

Integers = NDArray[np.int64]
_GREATEST = np.iinfo(np.int64).max  # the least of no values


def combined(found: Integers, range_: int, apart: int = 1) -> int:
    """Return how often two stacks combine two values for the least of the last ``range_``, after each ``apart``.

    With ``apart`` 1 each tuple is a pane: to be put on the back, to be read with the front, and to be made the front,
    once a round, is three times a tuple.  Else tuples are first combined to panes, once a tuple.
    """
    counted = _Counted()
    panes = RowPanes(Extents(range_, apart, 0))
    passed = panes.passed(0, found.size)
    state = found
    if not panes.of_one:
        state = np.full(passed.panes + 1, _GREATEST)
        no_nulls = np.empty(0, bool)
        counted.run(add_runs, None, (state,), passed.starts, passed.ends, (found,), no_nulls)
        state = state[:-1]
    held, stack = np.full(1, _GREATEST), np.full(panes.length + 1, _GREATEST)
    out = np.empty_like(state)
    if panes.length == 1:
        out = state
    else:
        counted.run(slide, None, (state,), 0, panes.length, (held,), (stack,), (out,))
    least = out[passed.first :: panes.step]
    ends = (np.arange(least.size) + passed.window + 1) * apart
    full = ends >= range_
    every = np.lib.stride_tricks.sliding_window_view(found, range_).min(axis=1)
    assert (least[full] == every[ends[full] - range_]).all()
    return counted.count


class _Counted:
    """Runs kernels as Python; ``count``: how often they combined two values."""

    def __init__(self) -> None:
        self.count = 0

    def run(self, kernel: Any, *arguments: object) -> None:
        """Run a kernel with combinations that count."""
        in_python: dict[str, Callable[..., object]] = {
            "_both": self._both,
            "_more": self._both,
            "_at": lambda columns, at: int(columns[0][at]),
            "_put": _put,
            "_slice": lambda columns, start, stop: (columns[0][start:stop],),
        }
        function = kernel.py_func
        FunctionType(function.__code__, {**function.__globals__, **in_python})(*arguments)

    def _both(self, monoid: object, a: int, b: int) -> tuple[int, int]:
        """Return that nothing wraps or that the state changed, and the least of both."""
        self.count += 1
        return int(b < a), min(a, b)


def _put(columns: tuple[Integers], at: int, value: int) -> None:
    columns[0][at] = value


def evictions(found: Integers, range_: int) -> int:
    """Return how often subtract-on-evict compares two values for the same.

    The new value is compared, and if the least one leaves and a larger one comes, all of the window.
    """
    least = np.lib.stride_tricks.sliding_window_view(found, range_).min(axis=1)
    rescans = int(np.count_nonzero((found[:-range_] == least[:-1]) & (found[range_:] > least[:-1])))
    return found.size + rescans * range_
