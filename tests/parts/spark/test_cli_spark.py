"""``--on spark`` from outside."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from oop_engine.cli.app import app
from oop_engine.cli.on_spark import OnSpark, progress
from oop_engine.core.errors import UsageError
from oop_engine.spark.run import BatchDone
from oop_engine.spark.session.settings import QUICK_JVM

ROOT = Path(__file__).parents[3]
QUICK = f"spark.driver.extraJavaOptions={QUICK_JVM}"
"""As the shared session: a process that lives for seconds compiles less of Java."""


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--batch"], "--batch is for Spark: add --on spark"),
        (["--groups", "3"], "--groups is for Spark: add --on spark"),
        (["--batch-tuples", "9"], "--batch-tuples is for Spark"),
        (["--on", "spark", "--speed", "2"], "--speed is for runs in this process"),
        (["--on", "spark", "--flat-out"], "--flat-out is for runs in this process"),
        (["--on", "spark", "--compare", "--batch"], "--compare runs everything from the start"),
        (["--conf", "spark.a=b"], "--conf is for Spark: add --on spark"),
        (
            ["--on", "spark", "--conf", "driver.memory=4g"],
            "--conf must be spark.NAME=VALUE; got 'driver.memory=...'",
        ),
        (["--on", "spark", "--conf", "spark.a"], "--conf must be spark.NAME=VALUE; got 'spark.a'"),
    ],
)
def test_options_that_do_not_go_together(arguments: list[str], words: str) -> None:
    result = invoke("replay", "links", *arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output


def test_explain_tells_stages_and_why_there_is_a_shuffle() -> None:
    result = invoke("explain", "packet_join", "--on", "spark", "--order", "out")
    assert result.exit_code == 0
    assert "stage 1, behind a shuffle" in result.output
    assert "no column divides both" in result.output
    said = json.loads(invoke("explain", "nyc_flights", "--on", "spark", "--json").output)
    assert {variant["shuffles"] for variant in said["variants"]} == {1}
    assert said["variants"][0]["stages"][0][0]["by"] == ["carrier"]


def test_explain_gives_one_reason_for_sources_that_have_the_same() -> None:
    result = invoke("explain", "nyc_flights", "--on", "spark", "--order", "out")
    names = ", ".join(f"'{airport}-progress-columns'" for airport in ("EWR", "JFK", "LGA"))
    words = f"why a shuffle: {names} are each read in one place"
    assert result.output.count("why a shuffle") == result.output.count(words) == 3


def test_explain_tells_what_is_in_shards() -> None:
    arguments = ["explain", "skew", "--on", "spark", "--order", "out"]
    said = invoke(*arguments, "--balance").output
    assert "in 2 shards, which keep nothing" in said
    assert "why a shuffle: by-key-partial is in shards" in said
    assert "shard" not in invoke(*arguments).output
    for option in (["--balance"], ["--groups", "3"]):
        result = invoke("explain", "skew", *option)
        assert result.exit_code == 2
        assert f"{option[0]} is for Spark: add --on spark" in result.output


def test_progress_counts_as_people_do() -> None:
    done = BatchDone(3, 0, 1, 0.5)
    assert progress(done) == "  batch 3: 0 tuples, 1 result, 500 ms"
    assert (
        progress(replace(done, tuples=10, results=0))
        == "  batch 3: 10 tuples, 0 results, 500 ms, 20 tuples/s"
    )


@pytest.mark.spark
@pytest.mark.slow
def test_compare_says_that_results_are_equal() -> None:
    command = ["replay", "nyc_flights", "--on", "spark", "--compare", "--set", "days=1", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "oop_engine.cli", *command, "--master", "local[2]", "--conf", QUICK],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["equal"] is True
    assert [run["on"] for run in said["runs"]] == [
        "this process", "this process, in order", "spark, streaming", "spark, batch"
    ]  # fmt: skip
    assert len({run["results"]["delays"] for run in said["runs"]}) == 1
    assert said["runs"][2]["batches"]
    lines = done.stderr.splitlines()
    assert [line for line in lines if not line.startswith("compil")] == []  # once on a machine


def test_settings_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "conf").write_text("# of this machine\nspark.a=b = c\n\nspark.my.password=secret\n")
    given = OnSpark(None, False, False, None, None, None, conf=("spark.x=y", f"@{tmp_path / 'conf'}"))
    assert given.settings() == {"spark.x": "y", "spark.a": "b = c", "spark.my.password": "secret"}
    for conf in (f"@{tmp_path / 'none'}", f"@{tmp_path}"):
        with pytest.raises(UsageError, match=r"--conf @.* cannot be read .*: give a file"):
            replace(given, conf=(conf,)).settings()
