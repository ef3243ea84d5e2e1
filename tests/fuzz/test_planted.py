"""Defects that were mended, planted again: the test that is to find each of them fails.

Each is tried in a copy of the repository.  ``make fuzz`` plants all of them, the tests only the first two: a copy takes
seconds, and a defect on Spark a minute.  In the tests
all are held against the code, so that none is lost when it changes.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.fuzz import SCALE

ROOT = Path(__file__).parents[2]
DEFECTS: list[dict[str, str]] = tomllib.loads((Path(__file__).with_name("planted.toml")).read_text())[
    "defect"
]
COPIED = ["oop_engine", "tests", "conftest.py", "pyproject.toml"]
FOUND = 1  # pytest: tests were run, and some failed
SECONDS, MEMORY = 300, 8 << 30


def named(defect: dict[str, str]) -> str:
    return defect["name"]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository, with what was compiled."""
    place = tmp_path_factory.mktemp("planted")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, symlinks=True)
        else:
            shutil.copy2(ROOT / name, place / name)
    return place


def within_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def tried(place: Path, finds: str) -> int:
    """Run the test that is to find a defect; return the exit code of pytest, or of what it died of."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", finds]
    limit = None if "pipeline" in finds or "spark" in finds else within_memory  # Java reserves more
    paths = {"PYTHONPATH": str(place), "OOP_ENGINE_FUZZ": "1"}
    try:
        done = subprocess.run(
            command, cwd=place, env=os.environ | paths, capture_output=True, timeout=SECONDS, check=False,
            preexec_fn=limit,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return FOUND
    return done.returncode


@pytest.mark.parametrize("defect", DEFECTS, ids=named)
def test_a_defect_can_be_planted(defect: dict[str, str]) -> None:
    assert (ROOT / defect["file"]).read_text().count(defect["fixed"]) == 1
    path, _, test = defect["finds"].partition("::")
    assert f"def {test}" in (ROOT / path).read_text()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it limits memory as Linux does")
@pytest.mark.parametrize("defect", DEFECTS if SCALE > 1 else DEFECTS[:2], ids=named)
def test_a_planted_defect_is_found(copied: Path, defect: dict[str, str]) -> None:
    path = copied / defect["file"]
    whole = path.read_text()
    path.write_text(whole.replace(defect["fixed"], defect["broken"]))
    try:
        code = tried(copied, defect["finds"])
    finally:
        path.write_text(whole)
    assert code == FOUND or code < 0, f"it was not found by {defect['finds']}: exit code {code}"
