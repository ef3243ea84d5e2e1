"""Processes of a session that a test has started, and waiting for the end of those (Linux only)."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

__all__ = ["Running"]

ROOT = Path(__file__).parents[3]


class Running:
    """A Python module in a process and a session of its own."""

    def __init__(self, module: str, *arguments: str, log: Path) -> None:
        command = [sys.executable, "-m", module, *arguments]
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=file, text=True, start_new_session=True
            )
        self.log = log

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
        self.said.close()

    @property
    def said(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def lines(self, most: int) -> list[str]:
        """Wait for so many lines; fewer if the process ends before."""
        return [line for _, line in zip(range(most), self.said, strict=False)]

    def wait(self, seconds: float) -> int | None:
        """Return the code with which the process ended; None: it did not within ``seconds``."""
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(seconds)
        return None

    def kill(self) -> None:
        """Kill every process of the session at once."""
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def pids(self) -> list[int]:
        """Return the processes of the session that have not ended."""
        return [pid for pid, session, state in _processes() if session == self.process.pid and state != "Z"]

    def left_after(self, seconds: float) -> list[int]:
        """Return the processes that are still there ``seconds`` after this call, or none."""
        for pid in self.pids():
            with suppress(ProcessLookupError):
                end = os.pidfd_open(pid)
                select.select([end], [], [], seconds)
                os.close(end)
        return self.pids()


def _processes() -> Iterator[tuple[int, int, str]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
                yield int(folder.name), int(session), state
