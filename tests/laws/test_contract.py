"""The laws that every operator keeps, tried on every operator that there is."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
from dataclasses import replace

import pytest
from hypothesis import settings

from oop_engine import Operator, operators
from oop_engine.operators.slicing.ordered import own_folding
from oop_engine.system.knobs import VARIABLE
from oop_engine.testing import Case, contract_suite
from tests.cases import all_cases


def all_operators() -> list[type[Operator]]:
    found: dict[str, type[Operator]] = {}
    for module in pkgutil.walk_packages(operators.__path__, "oop_engine.operators."):
        for _, cls in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if (
                issubclass(cls, Operator)
                and cls.__module__.startswith("oop_engine.operators.")
                and not cls.__name__.startswith("_")
            ):
                found[cls.__name__] = cls
    return sorted(found.values(), key=lambda cls: cls.__name__)


# Where rows lie, and as what they are kept, follows from what came in which blocks.
DRAWN = {"keeping": "sizes and thresholds are drawn at random"} if VARIABLE in os.environ else {}
CASES = [replace(case, exempt=case.exempt | DRAWN) for case in all_cases()]
EXAMPLES = max(settings().max_examples // 20, 1)  # of each case: there are hundreds


@pytest.fixture(autouse=True)
def our_definitions_are_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the values of folded definitions be checked as those of a stranger's are."""
    monkeypatch.setattr(own_folding, "is_ours", lambda kind: False)


@pytest.mark.parametrize("cls", all_operators(), ids=lambda cls: cls.__name__)
def test_every_operator_has_a_case(cls: type[Operator]) -> None:
    assert any(type(case.operator) is cls for case in CASES)


@pytest.mark.slow(keep=48)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_operator_describes_itself(case: Case) -> None:
    assert case.operator.describe().startswith(type(case.operator).__name__)


test_laws = contract_suite(CASES, EXAMPLES, together=True)
