"""The bound of a group behind an operator follows from its own tuples and punctuation, whatever others wait for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oop_engine import FOREVER, GroupWise
from oop_engine.testing import Case, Driver
from tests.cases import all_cases
from tests.simulation.flat import keys_of, page_of

KEY, OTHERS, STEPS, SPAN = 500, [7, 8, 9], 4, 40
GROUPED = [case for case in all_cases() if keys_of(case) and not case.operator.needs_order]


def bounds(case: Case, others: bool) -> list[tuple[list[Any], int]]:
    """Return the bounds of groups of results of one key, which ends, beside ``others`` that have no bound."""
    driver = Driver(case.operator, *case.inputs)
    for step in range(STEPS):
        for port in range(len(case.inputs)):
            page = page_of(case, port, step, np.array([*OTHERS, KEY, KEY]), SPAN)
            driver.feed(port, page if others else page.slice(len(OTHERS), len(page)))
        for port in range(len(case.inputs)):
            names = dict.fromkeys(key[port] for key in keys_of(case))
            groups = page_of(case, port, step, np.array([KEY]), SPAN).batch.select(names)
            below = FOREVER if step == STEPS - 1 else (step + 1) * SPAN
            driver.feed(port, GroupWise(groups, np.array([below])))
    given = [one for one in driver.punctuation() if isinstance(one, GroupWise)]
    every = [pair for one in given for pair in zip(one.groups.to_pylist(), one.below.tolist(), strict=True)]
    rows = [([*row.values()], below) for row, below in every]
    return [(row, below) for row, below in rows if KEY in row or f"key {KEY}" in row]


@pytest.mark.slow(keep=32)
@pytest.mark.parametrize("case", GROUPED, ids=str)
def test_others_do_not_hold_up_the_bound_of_a_group(case: Case) -> None:
    assert bounds(case, True) == bounds(case, False)


def test_ends_are_among_the_bounds_that_are_compared() -> None:
    ended = [case for case in GROUPED if any(below == FOREVER for _, below in bounds(case, True))]
    assert len(ended) > len(GROUPED) // 2
