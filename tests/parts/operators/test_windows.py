"""Windows: ``wids`` is the dual of ``extent``, ``closed_by`` tells what no later tuple can be in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, NEVER, ContractError, GraphError, Schema
from oop_engine.operators.windows import (
    Extents,
    Landmark,
    Over,
    PartitionedTupleBased,
    Sliding,
    Tumbling,
    TupleBased,
)
from tests.naive import windows as naive

MILLIS = Schema({"ts": pa.timestamp("ms")}, "ts")
ROWS = Schema({"n": pa.int64()}, "n", "rows")
LENGTH = st.integers(1, 40)


def ids(extents: Extents, time: int) -> tuple[int, int]:
    first, last = extents.wids(np.array([time]))
    return int(first[0]), int(last[0])


@given(range_=LENGTH, slide=LENGTH, origin=st.integers(-50, 50), time=st.integers(-300, 300))
def test_a_tuple_is_in_exactly_the_windows_whose_extent_covers_it(range_, slide, origin, time):
    extents = Sliding(range_, slide, origin).bound(ROWS)
    first, last = ids(extents, time)
    wids = np.arange(-700, 700)
    start, end = extents.extent(wids)
    covering = wids[(start <= time) & (time < end)].tolist()
    assert covering == list(range(first, last + 1))
    assert [naive.extent(w, range_, slide, origin) for w in covering] == [
        (int(start[w + 700]), int(end[w + 700])) for w in covering
    ]


@given(slide=LENGTH, origin=st.integers(-50, 50), time=st.integers(-300, 300))
def test_a_landmark_tuple_is_in_every_window_that_ends_behind_it(slide, origin, time):
    extents = Landmark(slide, origin).bound(ROWS)
    first, last = ids(extents, time)
    wids = np.arange(0, 700)
    start, end = extents.extent(wids)
    covering = wids[(start <= time) & (time < end)].tolist()
    assert covering == list(range(first, min(last + 1, 700)))
    assert last == FOREVER or last < first


@given(range_=LENGTH, slide=LENGTH, origin=st.integers(-50, 50), bound=st.integers(-300, 300))
def test_a_bound_closes_the_windows_that_end_by_it_and_no_other(range_, slide, origin, bound):
    extents = Sliding(range_, slide, origin).bound(ROWS)
    cut = int(extents.closed_by(bound))
    assert extents.ends(cut - 1) <= bound < extents.ends(cut)
    assert extents.boundary(bound) == extents.ends(cut - 1)
    assert extents.starts(cut) == extents.ends(cut) - range_


def test_the_slip_of_equation_5_3_is_mended():
    assert ids(Sliding(600, 60).bound(ROWS), 5) == (0, 9)


def test_sentinels_stay():
    for extents in (Sliding(10, 3, 7).bound(ROWS), Landmark(4).bound(ROWS)):
        bounds = np.array([NEVER, FOREVER, 0])
        assert extents.closed_by(bounds)[:2].tolist() == [NEVER, FOREVER]
        assert extents.ends(bounds)[:2].tolist() == [NEVER, FOREVER]
        assert extents.boundary(bounds)[:2].tolist() == [NEVER, FOREVER]


@pytest.mark.parametrize("time", [FOREVER, NEVER, FOREVER - 10, NEVER + 10])
def test_extents_beyond_64_bits_are_refused(time):
    with pytest.raises(ContractError, match="64 bits"):
        Sliding(100, 10).bound(ROWS).wids(np.array([0, time]))


def test_huge_positions_do_not_wrap():
    extents = Sliding(100, 7, -3).bound(ROWS)
    for time in (2**62 + 12345, -(2**62) - 999):
        first, last = ids(extents, time)
        start, end = extents.extent(np.array([first - 1, first, last, last + 1]))
        assert [bool(s <= time < e) for s, e in zip(start, end, strict=True)] == [False, True, True, False]
    assert extents.closed_by(FOREVER - 1) > extents.closed_by(2**62)


def test_lengths_take_the_unit_of_the_attribute():
    assert Sliding("3 h", timedelta(minutes=15), "1 s").bound(MILLIS) == Extents(10_800_000, 900_000, 1000)
    assert Tumbling("1 min").bound(MILLIS) == Extents(60_000, 60_000, 0)
    assert Landmark("1 s").bound(MILLIS) == Extents(None, 1000, 0)
    assert TupleBased(10, "2 rows").bound(MILLIS) == Extents(10, 2, 0, Over.ROWS)
    assert PartitionedTupleBased(10, 2).bound(MILLIS).over is Over.GROUP_ROWS


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        (Sliding("1 h", "-60 s"), r"slide must be > 0 and in the unit of 'ts' \(ms\); got slide=-60000"),
        (Sliding(0, 1), "range must be > 0"),
        (Tumbling("5 rows"), "must be a length of time"),
        (Landmark(0), "slide must be > 0"),
        (TupleBased("1 s", 1), "must be in 'rows'"),
        (PartitionedTupleBased(1, 0), "slide must be > 0 and in rows; got slide=0"),
        (Sliding(2**61, 1), "at most"),
    ],
)
def test_wrong_lengths_are_refused_with_place_value_and_unit(windows: Any, message: str):
    with pytest.raises(GraphError, match=message) as error:
        windows.bound(MILLIS, "Bucket")
    assert str(error.value).startswith("Bucket: ")
