"""``oop-engine pipeline`` from outside: errors in one line before Spark starts, JSON and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from oop_engine.cli.app import app
from oop_engine.spark.session import settings
from tests.children import MOST_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAID = """
[columns]
ts = "int64"
[stream]
time = "ts"
unit = "s"
"""
GRAPH = """
from oop_engine.core.graphs.graph import Graph
from oop_engine.operators.aggregates import Count
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Tumbling

def graph(schemas, policies):
    found = Graph("count")
    [(name, schema)] = schemas.items()
    told = found.add("progress", Punctuate(policies[name], granularity=10), found.source(name, schema))
    found.sink("counts", found.add("count", WindowAggregate(Tumbling(10), {"n": Count()}), told))
    return found
"""


def call(*args: object) -> Result:
    return CliRunner().invoke(app, ["pipeline", *map(str, args)])


@pytest.fixture
def events(tmp_path: Path) -> Path:
    (tmp_path / "events.toml").write_text(SAID)
    (tmp_path / "events.csv").write_text("ts\n5\n17\nx\n3\n12\n")
    (tmp_path / "graph.py").write_text(GRAPH)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "args", "words"),
    [
        ("events.toml", "[columns", (), "is no TOML"),
        ("events.toml", SAID.replace("int64", "int46"), (), "unknown type 'int46'; did you mean int64?"),
        ("events.csv", "tz\n5\n", (), "no column 'ts'; there are tz"),
        ("events.csv", "", (), "its first line must be names of columns"),
        ("graph.py", "", (), "must define def graph"),
        ("graph.py", "import nothing_there", (), "cannot be loaded: ModuleNotFoundError"),
        ("none.txt", "", ("--graph", "none.py"), "no Python file at none.py"),
        ("none.txt", "", ("--policy", "Orderd()"), "'Orderd()' is no policy"),
        ("none.txt", "", ("--by-window", "1 month"), "by-window"),
        ("none.txt", "", ("--by-window", "0 s"), "longer than nothing"),
        ("out", "a file", (), "Not a directory"),
    ],
)
def test_an_error_is_one_line_before_anything_starts(
    events: Path, name: str, text: str, args: tuple[str, ...], words: str
) -> None:
    (events / name).write_text(text)
    given = args if "--graph" in args else ("--graph", events / "graph.py", *args)
    done = call(events / "events.toml", events / "events.csv", "--out", events / "out", *given)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert not (events / "out").is_dir()


def test_without_a_graph_there_is_nothing_to_run(events: Path) -> None:
    done = call(events / "events.toml", events / "events.csv", "--out", events / "out")
    assert (done.exit_code, "names no graph" in done.stderr) == (2, True)


def test_a_missing_input(events: Path) -> None:
    done = call(events / "events.toml", events / "none.csv", "--out", events / "out", "--until", "parse")
    assert done.exit_code == 2
    assert f"{events / 'none.csv'}: there is no such file or folder" in done.stderr


@pytest.mark.parametrize("name", ["a:b[1]", "a\nb", "a\udcffb"])
def test_a_place_where_spark_cannot_read(events: Path, name: str) -> None:
    done = call(events / "events.toml", events / "events.csv", "--out", events / name, "--until", "parse")
    assert done.exit_code == 2
    assert "Spark cannot read there" in done.stderr
    assert not (events / name).exists()


def test_without_the_packages_of_spark(events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "PACKAGES", {"no_such_module": "pyspark"})
    monkeypatch.setitem(sys.modules, "pyspark", None)
    args = ("--out", events / "out", "--graph", events / "graph.py")
    for command in (
        ["pipeline", events / "events.toml", events / "events.csv", *args],
        ["replay", "links", "--on", "spark", "--limit", "9"],
    ):
        done = CliRunner().invoke(app, [*map(str, command)])
        assert done.exit_code == 2
        assert done.stderr == (
            "error: Spark needs pyspark, not installed here: "
            "pip install 'oop-engine[spark,java]', or in a clone pip install '.[spark,java]'\n"
        )


def test_importing_the_package_loads_no_spark() -> None:
    code = """
import pkgutil, sys, importlib, oop_engine.pipeline
for module in pkgutil.iter_modules(oop_engine.pipeline.__path__):
    importlib.import_module(f"oop_engine.pipeline.{module.name}")
print("pyspark" in sys.modules, "pandas" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=MOST_S
    )
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.slow
@pytest.mark.spark
def test_json_and_nothing_else_and_then_a_table(spark: SparkSession, events: Path) -> None:
    args = (
        events / "events.toml",
        events / "events.csv",
        "--out",
        events / "out",
        "--graph",
        events / "graph.py",
    )
    (events / "graph.py").write_text(GRAPH.replace("Count()", "Sum('x')").replace("Count", "Sum"))
    done = call(*args, "--batch", "--json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "'x'" in done.stderr
    assert [mark.name for mark in (events / "out" / "steps").iterdir()] == ["parse.json"], (
        "it is told at once"
    )
    (events / "graph.py").write_text(GRAPH)
    done = call(*args, "--batch", "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout, parse_constant=pytest.fail)
    assert told["rows"] == {"rows": 5, "used": 4, "late": 0, "quarantined": 1}
    assert told["policy"]["events"]["policy"] == 'BoundedDisorder("14 s")'
    assert told["run"]["results"]["counts"]["rows"] == 2
    done = call(*args, "--batch")
    assert done.exit_code == 0, done.stderr
    for words in ("ts: cannot be read as int64", "BoundedDisorder", "counts: 2 results", "run done before"):
        assert words in done.stdout


@pytest.mark.slow
@pytest.mark.spark
def test_the_option_that_reads_cells_in_quarantine_is_named(spark: SparkSession, tmp_path: Path) -> None:
    declared = (
        '[columns]\nwann = "timestamp"\nv = "float64"\n[stream]\ntime = "wann"\n[csv]\ndelimiter = ";"\n'
    )
    (tmp_path / "shop.toml").write_text(declared)
    (tmp_path / "shop.csv").write_text("wann;v\n28.11.2026 07:30:00;1,5\n")
    args = (tmp_path / "shop.toml", tmp_path / "shop.csv", "--out", tmp_path / "out", "--until", "policy")
    done = call(*args)
    assert done.exit_code == 2
    words = (
        "wann: cannot be read as timestamp; [csv] dates = \"%d.%m.%Y %H:%M:%S\" reads '28.11.2026 07:30:00'"
    )
    assert words in done.stderr
    (tmp_path / "shop.csv").write_text("wann;v\n2026-11-28 07:30:00;1,5\n2026-11-28 07:30:00;1\n")
    done = call(*args)
    assert done.exit_code == 0, done.stderr
    assert "v: cannot be read as float64; [csv] decimal = \",\" reads '1,5'" in done.stdout
