"""``oop-engine new``: each file that it writes passes its own test, and is never written over another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from oop_engine.cli.app import app
from tests.children import MOST_S

KINDS = ("operator", "source", "sink", "windows")
WITHOUT_CACHE = ("--no-incremental", f"--cache-dir={os.devnull}")
"""Options of mypy: no later run reads a cache in the folder of a test, and writing it takes a quarter of the time."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_each_kind_is_a_file_that_passes_its_own_test(folder: Path) -> None:
    for kind in KINDS:
        done = CliRunner().invoke(app, ["new", kind, f"My{kind.title()}"])
        assert (done.exit_code, done.output.startswith(f"my_{kind}.py: ")) == (0, True)
    written = [f"my_{kind}.py" for kind in KINDS]
    for name in written:  # few examples, for the sake of time
        text = (folder / name).read_text()
        assert "NAME" not in text
        (folder / name).write_text(text.replace("examples=20", "examples=2"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *written]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=MOST_S, check=False)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.slow
def test_each_kind_is_a_file_that_linters_and_type_checkers_take(folder: Path) -> None:
    written = []
    for kind in KINDS:
        CliRunner().invoke(app, ["new", kind, f"My{kind.title()}"])
        written.append(f"my_{kind}.py")
    for command in (
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--isolated",
            "--no-cache",
            "--select",
            "E4,E7,E9,F,I,B,UP,SIM,RUF",
        ],
        [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, *WITHOUT_CACHE],
    ):
        ran = subprocess.run(
            [*command, *written], cwd=folder, capture_output=True, text=True, timeout=MOST_S, check=False
        )
        assert ran.returncode == 0, ran.stdout


def test_a_file_is_never_written_over_another(folder: Path) -> None:
    (folder / "hold_back.py").write_text("mine")
    done = CliRunner().invoke(app, ["new", "operator", "HoldBack"])
    assert "hold_back.py is there already" in done.output
    assert (folder / "hold_back.py").read_text() == "mine"


@pytest.mark.parametrize("name", ["class", "../evil", "a b", "1st", ""])
def test_a_name_must_be_that_of_a_class(folder: Path, name: str) -> None:
    assert "must be the name of a class" in CliRunner().invoke(app, ["new", "operator", name]).output
    assert not [*folder.iterdir()]
