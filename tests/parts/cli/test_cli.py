"""The command line from outside: exit codes, errors in one line, JSON and nothing else, whole files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from oop_engine.cli.app import app
from oop_engine.cli.replay import limited
from oop_engine.core.operator import Operator
from oop_engine.core.page import Page
from oop_engine.lab.report.contract import contract
from oop_engine.runners.feeds.forms import RING
from tests.children import MOST_S, started
from tests.parts import toy_scenario

ROOT = Path(__file__).parents[3]
TOY = str(Path(toy_scenario.__file__))
COMMANDS = (
    "scenarios", "replay", "compare", "explain", "profile", "generate", "pipeline", "run", "checkpoints", "why",
)  # fmt: skip
SMALL = ("--set", "tuples=300")
EDGE = 'graph.add("progress", Punctuate(Ordered()), packets)'


def call(*args: str) -> Result:
    return CliRunner().invoke(app, args)


def said(*args: str) -> Any:
    """Return the JSON object of a command, and hold that there was nothing else on stdout."""
    done = call(*args, "--json")
    assert done.exit_code in (0, 1), done.stderr
    return json.loads(done.stdout, parse_constant=pytest.fail)


def outside(*args: str, **more: Any) -> subprocess.CompletedProcess[str]:
    code = "from oop_engine.cli import main; main()"
    command = [sys.executable, "-c", code, *args]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=MOST_S, **more)


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "t.csv"
    done = call("generate", str(path), "--links", "a:50,b:5:2s", "--duration", "10 s", "--band", "1 s")
    assert done.exit_code == 0, done.stderr
    return str(path)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_example(command: str) -> None:
    done = call(command, "--help")
    assert done.exit_code == 0
    assert f"oop-engine {command}" in done.stdout.partition("Options:")[0].replace("Usage: ", "", 1)


def test_without_a_command_there_is_help() -> None:
    done = call()
    assert done.exit_code == 0
    assert all(command in done.stdout for command in COMMANDS)


def test_help_loads_nothing_heavy() -> None:
    code = """
import sys
from oop_engine.cli.app import app
try:
    app.main(["--help"], prog_name="oop-engine")
except SystemExit:
    heavy = ("numba", "numpy", "matplotlib", "rich", "pandas", "operators", "scenarios", "pyarrow")
    print(*(name for name in heavy if name in sys.modules), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=MOST_S
    )
    assert done.stderr.split() == []


def test_a_run_over_files_loads_no_event_loop_and_starts_no_threads_of_linear_algebra(tmp_path: Path) -> None:
    (tmp_path / "graph.py").write_text(
        "from oop_engine import Graph, Schema\nfrom oop_engine.operators import *\nimport pyarrow as pa\n"
        "graph = Graph('g')\nlog = graph.source('log', Schema({'ts': pa.int64(), 'v': pa.int64()}, 'ts', 's'))\n"
        "bounded = graph.add('bounded', Punctuate(Ordered()), log)\n"
        "graph.sink('sums', graph.add('sum', WindowAggregate(Tumbling(10), {'n': Sum('v')}), bounded))\n"
    )
    (tmp_path / "log.csv").write_text("ts,v\n1,2\n12,3\n")
    code = """
import os, sys
sys.argv = ["oop-engine", "run", "graph.py", "log.csv", "--out", "sums.csv"]
from oop_engine.cli import main
try:
    main()
finally:
    heavy = ("asyncio", "pandas", "pyspark", "matplotlib", "datasketches")
    print(*(name for name in heavy if name in sys.modules), os.environ.get("OPENBLAS_NUM_THREADS"))
"""
    without = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=MOST_S, env=without,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1"]
    assert (tmp_path / "sums.csv").read_text().splitlines()[1:] == ["0,10,2", "10,20,3"]


