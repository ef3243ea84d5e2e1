"""All studies, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks.field import ROOT
from benchmarks.workload import PAGE

__all__ = ["studied"]

FULL = 5_000_000
LENGTHS = (1_000_000, 5_000_000, 20_000_000, 50_000_000)
KEYS = (1_000, 10_000, 100_000, 1_000_000)
SMALLER_PAGE = 4096


def studied(rows: int) -> dict[str, Any]:
    """Return what each study found; ``rows`` below 5 M make all of them smaller alike."""
    part = min(rows / FULL, 1)
    lengths, keys = ([max(int(n * part), 100) for n in sizes] for sizes in (LENGTHS, KEYS))
    return {
        "memory": {name: _asked("memory", name, rows, PAGE) for name in ("W2", "W3")},
        "memory, pages of 4096": {name: _asked("memory", name, rows, SMALLER_PAGE) for name in ("W2", "W3")},
        "growth": {
            "rows": [_asked("growth", length, 10_000) for length in lengths],
            "keys": [_asked("growth", lengths[1], many) for many in keys],
        },
        "promises": _asked("promises", max(int(100_000 * part), 100)),
        "recovery": _asked("recovery", rows),
    }


def _asked(study: str, *operands: object) -> dict[str, float]:
    command = [sys.executable, "-m", f"benchmarks.studies.{study}", *map(str, operands)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found
