from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oop_engine.core.errors import EngineError
from oop_engine.lab.comparison import compare
from oop_engine.lab.scenario import Sweep
from oop_engine.scenarios.hammer.counted import combined, evictions
from oop_engine.scenarios.hammer.hammer_slide import INPUTS, SCENARIO, given, lengths
from tests.parts.scenarios.unfounded import unfounded


def test_all_claims_hold() -> None:
    """Without those on the time of plans, which short traces do not have."""
    short = replace(SCENARIO, sweep=Sweep("window", ("64/1", "100/30", "40/64")))
    compared = compare(short, {"tuples": "5000"})
    assert len(compared.claims) == 6
    assert unfounded(compared) == {}


@pytest.mark.parametrize("name", INPUTS)
def test_combinations_of_subtract_on_evict_are_those_of_the_algorithm(name: str) -> None:
    values = given(SCENARIO.values({"input": name, "tuples": "2000"})).tolist()
    count, least = 0, np.inf
    for at, value in enumerate(values):
        count += 1
        if at >= 64 and values[at - 64] == least and value > least:
            least, count = min(values[at - 63 : at + 1]), count + 64
        least = min(least, value)
    assert evictions(np.array(values), 64) == count


@pytest.mark.parametrize(("range_", "apart"), [(64, 8), (100, 30), (96, 64), (1024, 8)])
@pytest.mark.parametrize("name", INPUTS)
def test_two_stacks_combine_once_a_tuple_and_three_times_a_pane(name: str, range_: int, apart: int) -> None:
    values = given(SCENARIO.values({"input": name, "tuples": "5000"}))
    panes = 5000 / apart * (1 if range_ % apart == 0 else 2)
    # each pane begins from no value, and the last ones of a round are not yet made the front
    assert 5000 + 2 * panes - 2 <= combined(values, range_, apart) <= 5000 + 3 * panes + 3


def test_windows_are_written_as_size_and_slide() -> None:
    assert lengths({"window": "1024/64"}) == (1024, 64)
    assert lengths({"window": "8"}) == (8, 1)


@pytest.mark.parametrize("wrong", [{"window": "many"}, {"window": "8/0"}, {"input": "odd"}])
def test_what_makes_no_sense_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(EngineError):
        compare(SCENARIO, {"window": "8/1", "tuples": "2000"} | wrong)
