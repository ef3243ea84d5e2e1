"""The Python of the workers of a session that somebody else made: checked before anything runs."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from oop_engine.errors import SetupError
from oop_engine.spark.session.workers import check_workers


def session(python: str, master: str = "local[2]") -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master, pythonExec=python))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "echo lacks oop_engine, pandas",
            "lacks oop_engine, pandas: install 'oop-engine[spark]' with that Python, or set PYSPARK_PYTHON=",
        ),
        ("echo 2.7", "is Python 2.7 and not 3."),
        ("exit 1", "does not start"),
        (None, "is not there"),
    ],
)
def test_another_python_is_one_line_with_the_way_out(tmp_path: Path, script: str | None, words: str) -> None:
    python = tmp_path / "python"
    if script is not None:
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
    with pytest.raises(SetupError) as told:
        check_workers(session(str(python)))
    assert words in str(told.value)
    assert sys.executable in str(told.value)


def test_this_python_by_any_path_will_do_and_clusters_are_not_asked(tmp_path: Path) -> None:
    check_workers(session(sys.executable))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    check_workers(session(str(python)))
    check_workers(session("nowhere", "spark://host:7077"))
