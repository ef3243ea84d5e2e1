"""Lone rows: latencies of ``paced`` as they are on a machine that does nothing else, whatever this one does.

    python -m benchmarks.studies.lone ROWS

The clock is the CPU time of the thread that answers, and time in which it waits is skipped (``peers/lone_pace.py``):
others cost no more than the caches that they empty.  A thread wakes up ``WAKE_S`` late.  The event loop is that of the
standard library, for uvloop lets nobody in.  Beside it Bytewax, which never waits, where it is installed.
"""

from __future__ import annotations

import asyncio
import json
import selectors
import subprocess
import sys
from typing import Any

from benchmarks.field import ENVIRONMENTS, ROOT
from benchmarks.peers.lone_pace import LonePace
from benchmarks.peers.pace import Pace
from benchmarks.studies.paced import RATES, feeds, from_ports, served

__all__ = ["lone"]

WAKE_S = 60e-6
"""How much later than asked for a thread wakes up."""
WARM = 600


def lone(rows: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return latencies and CPU by pace and contender."""
    asyncio.run(served(compiles := Pace(1_000, 1e9), feeds(compiles)))
    _figures(WARM, RATES[0])
    found: dict[str, dict[str, dict[str, float]]] = {}
    for rate in RATES:
        found[f"{rate} a second"] = ways = {"engine": _figures(rows, rate)}
        if (python := ENVIRONMENTS / "bytewax" / "bin" / "python").exists():
            command = [str(python), "-m", "benchmarks.peers.bytewax_lone", str(rows), str(rate)]
            said = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
            ways["bytewax"] = json.loads(said.splitlines()[-1])
    return found


class _Skipping(selectors.DefaultSelector):
    """Sends rows when it is asked what is there, and goes on as if it had waited where nothing is."""

    def __init__(self, pace: LonePace) -> None:
        super().__init__()
        self.pace, self.began = pace, False

    def select(self, timeout: float | None = None) -> Any:
        if not self.began or self.pace.over:
            return super().select(timeout)
        self.pace.send()
        if not (ready := super().select(0)) and (timeout is None or timeout > 0):
            self.pace.skip(WAKE_S + min(self.pace.next_s(), timeout or 1.0))
            self.pace.send()
            ready = super().select(0)
        return ready


class _CpuLoop(asyncio.SelectorEventLoop):
    def __init__(self, selector: _Skipping) -> None:
        self._skipping = selector
        super().__init__(selector)

    def time(self) -> float:
        return self._skipping.pace.clock()


def _figures(rows: int, rate: float) -> dict[str, float]:
    pace = LonePace(rows, rate)
    selector = _Skipping(pace)

    async def main() -> None:
        serving = asyncio.create_task(served(pace, from_ports(pace.ports)))
        while not (pace.reached or serving.done()):
            await asyncio.sleep(0)
        selector.began = True
        await serving

    with asyncio.Runner(loop_factory=lambda: _CpuLoop(selector)) as runner:
        runner.run(main())
    found: dict[str, float] = json.loads(pace.figures("sources"))
    return found


if __name__ == "__main__":
    print(json.dumps(lone(int(sys.argv[1])), indent=1))