def test_a_run_loads_the_kinds_of_windows_aggregates_and_operators_that_it_has(tmp_path: Path) -> None:
    (tmp_path / "graph.py").write_text(
        "from oop_engine import Graph, Schema\nimport pyarrow as pa\n"
        "from oop_engine.operators import Ordered, Punctuate, Sum, Tumbling, WindowAggregate\n"
        "graph = Graph('g')\nlog = graph.source('log', Schema({'ts': pa.int64(), 'v': pa.int64()}, 'ts', 's'))\n"
        "bounded = graph.add('bounded', Punctuate(Ordered()), log)\n"
        "graph.sink('sums', graph.add('sum', WindowAggregate(Tumbling(10), {'n': Sum('v')}), bounded))\n"
    )
    (tmp_path / "log.csv").write_text("ts,v\n1,2\n12,3\n")
    code = """
import sys
sys.argv = ["oop-engine", "run", "graph.py", "log.csv", "--out", "sums.csv"]
from oop_engine.cli import main
try:
    main()
finally:
    print(*(name.removeprefix("oop_engine.") for name in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=MOST_S, check=True
    )
    loaded, of = set(done.stdout.split()), "operators."
    assert {of + "windows.time", of + "aggregates.sums", of + "window_aggregate"} <= loaded
    others = {f"{of}windows.{kind}" for kind in ("frames", "delimited", "last_rows", "user")}
    others |= {
        f"{of}aggregates.{kind}"
        for kind in ("values", "sketches", "library_sketches", "user_defined", "moments")
    }
    others |= {f"{of}{name}" for name in ("joining", "in_order", "oa_join", "filter", "triggers.composed")}
    assert not others & loaded


@pytest.mark.parametrize(
    ("args", "heavy"),
    [
        (["scenarios"], "numba pandas matplotlib pyspark"),
        (["explain", "links"], "numba pandas matplotlib pyspark"),
        (["profile", "log.csv", "--time", "ts", "--unit", "s"], "pandas matplotlib pyspark"),
        (
            [
                "sql",
                "--unit",
                "s",
                "SELECT window_start, count(*) AS n FROM TUMBLE('log.csv', ts, 10) GROUP BY ALL",
            ],
            "pandas matplotlib pyspark",
        ),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else None,
)
def test_a_command_does_not_load(args: list[str], heavy: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("ts,v\n1,2\n12,3\n")
    code = f"""
import sys
sys.argv = ["oop-engine", *{args}]
from oop_engine.cli import main
try:
    main()
