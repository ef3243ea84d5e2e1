"""Whole programs from file to file: every contender answers every question alike; names are checked first."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import __main__ as suite
from benchmarks.files.__main__ import main
from benchmarks.files.answer import main as answer
from benchmarks.files.questions import QUESTIONS
from benchmarks.files.sql import SQL
from benchmarks.files.turns import same_rows
from oop_engine.traces.table_writing import write_table

ROWS = 30_000


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_graph_and_the_query_of_a_question_give_the_reference(question, tmp_path):
    pytest.importorskip("duckdb")
    tables = QUESTIONS[question].data(ROWS)
    for name, table in tables.items():
        write_table(tmp_path / f"{name}.parquet", table)
    right = QUESTIONS[question].right(tables)
    assert right.num_rows
    for contender in ("engine", "duckdb-1"):
        out = tmp_path / f"{contender}-out.parquet"
        answer(contender, question, str(out), "1", *(f"{name}={tmp_path}/{name}.parquet" for name in tables))
        assert same_rows(pq.read_table(out), right), contender


def test_rows_that_lack_or_differ_are_no_same_rows():
    right = pa.table({"host": ["a", "b"], "n": [1, 2]})
    assert same_rows(pa.table({"n": [2, 1], "host": ["b", "a"], "more": [0, 0]}), right)
    assert not same_rows(pa.table({"n": [2, 2], "host": ["b", "a"]}), right)
    assert not same_rows(right.slice(1), right)
    assert not same_rows(right.select(["n"]), right)


def test_every_question_has_a_query():
    assert SQL.keys() == QUESTIONS.keys()


@pytest.mark.slow
def test_a_run_writes_its_figures(tmp_path):
    asked = [f"{format}-tumbling_text" for format in ("csv", "arrow")]
    asked += ["--contenders", "engine", "serve", "--rows", "2000", "--few", "0", "--rounds", "1"]
    assert main([*asked, "--out", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / "files.json").read_text())
    assert [each["contender"] for each in figures] == ["engine", "serve"] * 2
    for each in figures:
        assert each["correct"]
        assert 30 < each["peak_rss_mb"] < 2000
        assert len(each["wall_s"]) == 1
        assert len(each["warm_cpu_s"]) == (each["contender"] == "engine")  # a service has no second turn


@pytest.mark.parametrize(
    ("program", "asked", "words"),
    [
        (main, ["parket-q5"], "unknown workload 'parket-q5'; did you mean parquet-q5?"),
        (main, ["csv-q5", "--contenders", "Duck"], "unknown contender 'Duck'"),
        (suite.main, ["W3", "W66"], "unknown workload 'W66': use one of W1, W2"),
        (suite.main, ["--contenders", "polar"], "unknown contender 'polar'; did you mean Polars?"),
    ],
)
def test_names_are_checked_before_anything_is_measured(program, asked, words, capsys, tmp_path):
    with pytest.raises(SystemExit):
        program([*asked, "--out", str(tmp_path)])
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_family_of_workloads_has_the_name_of_what_they_share(monkeypatch, tmp_path):
    measured: list[str] = []
    monkeypatch.setattr(suite, "_measured", lambda name, asked: measured.append(name) or [])
    monkeypatch.setattr(suite, "plot", lambda found, path: None)
    assert suite.main(["W6", "W9-p99", "--out", str(tmp_path)]) == 0
    assert measured == [
        *(f"W6-{kind}-{slide}" for kind in ("min", "avg") for slide in (1, 64, 1024)),
        "W9-p99",
    ]
