"""Journal: CPU of a row that a journal keeps, beside one that goes straight in, and how long a row alone waits.

    python -m benchmarks.studies.journal [ROWS]

Rows come as blocks of 300 lines, or a message each; with and without the journal by turns, the least of ``TURNS``.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from oop_engine.extend import LiveSource
from oop_engine.runners.event_loop import run_async
from oop_engine.sources import Generated, Journal

__all__ = ["journal"]

TURNS, BLOCK, AT_ONCE, ALONE = 5, 300, 2000, 400


def journal(rows: int = 100_000) -> dict[str, float]:
    """Return the costs: microseconds of CPU a row, and of the clock where a row is alone."""
    made = [{"ts": at // 100, "key": "ab"[at % 2]} for at in range(rows)]
    lines = [json.dumps(row).encode() + b"\n" for row in made]
    blocks = [b"".join(lines[at : at + BLOCK]) for at in range(0, rows, BLOCK)]
    found = dict[str, float]()
    for name, pieces in (("blocks", blocks), ("messages", made)):
        turns = [[_cpu_s(pieces, kept=kept) for kept in (False, True)] for _ in range(TURNS)]
        without, kept = np.min(turns, axis=0) / rows * 1e6
        found |= {f"{name}_us": float(without), f"{name}_kept_us": float(kept)}
    waits = run_async(_alone())
    return found | {"alone_p50_us": float(np.median(waits)), "alone_p99_us": float(np.quantile(waits, 0.99))}


async def _feed(pieces: list[Any]) -> AsyncIterator[Any]:
    for at, piece in enumerate(pieces):
        if at % AT_ONCE == 0:
            await asyncio.sleep(0)
        yield piece


def _cpu_s(pieces: list[Any], *, kept: bool) -> float:
    async def read(source: LiveSource) -> int:
        return sum([1 async for _ in source.read(None)])

    with TemporaryDirectory() as folder:
        source: LiveSource = Generated(_feed(pieces))
        began = time.process_time()
        assert run_async(read(Journal(source, Path(folder)) if kept else source)) == len(pieces)
        return time.process_time() - began


async def _alone() -> list[float]:
    """Return how long each row waits, in microseconds, that comes when the one before has been handed on."""
    asked, found = asyncio.Queue[int](), list[float]()

    async def feed() -> AsyncIterator[Any]:
        while True:
            yield {"ts": await asked.get(), "key": "a"}

    with TemporaryDirectory() as folder:
        pieces = Journal(feed(), Path(folder)).read(None)
        for at in range(ALONE):
            asked.put_nowait(at)
            began = time.perf_counter()
            await anext(pieces)
            found.append((time.perf_counter() - began) * 1e6)
        await pieces.aclose()  # type: ignore[attr-defined]
    return found


if __name__ == "__main__":
    print(json.dumps(journal(*map(int, sys.argv[1:2])), indent=1))
