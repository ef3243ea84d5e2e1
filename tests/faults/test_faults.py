"""Faults can be planted, claims notice them, and a claim that cannot fail is told; ``make faults`` tries them all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.children import MOST_S
from tests.faults.__main__ import LEAST, complaints, noticed, of_fault, sound
from tests.faults.in_place import UnplantableError, plant_in_place
from tests.faults.planting import FAULTS, ROOT, Edit, Fault, plant
from tests.faults.times import Times
from tests.faults.tries import Tries
from tests.faults.verdicts import Verdicts
from tests.parts.scenarios.small import SMALL

SHORT = {
    "an aggregate loses 1 % of its tuples": ("union_join", "late_tumbling_join"),
    "a join never purges": ("late_tumbling_join", "union_join"),
    "delays are told 10 % too low": ("speculation", "union_count"),
    "bytes are told 20 % too low": ("adapt_wid", "slice_memory"),
}
"""Faults, and scenarios of a second or less whose claims notice them."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_can_be_planted(name: str) -> None:
    texts: dict[str, str] = {}
    for edit in FAULTS[name].edits:
        text = texts.get(edit.file) or (ROOT / edit.file).read_text()
        texts[edit.file] = edit.in_text(text)
        assert texts[edit.file] != text
    for file, text in texts.items():
        compile(text, file, "exec")


@pytest.mark.parametrize("name", FAULTS)
def test_scenarios_or_tests_are_named_that_are_to_notice_a_fault(name: str) -> None:
    fault = FAULTS[name]
    assert fault.scenarios or len(set(fault.tests)) >= LEAST
    assert set(fault.scenarios) <= set(SMALL)
    for file, test in (one.split("::") for one in fault.tests):
        assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text()


@pytest.fixture(scope="module")
def tries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tries]:
    """One process that forks for each try, and one try of each scenario without a fault."""
    with Tries(tmp_path_factory.mktemp("tries") / "faults.jsonl") as shared:
        yield shared


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_two_scenarios_notice_a_fault(name: str, tries: Tries) -> None:
    assert set(noticed(tries, name, sound(tries, SHORT[name]), SHORT[name])) == set(SHORT[name])


class Asked:
    """In place of the process that tries: has an answer for one scenario alone."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def verdicts(self, _: str, scenario: str) -> Verdicts:
        self._names.append(scenario)
        if len(self._names) > 1:
            raise KeyboardInterrupt
        return Verdicts(scenario, {"one is one": "holds"}, [])


def test_tries_that_were_interrupted_go_on_until_a_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    monkeypatch.setattr("tests.faults.tries._Child", lambda: Asked(asked))
    kept = tmp_path / "faults.jsonl"
    with pytest.raises(KeyboardInterrupt):
        Tries(kept).scenarios("a join never purges", ["joint", "links"])
    with kept.open("a") as file:
        file.write('\n{"of": "')  # a line that was cut
    asked.clear()
    assert set(Tries(kept).scenarios("a join never purges", ["joint", "links"])) == {"joint", "links"}
    assert asked == ["links"]
    monkeypatch.setattr("tests.faults.tries._digest", lambda *_: "others")
    asked.clear()
    Tries(kept).scenarios("a join never purges", ["joint"])
    assert asked == ["joint"]


class Told:
    """In place of tries: scenarios of one claim, which all faults move; each costs more than the one before."""

    def __init__(self) -> None:
        self.asked = list[str]()

    def cost(self, name: str) -> float:
        return float(name[-1]) if name[-1].isdigit() else 5.0

    def scenarios(self, _: str, names: list[str], turn: int = 0) -> dict[str, Verdicts]:
        self.asked += names
        return {name: Verdicts(name, {"one is one": "fails"}, []) for name in names}


def test_a_fault_is_tried_the_quickest_first_until_two_things_notice_it_and_no_claim_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("s4", "s3", "s2", "s1")
    monkeypatch.setitem(FAULTS, "f", Fault("f", (), names))
    without = {name: Verdicts(name, {"one is one": "holds"}, []) for name in names}
    before = {"e": {name: {"one is one"} for name in ("s1", "s2", "s3")}}

    def tried(*, every: bool) -> list[str]:
        told = Told()
        of_fault(cast("Tries", told), without, before, "f", tests=True, every=every)
        return told.asked

    assert tried(every=False) == ["s1", "s2", "s4"]
    assert tried(every=True) == ["s1", "s2", "s3", "s4"]


def test_times_of_a_scenario_are_measured_once_and_said_again_while_the_same_is_asked() -> None:
    numbers, times = iter(range(1, 10)), Times()
    module = SimpleNamespace(seconds=lambda _: next(numbers))
    times.watch(module, "seconds")

    def said(*names: str) -> list[int]:
        return [module.seconds({name: None}) for name in names]

    times.record("s")
    assert said("panes", "windows") == [1, 2]
    times.repeat("s")
    assert said("panes", "windows", "tree") == [1, 2, 3]  # the third is a new question
    times.repeat("s")
    assert said("windows", "panes") == [4, 5]
    times.repeat("another")
    assert said("panes") == [6]
    assert "s" in times
    assert "another" not in times


def test_times_with_a_fault_that_slows_are_those_of_one_turn() -> None:
    times, module = Times(), SimpleNamespace(turns=lambda _, turns: turns)
    times.watch(module, "turns")
    assert module.turns({}, 7) == 7
    times.once()
    assert module.turns({}, 7) == 1


@pytest.mark.parametrize("name", ["a balancer moves nothing", "panes are kept as windows"])
def test_a_fault_can_be_planted_in_functions_that_are_loaded(name: str) -> None:
    code = """
import gc, json, sys
from oop_engine.operators.slicing import strategy
from oop_engine.spark.plan import balance
from tests.faults.in_place import plant_in_place
from tests.faults.planting import FAULTS
functions = balance.Balancer._look, strategy._window_store
before = [one.__code__ for one in functions]
gc.freeze()
plant_in_place(FAULTS[sys.argv[1]])
print(json.dumps([one.__code__ != was for one, was in zip(functions, before)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=MOST_S,
        check=True,
    )
    assert json.loads(done.stdout) == [
        name == "a balancer moves nothing",
        name == "panes are kept as windows",
    ]


def test_a_fault_of_a_kernel_or_outside_of_functions_is_not_planted_in_place() -> None:
    with pytest.raises(UnplantableError):
        plant_in_place(FAULTS["the kernel of two stacks combines once too often"])
    edit = Edit("oop_engine/lab/origin.py", '"cpu_s", "tuples_per_s"}', '"cpu_s"}')
    with pytest.raises(UnplantableError, match=r"origin\.py: <module>"):
        plant_in_place(Fault("of a table", (edit,)))


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
    import oop_engine.lab.comparison  # noqa: F401

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
