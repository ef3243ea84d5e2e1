"""On a real cluster of processes, with another serializer and speculative tasks, results are the embedded ones."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.children import MOST_S
from tests.parts.spark.processes import ROOT

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        "OOP_ENGINE_KILLS" not in os.environ, reason="takes minutes: run with OOP_ENGINE_KILLS=1"
    ),
]


def told(*arguments: str) -> list[str]:
    """Return what the program prints, in a process of its own, since a session belongs to its process."""
    command = [sys.executable, "-m", "tests.parts.spark.local_cluster", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=5 * MOST_S, check=True
    )
    return done.stdout.splitlines()


def test_batches_and_micro_batches_have_the_embedded_results() -> None:
    assert told() == ["True", "True"]


def test_executors_without_the_package_are_one_line_with_the_way_out() -> None:
    lines = told("bare")
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("SetupError the Python of Spark's workers (PYSPARK_PYTHON) has no package '")
        assert "install it there" in line
