"""Servers on loopback for tests: each is started on a free port, and has ended with its test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

__all__ = ["IN_A_ROW", "free_port", "program", "served"]

IN_A_ROW = pytest.mark.xdist_group("servers")
"""Of modules that start servers: they run in one process, so no two take one port."""

_PLACES = [os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin",
           *map(str, Path("/usr/lib/postgresql").glob("*/bin"))]  # fmt: skip


def program(name: str, package: str) -> str:
    """Return the path of a server; skip the test where it is not installed."""
    found = shutil.which(name, path=os.pathsep.join(_PLACES))
    if found is None:
        pytest.skip(f"{name} is not installed (Debian's package {package})")
    return found


_PORTS = deque(range(20_000, 32_000))
"""Below the ports that systems give to connections by themselves: nobody gets one by chance before a test takes it."""
_PORTS.rotate(-101 * os.getpid())


def free_port() -> int:
    """Return a port that is free now, and that no other test of this process has had lately."""
    while True:
        _PORTS.rotate(-1)
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", _PORTS[0]))
            return _PORTS[0]


@contextmanager
def served(
    command: Sequence[str], ready: str, folder: Path, **options: Any
) -> Iterator[subprocess.Popen[str]]:
    """Start a server, and wait for the line that it is ready; it is killed with the block."""
    both = subprocess.STDOUT
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=both, text=True, **options) as process:
        assert process.stdout is not None
        try:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if ready in line:
                    break
            else:
                pytest.fail(f"{command[0]} has ended: {''.join(lines)}")
            drain = Thread(target=process.stdout.read)
            drain.start()
            yield process
        finally:
            process.kill()
            process.wait()
        drain.join()
