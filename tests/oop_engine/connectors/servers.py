"""Servers on loopback for tests: each is started on a free port, and has ended with its test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


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
