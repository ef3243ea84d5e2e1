"""The open windows that an operator tells of: from the bound to the newest tuple."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from oop_engine import FOREVER, GroupWise, Linear, Page, Schema
from oop_engine.core.change import OpenWindows
from oop_engine.core.operator import Operator
from oop_engine.operators import Count, Session, Sliding, Tumbling, WindowAggregate
from oop_engine.operators.windows import Windows
from oop_engine.testing import Driver
from oop_engine.windows import Landmark, TupleBased

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
WINDOWS: dict[str, Windows] = {
    "minute": Tumbling(60),
    "two": Sliding(120, 60),
    "visit": Session(30),
    "all": Landmark(60),
}


def page(*times: int) -> Page:
    return Page.of(SCHEMA, {"ts": [*times], "k": ["ab"[ts % 2] for ts in times]})


def listed(operator: Operator) -> list[OpenWindows]:
    return operator.open_windows(20)


def test_grids_tell_the_oldest_and_the_newest_and_how_many() -> None:
    d = Driver(WindowAggregate(WINDOWS, {"n": Count()}, by=("k",)), SCHEMA)
    assert listed(d.operator) == []
    d.feed(0, page(10, 75, 190))
    assert listed(d.operator)[0] == OpenWindows("minute", None, None, None)
    d.feed(0, Linear(70))
    assert listed(d.operator) == [
        OpenWindows("minute", 3, (60, 120), (180, 240)),
        OpenWindows("two", 4, (0, 120), (180, 300)),
        OpenWindows("visit", None, None, None),
        OpenWindows("all", None, None, None),
    ]
    d.feed(0, Linear(FOREVER))
    left = [(r["window_start"], r["window_end"]) for r in d.rows() if r["window"] == "two"]
    assert (left[1], left[-1]) == ((0, 120), (180, 300))
    assert listed(d.operator) == []


def test_the_bound_is_that_of_the_group_that_is_furthest_behind() -> None:
    d = Driver(WindowAggregate(Tumbling(60), {"n": Count()}, by=("k",)), SCHEMA)
    assert listed(d.operator) == []
    d.feed(0, page(10, 75, 190))
    d.feed(0, GroupWise(pa.record_batch({"k": ["a", "b"]}), np.array([190, 130])))
    assert listed(d.operator) == [OpenWindows("Tumbling(60)", 1, (180, 240), (180, 240))]
    d.feed(0, page(205))
    assert listed(d.operator) == [OpenWindows("Tumbling(60)", 2, (120, 180), (180, 240))]


def test_at_most_so_many_definitions_and_no_windows_by_rows() -> None:
    d = Driver(WindowAggregate({str(n): Tumbling(n) for n in range(1, 40)}, {"n": Count()}), SCHEMA)
    d.feed(0, page(10))
    assert [one.name for one in d.operator.open_windows(2)] == ["1", "2"]
    d = Driver(WindowAggregate(TupleBased(4, 1), {"n": Count()}), SCHEMA)
    d.feed(0, page(10))
    assert listed(d.operator) == []
