"""Compiling is once on a machine, is told, and counts for no figure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from oop_engine.system import stopwatch
from oop_engine.system.stopwatch import CompileTime

ROOT = Path(__file__).parents[2]


def test_kernels_that_are_compiled_for_another_are_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([1.0, 4.0, 10.0, 11.0])
    monkeypatch.setattr(stopwatch, "perf_counter", lambda: next(now))
    compiled, calls = CompileTime(), list[str]()
    compiled.on_first = lambda: calls.append("first")
    compiled.begin()
    compiled.begin()
    compiled.end()
    compiled.end()
    compiled.begin()
    compiled.end()
    assert (compiled.kernels, compiled.wall_s, calls) == (2, 3.0 + 1.0, ["first"])


def test_the_library_says_once_that_it_compiles(caplog: pytest.LogCaptureFixture) -> None:
    compiled = CompileTime()
    for _ in range(2):
        compiled.begin()
        compiled.end()
    assert [(r.name, r.levelname) for r in caplog.records] == [("oop_engine", "WARNING")]
    assert caplog.messages[0].startswith("compiling kernels, once on this machine")


def test_both_stopwatches_stand_still_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopwatch, "COMPILED", CompileTime(1, wall_s=3.0, cpu_s=2.0))
    monkeypatch.setattr(stopwatch, "perf_counter", lambda: 10.0)
    monkeypatch.setattr(stopwatch, "process_time", lambda: 10.0)
    assert (stopwatch.wall(), stopwatch.cpu()) == (7.0, 8.0)


def test_the_first_run_on_a_machine_says_that_it_compiles(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "oop_engine.cli", "replay", "links", "--limit", "100", "--json"]
    runs = [
        subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        for _ in range(2)
    ]
    said = runs[0].stderr.splitlines()
    assert "once on this machine" in said[0]
    assert "compiled" in said[-1]
    assert runs[1].stderr == ""
    assert json.loads(runs[0].stdout)["cpu_s"] < float(
        said[-1].partition(" kernels in ")[2].partition(" s")[0]
    )
