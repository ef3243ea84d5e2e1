from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oop_engine.core.groups.timers import Timers

TIMES = st.integers(-20, 20)
NONE = 2**63 - 1


@given(st.lists(st.tuples(st.lists(TIMES, max_size=6), TIMES, st.booleans()), max_size=12))
def test_timers_are_due_once_a_bound_has_passed_them(steps: list[tuple[list[int], int, bool]]) -> None:
    timers, waiting = Timers(), list[tuple[int, int]]()
    for number, (times, bound, reached) in enumerate(steps):
        slots = [10 * number + of for of in range(len(times))]
        timers.set(np.array(times, np.int64), np.array(slots, np.int64))
        waiting += zip(times, slots, strict=True)
        below = bound + reached
        due = timers.due_at(bound) if reached else timers.due(bound)
        assert sorted(due.tolist()) == sorted(slot for time, slot in waiting if time < below)
        waiting = [(time, slot) for time, slot in waiting if time >= below]
        assert (len(timers), timers.least) == (len(waiting), min((time for time, _ in waiting), default=NONE))


def test_all_are_due_at_the_end_of_time() -> None:
    timers = Timers()
    timers.set(np.array([NONE, 3]), np.array([0, 1]))
    assert sorted(timers.due_at(NONE).tolist()) == [0, 1]
    assert timers.due_at(NONE).size == len(timers) == 0


def test_runs_stay_few_and_let_go_of_their_memory() -> None:
    timers = Timers()
    for start in range(0, 4000, 2):
        timers.set(np.array([start, start + 1]), np.array([0, 1]))
        timers.due(start - 10)
    assert len(timers) <= 14
    assert sum(times.base.size if times.base is not None else times.size for times, _ in timers._runs) < 64
    timers.set(np.arange(10_000, 20_000), np.arange(10_000))
    assert len(timers._runs) < 4
