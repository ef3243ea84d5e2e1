"""Worker: one contender in a process of its own, which takes a turn when it is told to.

    python -m benchmarks.worker MODULE CONTENDER WORKLOAD FOLDER

``FOLDER`` has a column in each ``.npy`` file.  Commands come a line at a time, and each is answered
by a line of JSON: ``turn SECONDS`` runs again and again for so long, ``results FOLDER`` runs once,
keeps track of memory, and writes a ``.npy`` file for each column of results.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contender import Contender
from benchmarks.data import Columns
from benchmarks.process import cpu_seconds, forget_peak, peak_bytes, resident_bytes

__all__ = ["main"]

MEBI = 2**20


def main(module: str, contender: str, workload: str, folder: str) -> None:
    """Load the data, answer a small part of them to be warm, then obey."""
    answers = os.fdopen(os.dup(1), "w")  # what libraries print goes to stderr
    os.dup2(2, 1)
    make = import_module(module).contender
    columns = {path.stem: np.load(path) for path in sorted(Path(folder).glob("*.npy"))}
    small = make(contender, workload, {name: column[:2000] for name, column in columns.items()})
    small.columns(small.run(small.prepare()))
    able = make(contender, workload, columns)
    _answer(answers, {"ready": True})
    for line in sys.stdin:
        command, _, operand = line.strip().partition(" ")
        _answer(answers, turn(able, float(operand)) if command == "turn" else results(able, operand))


def turn(able: Contender, seconds: float) -> dict[str, list[float]]:
    """Run until ``seconds`` have gone, once at least; return wall and CPU seconds of each run."""
    walls: list[float] = []
    cpus: list[float] = []
    gc.collect()  # not before each run: it leaves the caches empty, which is half of a run of 10 ms
    while not walls or sum(walls) < seconds:
        given = able.prepare()
        cpu, wall = cpu_seconds(), time.perf_counter()
        found = able.run(given)
        walls.append(time.perf_counter() - wall)
        cpus.append(cpu_seconds() - cpu)
        del found, given
    return {"wall_s": walls, "cpu_s": cpus}


def results(able: Contender, folder: str) -> dict[str, float]:
    """Run once, write the results, return the memory before, and at most, of the process in MiB."""
    given = able.prepare()
    gc.collect()
    before = resident_bytes()
    forget_peak()
    found = able.run(given)
    peak = peak_bytes()
    save(able.columns(found), folder)
    return {"base_rss_mb": before / MEBI, "peak_rss_mb": peak / MEBI}


def save(columns: Columns, folder: str) -> None:
    """Write each column to a file."""
    for name, column in columns.items():
        np.save(Path(folder) / f"{name}.npy", column)


def _answer(answers: Any, said: dict[str, Any]) -> None:
    print(json.dumps(said), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
