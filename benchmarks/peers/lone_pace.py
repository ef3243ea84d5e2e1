"""A pace that others do not disturb: its clock is the CPU time of one thread, which sends the rows to itself.

What it takes to send them is not counted, and a wait takes no time: so a latency is what it is on a machine that does
nothing else, but for caches that others empty.
"""

from __future__ import annotations

import json
import select
import socket
import time
from typing import Literal

from benchmarks.peers.pace import SOURCES, Pace, line

__all__ = ["LonePace"]


class LonePace(Pace):
    """Sends its rows to who connects to ``ports``, when they are due, to the moment; ``send`` is called often."""

    def __init__(self, rows: int, rate: float) -> None:
        self._skipped_s = 0.0
        super().__init__(rows, rate)
        self._doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(SOURCES)]
        self.ports = [door.getsockname()[1] for door in self._doors]
        self._lines, self._next = list(map(line, range(rows))), 0
        self._sources: list[socket.socket] = []
        self.over = False
        self._cpu_s = time.process_time()

    def clock(self) -> float:
        return time.thread_time() + self._skipped_s

    @property
    def reached(self) -> bool:
        """Whether somebody has connected to all ports."""
        return len(select.select(self._doors, (), (), 0)[0]) == len(self._doors)

    def begin(self) -> None:
        """Let the first row be due now; waits until the ports are ``reached``."""
        self._sources = [door.accept()[0] for door in self._doors]
        for each in (*self._doors, *self._sources):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for door in self._doors:
            door.close()
        self.began = self.clock()

    def next_s(self) -> float:
        """Return in how many seconds the next row is due, or the end."""
        return max(self.due(self._next), 0.0)

    def skip(self, seconds: float) -> None:
        """Go on as if one had waited."""
        self._skipped_s += seconds

    def send(self) -> None:
        """Send the rows that are due; behind the last one close."""
        began = time.thread_time()
        if not self._sources:
            self.begin()
        now = self.clock()
        while self._next < self.rows and (due := self.began + self._next / self.rate) <= now:
            self.given_s[self._next] = due
            self._sources[self._next % SOURCES].sendall(self._lines[self._next])
            self._next += 1
        if self._next == self.rows and not self.over:
            self.over = True
            for source in self._sources:
                source.close()
        self._skipped_s -= time.thread_time() - began

    def figures(self, complete: Literal["sources", "key"]) -> str:
        """Return latencies and CPU microseconds a row, sending included, as JSON."""
        cpu_us = 1e6 * (time.process_time() - self._cpu_s) / self.rows
        return json.dumps(self.latencies_ms(complete) | {"cpu_us": round(cpu_us, 1)})
