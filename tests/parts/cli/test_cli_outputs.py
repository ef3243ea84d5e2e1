"""Outputs of the command line and of services: never in the place of what is read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from oop_engine import Graph, Schema, UsageError, serve
from oop_engine.cli.app import app
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import PartFiles
from oop_engine.sources import FileTail, GrowingFolder
from oop_engine.system.apart import check_apart

GRAPH = """
import pyarrow as pa
from oop_engine import Graph, Schema
graph = Graph("g")
graph.sink("out", graph.source("x", Schema({"ts": pa.int64()}, "ts", "s")))
"""
EVENTS = """
name = "x"
format = "csv"
[columns]
ts = "int64"
[stream]
time = "ts"
unit = "s"
"""
SCENARIO = """
from pathlib import Path
from oop_engine import open_trace
from oop_engine.lab import Scenario, Variant
from g import graph
trace = Path(__file__).with_name("a.csv")
SCENARIO = Scenario("mine", "mine?", "", lambda _: {"x": open_trace(trace, time="ts", unit="s")},
                    lambda _: [Variant("v", "out", graph)], ("ts",))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "g.py").write_text(GRAPH)
    (tmp_path / "s.py").write_text(SCENARIO)
    (tmp_path / "a.csv").write_text("ts\n1\n2\n")
    (tmp_path / "soft.csv").symlink_to("a.csv")
    os.link(tmp_path / "a.csv", tmp_path / "hard.csv")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.csv").write_text("ts\n1\n")
    (tmp_path / "also").symlink_to("in")
    (tmp_path / "events.toml").write_text(EVENTS)
    monkeypatch.chdir(tmp_path)
    before = _contents(tmp_path)
    yield tmp_path
    assert _contents(tmp_path) == before


def _contents(folder: Path) -> dict[Path, bytes]:
    """Return all files but those in which Python keeps what it has compiled."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path: path.read_bytes() for path in files}


ONES = ("a.csv", "./a.csv", "in/../a.csv", "soft.csv", "hard.csv")
CALLS = [
    *(f"run g.py x={one} --out {other}" for one in ONES for other in ONES),
    "run g.py a.csv --out hard.csv",
    "run g.py --source folder:in --sink csv:in",
    "run g.py --source folder:in --sink csv:also",
    *(f"run g.py --source tail:a.csv?format=csv --sink file:{one}" for one in ONES),
    "run g.py --source folder:in --sink print: --dead-letters file:in/b.csv",
    "run g.py --source folder:in --sink csv:in/deeper",
    "run g.py --source folder:in --sink print: --dead-letters csv:in",
    "run g.py --source folder:in --sink csv:state --checkpoint state",
    "run g.py --source folder:in --sink csv:out --checkpoint also",
    "explain g.py --svg ./g.py",
    "compare s.py --report s.py",
    *(f"replay s.py --output {one}" for one in ONES),
    *(f"pipeline events.toml in --out {out} --until policy" for out in ("in", "also", "in/out", ".")),
]


@pytest.mark.parametrize("text", CALLS)
def test_an_input_is_never_overwritten(folder: Path, text: str) -> None:
    done = CliRunner().invoke(app, text.split())
    assert done.exit_code == 2, done.output
    assert re.search(r"(is read by|lies in|holds|is where) .*: give ", done.stderr), done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("reads", ["tail", "folder"])
def test_a_service_does_not_write_into_what_it_reads(folder: Path, reads: str) -> None:
    schema = Schema({"ts": pa.int64()}, "ts", "s")
    graph = Graph("g")
    graph.sink("out", graph.source("x", schema))
    source = GrowingFolder("in", schema) if reads == "folder" else FileTail("in")
    with pytest.raises(UsageError, match="sink 'out': also is read by source 'x' as in"):
        run_async(serve(graph, {"x": source}, {"out": PartFiles("also")}, signals=False))


def test_what_does_not_touch_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "a.csv").write_text("")
    check_apart(
        [("one", tmp_path / "a.csv"), ("two", tmp_path / "in")],
        [("out", tmp_path / "b.csv"), ("in2", tmp_path / "in2"), ("above", tmp_path)],
    )
    with pytest.raises(UsageError, match=r"two: .* is where one writes"):
        check_apart([], [("one", tmp_path / "b.csv"), ("two", tmp_path / "in" / ".." / "b.csv")])
