"""Times at the ends of what a trace may hold, ±2^62: every operator answers there as elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine.testing import Case, Trial
from oop_engine.testing.laws import oracle
from oop_engine.traces.validation import MOST_TIME
from tests.cases import all_cases

EARLY = [-MOST_TIME + i for i in (0, 1, 3, 9, 15, 30)]
LATE = [MOST_TIME - 1 - i for i in (0, 1, 3, 9, 15, 30)]
BOTH = [EARLY[0], -1, 0, LATE[0]]
EXAMPLES = max(settings().max_examples // 20, 1)  # of each case: there are over a hundred


def far(case: Case, times: list[int]) -> Case | None:
    """Return a case with such times on all inputs; None: its times are of another type, or it chose them itself."""
    names = {schema.progressing for schema in case.inputs}
    plain = all(schema.type_of(schema.progressing) == pa.int64() for schema in case.inputs)
    if not plain or names & case.domains.keys() or "oracle" in case.exempt:
        return None
    return replace(case, domains=case.domains | dict.fromkeys(names, times))


@pytest.mark.slow(keep=48)
@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_the_ends_of_time(case: Case) -> None:
    @settings(max_examples=EXAMPLES)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        times = data.draw(st.sampled_from([EARLY, LATE, BOTH]))
        there = far(case, times)
        if there is None:
            return
        trial = Trial(there, data)
        if trial.whole.operator.counts().get("late"):  # of late tuples no oracle knows
            assert times is BOTH, "so close together they are within the slack of every case"
        else:
            oracle(trial)

    holds()
