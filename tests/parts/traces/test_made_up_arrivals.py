"""Arrivals that are made up: pages have them unless the reader of a trace leaves them out; rows are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from oop_engine import Schema, open_trace, write_trace
from oop_engine.cli.app import app
from oop_engine.core.page import Page
from oop_engine.traces.validation import Validation

SCHEMA = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")
ROWS = {"ts": [3, 1, 2, 9], "v": [1, 2, 3, 4]}
GRAPH = """
import pyarrow as pa
from oop_engine import Graph, Schema
from oop_engine.operators import BoundedDisorder, Meld, Punctuate, Sum, Tumbling, WindowAggregate


def graph(names):
    graph = Graph("sums")
    schema = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")
    sides = [graph.add(f"edge-{name}", Punctuate(BoundedDisorder(2)), graph.source(name, schema)) for name in names]
    both = graph.add("both", Meld(len(sides)), *sides) if len(sides) > 1 else sides[0]
    graph.sink("sums", graph.add("sum", WindowAggregate(Tumbling(2), {"n": Sum("v")}), both))
    return graph


def one():
    return graph("a")


def two():
    return graph("ab")
"""


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl", "arrow", "msgpack"])
def test_rows_are_the_same_without_them(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"log.{format}"
    write_trace(path, SCHEMA, [Page.of(SCHEMA, ROWS)])
    trace = open_trace(path, SCHEMA)
    with_them = list(trace.pages())
    trace.made_up = False
    without = list(trace.pages())
    assert [np.array(page.arrival).tolist() for page in with_them] == [[3, 3, 3, 9]]
    assert [page.arrival for page in without] == [None]
    assert [page.batch for page in without] == [page.batch for page in with_them]


def test_those_of_a_column_stay(tmp_path: Path) -> None:
    schema = Schema({"ts": pa.int64(), "v": pa.int64(), "at": pa.int64()}, "ts", "s")
    write_trace(tmp_path / "log.csv", schema, [Page.of(schema, ROWS | {"at": [4, 5, 6, 10]})])
    trace = open_trace(tmp_path / "log.csv", SCHEMA, arrival="at")
    trace.made_up = False
    assert [np.array(page.arrival).tolist() for page in trace.pages()] == [[4, 5, 6, 10]]


@pytest.mark.parametrize(("graph", "sources", "made"), [("one", "a", 0), ("two", "ab", 2)])
def test_a_run_makes_them_where_it_needs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, graph: str, sources: str, made: int
) -> None:
    calls: list[object] = []
    original = Validation._arrivals

    def arrivals(*given: Any) -> Any:
        calls.append(given)
        return original(*given)

    monkeypatch.setattr(Validation, "_arrivals", arrivals)
    (tmp_path / "graph.py").write_text(GRAPH)
    for name in sources:
        write_trace(tmp_path / f"{name}.csv", SCHEMA, [Page.of(SCHEMA, ROWS)])
    paths = [f"{name}={tmp_path}/{name}.csv" for name in sources]
    done = CliRunner().invoke(app, ["run", f"{tmp_path}/graph.py:{graph}", *paths, "--json"])
    assert done.exit_code == 0, done.stderr
    times = len(sources)
    assert [line for line in done.stdout.splitlines() if line] == [
        f'{{"window_start": {start}, "window_end": {start + 2}, "n": {times * n}}}'
        for start, n in ((0, 2), (2, 4), (8, 4))
    ]
    assert len(calls) == made
