"""No result depends on a knob: the laws hold where blocks, pages, tables and batches have one to seven records."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from oop_engine.system.knobs import VARIABLE, _Setting
from tests.children import MOST_S
from tests.sources import ROOT

SAMPLE = "test_laws and (oa_join-band or multi_join)"


@pytest.mark.parametrize("size", [1])
def test_the_laws_hold_with_small_knobs(size: int) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-k", SAMPLE, "tests/test_contract.py"]
    environment = os.environ | {VARIABLE: f"{size},kernels="}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=MOST_S, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]


def test_a_setting_gives_each_knob_a_size() -> None:
    two, one, drawn = _Setting("2"), _Setting("RING=3,seed:7,kernels="), _Setting("seed:7")
    assert (two.of("a.RING", 1024, 1), two.of("a.FAN", 4, 3), two.of_kernel("k.BLOCK", 512, 1)) == (2, 3, 2)
    assert (one.of("a.RING", 1024, 1), one.of_kernel("k.BLOCK", 512, 1)) == (3, 512)
    names = [f"a.{number}" for number in range(50)]
    assert [one.of(name, 999, 1) for name in names] == [drawn.of(name, 999, 1) for name in names]
    assert len({drawn.of(name, 999, 1) for name in names}) > 3
    assert _Setting("").of("a.RING", 1024, 1) == 1024
