"""Process: CPU seconds and memory of this process and of those it started, as Linux tells them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["cpu_seconds", "forget_peak", "peak_bytes", "resident_bytes"]

_TICK = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


def cpu_seconds() -> float:
    """Return what all threads have used, of children too (theirs in steps of 10 ms)."""
    children = sum(map(_child_seconds, _children(os.getpid()))) + sum(os.times()[2:4])
    return children + time.process_time()


def resident_bytes() -> int:
    """Return what is in memory now."""
    return _status("VmRSS")


def peak_bytes() -> int:
    """Return the most that was in memory at once (of each process by itself)."""
    return _status("VmHWM")


def forget_peak() -> None:
    """Let the peak start anew from what is in memory now."""
    for pid in (os.getpid(), *_children(os.getpid())):
        with suppress(OSError):  # where it may not be written the peak is that since the start
            (_PROC / str(pid) / "clear_refs").write_text("5")


def _status(name: str) -> int:
    found = 0
    for pid in (os.getpid(), *_children(os.getpid())):
        with suppress(OSError):  # it has ended
            lines = (_PROC / str(pid) / "status").read_text().splitlines()
            found += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
    return found


def _child_seconds(pid: int) -> float:
    with suppress(OSError):
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / _TICK
    return 0.0


def _children(pid: int) -> Iterator[int]:
    for task in (_PROC / str(pid) / "task").glob("*"):
        with suppress(OSError):
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from _children(child)
