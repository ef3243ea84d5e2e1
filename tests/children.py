"""Processes that tests start: none outlives its test, or hangs it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

__all__ = ["MOST_S", "started"]

ROOT = Path(__file__).parents[1]
MOST_S = 600
"""Seconds after which a child is killed: more than it needs on a machine that is busy."""


@contextmanager
def started(command: Sequence[str], seconds: float = MOST_S) -> Iterator[subprocess.Popen[str]]:
    """Start a process whose outputs are read here; it is killed after so many seconds, and at the end."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as process:
        watch = Timer(seconds, process.kill)
        watch.start()
        try:
            yield process
        finally:
            watch.cancel()
            process.kill()
