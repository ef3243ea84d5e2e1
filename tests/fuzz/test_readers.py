"""Mutants of good traces are read, diverted and counted, or one line: never a crash, a traceback, or without end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from oop_engine.connectors.formats.payloads import PAYLOADS
from oop_engine.traces.format_registry import FORMATS
from tests.fuzz import SCALE

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it limits memory as Linux does")
@pytest.mark.parametrize("seed", range(SCALE))
def test_mutants_have_one_of_three_ends(tmp_path: Path, seed: int) -> None:
    command = [sys.executable, "-m", "tests.fuzz.reading", str(tmp_path), str(seed), "120"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-3000:]}; the mutant is in {tmp_path}"
    assert done.stderr == ""
    told = json.loads(done.stdout)
    ours = {name for name, found in FORMATS.items() if found.reader.__module__.startswith("oop_engine.")}
    messages = {f"messages of {name}" for name in PAYLOADS}
    assert {name.partition(":")[0] for name in told["outcomes"]} == ours | messages
    assert {name.partition(": ")[2] for name in told["outcomes"]} == {"read", "diverted", "one line"}
    assert told["slowest"] < 10
