"""Copies of the windows of some groups: as those of a copy of all, and nothing of either changes the other."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray

from oop_engine import Page, Schema
from oop_engine.aggregates import Collect, Count, Last, Median, Sum
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.snapshot import pack, unpack
from oop_engine.operators import Session, Sliding, Tumbling
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.strategy import Query, stores
from oop_engine.operators.slicing.tagger import bind
from oop_engine.windows import (
    Delimited,
    Frames,
    Global,
    Landmark,
    LastRows,
    PartitionedTupleBased,
    RowsBetween,
    SlideByTuple,
)

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")
GROUPS = 40
Integers = NDArray[np.int64]
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "sessions of lists": (Session(4), {"m": Median("v"), "all": Collect("v", 5)}),
    "panes of lists": (Sliding(12, 5), {"m": Median("v"), "n": Count()}),
    "whole groups": (Global(), {"n": Count(), "sum": Sum("v")}),
    "whole groups of lists": (Global(), {"m": Median("v")}),
    "rows around each": (RowsBetween(-2, 1), {"n": Count(), "m": Median("v")}),
    "last rows": (LastRows(3, 7), {"n": Count(), "sum": Sum("v")}),
    "ranks": (PartitionedTupleBased(4, 2, order="time", tie=("v",)), {"n": Count(), "sum": Sum("v")}),
    "capped sessions": (Session(4, most=9), {"n": Count(), "last": Last("v")}),
    "windows behind each tuple": (SlideByTuple(9), {"n": Count(), "sum": Sum("v")}),
    "frames": (Frames(pc.field("v") > 6, pc.field("v") < 0), {"n": Count(), "sum": Sum("v")}),
    "markers": (Delimited(pc.field("v") == 9), {"n": Count(), "sum": Sum("v")}),
    "landmark": (Landmark(6), {"n": Count(), "sum": Sum("v")}),
    "landmark, in lulls": (Landmark(6, lulls=True), {"n": Count(), "sum": Sum("v")}),
    "landmark, median": (Landmark(6), {"m": Median("v")}),
}


def fresh(kind: str) -> tuple[Output, Store]:
    windows, aggregates = KINDS[kind]
    output = Output({"": bind(windows, SCHEMA, ("k",), "here")}, aggregates, SCHEMA, ("k",), "end", "here")
    [store] = stores(Query(output, SCHEMA, {"ts", "v"}, False, "auto", False))
    return output, store


def closed(
    output: Output, store: Store, slots: Integers, bounds: Integers, keys: Integers
) -> list[dict[str, Any]]:
    """Return the results of the windows of some groups that bounds complete, which have these keys."""
    some = [one for one in store.close(slots, bounds) if one.slots.size]
    if not some:
        return []
    windows = output.ordered(some)
    pages = list(output.pages([pa.array(keys[windows.slots])], windows))
    return sorted((row for page in pages for row in page.to_pylist()), key=repr)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_copied_windows_are_those_of_a_copy_of_all(kind: str, seed: int) -> None:
    draw = random.Random(f"{kind} {seed}")
    (output, store), bounds = fresh(kind), np.zeros(GROUPS, np.int64)
    for _ in range(draw.randint(1, 25)):
        slots = np.array([draw.randrange(GROUPS) for _ in range(draw.choice([1, 3, 200]))])
        slots = slots[bounds[slots] < FOREVER]
        times = bounds[slots] + np.array([draw.randint(0, 30) for _ in slots], np.int64)
        page = Page.of(SCHEMA, {"ts": times, "k": slots, "v": [draw.randint(-9, 9) for _ in slots]})
        store.add(page, page.times, slots, GROUPS)
        if draw.random() < 0.5:
            some = np.array(sorted(draw.sample(range(GROUPS), draw.choice([1, 5, 40]))))
            bounds[some] = np.where(bounds[some] < FOREVER, bounds[some] + draw.choice([1, 7, 20]), FOREVER)
            bounds[some[:1]] = draw.choice([FOREVER, int(bounds[some[0]])])
            list(store.close(some, bounds[some]))
        some = np.array(sorted(draw.sample(range(GROUPS), draw.choice([1, 2, 17]))))
        whole = fresh(kind)[1]
        whole.load(unpack("all", pack("all", store.save())), GROUPS)
        copy = store.copied(some)
        assert copy is not None
        least = np.where(bounds[some] < FOREVER, bounds[some] + draw.choice([0, 5, 50]), FOREVER)
        for by in (least, np.full(some.size, FOREVER)):
            expected = closed(output, whole, some, by, np.arange(GROUPS))
            assert closed(output, copy, np.arange(some.size), by, some) == expected


NEVER_ASKED: dict[str, tuple[Any, dict[str, Any]]] = KINDS | {
    "sessions": (Session(4), {"n": Count()}),
    "tumbling": (Tumbling(5), {"n": Count(), "sum": Sum("v")}),
    "sliding": (Sliding(12, 5), {"n": Count()}),
}


@pytest.mark.parametrize("kind", NEVER_ASKED)
def test_a_store_without_a_tuple_has_groups_and_answers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups are known where rows wait to be final, and may be renamed, before a store gets the first tuple."""
    monkeypatch.setitem(KINDS, kind, NEVER_ASKED[kind])
    _, store = fresh(kind)
    some, bounds = np.arange(5), np.full(5, 7)
    none = Page.of(SCHEMA, {"ts": [], "k": [], "v": []})
    store.add(none, none.times, none.times, 5)  # as closing lets it have room
    store.rename(some, some)
    _, other = fresh(kind)
    other.load(unpack("all", pack("all", store.save())), 5)
    for one in (store, other):
        assert not one.living(5).any()
        assert (one.least_stamps(some, some, bounds) >= 7).all()
        assert one.least_stamp(7) >= 7
        assert [found for found in one.close(some, bounds) if found.slots.size] == []
        assert [found for found in one.close(None, 9) if found.slots.size] == []
        copy = one.copied(some)
        assert copy is None or not copy.living(5).any()
