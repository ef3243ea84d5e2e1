"""Once rows come, no file is opened, read, written or looked for on the thread of the event loop."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.parts.service import loop_files

CASES = [
    *(f"serve: {name}" for name in [*loop_files.SOURCES, *loop_files.SINKS]),
    "Local",
    "arun over a generator",
    "arun over a live feed",
]
PLANTED = "serve: a source that reads a file"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("loop_files")
    command = [sys.executable, "-m", "tests.parts.service.loop_files", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    opened: dict[str, list[str]] = json.loads(done.stdout)
    return opened


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("case", CASES)
def test_no_file_holds_up_the_event_loop(case: str, found: dict[str, list[str]]) -> None:
    """Its start may look for files: their paths are checked before the first row."""
    assert bool(found[case]) == (case == PLANTED), found[case]


@pytest.mark.slow
def test_a_file_that_a_source_reads_on_the_loop_is_noticed(found: dict[str, list[str]]) -> None:
    assert any(event.startswith("open ") and "log.jsonl" in event for event in found[PLANTED])
