"""Faults can be planted, claims notice them, and a claim that cannot fail is told; ``make faults`` tries them all."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.children import MOST_S
from tests.faults.__main__ import missing, noticed, without_fault
from tests.faults.planting import FAULTS, ROOT, plant
from tests.faults.verdicts import Verdicts

SHORT = {
    "an aggregate loses a tuple of each page": ("late_join", "union_count"),
    "a join never purges": ("late_tumbling_join", "union_join"),
    "delays are told 10 % too low": ("links", "union_count"),
    "bytes are told 20 % too low": ("adapt_wid", "slice_memory"),
}
"""Faults, and scenarios of a second or less whose claims notice them."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_can_be_planted(name: str) -> None:
    texts: dict[str, str] = {}
    for edit in FAULTS[name].edits:
        text = texts.get(edit.file) or (ROOT / edit.file).read_text()
        texts[edit.file] = edit.in_text(text)
    for file, text in texts.items():
        compile(text, file, "exec")
    if test := FAULTS[name].finds.partition("::")[2]:
        assert f"def {test}" in (ROOT / FAULTS[name].finds.partition("::")[0]).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_two_scenarios_notice_a_fault(name: str) -> None:
    assert set(noticed(name, without_fault(SHORT[name]))) == set(SHORT[name])


def test_a_fault_is_planted_before_its_module_is_loaded_and_changes_no_file() -> None:
    fault = "from tests.faults.planting import FAULTS, plant; plant(FAULTS['a balancer moves nothing']); "
    import_ = "from oop_engine.spark.plan.balance import Balance, Balancer, even_assignment; "
    look = "print(Balancer(Balance(groups=2), {0: even_assignment(2, 2)}, 2).take(0, {0: [9, 0]}))"
    found = [
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=MOST_S, check=True
        ).stdout.strip()
        for code in (fault + import_ + "print(Balance)", import_ + look)
    ]
    assert found[0].endswith("Balance'>")


def test_a_module_that_is_loaded_takes_no_fault() -> None:
    import oop_engine.lab.compare  # noqa: F401

    with pytest.raises(ValueError, match="before it is imported: oop_engine"):
        plant(FAULTS["delays are told 10 % too low"])


def test_a_claim_that_nothing_makes_fail_is_told() -> None:
    sound = {"s": Verdicts("s", {"one is one": "holds", "no tuple is lost": "holds"}, [])}
    moved = {"a": {"s": {"no tuple is lost"}}, "b": {}}
    assert missing(sound, moved) == [("s", "one is one")]
