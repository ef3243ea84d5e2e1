"""No result depends on a knob: the laws hold where blocks, pages, tables and batches have one to seven records."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from oop_engine.system.knobs import VARIABLE, _Setting
from tests.children import MOST_S
from tests.constants import numbers
from tests.simulation.knobs import commands
from tests.sources import ROOT

SAMPLES = {
    "1": "oa_join-band-laws or multi_join-two",
    "2": "distinct-by_key-laws",
    "7": "sliced-many-laws",
    "seed:3": "opib_join-band-laws",
}
"""Other laws with knobs of each size, so that they take half a minute together; as they are, all tests have them.

``make knobs`` tries all laws with many seeds.
"""


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("setting", SAMPLES)
def test_the_laws_hold_with_small_knobs(setting: str) -> None:
    asked = ["-k", SAMPLES[setting], "tests/laws/test_contract.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", *asked]
    environment = os.environ | {VARIABLE: f"{setting},kernels="}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=MOST_S, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]


def test_numbers_that_cut_work_are_knobs() -> None:
    listed = tomllib.loads((ROOT / "tests/no_knobs.toml").read_text())
    known = [f"{module}.{name}" for of in listed.values() for module, names in of.items() for name in names]
    found = list(numbers(ROOT))
    assert sorted(set(found) - set(known)) == [], (
        "make it a knob, or list it in tests/no_knobs.toml with a reason"
    )
    assert sorted(set(known) - set(found)) == [], "it is gone, or a knob: take it from tests/no_knobs.toml"
    assert len(known) == len(set(known))


def test_a_new_number_is_found(tmp_path: Path) -> None:
    module = tmp_path / "oop_engine" / "core" / "new.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        '_AT_ONCE, NAME = 1 << 12, "x"\n_RATE: float = -0.5\n_ROWS = knob(__name__, "_ROWS", 3)\nYES = True\n'
    )
    assert list(numbers(tmp_path)) == ["core.new._AT_ONCE", "core.new._RATE"]


def test_a_seed_draws_the_same_knobs_for_laws_and_worlds() -> None:
    (laws, tests), (worlds, simulation) = commands(4)
    assert laws[VARIABLE] == worlds[VARIABLE] == "seed:4,kernels="
    assert (tests[0], simulation, worlds["FROM"]) == ("pytest", ["tests.simulation", "50"], "200")


def test_a_setting_gives_each_knob_a_size() -> None:
    two, one, drawn = _Setting("2"), _Setting("RING=3,seed:7,kernels="), _Setting("seed:7")
    assert (two.of("a.RING", 1024, 1), two.of("a.FAN", 4, 3), two.of_kernel("k.BLOCK", 512, 1)) == (2, 3, 2)
    assert (one.of("a.RING", 1024, 1), one.of_kernel("k.BLOCK", 512, 1)) == (3, 512)
    names = [f"a.{number}" for number in range(50)]
    assert [one.of(name, 999, 1) for name in names] == [drawn.of(name, 999, 1) for name in names]
    assert len({drawn.of(name, 999, 1) for name in names}) > 3
    assert _Setting("").of("a.RING", 1024, 1) == 1024
