"""Compiling is once on a machine, is told, and counts for no figure."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba import njit
from numba.core import event

from oop_engine.system import stopwatch
from oop_engine.system.kernel import numba
from oop_engine.system.stopwatch import CompileTime

ROOT = Path(__file__).parents[3]


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


class Collecting(event.Listener):  # type: ignore[misc]
    """Notes whether garbage is collected while a kernel is compiled."""

    def __init__(self) -> None:
        self.noted: list[bool] = []

    def on_start(self, event: event.Event) -> None:
        self.noted.append(gc.isenabled())

    def on_end(self, event: event.Event) -> None:
        self.noted.append(gc.isenabled())


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_waits_until_a_kernel_is_compiled(collects: bool) -> None:
    numba()
    if not collects:
        gc.disable()
    try:
        with event.install_listener("numba:compile", Collecting()) as during:
            assert njit(lambda n: n + 1)(1) == 2
        assert during.noted[0] is False
        assert gc.isenabled() is collects
    finally:
        gc.enable()


GRAPH = """
import pyarrow as pa
from oop_engine import Graph, Schema
from oop_engine.operators import BoundedDisorder, Punctuate

graph = Graph("edge")
graph.source("in", Schema({"ts": pa.int64()}, "ts", "s"))
graph.sink("out", graph.add("edge", Punctuate(BoundedDisorder(2)), "in"))
"""


@pytest.mark.slow
def test_the_first_run_on_a_machine_says_that_it_compiles(tmp_path: Path) -> None:
    (tmp_path / "graph.py").write_text(GRAPH)
    (tmp_path / "in.csv").write_text("ts\n1\n2\n1\n5\n")
    command = [sys.executable, "-m", "oop_engine.cli", "run", "graph.py", "in=in.csv"]
    places = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "PYTHONPATH": str(ROOT)}
    runs = [
        subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | places,
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        for _ in range(2)
    ]
    said = runs[0].stderr.splitlines()
    assert "once on this machine" in said[0]
    assert "compiled 1 kernel in" in said[-1]
    assert "compile" not in runs[1].stderr
    assert runs[0].stdout == runs[1].stdout != ""
