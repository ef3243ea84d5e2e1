"""``oop-engine run`` and ``checkpoints``: over traces, and live from files to files."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from oop_engine import serve
from oop_engine.cli.app import app
from oop_engine.runners.event_loop import run_async
from oop_engine.sources import Replayed
from oop_engine.system.python_file import load_file

LIVE = """
import pyarrow as pa
from oop_engine import Graph, Schema
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Tumbling, WindowAggregate

graph = Graph("requests")
schema = Schema({"ts": pa.int64(), "host": pa.string()}, "ts", "s")
edge = graph.add("edge", Punctuate(BoundedDisorder("5 s")), graph.source("log", schema))
count = WindowAggregate(Tumbling("10 s"), {"n": Count()}, by=("host",))
graph.sink("counts", graph.add("count", count, edge))
"""
OVER_TRACES = """
from oop_engine import Graph
from oop_engine.operators import Count, Punctuate, Tumbling, WindowAggregate

def graph(schemas, policies):
    graph = Graph("requests")
    edge = graph.add("edge", Punctuate(policies["log"]), graph.source("log", schemas["log"]))
    graph.sink("counts", graph.add("count", WindowAggregate(Tumbling("10 s"), {"n": Count()}), edge))
    return graph
"""


def call(*args: object) -> Result:
    return CliRunner().invoke(app, ["run", *map(str, args)])


@pytest.fixture
def live(tmp_path: Path) -> Path:
    path = tmp_path / "live.py"
    path.write_text(LIVE)
    rows = [{"ts": ts, "host": "ab"[ts % 2]} for ts in range(40)]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, "no row"]))
    return path


@pytest.fixture
def over_traces(tmp_path: Path) -> Path:
    path = tmp_path / "graph.py"
    path.write_text(OVER_TRACES)
    rows = "".join(f"{ts - 2 * (ts % 3)},a\n" for ts in range(10, 40))
    (tmp_path / "log.csv").write_text(f"ts,host\n{rows}")
    return path


def test_a_file_at_rest_with_a_policy_by_its_profile(over_traces: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    done = call(over_traces, f"log={tmp_path / 'log.csv'}", "--time", "ts", "--unit", "s", "--out", out)
    assert done.exit_code == 0, done.stderr
    assert 'log: BoundedDisorder("2 s"), by its profile: no tuple is late' in done.stderr
    assert sum(pq.read_table(out)["n"].to_pylist()) == 30


def test_a_page_and_a_picture_in_the_terminal(
    live: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log, out = f"tail:{tmp_path / 'log.jsonl'}?follow=no", f"jsonl:{tmp_path / 'out'}"
    done = call(live, "--source", log, "--sink", out, "--page=0", "--watch")
    assert done.exit_code == 0, done.stderr
    assert "page: http://127.0.0.1:" in caplog.text
    assert "requests: running" in done.stderr
    assert "\n40 rows of log" in done.stderr
    done = call(live, "--source", log, "--sink", out, "--checkpoint", live)
    assert done.exit_code == 2
    assert "'--checkpoint'" in done.stderr
    assert "is a file" in done.stderr
    done = call(live, "log.csv", "--page=0")
    assert done.exit_code == 2
    assert "leave out the options of live sources" in done.stderr


GERMAN = (
    "wann;host;n\n"
    + "".join(f"01.03.2026 10:00:{ts:02};007;1.234,{ts % 10}\n" for ts in range(40))
    + "01.03.2026 10:00:59;1\n"
)
ANY_NAME = """
from oop_engine import Graph
from oop_engine.operators import Count, Punctuate, Sum, Tumbling, WindowAggregate

def graph(schemas, policies):
    [(name, schema)] = schemas.items()
    graph = Graph("requests")
    edge = graph.add("edge", Punctuate(policies[name]), graph.source(name, schema))
    count = WindowAggregate(Tumbling("10 s"), {"n": Count(), "sum": Sum("n")}, by=("host",))
    graph.sink("counts", graph.add("count", count, edge))
    return graph
