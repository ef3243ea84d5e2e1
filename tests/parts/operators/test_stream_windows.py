"""Windows of a stream without groups: tuples by their times, windows by running sums, in the order of results."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import FOREVER, ContractError, Linear, Page, Schema
from oop_engine.operators import Avg, Count, Max, Sliding, Sum, Tumbling, WindowAggregate
from oop_engine.operators.kernels.panes import Geometry
from oop_engine.operators.kernels.places import BLOCK, PAGE_PANES, WIDE, place_sums, tally
from oop_engine.operators.slicing.panes.slice_windows import SliceWindows
from oop_engine.testing import Driver

ONE = Schema({"ts": pa.int64(), "v": pa.int64(), "small": pa.int32()}, "ts", "s")
SUMS = {"n": Count(), "sum": Sum("v"), "small": Sum("small"), "known": Count("small")}
KINDS: dict[str, list[Any]] = {
    "one": [Tumbling(10)],
    "longer first": [Tumbling(6), Tumbling(3), Tumbling(6), Tumbling(2)],
    "very many": [Tumbling(1 + i % 37) for i in range(150)],
    "from edge to edge": [Tumbling(61), Tumbling(60)],
    "sliding": [Sliding(25, 10), Sliding(77, 70), Tumbling(35, origin=5), Tumbling(14, origin=1_000_003)],
    "gaps": [Sliding(2, 30), Sliding(3, 42)],
}


def told(seed: int, tuples: int, spread: int) -> list[Any]:
    """Pages out of order, bounds, tuples behind them, and now and then a hole; nothing is below the first bound."""
    draw = random.Random(seed)
    messages, bound = list[Any](), -200
    for _ in range(8):
        least = bound - draw.choice([0, 0, 15])
        times = [least + draw.randrange(spread) for _ in range(tuples)]
        values = [draw.randrange(-50, 50) for _ in times]
        small = [draw.choice([None, value]) for value in values] if draw.random() < 0.3 else values
        messages.append(Page.of(ONE, {"ts": times, "v": values, "small": small}))
        bound += draw.choice([spread // 2, spread, 10**9]) if draw.random() < 0.8 else 0
        messages.append(Linear(bound))
    return [*messages, Linear(FOREVER)]


def by_definition(windows: list[Any], messages: list[Any]) -> list[tuple[Any, ...]]:
    """Return what leaves, in order, from the definition of windows: a tuple is in those that are still open."""
    held, found, bound = dict[tuple[int, int], list[Any]](), list[tuple[Any, ...]](), None
    for message in messages:
        if isinstance(message, Page):
            for row in message.to_pylist():
                for number, one in enumerate(windows):
                    range_, slide = one.range, getattr(one, "slide", one.range)
                    first = (row["ts"] - (one.origin or 0)) // slide
                    for wid in range(first, first + range_ // slide + 2):
                        end = (one.origin or 0) + (wid + 1) * slide
                        if end - range_ <= row["ts"] < end and (bound is None or end > bound):
                            held.setdefault((end, number), []).append(row)
            continue
        bound = message.below
        for end, number in sorted(key for key in held if key[0] <= bound):
            rows = held.pop((end, number))
            small = [row["small"] for row in rows if row["small"] is not None]
            sums = sum(row["v"] for row in rows), sum(small) if small else None
            found.append((str(number), end, len(rows), *sums, len(small)))
    return found


def results(windows: list[Any], messages: list[Any], **options: Any) -> list[tuple[Any, ...]]:
    named = {str(number): one for number, one in enumerate(windows)}
    driver = Driver(WindowAggregate(named, SUMS, **options.pop("more", {})), ONE)
    for at, message in enumerate(messages):
        driver.feed(0, message)
        if options.get("moves") and at % 3 == 1:
            driver.move()
    names = "window", "window_end", *SUMS
    return [tuple(row[name] for name in names) for row in driver.rows()]


@pytest.mark.slow(keep=2)
@pytest.mark.parametrize("kind", KINDS)
def test_they_are_those_of_the_definition_in_the_order_of_results(kind: str) -> None:
    for seed in range(4):
        messages = told(seed, (3, 60, 900)[seed % 3], (7, 90, 2000)[seed // 2])
        wanted = by_definition(KINDS[kind], messages)
        assert results(KINDS[kind], messages, moves=seed == 1) == wanted
        assert results(KINDS[kind], messages, more={"assembly": "stacks"}) == wanted


def test_they_are_taken_without_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    of_one, taken = SliceWindows._of_one, list[Any]()

    def noted(*of: Any) -> Any:
        taken.append(of_one(*of))
        return taken[-1]

    monkeypatch.setattr(SliceWindows, "_of_one", noted)
    assert results([Tumbling(3), Tumbling(5)], told(1, 20, 60))
    assert taken
    assert None not in taken


@pytest.mark.parametrize("slide", [1, 9, 100, 5000])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_a_block_is_added_up_by_panes(slide: int, kind: Any) -> None:
    draw = np.random.default_rng(slide)
    for rows in (1, 5, BLOCK - 1, BLOCK):
        times, given = 1000 + draw.integers(0, 5000, rows), draw.integers(-99, 99, rows).astype(kind)
        totals, cells = np.empty((4, WIDE), np.int64), np.empty(BLOCK, np.int64)
        panes = (times - 993) // slide
        first, wide = tally(times, 993, slide, given, totals, cells)
        spanned = int(np.ptp(panes)) + 1
        assert (first, wide) == (panes.min(), spanned if spanned <= WIDE else 0)
        wanted = np.bincount(panes - first, given)[:wide]
        assert totals[0, :wide].tolist() == wanted.astype(np.int64).tolist()


@pytest.mark.slow(keep=2)
@pytest.mark.parametrize("slide", [1, 7, 100, 5000])
@pytest.mark.parametrize("kind", [np.int32, np.int64, None])
def test_a_page_is_counted_and_added_up_at_once(slide: int, kind: Any) -> None:
    draw = np.random.default_rng(slide)
    for rows in (1, BLOCK, 9 * BLOCK + 3):
        away = draw.integers(0, min(5000, slide * PAGE_PANES), rows)
        away[: rows // 2] = away[: rows // 2] // slide * slide  # many at the edges of panes
        given = draw.integers(-(2**31), 2**31, rows).astype(kind or np.int64)[: rows if kind else 0]
        tuples, sums = np.zeros(PAGE_PANES, np.int32), np.zeros(PAGE_PANES if kind else 0, np.int64)
        spans, least, counts, turns = (
            np.array([[FOREVER, -FOREVER]]),
            np.array([FOREVER]),
            np.array([0, 0, FOREVER]),
            np.empty((4, 0), np.int64),
        )
        panes, low = away // slide, int(away.min()) // slide
        wide = int(panes.max()) - low + 1
        ring, first = (
            Geometry(1, 1, 0, PAGE_PANES - 1, PAGE_PANES - 1, 1, 0),
            (low, 900 + low * slide, slide, wide),
        )
        page = np.zeros(rows, np.int64), 900 + away, given
        carries = np.zeros(sums.size, np.int32)
        new, done = place_sums(
            ring, first, tuples, (spans, least, counts, turns), *page, sums, carries, 2**40
        )
        assert (new, done) == (np.unique(panes).size, rows)
        assert not carries.any()
        assert tuples.tolist() == np.bincount(panes, minlength=PAGE_PANES).tolist()
        for pane in np.unique(panes) if kind else ():
            assert sums[pane] == given[panes == pane].sum(dtype=np.int64)
        assert (*spans[0], *least, *counts) == (low, panes.max(), low, 0, 1, low)


@pytest.mark.parametrize("few", [1, 30])
def test_values_that_share_no_number_with_a_count_and_panes_with_very_many_tuples(few: int) -> None:
    """Of some pages the first tuples are added up with their count, and the others are not."""
    draw = np.random.default_rng(few)
    kinds: list[list[Any]] = [[Tumbling(10)], [Tumbling(20), Tumbling(30)], [Tumbling(2**51)] * 2]
    for windows in kinds:
        named = {str(number): one for number, one in enumerate(windows)}
        driver, held = Driver(WindowAggregate(named, SUMS), ONE), list[Any]()
        for rows in (5000, 17_000, 40):
            times = draw.integers(0, 10 * few, rows)
            values = draw.integers(-(2**36), 2**36, rows)
            values[draw.integers(0, rows, 3)] = draw.choice([2**37 - 1, 2**37, -(2**37), 2**53, -(2**58)], 3)
            page = {"ts": times, "v": values, "small": values // 2**8 % 2**9}
            driver.feed(0, Page.of(ONE, page))
            held.append(page)
        driver.feed(0, Linear(FOREVER))
        times, values, small = (np.concatenate([page[name] for page in held]) for name in ONE.names)
        wanted = []
        for number, one in enumerate(windows):
            for end in np.unique(times // one.range + 1) * one.range:
                inside = (times < end) & (times >= end - one.range)
                found = np.count_nonzero(inside), values[inside].sum(), small[inside].sum()
                wanted.append((int(end), str(number), *map(int, found)))
        got = [
            tuple(row[name] for name in ("window_end", "window", "n", "sum", "small"))
            for row in driver.rows()
        ]
        assert got == sorted(wanted)


@pytest.mark.parametrize("assembly", ["auto", "stacks"])
def test_sums_that_barely_fit_and_that_do_not(assembly: Any) -> None:
    """Sums over all slices may not fit though those of windows do."""
    huge = 2**62
    driver = Driver(
        WindowAggregate({"3": Tumbling(3), "6": Tumbling(6, origin=3)}, {"sum": Sum("v")}, assembly=assembly),
        ONE,
    )

    def feed(times: list[int], values: list[int]) -> None:
        driver.feed(0, Page.of(ONE, {"ts": times, "v": values, "small": [0] * len(times)}))

    feed([0, 1, 3, 3, 14], [huge, huge - 1, -huge, -huge, 5])
    driver.feed(0, Linear(20))
    assert [row["sum"] for row in driver.rows()] == [2 * huge - 1, 2 * huge - 1, -2 * huge, -2 * huge, 5, 5]
    feed([33, 36], [huge, huge])
    with pytest.raises(ContractError, match=r"\[33, 39\)"):
        driver.feed(0, Linear(40))


def test_sums_beside_aggregates_that_need_the_row_of_each_tuple() -> None:
    driver = Driver(WindowAggregate(Tumbling(10), {"sum": Sum("v"), "most": Max("v"), "mean": Avg("v")}), ONE)
    driver.feed(0, Page.of(ONE, {"ts": [12, 3, 14, 5], "v": [4, 3, 2, 1], "small": [0] * 4}))
    driver.feed(0, Linear(FOREVER))
    assert [(row["sum"], row["most"], row["mean"]) for row in driver.rows()] == [(4, 3, 2.0), (6, 4, 3.0)]
