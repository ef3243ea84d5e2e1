"""Tuples that come behind punctuation inside the graph: what has left is final, and they are counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, NEVER, Graph, GroupWise, Linear, Operator, Page, Punctuation, Schema, replay
from oop_engine.aggregates import CountDistinct, Median
from oop_engine.extend import Windows
from oop_engine.operators import (
    AsOf,
    Band,
    Count,
    Distinct,
    Emit,
    Finalize,
    Max,
    MultiJoin,
    OAJoin,
    Session,
    Sliding,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.testing import END, Driver
from oop_engine.thesis import Aggregate, Bucket, Consolidate, PartialAggregate
from oop_engine.triggers import AfterCount
from oop_engine.windows import (
    Delimited,
    Frames,
    Landmark,
    LastRows,
    PartitionedTupleBased,
    RowsBetween,
    SlideByTuple,
    TupleBased,
)
from tests.cases.folded import NEGATIVE, SEVEN

PLAIN = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
REVISED = Schema({**{f.name: f.type for f in PLAIN.fields}, "change": pa.int8()}, "ts", "s", change="change")
GRIDS: dict[str, Windows] = {"t": Tumbling(10), "s": Sliding(20, 5)}
LENGTHS = {"t": (10, 10), "s": (20, 5)}
AGGREGATES = {"n": Count(), "s": Sum("v"), "m": Max("v")}

Step = list[tuple[int, str, int]] | Punctuation


def page(schema: Schema, rows: Sequence[tuple[int, str, int]]) -> Page:
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("ts", "k", "v"))}
    return Page.of(schema, columns | ({"change": [1] * len(rows)} if schema.change else {}))


def bounds_of(k: str, below: int) -> GroupWise:
    return GroupWise(pa.RecordBatch.from_pydict({"k": [k]}), np.array([below]))


@st.composite
def streams(draw: st.DrawFn, group_wise: bool) -> list[Step]:
    """Pages and bounds that grow, of which pages take no notice."""
    rows = st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from("ab"), st.integers(-3, 3)), min_size=1, max_size=6
    )
    steps: list[Step] = []
    linear, own = 0, {"a": 0, "b": 0}
    for _ in range(draw(st.integers(1, 6))):
        steps.append(draw(rows))
        if group_wise and draw(st.booleans()):
            k = draw(st.sampled_from("ab"))
            own[k] = max(own[k], linear) + draw(st.integers(1, 20))
            steps.append(bounds_of(k, own[k]))
        else:
            linear += draw(st.integers(1, 20))
            steps.append(Linear(linear))
    return steps


def judged(steps: Sequence[Step], *, groups: bool = True) -> list[tuple[Step, list[bool], dict[str, int]]]:
    """Return with each step which of its tuples are behind a bound, and the bounds of groups before it."""
    bounds, found = {"a": NEVER, "b": NEVER}, []
    for step in steps:
        before = dict(bounds)
        if isinstance(step, Linear):
            bounds = {k: max(b, step.below) for k, b in bounds.items()}
        elif isinstance(step, GroupWise) and groups:
            [k] = step.groups.column("k").to_pylist()
            bounds[k] = max(bounds[k], int(step.below[0]))
        found.append((step, [t < before[k] for t, k, _ in step] if isinstance(step, list) else [], before))
    return found


def fed(operator: Operator, steps: Sequence[Step], schema: Schema = PLAIN, *, move: bool = False) -> Driver:
    driver = Driver(operator, *[schema] * len(operator.inputs))
    for step in steps:
        for port in range(len(operator.inputs)):
            driver.feed(port, page(schema, step) if isinstance(step, list) else step)
        if move:
            driver.move()
    for port in range(len(operator.inputs)):
        driver.feed(port, END)
    return driver


def rows(driver: Driver) -> list[Any]:
    return sorted((sorted(row.items(), key=str) for row in driver.rows()), key=str)


def left_in_time(
    windows: str, by: Sequence[str], steps: Sequence[Step], *, empty: bool, lists: bool
) -> list[Any]:
    """The results by definition: of each window the tuples that came before it was complete.

    ``empty``: and the windows between these of a group; ``lists``: with the number of different values.
    """
    found: dict[Any, list[int]] = {}
    for step, _, bounds in judged(steps, groups=bool(by)):
        for t, k, v in step if isinstance(step, list) else ():
            for name in windows:
                range_, slide = LENGTHS[name]
                for start in range((t - range_) // slide * slide, t + 1, slide):
                    if start <= t < start + range_ and start + range_ > bounds[k]:
                        found.setdefault((name, k if by else None, start, start + range_), []).append(v)
    for name, k in {key[:2] for key in found} if empty else ():
        range_, slide = LENGTHS[name]
        starts = [start for n, key, start, _ in found if (n, key) == (name, k)]
        for start in range(min(starts), max(starts), slide):
            found.setdefault((name, k, start, start + range_), [])
    made = [
        {"window": name, "k": k, "window_start": s, "window_end": e, "n": len(vs)}
        | {"s": sum(vs) if vs else None, "m": max(vs, default=None), "d": len(set(vs))}
        for (name, k, s, e), vs in found.items()
    ]
    dropped = ["window"] * (len(windows) == 1) + ["k"] * (not by) + ["d"] * (not lists)
    return sorted((sorted((i for i in r.items() if i[0] not in dropped), key=str) for r in made), key=str)


GRID_WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"{of} by {way}": (of, {"strategy": way}) for of in "ts" for way in ("windows", "panes", "adaptive")},
    "shared slices": ("ts", {}),
    **{f"with empty windows of {of}": (of, {"empty": True}) for of in ("s", "t", "ts")},
    **{f"lists of {of}": (of, {"lists": True}) for of in ("s", "t", "ts")},
    **{f"lists with empty windows of {of}": (of, {"lists": True, "empty": True}) for of in ("s", "t", "ts")},
    "versions": ("ts", {"emit": Emit(early=AfterCount(1))}),
}


@pytest.mark.slow(keep=5)
@pytest.mark.parametrize("by", [(), ("k",)], ids=["whole", "groups"])
@pytest.mark.parametrize("way", GRID_WAYS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_windows_of_a_grid_get_what_comes_before_they_are_complete(
    way: str, by: tuple[str, ...], data: st.DataObject
) -> None:
    windows, how = GRID_WAYS[way]
    definitions = GRIDS if len(windows) > 1 else GRIDS[windows]
    empty, lists = how.get("empty", False), how.get("lists", False)
    aggregates = AGGREGATES | ({"d": CountDistinct("v")} if lists else {})
    options = {name: value for name, value in how.items() if name != "lists"}
    operator = WindowAggregate(definitions, aggregates, by, **options)
    steps = data.draw(streams(group_wise=bool(by)))
    driver = fed(operator, steps, move=data.draw(st.booleans()))
    content = sorted((sorted(r.items(), key=str) for r in driver.content()), key=str)
    assert content == left_in_time(windows, by, steps, empty=empty, lists=lists)
    assert driver.operator.counts()["behind"] == sum(sum(behind) for _, behind, _ in judged(steps))


OTHERS: dict[str, tuple[Operator, Schema]] = {
    "sessions": (WindowAggregate(Session(7), AGGREGATES, ("k",)), PLAIN),
    "sessions, versions": (
        WindowAggregate(Session(7), AGGREGATES, ("k",), emit=Emit(early=AfterCount(1))),
        PLAIN,
    ),
    "count windows by time": (
        WindowAggregate(TupleBased(3, 2, order="time", tie=("k", "v")), AGGREGATES),
        PLAIN,
    ),
    "delimited": (WindowAggregate(Delimited(SEVEN), {"n": Count()}, ("k",)), PLAIN),
    "frames": (WindowAggregate(Frames(SEVEN, NEGATIVE, tie=("k", "v")), {"n": Count()}, ("k",)), PLAIN),
    "slide by tuple": (WindowAggregate(SlideByTuple(10), AGGREGATES, ("k",)), PLAIN),
    "bins": (WindowAggregate(SlideByTuple(10), AGGREGATES, ("k",), strategy="bins"), PLAIN),
    "rows between": (WindowAggregate(RowsBetween(-1, 2), AGGREGATES, ("k",)), PLAIN),
    "last rows": (WindowAggregate(LastRows(2, 10), {"n": Count()}, ("k",)), PLAIN),
    "revisions": (WindowAggregate(GRIDS, AGGREGATES, ("k",)), REVISED),
    "revisions, versions": (WindowAggregate(Tumbling(10), AGGREGATES, ("k",), emit=Emit()), REVISED),
    "Distinct": (Distinct(("k",)), PLAIN),
    "Distinct of revisions": (Distinct(("k",)), REVISED),
    "Finalize": (Finalize(), REVISED),
    "join": (OAJoin([("k", "k")], Band(5, 5)), PLAIN),
    "full join": (OAJoin([("k", "k")], Band(5, 5), how="full"), PLAIN),
    "anti join": (OAJoin([("k", "k")], Band(5, 5), how="anti"), PLAIN),
    "join of three": (MultiJoin("a", {"b": Band(5, 5), "c": Band(5, 5)}, [("k", "k", "k")]), PLAIN),
    "as-of join": (OAJoin([("k", "k")], AsOf(10), how="left"), PLAIN),
}


@pytest.mark.slow(keep=5)
@pytest.mark.parametrize("way", OTHERS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_all_else_goes_on_as_if_such_tuples_had_not_come(way: str, data: st.DataObject) -> None:
    operator, schema = OTHERS[way]
    whole = operator.partition_keys((schema,) * len(operator.inputs)) == []
    steps = data.draw(streams(group_wise=not whole))
    in_time: list[Step] = [
        [row for row, late in zip(step, behind, strict=True) if not late] if isinstance(step, list) else step
        for step, behind, _ in judged(steps)
    ]
    driver, without = (
        fed(operator, steps, schema, move=data.draw(st.booleans())),
        fed(operator, in_time, schema),
    )
    assert sorted(map(str, driver.content())) == sorted(map(str, without.content()))
    count = sum(sum(behind) for _, behind, _ in judged(steps))
    assert driver.operator.counts()["behind"] == count * len(operator.inputs)


@pytest.mark.parametrize("order", ["arrival", "time"])
def test_rows_that_are_counted_by_arrival_are_never_behind_and_others_are(
    order: Literal["arrival", "time"],
) -> None:
    for windows, by in (
        (TupleBased(2, 2, order=order), ()),
        (PartitionedTupleBased(2, 2, order=order), ("k",)),
    ):
        driver = fed(
            WindowAggregate(windows, {"n": Count()}, by),
            [[(9, "a", 1)], Linear(10), [(3, "a", 1), (12, "a", 1)]],
        )
        late = order == "time"
        assert driver.operator.counts() == {"behind": late}
        assert sum(row["n"] for row in driver.rows()) == 3 - late


def test_the_bound_of_a_group_that_nobody_has_seen_or_that_is_forgotten_holds() -> None:
    operator = WindowAggregate(Tumbling(10), {"n": Count()}, ("k",))
    driver = fed(
        operator, [bounds_of("a", 30), [(25, "a", 1), (25, "b", 1)], bounds_of("b", 40), [(31, "b", 1)]]
    )
    assert [(row["k"], row["n"]) for row in driver.rows()] == [("b", 1)]
    assert driver.operator.counts() == {"behind": 2}
    driver = Driver(operator, PLAIN)
    names = [f"g{i}" for i in range(5000)]
    driver.feed(0, Page.of(PLAIN, {"ts": [5] * 5000, "k": names, "v": [0] * 5000}))
    driver.feed(0, GroupWise(pa.RecordBatch.from_pydict({"k": names}), np.full(5000, 40)))
    assert driver.operator.state().groups == 0
    driver.move()
    driver.feed(0, Page.of(PLAIN, {"ts": [5, 41], "k": ["g7", "g7"], "v": [0, 0]}))
    driver.feed(0, END)
    assert driver.operator.counts() == {"behind": 1}
    assert len(driver.rows()) == 5001


def test_second_halves_and_aggregates_of_tagged_tuples_count_them_too() -> None:
    feed = [
        Page.of(PLAIN, {"ts": [1], "k": ["a"], "v": [0]}),
        Linear(10),
        Page.of(PLAIN, {"ts": [3], "k": ["a"], "v": [0]}),
    ]
    for first, second in (
        (Bucket(Tumbling(10)), Aggregate(Tumbling(10), {"n": Count()})),
        (
            PartialAggregate(Tumbling(10), {"n": Count()}),
            Consolidate(Tumbling(10), {"n": Count()}, tuples=PLAIN),
        ),
    ):
        graph = Graph("two")
        graph.sink("out", graph.add("second", second, graph.add("first", first, graph.source("in", PLAIN))))
        outcome = replay(graph, {"in": feed})
        assert outcome.results["out"].column("n").to_pylist() == [1]
        assert outcome.statistics.operators["second"].counts == {"behind": 1}
        assert str(outcome.behind) == "1 of 2 tuples came behind a bound at 'second' (50 %)"


ALL_KINDS: dict[str, WindowAggregate] = {
    **{
        f"{strategy}, {name}": WindowAggregate(windows, AGGREGATES, ("k",), strategy=strategy)
        for strategy in ("auto", "windows", "panes", "adaptive")
        for name, windows in GRIDS.items()
    },
    "empty": WindowAggregate(Sliding(20, 5), AGGREGATES, ("k",), empty=True),
    "slices": WindowAggregate(GRIDS, AGGREGATES, ("k",)),
    "lists": WindowAggregate(Sliding(20, 5), {"m": Median("v")}, ("k",)),
    "landmark": WindowAggregate(Landmark(10, origin=-100), AGGREGATES, ("k",)),
    "session": WindowAggregate(Session(3), AGGREGATES, ("k",)),
    "changing": WindowAggregate(GRIDS, AGGREGATES, ("k",), changing=True),
    "by tuple": WindowAggregate(SlideByTuple(10), AGGREGATES, ("k",)),
    "versions": WindowAggregate(Sliding(20, 5), AGGREGATES, ("k",), emit=Emit(late=AfterCount(1))),
}


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_tuple_of_a_group_that_has_ended_is_behind_however_early_it_is(kind: str) -> None:
    driver = Driver(ALL_KINDS[kind], PLAIN)
    driver.feed(0, page(PLAIN, [(0, "a", 1), (-40, "a", 2), (1, "b", 3)]))
    driver.feed(0, GroupWise.of({"k": ["a"]}, [FOREVER]))
    before = len(driver.rows())
    driver.feed(0, page(PLAIN, [(-60, "a", 5), (7, "a", 5)]))
    driver.feed(0, END)
    assert driver.operator.counts()["behind"] == 2
    assert {row["k"] for row in driver.rows()[before:]} == {"b"}


def test_landmark_windows_that_are_open_have_them() -> None:
    steps: list[Step] = [[(5, "a", 1), (12, "a", 1)], Linear(15), [(7, "a", 1)]]
    driver = fed(WindowAggregate(Landmark(10), {"n": Count()}), steps)
    assert [(row["window_end"], row["n"]) for row in driver.rows()] == [(10, 1), (20, 3)]


@pytest.mark.parametrize("asked", [{"n": Count()}, {"d": CountDistinct("v")}], ids=["numbers", "lists"])
@pytest.mark.parametrize("late", [105, -(10**12)])
def test_a_late_tuple_neither_closes_nor_opens_empty_windows(asked: dict[str, Any], late: int) -> None:
    steps: list[Step] = [[(65, "a", 1)], Linear(200), [(late, "a", 1)], [(255, "a", 1)]]
    driver = fed(WindowAggregate(Tumbling(10), asked, ("k",), empty=True), steps)
    assert [row["window_start"] for row in driver.rows()] == list(range(60, 260, 10))