finally:
    print("loaded:", *(name for name in "{heavy}".split() if name in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=MOST_S, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"


@pytest.mark.parametrize(
    "code", ["import oop_engine", "import oop_engine.operators", "from oop_engine.operators import *"]
)
def test_operators_load_no_numba_before_a_kernel_is_called(code: str) -> None:
    heavy = ("numba", "pandas", "datasketches", "pyspark", "matplotlib", "rich", "click", "asyncio", "polars")
    told = f"{code}\nimport sys\nprint(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", told], cwd=ROOT, capture_output=True, text=True, check=True, timeout=MOST_S
    )
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["compare", "nyc_flihgts"], "did you mean nyc_flights"),
        (["compare", "nowhere/mine.py"], "no scenario file at nowhere/mine.py"),
        (["compare", TOY, "--set", "skw=1"], "did you mean skew"),
        (["compare", TOY, "--set", "skew=much"], "'skew' must be int; got 'much'"),
        (["compare", TOY, "--set", "skew=-1"], "at least 0; got '-1'"),
        (["compare", TOY, "--set", "skew"], "must read like name=value; got 'skew'"),
        (["compare", TOY, "--report", "no/such/folder.html"], "there is no folder 'no/such'"),
        (["compare", TOY, "--report", str(ROOT)], "is a folder"),
        (["compare"], "give a scenario, such as links, a file with a graph, or --again REPORT.json"),
        (["compar"], "No such command 'compar'"),
        (["replay", TOY, "--variant", "fast"], "'buffer' (in), 'partials' (out)"),
        (["replay", TOY, "--variant", "buffer", "--order", "out"], "of order 'out'"),
        (["replay", TOY, "--speed", "0"], "--speed"),
        (["replay", TOY, "--speed", "2", "--flat-out"], "leave one of them out"),
        (["replay", TOY, "--output", "results.xls"], "unknown trace format 'xls'"),
        (["replay", TOY, "--limit", "0"], "--limit"),
        (["explain", TOY, "--order", "both"], "--order"),
        (["profile", "nowhere.csv", "--time", "ts"], "does not exist"),
        (["generate", "t.csv", "--links", "a"], "--links must read like NAME:RATE[:SKEW]; got 'a'"),
        (["generate", "t.csv", "--links", "a:many"], "got 'many'"),
        (["generate", "t.csv", "--lull", "b:1s:2s"], "no link 'b'; there are link"),
        (["generate", "t.csv", "--band", "2 miles"], "got '2 miles'"),
        (["generate", "t.csv", "--unit", "rows"], "got 'rows'"),
        (["generate", "t.zip"], "unknown trace format 'zip'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(args: list[str], words: str) -> None:
    done = call(*args)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_bad_columns_of_a_trace_are_named(trace: str) -> None:
    for args, words in ((["--time", "when"], "'when'"), (["--time", "ts", "--by", "lnk"], "'lnk'")):
        done = call("profile", trace, *args, "--unit", "ms")
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert words in done.stderr


def test_a_bug_shows_its_traceback_and_is_no_failing_claim(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text(Path(TOY).read_text().replace("return {**kept", "return {**nothing").replace(
        "    kept = {order", "    undefined_name\n    kept = {order"))  # fmt: skip
    done = call("compare", str(broken), *SMALL, "--set", "skew=0")
    assert done.exit_code == 70
    assert "undefined_name" in done.stderr


def test_compare_says_what_the_interface_promises() -> None:
    found = said("compare", TOY, *SMALL)
    assert list(found) == [
        "scenario",
        "parameters",
        "versions",
        "data",
        "float_error",
        "peak_rss_bytes",
        "runs",
        "claims",
    ]
    assert found["scenario"] == "toy"
    assert found["parameters"] == {"skew": 20, "tuples": 300, "demand": 2.0}
    assert [(run["order"], run["parameters"]["skew"]) for run in found["runs"]] == [
        ("in", 0), ("out", 0), ("in", 20), ("out", 20), ("in", 60), ("out", 60),
    ]  # fmt: skip
    asked = {
        "order", "variant", "parameters", "tuples", "results", "missing", "wrong", "late", "peak_tuples",
        "peak_partials", "peak_state_bytes", "delay_p50_s", "delay_p99_s", "excess_delay_p50_s",
        "excess_delay_p99_s", "latency_p50_ms", "latency_p99_ms", "cpu_s", "tuples_per_s",
    }  # fmt: skip
    assert all(asked <= run.keys() for run in found["runs"])
    assert all(list(claim) == ["claim", "holds", "figures"] for claim in found["claims"])


def test_a_parameter_that_is_set_is_not_swept() -> None:
    found = said("compare", TOY, *SMALL, "--set", "skew=5")
    assert [run["parameters"]["skew"] for run in found["runs"]] == [5, 5]


def test_a_claim_that_fails_is_exit_code_1() -> None:
    args = ("compare", TOY, *SMALL, "--set", "skew=0")
    assert call(*args).exit_code == 0
    assert call(*args, "--set", "demand=1e9").exit_code == 1
    assert call(*args, "--set", "demand=1e9", "--json").exit_code == 1


def test_compare_shows_runs_claims_and_the_headline() -> None:
    done = call("compare", TOY, *SMALL)
    assert "out of order" in done.stdout
    assert "✓ out of order keeps less" in done.stdout
    assert "With skew 20 s, out of order keeps" in done.stdout


def test_json_stays_pure_when_the_scenario_prints(tmp_path: Path) -> None:
    chatty = tmp_path / "chatty.py"
    chatty.write_text(Path(TOY).read_text() + "\nprint('hello')\n")
    done = outside("compare", str(chatty), *SMALL, "--set", "skew=0", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["scenario"] == "toy"
    assert done.stderr == "hello\n"


def test_what_is_not_finite_is_null(tmp_path: Path) -> None:
    odd = tmp_path / "odd.py"
    odd.write_text(Path(TOY).read_text().replace('"peak": np.int64(3)', '"peak": np.float64("inf")'))
    found = said("compare", str(odd), *SMALL, "--set", "skew=0")
    assert found["claims"][-1]["figures"]["peak"] is None


def test_the_report_is_whole_or_not_at_all(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    assert call("compare", TOY, *SMALL, "--set", "skew=0", "--report", str(report)).exit_code == 0
    whole = report.read_text()
    assert whole.endswith("</html>\n")
    assert call("compare", TOY, "--set", "skew=x", "--report", str(report)).exit_code == 2
    assert report.read_text() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_replay_tells_of_results_operators_and_speed(tmp_path: Path) -> None:
    results = tmp_path / "counts.parquet"
    done = call("replay", TOY, "--limit", "120", "--rows", "1", "--output", str(results))
    assert done.exit_code == 0, done.stderr
    for words in ("counts: 2 results", "progress", "tuples/s", "peak RSS"):
        assert words in done.stdout
    assert sum(pq.read_table(results).column("n").to_pylist()) == 120


def test_late_tuples_are_told_in_a_line(tmp_path: Path) -> None:
    hasty = tmp_path / "hasty.py"
    source = Path(TOY).read_text().replace('graph.add("progress", Promise(slack), packets)', EDGE)
    hasty.write_text(
        source.replace("RANGE = 60\n", "RANGE = 60\nfrom oop_engine.operators import Ordered, Punctuate\n")
    )
    late = said("replay", str(hasty), *SMALL)["late"]
    done = call("replay", str(hasty), *SMALL)
    line = (
        f"{late} of 300 tuples were late at 'progress' ({late / 3:.2g} %): allow for more disorder, or divert"
    )
    assert late > 0
    assert line in " ".join(done.stdout.split())
    done = call("compare", str(hasty), *SMALL, "--set", "skew=20")
    line = (
        f"buffer: {late} of 300 tuples were late ({late / 3:.2g} %): allow for more disorder, or divert them"
    )
    assert line in " ".join(done.stdout.split())
    assert "were late" not in call("replay", TOY, *SMALL).stdout


@pytest.mark.parametrize("way", [[], ["--on", "local"], ["--flat-out"], ["--check"], ["--speed", "1e6"]])
def test_each_way_to_replay_gives_the_same_results(way: list[str]) -> None:
    found = said("replay", TOY, *SMALL, *way)
    assert found["order"] == "out"
    assert (found["tuples"], found["results"]) == (300, {"counts": 5})
    assert found["edges"]["packets -> progress"]["tuples"] == 300
    assert found["peak_rss_bytes"] > 0


def test_replay_takes_the_plan_asked_for() -> None:
    assert said("replay", TOY, *SMALL, "--order", "in")["variant"] == "buffer"
    assert said("replay", TOY, *SMALL, "--variant", "buffer")["order"] == "in"


def test_a_limit_cuts_within_a_page() -> None:
    feed = toy_scenario.feeds({"tuples": 120, "skew": 0})["packets"]
    assert [len(page) for page in limited(feed, 70) if isinstance(page, Page)] == [50, 20]


def test_explain_tells_graph_streams_and_contracts(tmp_path: Path) -> None:
    picture = tmp_path / "plans.svg"
    done = call("explain", TOY, "--svg", str(picture), "--long")
    assert f"enter as one page, {RING:,} rows at most" in done.output
    for words in (
        "Promise(slack=20 s)  <- packets",
        "packets, progress\n    (ts+: int64",
        "Counts per minute",
    ):
        assert words in done.stdout
    assert picture.read_text().startswith("<svg ")
    assert len(said("explain", TOY, "--order", "in")["variants"]) == 1


def test_explain_shows_a_graph_of_a_file_as_well(tmp_path: Path) -> None:
    file = tmp_path / "graph.py"
    file.write_text(
        "import pyarrow as pa\n"
        "from oop_engine import Graph, Schema\n"
        "from oop_engine.operators import Count, Tumbling, WindowAggregate\n"
        "graph = Graph('mine')\n"
        "log = graph.source('log', Schema({'ts': pa.int64()}, 'ts', 's'))\n"
        "graph.sink('out', graph.add('counts', WindowAggregate(Tumbling(60), {'n': Count()}), log))\n"
    )
    done = call("explain", str(file))
    assert done.stdout.startswith(f"{file}\nmine\n")
    assert "counts  panes: 1 a window" in done.stdout
    assert "counts  a row of each window once the bound of its input passes its end" in done.stdout
    assert "counts  a partial aggregate of each open window" in done.stdout
    assert "Propagate" not in done.stdout
    assert "Propagate" in call("explain", str(file), "--long").stdout
    edge = call("explain", "packet_join", "--order", "out").stdout
    assert "late tuples\n  M1-progress  a ts below the largest so far: dropped and counted" in edge
    found = said("explain", str(file))
    assert (found["graph"], found["variants"][0]["nodes"][1]["name"]) == (str(file), "counts")
    assert "-> sink 'out'" in call("explain", str(file), "--on", "spark").stdout
    assert "leave --set out" in call("explain", str(file), "--set", "a=1").stderr


def test_explain_shows_the_state_that_stays_until_its_key_ends(tmp_path: Path) -> None:
    file = tmp_path / "graph.py"
    file.write_text(
        "import pyarrow as pa\n"
        "from oop_engine import Graph, Schema\n"
        "from oop_engine.operators import Count, Punctuate, Tumbling, WindowAggregate\n"
        "from oop_engine.policies import BoundedDisorder, PerGroup\n"
        "from oop_engine.windows import Global\n"
        "graph = Graph('mine')\n"
        "log = graph.source('log', Schema({'ts': pa.int64(), 'k': pa.int64()}, 'ts', 's'))\n"
        "edge = graph.add('edge', Punctuate(PerGroup(BoundedDisorder(5), by=('k',))), log)\n"
        "graph.sink('a', graph.add('all', WindowAggregate(Global(), {'n': Count()}, by=('k',)), edge))\n"
        "graph.sink('b', graph.add('minutes', WindowAggregate(Tumbling(60), {'n': Count()}, by=('k',)), edge))\n"
    )
    words = call("explain", str(file)).stdout.split("stored until its key ends\n")[1].split("\n\n")[0]
    assert [line.split()[0] for line in words.splitlines()] == ["edge", "all"]
    assert "the window of each key: it is complete when the key or the stream ends" in words
    retained = {node["name"]: node["retains"] for node in said("explain", str(file))["variants"][0]["nodes"]}
    assert retained["minutes"] is None
    assert retained["edge"].startswith("the bound of each key")


def test_a_contract_is_read_from_the_module_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sieve(Operator):
        """Lets through."""

    text = (
        "Sieve.\n\n    Pass       all of it,\n               at once.\n    Keep       nothing.\n\nMore words."
    )
    monkeypatch.setattr(sys.modules[__name__], "__doc__", text)
    assert contract(Sieve()) == {"Pass": "all of it,\nat once.", "Keep": "nothing."}
    monkeypatch.setattr(sys.modules[__name__], "__doc__", "No contract.")
    assert contract(Sieve()) == {"About": "Lets through."}


def test_scenarios_lists_parameters_and_sweeps() -> None:
    done = call("scenarios", TOY)
    assert "skew=20" in done.stdout
    assert "skew: 0, 20, 60 s" in done.stdout
    assert said("scenarios", TOY)["scenarios"][0]["sweep"]["values"] == [0, 20, 60]


def test_profile_measures_a_trace(trace: str) -> None:
    args = ("profile", trace, "--time", "ts", "--unit", "ms", "--arrival", "arrival", "--by", "link")
    done = call(*args)
    assert done.exit_code == 0, done.stderr
    assert "BoundedDisorder" in done.stdout
    found = said(*args)
    assert (found["tuples"], found["groups_known"]) == (550, 2)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "jsonl", "msgpack"])
def test_generate_writes_every_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    found = said("generate", str(path), "--links", "a:100", "--duration", "2 s", "--lull", "a:0s:1s")
    assert (found["trace"], found["bytes"]) == (str(path), path.stat().st_size)
    assert 0 < found["tuples"] < 200


def test_the_same_seed_writes_the_same_trace(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one.csv", "same.csv", "other.csv")]
    for path, seed in zip(paths, ("1", "1", "2"), strict=True):
        assert call("generate", str(path), "--seed", seed, "--duration", "1 s").exit_code == 0
    one, same, other = (path.read_bytes() for path in paths)
    assert one == same != other


@pytest.mark.parametrize("arguments", [["explain", TOY], ["scenarios"]])
def test_a_closed_pipe_is_quiet(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    code = "from oop_engine.cli import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, text=True, check=False, timeout=MOST_S
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_is_one_line_and_130(tmp_path: Path) -> None:
    stuck = tmp_path / "stuck.py"
    stuck.write_text("print('here', flush=True)\nimport time\ntime.sleep(600)\n")
    code = "from oop_engine.cli import main; main()"
    command = [sys.executable, "-c", code, "compare", str(stuck)]
    with started(command) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate()
    assert (process.returncode, complaint) == (130, "error: interrupted\n")
