"""Collections of garbage in programs of the command line: none while they are loaded; files of the user are written."""

from __future__ import annotations

import gc
import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from oop_engine.cli.running.fewer_collections import collect_less, keep_loaded
from tests.children import MOST_S

GRAPH = """
import gzip
import pyarrow as pa
import beside
from oop_engine import Graph, Schema
from oop_engine.operators import Ordered, Punctuate, Sum, Tumbling, WindowAggregate

packed = gzip.open("packed.gz", "wt")
open_file = open("own.log", "w")

def say(text):
    open_file.write(text)
    packed.write(text)

say("own")
graph = Graph("g")
log = graph.source("log", Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s"))
bounded = graph.add("bounded", Punctuate(Ordered()), log)
graph.sink("sums", graph.add("sum", WindowAggregate(Tumbling(10), {"n": Sum("v")}), bounded))
"""
BESIDE = """
class Files:
    of_class = open("class.log", "w")

open_file = open("beside.log", "w")
log = lambda text: open_file.write(text)
log("beside")
Files.of_class.write("class")
"""
PROGRAM = """
import gc, sys
from oop_engine.cli.running import fewer_collections
before, keep = [each["collections"] for each in gc.get_stats()], fewer_collections.keep_loaded

def kept():
    keep()
    done = [each["collections"] - n for each, n in zip(gc.get_stats(), before)]
    print("collected:", sum(done), "kept:", gc.get_freeze_count() > 10_000)

fewer_collections.keep_loaded = kept
sys.argv = ["oop-engine", *{args}]
from oop_engine.cli import main
main()
"""


@pytest.mark.parametrize(
    "args",
    [
        ["run", "graph.py", "log.csv", "--out", "sums.csv"],
        ["run", "graph.py", "--source", "log=tail:log.csv?follow=no", "--sink", "csv:out", "--drain"],
        [
            "sql",
            "--unit",
            "s",
            "SELECT window_start, count(*) AS n FROM TUMBLE('log.csv', ts, 10) GROUP BY ALL",
        ],
    ],
    ids=["traces", "live", "sql"],
)
def test_nothing_is_collected_while_a_program_is_loaded(args: list[str], tmp_path: Path) -> None:
    _write(tmp_path)
    assert "collected: 0 kept: True" in _run(PROGRAM.format(args=args), tmp_path).splitlines()


def test_files_that_a_module_of_the_user_has_open_are_written_at_the_end(tmp_path: Path) -> None:
    _write(tmp_path)
    _run(PROGRAM.format(args=["run", "graph.py", "log.csv", "--out", "sums.csv"]), tmp_path)
    texts = [(tmp_path / f"{name}.log").read_text() for name in ("own", "beside", "class")]
    assert texts == ["own", "beside", "class"]
    assert gzip.decompress((tmp_path / "packed.gz").read_bytes()) == b"own"


def test_the_usual_thresholds_hold_from_the_first_collection() -> None:
    usual = gc.get_threshold()
    collect_less()
    try:
        assert gc.get_threshold()[0] > 100_000
        gc.collect(0)
        assert gc.get_threshold() == usual
    finally:
        gc.set_threshold(*usual)


def test_thresholds_of_the_user_stay() -> None:
    usual = gc.get_threshold()
    collect_less()
    gc.set_threshold(5000, 7, 8)
    try:
        gc.collect(0)
        assert gc.get_threshold() == (5000, 7, 8)
    finally:
        gc.set_threshold(*usual)


def test_a_process_of_others_keeps_its_garbage_to_collect() -> None:
    before = gc.get_freeze_count()
    keep_loaded()
    assert gc.get_freeze_count() == before


def _write(folder: Path) -> None:
    (folder / "graph.py").write_text(GRAPH)
    (folder / "beside.py").write_text(BESIDE)
    (folder / "log.csv").write_text("ts,v\n1,2\n12,3\n")


def _run(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=MOST_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