"""


def test_the_form_and_types_of_a_csv_are_told_to_the_program(tmp_path: Path) -> None:
    graph, log = tmp_path / "graph.py", tmp_path / "requests-1.csv"
    graph.write_text(ANY_NAME)
    log.write_text(GERMAN)
    form = ("--csv", "delimiter=;,decimal=,,thousands=.,dates=%d.%m.%Y %H:%M:%S,zone=Europe/Berlin")
    done = call(graph, log, "--time", "wann", *form, "--json")
    assert done.exit_code == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["host"], row["n"], round(row["sum"], 1)) for row in rows] == [("007", 10, 12344.5)] * 4
    assert rows[0]["window_start"] == "2026-03-01T09:00:00.000000Z"
    assert "must have 3 cells; got 2" in done.stderr
    done = call(graph, log, "--time", "wann", *form, "--type", "host=int64", "--json")
    assert {json.loads(line)["host"] for line in done.stdout.splitlines()} == {7}
    done = CliRunner().invoke(app, ["profile", str(log), "--time", "wann"])
    assert 'delimiter ";"' in done.stderr + done.stdout
    done = call(graph, log, "--time", "wann", "--csv", "delimeter=;")
    assert done.exit_code == 2
    assert "delimeter=;" in done.stderr


def test_a_policy_may_be_given_and_results_shown(over_traces: Path, tmp_path: Path) -> None:
    options = ("--time", "ts", "--unit", "s", "--policy", "Ordered()", "--json")
    done = call(over_traces, f"log={tmp_path / 'log.csv'}", *options)
    assert done.exit_code == 0, done.stderr
    assert "by its profile" not in done.stderr
    assert "were late at 'edge'" in done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["window_start"] for row in rows] == [0, 10, 20, 30]


def test_all_results_go_to_another_program_and_a_table_shows_the_first_and_last(
    over_traces: Path, tmp_path: Path
) -> None:
    graph = tmp_path / "plain.py"
    text = OVER_TRACES.replace("return graph", 'graph.sink("all", edge)\n    return graph')
    graph.write_text(text)
    args = graph, f"log={tmp_path / 'log.csv'}", "--time", "ts", "--unit", "s"
    said = [json.loads(line) for line in call(*args, "--json").stdout.splitlines()]
    assert sum("all" in row for row in said) == 30
    assert sum(row["counts"]["n"] for row in said if "counts" in row) == 30
    done = call(*args)
    assert "counts: 4 results" in done.stdout
    assert done.stdout.count(" a ") == 20
    assert "all: all 30 rows: --out FILE, or --json" in done.stderr


@pytest.mark.parametrize(
    "text", [LIVE, OVER_TRACES, OVER_TRACES.replace('schemas["log"]', "*schemas.values()")]
)
def test_one_source_needs_no_name_and_a_graph_file_imports_its_neighbours(tmp_path: Path, text: str) -> None:
    for folder, width in (("one", "10 s"), ("two", "20 s")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "helper.py").write_text(f"WIDTH = {width!r}\n")
        (tmp_path / folder / "json.py").write_text("")  # hides no module of Python
        named = (
            text.replace('"10 s"', "WIDTH")
            .replace("graph", "hourly")
            .replace("Graph(", "made(")
            .replace("import Graph", "import Graph as made")
        )
        (tmp_path / folder / "graph.py").write_text(f"from helper import WIDTH\n{named}")
    trace = tmp_path / "log.csv"
    trace.write_text("ts,host\n1,a\n12,a\n25,a\n")
    unit = () if text == LIVE else ("--time", "ts", "--unit", "s")
    for folder, windows in (("one", 3), ("two", 2), ("one", 3)):
        done = call(f"{tmp_path / folder / 'graph.py'}:hourly", trace, *unit, "--json")
        assert done.exit_code == 0, done.stderr
        assert len(done.stdout.splitlines()) == windows
        assert "helper" not in sys.modules
        assert str(tmp_path / folder) not in sys.path
    assert "it has hourly" in call(tmp_path / "one" / "graph.py", trace).stderr or text != LIVE


@pytest.mark.parametrize("source", ["log.jsonl", "log.csv"])
def test_rows_without_a_column_and_with_another_are_told_alike_at_rest_and_live(
    tmp_path: Path, source: str
) -> None:
    graph, trace = tmp_path / "graph.py", tmp_path / source
    graph.write_text(LIVE)
    rows = '{"ts":1,"host":"a","m":1}\n{"ts":2,"m":[2]}\n{"ts":3,"m":3}\n{"ts":"x"}\n'
    trace.write_text(rows if source == "log.jsonl" else "ts,host,m\n1,a,1\n2,,2\n3,,3\n")
    live = call(graph, "--source", f"tail:{trace}?follow=no", "--sink", f"jsonl:{tmp_path / 'out'}").stderr
    bad = ", 1 not readable" if source == "log.jsonl" else ""
    told = (
        f"3 rows of log{bad}, 2 without 'host', 3 with 'm' (not in the schema, left out); no tuples were late"
    )
    assert told in call(graph, trace).stderr
    assert told in live or source == "log.csv", live


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def graph(a, b, c): ...", r"must have graph() or graph(schemas, policies); got graph(a, b, c)"),
        ("\ndef graph():\n    {}['x']", "graph() raised KeyError: 'x' (line 3)"),
        (
            "\nimport nothing_here",
            "cannot be loaded: ModuleNotFoundError: No module named 'nothing_here' (line 2)",
        ),
        ("def graph(): return 5", "graph() must return a Graph; got 5"),
    ],
)
def test_a_file_that_makes_no_graph_is_named(tmp_path: Path, text: str, message: str) -> None:
    graph, trace = tmp_path / "graph.py", tmp_path / "log.csv"
    graph.write_text(text)
    trace.write_text("ts\n1\n")
    done = call(graph, f"log={trace}", "--time", "ts", "--unit", "s")
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_source_that_the_graph_does_not_have_is_named(live: Path, tmp_path: Path) -> None:
    done = call(live, f"other={tmp_path / 'log.jsonl'}")
    assert done.exit_code == 2
    assert "TRACE: the graph has log; got other" in done.stderr


def test_a_file_that_cannot_hold_the_results_is_told_before_the_run(live: Path, tmp_path: Path) -> None:
    graph, out = tmp_path / "lists.py", tmp_path / "out.csv"
    collect = "from oop_engine.aggregates import Collect\n" + LIVE.replace("Count,", "")
    graph.write_text(collect.replace("Count()}", 'Collect("host", 3)}'))
    done = call(graph, tmp_path / "log.jsonl", "--out", out)
    assert done.exit_code == 2
    assert "has no text form: use arrow" in done.stderr
    assert "rows of" not in done.stderr


def test_a_graph_of_its_own_policy_over_a_file(live: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    done = call(live, tmp_path / "log.jsonl", "--out", out)
    assert done.exit_code == 0, done.stderr
    assert "log: refused rows: the line is no JSON object: 1" in done.stderr
    assert pyarrow.csv.read_csv(out)["n"].to_pylist() == [5] * 8


def test_live_from_a_file_to_a_folder_and_its_checkpoints(live: Path, tmp_path: Path) -> None:
    state, dead = tmp_path / "state", tmp_path / "dead"
    args = [
        "--source",
        f"log=tail:{tmp_path / 'log.jsonl'}?follow=no",
        "--sink",
        f"parquet:{tmp_path / 'out'}",
    ]
    args += ["--checkpoint", str(state), "--dead-letters", f"jsonl:{dead}"]
    done = call(live, *args)
    assert done.exit_code == 0, done.stderr
    assert (
        "40 rows of log, 1 not readable; no tuples were late; 1 checkpoint; all streams have ended"
        in done.stderr
    )
    assert pq.ParquetDataset(tmp_path / "out").read()["n"].to_pylist() == [5] * 8
    [letters] = dead.iterdir()
    assert json.loads(letters.read_text())["reason"] == "the line is no JSON object"

    listed = CliRunner().invoke(app, ["checkpoints", str(state), "--json"])
    *_, record = json.loads(listed.stdout)["entries"]
    assert (record["kind"], record["over"]) == ("record", True)
    assert record["counts"] == {"log": {"tuples": 40, "unreadable": 1}}
    assert record["bounds"]["edge -> count"] == "ended"
    shown = CliRunner().invoke(app, ["checkpoints", str(state)])
    assert "the end" in shown.stdout
    again = call(live, *args)
    assert again.exit_code == 2
    assert "streams have ended" in again.stderr


def test_late_tuples_are_told_at_the_end_and_no_checkpoint_that_is_not_there(
    live: Path, tmp_path: Path
) -> None:
    with (tmp_path / "log.jsonl").open("a") as log:
        log.write('{"ts": 3, "host": "a"}\n{"ts": 39, "hots": "a"}\n')
    done = call(live, "--source", f"tail:{tmp_path / 'log.jsonl'}?follow=no", "--sink", "print:")
    assert done.exit_code == 0, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last == (
        "42 rows of log, 1 not readable, 1 without 'host', 1 with 'hots' (not in the schema, left out); "
        "1 of 42 tuples were late at 'edge' (2.4 %); all streams have ended"
    )


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ((), "give traces, or live sources with --source"),
        (("LOG", "--sink", "print:"), "traces have an end, and no checkpoint"),
        (
            ("--source", "tail:LOG", "--out", "x.csv"),
            "--out, --json, --time, --unit and --policy, --type are for traces",
        ),
        (("--source", "tail:LOG"), "--sink: the graph has counts; got none"),
        (("--source", "tail:LOG", "--source", "log=tail:LOG", "--sink", "print:"), "'log' is given twice"),
        (("--source", "wire:LOG", "--sink", "print:"), "there is no kind 'wire': use one of tail"),
        (("--source", "lgo=tail:LOG", "--sink", "print:"), "--source: the graph has log; got lgo"),
        (("--source", "tail:LOG?colour=red", "--sink", "print:"), "unknown option 'colour'"),
        (("--source", "tcp:LOG", "--sink", "print:"), "must have a host and a port"),
        (("--source", "tail:LOG", "--sink", "xls:out"), "there is no kind 'xls'"),
        (("LOG", "--out", "x.xyz"), "x.xyz: unknown trace format 'xyz'"),
        (
            ("LOG", "--time", "host"),
            "--time: the graph has a schema of its own, whose time is 'ts'; got 'host'",
        ),
        (("LOG", "--unit", "ms"), "--unit: the graph has a schema of its own, whose unit is 's'; got 'ms'"),
        (("LOG", "--policy", "Ordered()"), "--policy: the graph has policies of its own"),
    ],
)
def test_a_wrong_call_is_one_line(live: Path, args: tuple[str, ...], reason: str) -> None:
    done = call(live, *(str(live.parent / "log.jsonl") if each == "LOG" else each for each in args))
    assert done.exit_code == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_without_a_graph_is_one_line(tmp_path: Path, over_traces: Path) -> None:
    (tmp_path / "none.py").write_text("x = 1")
    assert "must have graph, a Graph or a function" in call(tmp_path / "none.py", "--source", "tail:x").stderr
    assert (
        "graph(schemas, policies) is given those of traces" in call(over_traces, "--source", "tail:x").stderr
    )


def test_why_a_window_was_open(live: Path, tmp_path: Path) -> None:
    async def main() -> None:
        stop = asyncio.Event()

        async def feed(start: int) -> AsyncIterator[Any]:
            yield {"ts": 17, "host": "a"}
            stop.set()
            await asyncio.Event().wait()

        graph = load_file(live, "Python").graph
        sources = {"log": Replayed(feed)}
        await serve(
            graph, sources, {"counts": print}, checkpoint=tmp_path / "state", stop=stop, signals=False
        )

    run_async(main())
    done = CliRunner().invoke(app, ["why", str(tmp_path / "state")])
    assert done.exit_code == 0, done.stderr
    assert "'count' (results) keeps 1 partial aggregate, 1 group" in done.stdout
    assert "it waits for 'log', whose bound is 12 s" in done.stdout
    assert json.loads(CliRunner().invoke(app, ["why", str(tmp_path / "state"), "--json"]).stdout)["why"]
    assert "nothing has been recorded" in CliRunner().invoke(app, ["why", str(tmp_path)]).stderr


def test_a_folder_without_a_checkpoint_is_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["checkpoints", str(tmp_path)])
    assert done.exit_code == 2
    assert "there is no checkpoint in it" in done.stderr
