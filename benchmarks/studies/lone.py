"""Lone rows: latencies of ``paced`` as they are on a machine that does nothing else, whatever this one does.

    python -m benchmarks.studies.lone ROWS

The clock of the event loop is the CPU time of the thread, and time in which nothing is due is skipped: others cost no
more than the caches that they empty.  Timers fire as those of asyncio do, which waits for whole milliseconds, or at the
very moment.  Milliseconds from the row that completes a window to its first result, the share of windows whose rows
were given together, and CPU microseconds a row.
"""

from __future__ import annotations

import asyncio
import json
import math
import selectors
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.pace import SLACK, SOURCES, Pace
from benchmarks.studies.paced import served

__all__ = ["lone"]

RATE = 1_000
WAKE_S = 60e-6
"""How much later than asked for a thread wakes up."""
TOGETHER_S = 300e-6


def lone(rows: int) -> dict[str, dict[str, float]]:
    """Return the figures by kind of timer."""
    asyncio.run(served(Pace(1_000, 1e9)))  # compiles
    _figures(300, exact=True)
    return {
        "timers of a millisecond": _figures(rows, exact=False),
        "exact timers": _figures(rows, exact=True),
    }


class _Skipping(selectors.DefaultSelector):
    """Does not wait, but tells ``skipped`` how long it would have."""

    def __init__(self, exact: bool) -> None:
        super().__init__()
        self._exact, self.skipped = exact, 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        if not (ready := super().select(0)):
            self.skipped += WAKE_S + (timeout if self._exact else math.ceil(timeout * 1e3) / 1e3)
        return ready


class _CpuLoop(asyncio.SelectorEventLoop):
    def __init__(self, exact: bool) -> None:
        self._skipping = _Skipping(exact)
        super().__init__(self._skipping)

    def time(self) -> float:
        return time.thread_time() + self._skipping.skipped


class _CpuPace(Pace):
    """A pace by the clock of a loop."""

    def __init__(self, rows: int, clock: Callable[[], float]) -> None:
        super().__init__(rows, RATE)
        self._clock, self.began = clock, clock()

    def due(self, row: int) -> float:
        return self.began + row / self.rate - self._clock()

    def give(self, row: int) -> int:
        self.given_s[row] = self._clock()
        return row

    def answer(self, end: int, of: int = 0) -> None:
        self.answered_s.setdefault((end, of), self._clock())

    def together(self) -> float:
        """Return the share of windows whose last rows were given within ``TOGETHER_S``."""
        last = [self.given_s[end + SLACK : end + SLACK + SOURCES] for end, _ in self.answered_s]
        return float(np.mean([np.diff(np.sort(of)).min(initial=np.inf) < TOGETHER_S for of in last]))


def _figures(rows: int, *, exact: bool) -> dict[str, float]:
    with asyncio.Runner(loop_factory=lambda: _CpuLoop(exact)) as runner:
        pace, before = _CpuPace(rows, runner.get_loop().time), time.process_time()
        runner.run(served(pace))
        cpu_us = 1e6 * (time.process_time() - before) / rows
    return pace.latencies_ms("sources") | {"together": round(pace.together(), 2), "cpu_us": round(cpu_us, 1)}


if __name__ == "__main__":
    print(json.dumps(lone(int(sys.argv[1])), indent=1))
