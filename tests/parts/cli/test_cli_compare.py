"""``oop-engine compare`` over a graph and traces of one's own, and ``compare(graph, feeds)``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from oop_engine import Graph, Schema, UsageError
from oop_engine.cli.app import app
from oop_engine.lab import compare
from oop_engine.lab.own_graph import scenario_of
from oop_engine.operators import (
    Band,
    BoundedDisorder,
    Count,
    Distinct,
    OAJoin,
    Punctuate,
    Sum,
    Tumbling,
    WindowAggregate,
)

GRAPH = """
from oop_engine import Graph
from oop_engine.operators import Count, Punctuate, Tumbling, WindowAggregate

def graph(schemas, policies):
    graph = Graph("requests")
    edge = graph.add("edge", Punctuate(policies["log"], "1 s"), graph.source("log", schemas["log"]))
    graph.sink("all", edge)
    graph.sink("counts", graph.add("count", WindowAggregate(Tumbling("10 s"), {"n": Count()}, ("host",)), edge))
    return graph
"""
SCHEMA = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
TIMES = [ts - 7 * (ts % 5 == 4) for ts in range(100)]
ROWS = [{"ts": ts, "k": "ab"[place % 2]} for place, ts in enumerate(TIMES)]


def call(folder: Path, *args: str) -> Result:
    return CliRunner().invoke(app, ["compare", str(folder / "graph.py"), *args])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph.py").write_text(GRAPH)
    rows = "".join(f"2026-03-01T09:{ts // 60 + 1:02}:{ts % 60:02}Z,{'ab'[ts % 2]}\n" for ts in TIMES)
    (tmp_path / "log.csv").write_text(f"ts,host\n{rows}")
    return tmp_path


@pytest.mark.parametrize("trace", ["log.csv", "log=log.csv"])
def test_own_graph_and_trace_are_compared_with_a_report(folder: Path, trace: str) -> None:
    done = call(folder, trace, "--time", "ts", "--sink", "counts", "--report", "out.html")
    assert done.exit_code == 0, done.stderr
    assert "✓ every plan gives the brute-force answer" in done.stdout
    assert "✓ in order and out of order give the same results" in done.stdout
    assert "as written" in (folder / "out.html").read_text()


def test_late_rows_come_first_in_the_headline(folder: Path) -> None:
    options = ("--time", "ts", "--sink", "counts", "--policy", 'BoundedDisorder("2 s")')
    done = call(folder, "log.csv", *options)
    assert done.exit_code == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert "missing: 0, wrong: 0 20 of 100 tuples were late (20 %): without them" in words
    assert "excess: virtual time" not in words  # no result is right, and that is of right ones
    told = json.loads(call(folder, "log.csv", *options, "--json").stdout)
    assert [(run["order"], run["late"], run["held_to"]) for run in told["runs"]] == [
        ("in", 20, "brute force"),
        ("in", 20, "brute force"),  # the best that is known: aggregated at once
        ("out", 20, "brute force"),
    ]
    assert len({run["wrong"] for run in told["runs"]}) == 1
    assert told["runs"][0]["wrong"] > 0
    assert [claim["holds"] for claim in told["claims"]] == [None, True]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "give a trace for each source of the graph"),
        (("lgo=log.csv", "--time", "ts"), "write log=TRACE"),
        (("log.csv", "--time", "tss"), "no column 'tss'; there are ts, host; did you mean ts?"),
        (("log.csv",), "which column makes progress? Give --time COL, one of ts, host"),
        (("log.csv", "--time", "ts", "--sink", "count"), "has no sink 'count'; did you mean counts?"),
        (("log.csv", "--time", "ts", "--set", "a=1"), "a graph has no parameters"),
        (("log.csv", "--time", "ts", "--report", "./log.csv"), "is read by the graph"),
    ],
)
def test_a_wrong_call_is_one_line(folder: Path, args: tuple[str, ...], words: str) -> None:
    done = call(folder, *args)
    assert done.exit_code == 2, done.stderr
    assert words in done.stderr
    assert (
        "a scenario has traces of its own" in CliRunner().invoke(app, ["compare", "links", "log.csv"]).stderr
    )


def test_without_a_definition_the_truth_is_not_known(folder: Path) -> None:
    graph = Graph("distinct")
    edges = [
        graph.add(f"{n}-edge", Punctuate(BoundedDisorder(9)), graph.source(n, SCHEMA)) for n in ("a", "b")
    ]
    join = graph.add("join", OAJoin([("k", "k")], Band(1, 1)), *edges)
    graph.sink("out", graph.add("once", Distinct(("k", "ts")), join))
    found = compare(graph, {"a": ROWS, "b": iter(ROWS)})
    assert {run.held_to for run in found.runs} <= {"first plan", "nothing"}
    assert "is not evaluated by brute force" in str(found.to_dict()["claims"][0]["figures"])
    assert len({run.results for run in found.runs}) == 1
    with pytest.raises(UsageError, match="got no feed for b"):
        compare(graph, {"a": ROWS})


def test_keys_are_the_columns_that_no_aggregate_computes() -> None:
    graph = Graph("sums")
    edge = graph.add("edge", Punctuate(BoundedDisorder(9)), graph.source("in", SCHEMA))
    sums = WindowAggregate(Tumbling(10), {"n": Count(), "sum": Sum("ts")}, ("k",))
    graph.sink("out", graph.add("sum", sums, edge))
    assert scenario_of(graph, {"in": ROWS}).keys == ("k", "window_start", "window_end")
    assert scenario_of(graph, {"in": ROWS}, keys=("k",)).keys == ("k",)


def test_a_profile_begins_with_a_verdict_in_words(folder: Path) -> None:
    done = CliRunner().invoke(app, ["profile", "log.csv", "--time", "ts"])
    told = 'verdict: BoundedDisorder("6 s") loses nothing, and windows are emitted 6 s after their ends; Ordered()'
    assert told in " ".join(done.stdout.split())
    assert " us" not in done.stdout.replace("unit us", "").replace("[us]", "")
    told = json.loads(CliRunner().invoke(app, ["profile", "log.csv", "--time", "ts", "--json"]).stdout)[
        "verdict"
    ]
    assert 'BoundedDisorder("6 s") loses nothing' in told


def test_a_comparison_is_repeated_from_its_report(tmp_path: Path) -> None:
    settings = ["--set", "skew=0", "--set", "each=20"]
    first = CliRunner().invoke(app, ["compare", "union_count", *settings, "--json"])
    report = tmp_path / "report.json"
    report.write_text(first.stdout)
    again = CliRunner().invoke(app, ["compare", "--again", str(report)])
    assert (again.exit_code, "all figures are as they were" in again.stderr) == (0, True)
    changed = json.loads(first.stdout)
    changed["runs"][0]["results"] += 1
    report.write_text(json.dumps(changed))
    again = CliRunner().invoke(app, ["compare", "--again", str(report)])
    results = changed["runs"][0]["results"]
    assert again.exit_code == 1
    assert f"results was {results}, and is {results - 1}" in again.stderr
    assert "1 figures differ" not in again.stderr


def test_a_comparison_of_a_graph_of_ones_own_is_repeated_with_its_graph_and_trace(folder: Path) -> None:
    given = ("log.csv", "--time", "ts", "--sink", "counts")
    (folder / "report.json").write_text(call(folder, *given, "--json").stdout)
    again = call(folder, *given, "--again", "report.json")
    assert (again.exit_code, "all figures are as they were" in again.stderr) == (0, True)
    alone = CliRunner().invoke(app, ["compare", "--again", "report.json"])
    assert alone.exit_code == 2
    assert "'graph.py' is a file of yours: give it, and its traces" in " ".join(alone.stderr.split())


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("{", [], "cannot be read as a report"),
        ("{}", [], "is no report of"),
        ('{"scenario": "links", "parameters": {}, "runs": []}', ["links"], "names its scenario itself"),
        ('{"scenario": "my graph", "parameters": {}, "runs": []}', [], "a file of yours"),
    ],
)
def test_reports_that_cannot_be_repeated(
    text: str, arguments: list[str], message: str, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    report.write_text(text)
    found = CliRunner().invoke(app, ["compare", *arguments, "--again", str(report)])
    assert found.exit_code == 2
    assert message in " ".join(found.stderr.split())


def test_a_window_closes_on_the_row_that_lets_it_close() -> None:
    """A trace without arrivals is as live: a page of many rows would let results wait for its end."""
    graph = Graph("counts")
    edge = graph.add("edge", Punctuate(BoundedDisorder(5)), graph.source("in", SCHEMA))
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(10), {"n": Count()}), edge))
    for run in compare(graph, {"in": [{"ts": ts, "k": "a"} for ts in range(100)]}).runs:
        ends = run.table.column("window_end").to_numpy()
        assert run.emitted.tolist() == np.minimum(ends + 5, 99).tolist()


def test_a_source_without_punctuation_is_sorted_in_order_at_its_end() -> None:
    graph = Graph("counts")
    rows = graph.source("in", SCHEMA)
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(10), {"n": Count()}), rows))
    for run in compare(graph, {"in": ROWS}).runs:
        assert (run.missing, run.wrong, run.late, run.results) == (0, 0, 0, 11)
        assert run.peak_tuples == (len(ROWS) if run.order == "in" else 0)
