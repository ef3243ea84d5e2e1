"""The lines that ``oop-engine profile`` ends with run as they are, and agree."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from oop_engine import scan
from oop_engine.cli.app import app
from oop_engine.operators import Count

TIMES = ["2026-01-01T00:00:00Z", "2026-01-01T00:03:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:20:00Z"]


def profiled(*args: str) -> str:
    done = CliRunner().invoke(app, ["profile", *args])
    assert done.exit_code == 0, done.output
    return done.output


def counted(line: str) -> pa.Table:
    found = eval(line, {"scan": scan, "Count": Count})
    assert isinstance(found, pa.Table)
    return found


def test_the_lines_of_moments_run_and_agree(tmp_path: Path) -> None:
    trace = tmp_path / "it's a log.csv"
    rows = [f"{at},{host},{i}" for i, (at, host) in enumerate(zip(TIMES, "abab", strict=True))]
    trace.write_text("\n".join(['at,"the ""$host""",bytes', *rows, ""]))
    lines = profiled(str(trace), "--time", "at").splitlines()
    assert profiled(str(trace)).splitlines() == lines  # the only column of moments
    python, command = lines[-3].strip(), lines[-1].strip()
    assert '.event_time("at", "2 min").group_by("the \\"$host\\"").window("1 minute")' in python
    exec(lines[-4].strip(), {})
    table = counted(python)
    assert table["n"].to_pylist() == [1, 1, 1, 1]
    program, *args = as_a_shell_reads(command)
    assert program == "oop-engine"
    done = CliRunner().invoke(app, [*args, "--json"])
    assert done.exit_code == 0, done.output
    assert [json.loads(line)["n"] for line in done.stdout.splitlines()] == [1, 1, 1, 1]


def as_a_shell_reads(command: str) -> list[str]:
    done = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {command}"], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(("unit", "window"), [("ms", '"1 second"'), ("rows", "1000")])
def test_the_line_of_integers_runs(tmp_path: Path, unit: str, window: str) -> None:
    trace = tmp_path / "log.csv"
    trace.write_text("at,link\n0,1\n12000,2\n11000,1\n20000,1\n")
    found = json.loads(profiled(str(trace), "--time", "at", "--unit", unit, "--by", "link", "--json"))
    assert found["sql"] is None
    assert f'"ordered", per=["link"], unit="{unit}").group_by("link").window({window})' in found["python"]
    assert counted(found["python"])["n"].to_pylist() == [1, 1, 1, 1]
