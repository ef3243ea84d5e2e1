from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, NEVER, Page, Schema
from oop_engine.operators.in_order.merge import Merge
from oop_engine.operators.in_order.opib_join import OPIBJoin
from oop_engine.operators.in_order.opob_join import OPOBJoin
from oop_engine.operators.joining.bands import Band, TumblingBand
from oop_engine.operators.kernels.time_order import time_order
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.ordering.time_sorted import merged_pages, sorted_page
from oop_engine.testing import END, Driver

SCHEMA = Schema({"ts": pa.int64(), "id": pa.int64()}, "ts", "s")
SPANS = [0, 1, 5, 2_047, 2_048, 10**6, 2**53, 2**62]


def page(times: list[int], first: int = 0) -> Page:
    return Page.of(SCHEMA, {"ts": times, "id": list(range(first, first + len(times)))})


@pytest.mark.parametrize("rows", [0, 1, 2, 255, 256, 257, 5_000])
@pytest.mark.parametrize("span", SPANS)
def test_the_order_is_that_of_a_stable_sort(rows: int, span: int) -> None:
    rng = np.random.default_rng(rows + span)
    for least in (NEVER, -span // 2, 10**15):
        times = least + rng.integers(0, span, rows, endpoint=True)
        assert time_order(times).tolist() == np.argsort(times, kind="stable").tolist()


def test_the_ends_of_int64_are_in_order() -> None:
    times = np.array([FOREVER, NEVER, 0, FOREVER, NEVER, -1] * 60)
    assert time_order(times).tolist() == np.argsort(times, kind="stable").tolist()


def test_nothing_is_copied_where_there_is_nothing_to_sort() -> None:
    for times in ([], [4], [1, 1, 2]):
        whole = page(times)
        assert sorted_page(whole) is whole
        assert merged_pages(SCHEMA, [whole]) is whole


@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=5))
def test_equal_rows_keep_the_order_of_pages_and_rows(lists: list[list[int]]) -> None:
    pages, first = [], 0
    for times in lists:
        pages.append(sorted_page(page(times, first)))
        first += len(times)
    rows = [(time, i) for i, time in enumerate(time for times in lists for time in times)]
    merged = merged_pages(SCHEMA, pages)
    assert [(row["ts"], row["id"]) for row in merged.to_pylist()] == sorted(rows)


@pytest.mark.parametrize("band", [Band(1, 1), Band(0, 3), TumblingBand(7)], ids=str)
@pytest.mark.parametrize("join", [OAJoin, OPOBJoin, OPIBJoin])
def test_the_largest_integer_is_a_time_and_no_end(join: Any, band: Any) -> None:
    found = []
    for top in (FOREVER, 7 * 10**6):  # at the same place of its tumbling window
        driver = Driver(join([], band), SCHEMA, SCHEMA)
        for port in (0, 1):
            driver.feed(port, page([top - 1, top]))
        for port in (0, 1):
            driver.feed(port, END)
        found.append(len(driver.rows()))
        assert driver.operator.state().tuples == 0
    assert found[0] == found[1]


def test_a_merge_lets_go_of_the_largest_integer() -> None:
    driver = Driver(Merge(2), SCHEMA, SCHEMA)
    for message in (page([3, FOREVER]), page([FOREVER, FOREVER]), END):
        driver.feed(0, message)
    driver.feed(1, page([5]))
    driver.feed(1, END)
    assert [row["ts"] for row in driver.rows()] == [3, 5, FOREVER, FOREVER, FOREVER]
    assert driver.operator.state().tuples == 0
