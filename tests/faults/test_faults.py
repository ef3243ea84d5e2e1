"""Faults can be planted, claims notice them, and a claim that cannot fail is told; ``make faults`` tries them all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.children import MOST_S
from tests.faults.__main__ import LEAST, complaints, noticed, sound
from tests.faults.planting import FAULTS, ROOT, plant
from tests.faults.tries import Tries
from tests.faults.verdicts import Verdicts
from tests.scenarios.small import SMALL

SHORT = {
    "an aggregate loses 1 % of its tuples": ("late_join", "late_tumbling_join"),
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


@pytest.mark.parametrize("name", FAULTS)
def test_scenarios_or_tests_are_named_that_are_to_notice_a_fault(name: str) -> None:
    fault = FAULTS[name]
    assert fault.scenarios or len(set(fault.tests)) >= LEAST
    assert set(fault.scenarios) <= set(SMALL)
    for file, test in (one.split("::") for one in fault.tests):
        assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_two_scenarios_notice_a_fault(name: str, tmp_path: Path) -> None:
    tries = Tries(tmp_path / "faults.jsonl")
    assert set(noticed(tries, name, sound(tries, SHORT[name]), SHORT[name])) == set(SHORT[name])


def test_tries_that_were_interrupted_go_on_until_a_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()

    def of_process(fault: str, scenarios: list[str]) -> Iterator[Verdicts]:
        asked.extend(scenarios)
        yield from (Verdicts(name, {"one is one": "holds"}, []) for name in scenarios[:1])

    monkeypatch.setattr("tests.faults.tries._verdicts", of_process)
    kept = tmp_path / "faults.jsonl"
    with pytest.raises(KeyError):  # of two scenarios one has an answer
        Tries(kept).scenarios("a join never purges", ["joint", "links"])
    with kept.open("a") as file:
        file.write('\n{"sources": "')  # a line that was cut
    asked.clear()
    assert set(Tries(kept).scenarios("a join never purges", ["joint", "links"])) == {"joint", "links"}
    assert asked == ["links"]
    monkeypatch.setattr("tests.faults.tries._digest", lambda: "others")
    asked.clear()
    Tries(kept).scenarios("a join never purges", ["joint"])
    assert asked == ["joint"]


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


def test_a_claim_that_nothing_makes_fail_and_a_fault_that_one_thing_notices_are_told() -> None:
    without = {"s": Verdicts("s", {"one is one": "holds", "no tuple is lost": "holds"}, [])}
    moved = {"a": {"s": {"no tuple is lost"}}, "b": {"s": {"no tuple is lost"}, "a test": {"a test"}}}
    unmoved = "s: no fault makes it fail: one is one"
    assert complaints(without, moved, counted=False) == [unmoved]
    assert complaints(without, moved, counted=True) == [unmoved, "noticed by 1 alone: a"]
    failing = {"s": without["s"]._replace(claims={"no tuple is lost": "fails"})}
    assert complaints(failing, moved, counted=False) == ["s: fails without a fault: no tuple is lost"]
