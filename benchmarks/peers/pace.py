"""Rows at a pace, and how soon their windows are answered; the same for the engine and its peers.

Row ``n`` comes from source ``n % 3``; its time is ``n`` milliseconds, whatever the pace.  Each source is a TCP
connection, and each row a line of JSON that another process sends when it is due, so nobody knows when the next one
comes.  A window of ``WINDOW`` ms is complete when the largest time has passed its end by ``SLACK`` ms: in each source,
or in the stream of a key, or in all rows, as its system sees it.  Its latency is from the moment before the row that
completes it is sent to the moment when a result of it comes out.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

__all__ = [
    "FETCH_MS",
    "KEYS",
    "SLACK",
    "SOURCES",
    "WINDOW",
    "Lines",
    "Pace",
    "key",
    "last_end",
    "line",
    "told",
]

SOURCES, KEYS, WINDOW, SLACK = 3, 50, 20, 100  # the last two in milliseconds
FETCH_MS = 5
"""How long the broker in librdkafka lets a reader wait, even if a message comes meanwhile, which others do not."""


def key(row: int) -> int:
    """Return the key of a row."""
    return row * 7919 % KEYS


def line(row: int) -> bytes:
    """Return a row as it is sent."""
    return json.dumps({"ts": row, "key": key(row), "v": row}).encode() + b"\n"


def last_end(rows: int) -> int:
    """Return the end of the last window that the largest time of all rows completes."""
    return (rows - 1 - SLACK) // WINDOW * WINDOW


class Pace:
    """``rows`` in all, ``rate`` a second; notes when each was handed over, and when its window was answered first."""

    def __init__(self, rows: int, rate: float) -> None:
        self.rows, self.rate = rows, rate
        self.began = self.clock()
        self.given_s = np.full(rows, np.inf)
        self.answered_s: dict[tuple[int, int], float] = {}

    def clock(self) -> float:
        """Return seconds, of one clock for all processes."""
        return time.perf_counter()

    def due(self, row: int) -> float:
        """Return in how many seconds a row is due; negative: it has been."""
        return self.began + row / self.rate - self.clock()

    def give(self, row: int) -> int:
        """Note that a row is handed over now; return it."""
        self.given_s[row] = self.clock()
        return row

    def answer(self, end: int, of: int = 0, at: float | None = None) -> None:
        """Note that a result of the window that ends at ``end`` has come, of one part of the stream; None: now."""
        self.answered_s.setdefault((end, of), self.clock() if at is None else at)

    def latencies_ms(self, complete: Literal["sources", "key", "rows"]) -> dict[str, float]:
        """Return percentiles over windows; ``complete``: what must have passed the end of one."""
        found = [
            1e3 * (at - self._complete_s(*window, complete)) for window, at in sorted(self.answered_s.items())
        ]
        some = [one for one in found[len(found) // 10 :] if np.isfinite(one)]  # the first ones warm up
        return {f"p{q}_ms": round(float(np.percentile(some, q)), 2) for q in (50, 99)} | {
            "windows": len(some)
        }

    def _complete_s(self, end: int, of: int, complete: str) -> float:
        if complete == "key":
            return next((self.given_s[n] for n in range(end + SLACK, self.rows) if key(n) == of), np.inf)
        rows = SOURCES if complete == "sources" else 1
        return float(max(self.given_s[end + SLACK : end + SLACK + rows], default=np.inf))


class Lines:
    """The rows of a connection, as they come."""

    def __init__(self, port: int, *, block: bool = True) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(block)
        self._rest, self.over = b"", False

    def rows(self) -> list[dict[str, int]]:
        """Return the rows that are there; of a socket that blocks, at least one, unless it is ``over``."""
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return []
        self.over = not data
        *whole, self._rest = (self._rest + data).split(b"\n")
        return list(map(json.loads, whole))


def told(answers: Callable[[Pace, list[int]], None]) -> None:
    """Answer the rows of the ports in the arguments (``ROWS PORT...``); print when, and CPU microseconds a row."""
    rows, *ports = map(int, sys.argv[1:])
    pace, began = Pace(rows, 1.0), time.process_time()
    answers(pace, ports)
    cpu_us = 1e6 * (time.process_time() - began) / rows
    found: dict[str, Any] = {
        "answered_s": [[*of, at] for of, at in pace.answered_s.items()],
        "cpu_us": cpu_us,
    }
    print(json.dumps(found))
