"""A page costs the versions of its own windows, and a bound those that it closes, however many others are out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import FOREVER, GroupWise, Linear, Page, Schema, Watermark
from oop_engine.operators import Count, Emit, Session, Sliding, Sum, Tumbling, WindowAggregate
from oop_engine.operators.slicing.revised.version_table import Versioned, VersionTable, hashes_of
from oop_engine.testing import Driver
from oop_engine.triggers import AfterAny, AfterCount, AfterEach, AfterFraction

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")
GROUPS = 4096
PAGES = 32
MOST = 64  # versions read for each page of one row, whole walks of the table shared among the pages


def page(time: int, *keys: int) -> Page:
    return Page.of(SCHEMA, {"ts": [time] * len(keys), "k": list(keys), "v": list(keys)})


def of_key(key: int, below: int) -> GroupWise:
    return GroupWise(pa.record_batch({"k": pa.array([key])}), np.array([below]))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the versions that are copied out of the table: all of them where it is walked or its runs are merged."""
    counted: list[int] = []
    take, joined = Versioned.take, Versioned.joined

    def taken(self: Versioned, some: np.ndarray) -> Versioned:
        found = take(self, some)
        counted.append(some.size)
        return found

    def join(self: Versioned, *more: Versioned) -> Versioned:
        found = joined(self, *more)
        counted.append(found.slots.size)
        return found

    monkeypatch.setattr(Versioned, "take", taken)
    monkeypatch.setattr(Versioned, "joined", join)
    return counted


EARLY = {
    "count": Emit(early=AfterCount(1)),
    "accumulating": Emit(early=AfterCount(1), mode="accumulating"),
    "event time": Emit(early=AfterAny(AfterCount(1), AfterFraction(0.5))),
    "one by one": Emit(early=AfterEach(AfterCount(1), AfterCount(1))),
}


@pytest.mark.parametrize("window", [Tumbling(10**6), Sliding(1000, 500), Session(1000)])
@pytest.mark.parametrize("name", EARLY)
def test_a_page_reads_the_versions_of_its_windows(
    name: str, window: Tumbling | Sliding | Session, read: list[int]
) -> None:
    if isinstance(window, Session) and EARLY[name].mode != "retracting":
        return
    driver = Driver(
        WindowAggregate(window, {"n": Count(), "s": Sum("v")}, by=("k",), emit=EARLY[name]), SCHEMA
    )
    driver.feed(0, page(5, *range(GROUPS)))
    driver.feed(0, page(6, *range(GROUPS)))
    read.clear()
    for key in range(PAGES):
        driver.feed(0, page(8, key))
    assert sum(read) <= PAGES * MOST
    driver.feed(0, Linear(7))  # closes nothing
    for key in range(PAGES):
        driver.feed(0, of_key(key, FOREVER))
    assert sum(read) <= 2 * PAGES * MOST


def test_a_bound_reads_the_late_versions_that_it_closes(read: list[int]) -> None:
    emit = Emit(late=AfterCount(1), info=True)  # numbers of versions: they stay in the table
    driver = Driver(WindowAggregate(Tumbling(10), {"n": Count()}, by=("k",), emit=emit), SCHEMA)
    windows = GROUPS // 4
    for start in range(windows):
        driver.feed(0, page(10 * start, 0, 1, 2, 3))
    driver.feed(0, Watermark(Linear(10 * windows)))
    for key in range(4):  # a late tuple of each window
        times = 10 * np.arange(windows)
        keys = np.full(windows, key)
        driver.feed(0, Page.of(SCHEMA, {"ts": times, "k": keys, "v": keys}))
    read.clear()
    for bound in range(PAGES):
        driver.feed(0, Linear(10 * bound))
    assert sum(read) <= PAGES * MOST


def versions(slots: np.ndarray, starts: np.ndarray, rows: pa.RecordBatch) -> Versioned:
    none = np.zeros_like(slots)
    return Versioned(
        slots, none, starts, starts + 10, slots, none, none, np.zeros((slots.size, 0), np.int64), rows
    )


def test_the_table_is_a_dictionary_in_the_order_of_arrival() -> None:
    """Puts, drops, walks and bounds at random, against a dictionary."""
    random = np.random.default_rng(3)
    fields = pa.schema([("n", pa.int64())])
    table, naive, serial = VersionTable(fields, 0, np.array([True])), dict[tuple[int, int], int](), 0
    for step in range(400):
        slots, starts = random.integers(0, 12, 8), 10 * random.integers(0, 12, 8)
        keys = list(dict.fromkeys(zip(slots.tolist(), starts.tolist(), strict=True)))
        slots, starts = (np.array(column) for column in zip(*keys, strict=True))
        held, places = table.near((slots, np.zeros_like(slots), starts, starts + 10))
        found = list(zip(held.slots.tolist(), held.starts.tolist(), strict=True))
        assert [(key, n) for key, n in naive.items() if key in keys] == list(
            zip(found, held.rows["n"].to_pylist(), strict=True)
        )
        table.drop(places)
        for key in found:
            del naive[key]
        if step % 3:
            numbers = np.arange(serial, serial + slots.size)
            serial += slots.size
            table.put(versions(slots, starts, pa.record_batch({"n": numbers})))
            naive.update(zip(keys, numbers.tolist(), strict=True))
        if step % 50 == 49:
            assert table.all().rows["n"].to_pylist() == list(naive.values())
        bound = int(random.integers(0, 130))
        ended = table.within(None, bound).rows["n"].to_pylist()
        assert sorted(ended) == sorted(n for (_, start), n in naive.items() if start + 10 <= bound)
        assert table.least("starts") == min((start for _, start in naive), default=FOREVER)
        of_each = [min((start for key, start in naive if key == slot), default=FOREVER) for slot in range(14)]
        assert table.least_of(np.arange(14), "starts").tolist() == of_each
        some = np.arange(step % 14)
        of_some = table.within(some, 0).rows["n"].to_pylist()
        assert of_some == [n for (slot, _), n in naive.items() if slot in some]
        assert len(table) == len(naive)


def test_windows_whose_hashes_collide_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table may find more than was asked for; results are the same."""

    def rows() -> list[list[dict[str, object]]]:
        emit = Emit(early=AfterCount(1))
        driver = Driver(WindowAggregate(Sliding(20, 10), {"n": Count()}, by=("k",), emit=emit), SCHEMA)
        for time in range(0, 60, 5):
            driver.feed(0, page(time, 1, 2, 3))
        driver.feed(0, Linear(40))
        return [found.batch.to_pylist() for found in driver.out[0] if isinstance(found, Page)]

    expected = rows()
    assert expected
    monkeypatch.setattr(
        "oop_engine.operators.slicing.revised.version_table.hashes_of",
        lambda slots, numbers, starts: hashes_of(0 * slots, 0 * numbers, 0 * starts),
    )
    assert rows() == expected
