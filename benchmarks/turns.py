"""Turns: every contender in a process of its own, one run after the other, round after round.

What disturbs the machine for a while disturbs them all, and ratios are taken within a round.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.compared import equal
from benchmarks.data import Columns
from benchmarks.field import ROOT, Entry
from benchmarks.worker import save
from benchmarks.workload import Workload

__all__ = ["Measured", "measure"]


@dataclass
class Measured:
    """What one contender did with one workload; lists have an entry a round (the median of its turn)."""

    workload: str
    contender: str
    rows: int
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    base_rss_mb: float = 0.0
    peak_rss_mb: float = 0.0
    correct: bool = False

    def ratios(self, floor: Measured, of: str = "wall_s") -> list[float]:
        """Return how many times as many tuples a second as ``floor``, round by round."""
        mine, its = getattr(self, of), getattr(floor, of)
        return [(self.rows / m) / (floor.rows / i) for m, i in zip(mine, its, strict=True)]

    def told(self, floor: Measured) -> dict[str, Any]:
        """Return the figures; ``spread``: from the least to the largest ratio, over the median."""
        ratios = self.ratios(floor) if self is not floor else [floor.rows / wall for wall in floor.wall_s]
        return {
            "workload": self.workload,
            "contender": self.contender,
            "rows": self.rows,
            "rows_per_s": round(self.rows / median(self.wall_s)),
            "cpu_s": round(median(self.cpu_s), 4),
            "peak_rss_mb": round(self.peak_rss_mb, 1),
            "ratio_to_floor": 1.0 if self is floor else _digits(median(ratios)),
            "spread": round((max(ratios) - min(ratios)) / median(ratios), 3),
            "correct": self.correct,
        }


def measure(
    workload: Workload, entries: list[Entry], rows: int, rounds: int, seconds: float
) -> list[Measured]:
    """Let ``entries`` take ``rounds`` turns of ``seconds`` each, and check what they find.

    Peers that do not start are left out.  Raises ``RuntimeError`` if one of ours ends before its time,
    or a peer after its start.
    """
    with ExitStack() as stack:
        data = stack.enter_context(_Data.of(workload, rows))
        workers = [stack.enter_context(_Worker.started(entry, workload, data)) for entry in entries]
        workers = [worker for worker in workers if worker.is_ready()]
        for worker in workers:
            worker.check(workload)
        for _ in range(rounds):
            for worker in workers:
                worker.take_turn(seconds)
    return [worker.measured for worker in workers]


class _Data:
    """The columns, and for each length what is right, in files."""

    def __init__(self, workload: Workload, rows: int, folder: Path) -> None:
        self._workload, self._folder = workload, folder
        self._columns = workload.data(rows)
        self._right: dict[int, Columns] = {}

    @classmethod
    @contextmanager
    def of(cls, workload: Workload, rows: int) -> Iterator[_Data]:
        with tempfile.TemporaryDirectory(prefix="oop-bench-") as folder:
            yield cls(workload, rows, Path(folder))

    def first(self, rows: int | None) -> tuple[Path, int, Columns]:
        """Return the folder of the first ``rows`` rows, how many they are, and what is right."""
        size: int = next(iter(self._columns.values())).size
        size = size if rows is None else min(rows, size)
        folder = self._folder / str(size)
        if size not in self._right:
            part = {name: column[:size] for name, column in self._columns.items()}
            folder.mkdir()
            save(part, str(folder))
            self._right[size] = self._workload.reference(part)
        return folder, size, self._right[size]


class _Worker:
    """The process of a contender."""

    def __init__(
        self, entry: Entry, process: subprocess.Popen[str], measured: Measured, right: Columns
    ) -> None:
        self._entry, self._process, self.measured, self._right = entry, process, measured, right

    @classmethod
    @contextmanager
    def started(cls, entry: Entry, workload: Workload, data: _Data) -> Iterator[_Worker]:
        assert entry.python is not None
        folder, rows, right = data.first(entry.rows)
        command = [
            entry.python,
            "-m",
            "benchmarks.worker",
            entry.module,
            entry.name,
            workload.name,
            str(folder),
        ]
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with process:
            worker = cls(entry, process, Measured(workload.name, entry.name, rows), right)
            yield worker
            assert process.stdin is not None
            process.stdin.close()

    def is_ready(self) -> bool:
        """Wait until it has loaded and compiled all it needs; False: a peer that cannot start here."""
        try:
            self._heard()
        except RuntimeError:
            if not self._entry.package:
                raise
            return False
        return True

    def check(self, workload: Workload) -> None:
        """Let it run once for its results and its memory."""
        with tempfile.TemporaryDirectory(prefix="oop-bench-") as folder:
            said = self._ask(f"results {folder}")
            found = {path.stem: np.load(path) for path in Path(folder).glob("*.npy")}
        self.measured.correct = equal(found, self._right, workload.keys)
        self.measured.base_rss_mb, self.measured.peak_rss_mb = said["base_rss_mb"], said["peak_rss_mb"]

    def take_turn(self, seconds: float) -> None:
        said = self._ask(f"turn {seconds}")
        self.measured.wall_s.append(median(said["wall_s"]))
        self.measured.cpu_s.append(median(said["cpu_s"]))

    def _ask(self, command: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        print(command, file=self._process.stdin, flush=True)
        return self._heard()

    def _heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            msg = f"{self._entry.name} on {self.measured.workload}: its process ended; what it said is above"
            raise RuntimeError(msg)
        said: dict[str, Any] = json.loads(line)
        return said


def _digits(value: float) -> float:
    """Return three significant digits."""
    return float(f"{value:.3g}")
