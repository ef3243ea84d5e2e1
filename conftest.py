"""Examples in the documentation are tests: those of one page run in one namespace, in order.

Blocks of Python run everywhere.  In the tutorial, which a reader works through in an empty folder, they run in one,
and so do the commands of the program.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("MPLBACKEND", "Agg")

import pytest
from sybil import Example, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser
from sybil.sybil import SybilCollection

collect_ignore = ["oop_engine/lab/compare.py"]  # has moved, and warns of that
TUTORIAL = "docs/tutorial.md"
PROGRAM = "oop-engine "

run_python = PythonEvaluator()


def python_in_folder(example: Example) -> None:
    with contextlib.chdir(example.namespace["FOLDER"].name):
        run_python(example)


def commands_in_folder(example: Example) -> None:
    for line in example.parsed.splitlines():
        if line.startswith(PROGRAM):
            command = [sys.executable, "-m", "oop_engine.cli", *shlex.split(line.removeprefix(PROGRAM))]
            folder = example.namespace["FOLDER"].name
            paths = {
                "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
            }
            done = subprocess.run(
                command, cwd=folder, env=os.environ | paths, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{line}: exit code {done.returncode}: {done.stderr}"


def make_folder(namespace: dict[str, Any]) -> None:
    namespace["FOLDER"] = tempfile.TemporaryDirectory()


def remove_folder(namespace: dict[str, Any]) -> None:
    namespace["FOLDER"].cleanup()


pytest_collect_file = SybilCollection(
    [
        Sybil(
            parsers=[PythonCodeBlockParser(), SkipParser()],
            patterns=["README.md", "docs/*.md", "docs/**/*.md", "oop_engine/operators/README.md"],
            excludes=[TUTORIAL],
            setup=lambda namespace: namespace.update(
                __name__="page"
            ),  # frameworks ask for the module of a function
        ),
        Sybil(
            parsers=[CodeBlockParser("python", python_in_folder), CodeBlockParser("sh", commands_in_folder)],
            patterns=[TUTORIAL],
            setup=make_folder,
            teardown=remove_folder,
        ),
    ]
).pytest()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="fewer examples, and of slow families some cases: tests/quick.py"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the blocks of a page in one process: each goes on where the one before ended."""
    for item in items:
        if item.path.suffix == ".md":
            item.add_marker(pytest.mark.xdist_group(str(item.path)))
