"""Times of slots: a bound finds those that it has passed; what is asked is that of a list."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import FOREVER, GroupWise, Linear, Page, Schema
from oop_engine.aggregates import Count
from oop_engine.operators import WindowAggregate
from oop_engine.operators.kernels.slot_times import passed
from oop_engine.operators.slicing.slot_times import SlotTimes
from oop_engine.testing import Driver
from oop_engine.windows import Global

SLOTS = 300


@pytest.mark.parametrize("seed", range(4))
def test_times_are_a_list(seed: int) -> None:
    random = np.random.default_rng(seed)
    times, model = SlotTimes(), [FOREVER] * SLOTS
    times.reserve(SLOTS)
    for step in range(300):
        slots = random.integers(0, SLOTS, int(random.integers(0, 6)))
        new = random.integers(0, 50, slots.size) + step // 4
        match step % 4:
            case 0 | 1:
                times.lower(slots, new)
                for slot, time in zip(slots.tolist(), new.tolist(), strict=True):
                    model[slot] = min(model[slot], time)
            case 2:
                times.put(slots, new)
                for slot, time in zip(slots.tolist(), new.tolist(), strict=True):
                    model[slot] = time
            case 3:
                times.clear(slots)
                for slot in slots.tolist():
                    model[slot] = FOREVER
        bound = int(random.integers(0, 60)) + step // 4
        found = times.until(bound)
        assert found.tolist() == [slot for slot, time in enumerate(model) if time <= bound]
        assert times.earliest() == min(model)
        if step % 50 == 49:
            kept = np.flatnonzero(random.random(SLOTS) < 0.9)
            times = times.kept(kept)
            times.reserve(SLOTS)
            model = [model[slot] for slot in kept.tolist()] + [FOREVER] * (SLOTS - kept.size)
    assert times.until(FOREVER).tolist() == [slot for slot, time in enumerate(model) if time < FOREVER]


def test_a_bound_looks_into_no_block_whose_times_are_later() -> None:
    """Times that are changed behind the least of their blocks are not seen."""
    times = np.arange(64 * 100)
    least = times[::64].copy()
    times[64 * 50 :] = 0
    assert passed(times, least, 130).tolist() == list(range(131))


def test_a_group_that_grows_is_the_least_no_more() -> None:
    """Of 200 groups, which are some blocks, the end of one after the other grows: the bound of results is the least."""
    schema = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")
    driver = Driver(WindowAggregate(Global(), {"n": Count()}, by=("k",)), schema)
    ends = np.full(200, 1000)
    driver.feed(0, Page.of(schema, {"ts": ends, "k": np.arange(200)}))
    for number in np.random.default_rng(2).permutation(400) % 200:
        ends[number] += 7
        driver.feed(0, Page.of(schema, {"ts": [ends[number]], "k": [number]}))
        found = [one.below for _, one in driver.feed(0, Linear(int(ends.min()))) if isinstance(one, Linear)]
        assert found == [] or found[-1] == ends.min() + 1
    assert driver.punctuation()[-1] == Linear(1015)
    (_, ended), *_ = driver.feed(0, GroupWise.of({"k": [3]}, [FOREVER]))
    assert isinstance(ended, Page)
    assert ended.to_pylist() == [{"k": 3, "window_start": 1000, "window_end": 1015, "n": 3}]
