"""The quick run leaves out slow tests, keeps some cases of slow families, and tries each property all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
import pytest
from hypothesis import given, settings, strategies as st

TRIED = []

@pytest.mark.slow
def test_slow(): pass

def test_quick(): pass

@pytest.mark.parametrize("n", range(10))
@pytest.mark.slow(keep=4)
def test_family(n): pass

@given(st.integers())
@settings(max_examples=40, database=None)
def test_property(n): TRIED.append(n)

def test_how_many_were_tried():
    print(f"tried {len(TRIED)}")
"""
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("options", "cases", "tried"),
    [
        ((), ["test_slow", *(f"test_family[{n}]" for n in range(10))], 40),
        (("--quick",), [f"test_family[{n}]" for n in (0, 2, 5, 7)], 10),
    ],
)
def test_cases_and_examples(options: tuple[str, ...], cases: list[str], tried: int, tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    plugins = "-p", "conftest", "-p", "tests.conftest"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-s",
        "-p",
        "no:cacheprovider",
        *plugins,
        *options,
        "--rootdir",
        str(tmp_path),
    ]
    done = subprocess.run(
        [*command, "-c", str(ROOT / "pyproject.toml"), str(tmp_path / "test_suite.py")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    ran = [line.split("::")[1].split()[0] for line in done.stdout.splitlines() if "::" in line]
    others = ["test_quick", "test_property", "test_how_many_were_tried"]
    assert sorted(ran) == sorted([*cases, *others])
    assert f"tried {tried}" in done.stdout
