"""ByQuantile: a bound that trails the largest value by a share of the lateness seen lately.

How late a tuple is, the largest value before it minus its own (0 where it is the larger), goes into a histogram of the
last ``rows`` tuples.  Its cells are logarithmic with eight in each power of two, so a quantile is at most an eighth too
large, and never too small.  The bound is the largest value minus that quantile: the "percentile watermark".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.kernels.ordering import CELLS, quantile_behind
from oop_engine.operators.policies.running_bound import (
    MOST_ROWS,
    Bounds,
    Policy,
    RunningBound,
    register_policy,
)

__all__ = ["ByQuantile"]


@register_policy
@checked_arguments
@dataclass(frozen=True)
class ByQuantile(Policy):
    """``share`` of the last ``rows`` tuples came no later than the bound allows for.

    It adapts to the disorder, and about ``1 - share`` of the tuples are behind it: best as a watermark, beside a policy
    that is patient.  The same tuples give the same bounds, wherever pages end.  Costs a few nanoseconds a tuple, and
    two bytes for each of ``rows``.  Raises ``GraphError`` unless ``0 < share <= 1`` and ``rows`` is positive.

    >>> from oop_engine.operators import BoundedDisorder, Punctuate
    >>> Punctuate(BoundedDisorder("1 min"), watermark=ByQuantile(0.95)).describe()
    "Punctuate(BoundedDisorder('1 min'))"
    """

    share: float
    rows: int = 65_536

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            msg = f"ByQuantile: share must be above 0 and at most 1; got share={self.share}"
            raise GraphError(msg)
        if not 1 <= self.rows <= MOST_ROWS:
            msg = f"ByQuantile: rows must be a number of tuples from 1 to 2**30; got rows={self.rows}"
            raise GraphError(msg)

    def running(self, schema: Schema, place: str) -> RunningBound:
        return _Quantile(self.share, self.rows)

    def uses_arrival(self) -> bool:
        return False


class _Quantile(RunningBound):
    """The largest value, minus a quantile of the lateness of the last ``rows`` tuples."""

    def __init__(self, share: float, rows: int) -> None:
        self._share = share
        self._last = np.zeros(rows, np.int16)  # cells of the last tuples, a ring
        self._counts = np.zeros(CELLS, np.int64)
        self._memory = np.array([NEVER, NEVER, 0, 0, 0])

    def after(self, page: Page) -> Bounds:
        bounds: Bounds = quantile_behind(page.times, self._share, self._last, self._counts, self._memory)
        return bounds

    @property
    def nbytes(self) -> int:
        return self._last.nbytes + self._counts.nbytes + self._memory.nbytes

    def save(self) -> dict[str, Any]:
        came = min(int(self._memory[2]), self._last.size)
        return {"last": self._last[:came], "memory": self._memory.tolist()}

    def load(self, saved: Saved) -> None:
        memory = saved.part("memory")
        largest, bound, came = memory.integer(0), memory.integer(1), memory.integer(2, least=0)
        cell, rows = memory.integer(3, least=0, most=CELLS - 1), min(came, self._last.size)
        self._last[:rows] = saved.integers("last", (rows,), least=0, below=CELLS)
        self._counts = np.bincount(self._last[:rows], minlength=CELLS)
        self._memory = np.array([largest, bound, came, cell, self._counts[: cell + 1].sum()])
