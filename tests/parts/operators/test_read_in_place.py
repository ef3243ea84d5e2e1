"""Windows that are read while they are open: from a ring, a table, or both."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from oop_engine import FOREVER, NEVER, ContractError, Linear, Page, Schema, Watermark
from oop_engine.core.saved import Saved
from oop_engine.core.snapshot import pack, unpack
from oop_engine.operators import Count, Emit, Max, Sum, Tumbling, WindowAggregate
from oop_engine.operators.slicing.revised.reading import touched
from oop_engine.operators.slicing.stores.window_store import WindowStore
from oop_engine.operators.windows import Extents
from oop_engine.testing import Driver
from oop_engine.triggers import AfterCount

SCHEMA = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")
PARTS = list(dict.fromkeys(part for one in (Count(), Sum("v"), Max("v")) for part in one.parts(SCHEMA)))
GROUPS, SLIDE = 7, 10
Integers = NDArray[np.int64]
EVERYONE = np.arange(GROUPS)


def store(range_: int, *, panes: bool) -> WindowStore:
    return WindowStore(0, Extents(range_, SLIDE, 3), PARTS, "end", panes=panes, still=panes)


def tuples(rng: random.Random, least: int, most: int) -> tuple[Page, Integers, Integers]:
    rows = rng.randint(1, 40)
    times = [rng.randint(least, most) for _ in range(rows)]
    page = Page.of(SCHEMA, {"ts": times, "v": [rng.choice([None, 1, -5, 9]) for _ in times]})
    return page, page.times, np.array([rng.randrange(GROUPS) for _ in times])


def windows(found: Any) -> list[tuple[Any, ...]]:
    columns = [found.slots, found.ends, *(column for state in found.states for column in state)]
    return sorted(zip(*(column.tolist() for column in columns), strict=True), key=repr)


def saved(held: WindowStore) -> Saved:
    return unpack("store", pack("store", held.save()))


@pytest.mark.slow(keep=15)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("range_", [10, 15, 30])
def test_windows_are_the_same_wherever_they_are(seed: int, range_: int) -> None:
    """Some tuples come behind a bound, and some windows from a snapshot of a table: those are in both."""
    rng = random.Random(seed)
    table, ring = store(range_, panes=False), store(range_, panes=True)
    first = tuples(rng, 0, 60)
    table.add(*first, GROUPS)
    ring.load(saved(table), GROUPS)
    for _ in range(8):
        page, times, slots = tuples(rng, *rng.choice([(0, 60), (20, 45), (-200, 10**9)]))
        late = rng.random() < 0.3
        for one in (table, ring):
            if late:
                one.add_late(page, times, slots, np.full(times.size, 13))
            else:
                one.add(page, times, slots, GROUPS)
        low = np.array([rng.randint(0, 40) for _ in range(GROUPS)])
        stop = low + rng.randint(0, 50)

        asked = times, slots, low, stop
        assert read(ring, *asked) == read(table, *asked)
        if rng.random() < 0.3:
            ring.load(saved(ring), GROUPS)


def read(
    one: WindowStore, times: Integers, slots: Integers, low: Integers, stop: Integers
) -> list[list[tuple[Any, ...]]]:
    every, some = one.between(EVERYONE, NEVER, FOREVER), one.between(EVERYONE, low, stop)
    return list(map(windows, (one.read(*touched(one.grid.extents, times, slots, FOREVER)), every, some)))


def test_a_sum_that_does_not_fit_where_a_window_is_read_is_told_with_its_place() -> None:
    """The tuple behind the bound is in the table, those before in a pane."""
    summing = WindowAggregate(Tumbling(10), {"sum": Sum("v")}, emit=Emit(late=AfterCount(1)))
    driver = Driver(summing, SCHEMA)
    for message in (Page.of(SCHEMA, {"ts": [3], "v": [2**62]}), Watermark(Linear(10)), Linear(5)):
        driver.feed(0, message)
    with pytest.raises(ContractError, match=r"WindowAggregate: Sum\('v'\) must fit 64 bits"):
        driver.feed(0, Page.of(SCHEMA, {"ts": [3], "v": [2**62]}))


def test_windows_that_lie_very_far_apart_are_read() -> None:
    times, slots = np.array([2**61, -(2**61), 5, 5]), np.array([0, 100, 3, 3])
    table = store(10, panes=False)
    table.add(Page.of(SCHEMA, {"ts": times.tolist(), "v": [1, 2, 3, 4]}), times, slots, 101)
    found = table.read(*touched(table.grid.extents, times, slots, FOREVER))
    assert windows(found) == windows(table.between(np.arange(101), NEVER, FOREVER))
    assert (np.diff(found.ends) >= 0).all()
