"""Versions of results before they are final: triggers, modes, what is taken back and when."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import FOREVER, Graph, GraphError, GroupWise, Linear, Page, Schema, Watermark, replay
from oop_engine.aggregates import Collect, Median
from oop_engine.extend import Message
from oop_engine.operators import (
    Avg,
    BoundedDisorder,
    Count,
    Emit,
    Finalize,
    Max,
    Punctuate,
    Session,
    Sliding,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.testing import END, Driver, multiset
from oop_engine.triggers import (
    AfterAll,
    AfterAny,
    AfterChange,
    AfterCount,
    AfterDelay,
    AfterEach,
    AfterFraction,
    AfterMatch,
    Once,
    OnRequest,
    OrFinally,
)
from oop_engine.windows import Intervals, Landmark, LastRows, PartitionedTupleBased, TupleBased
from tests.naive.triggers import after_match
from tests.naive.versions import NaiveVersions, grid, sessions

SCHEMA = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")
ASKED = {"n": Count(), "s": Sum("v")}
Row = dict[str, Any]


def page(*times: int, v: int = 1) -> Page:
    return Page.of(SCHEMA, {"ts": list(times), "v": [v] * len(times)})


def soft(below: int) -> Watermark:
    return Watermark(Linear(below))


def put_out(driver: Driver, message: Message) -> list[Row]:
    return [row for _, out in driver.feed(0, message) if isinstance(out, Page) for row in out.to_pylist()]


def counting(windows: Any, **how: Any) -> Driver:
    return Driver(WindowAggregate(windows, {"n": Count()}, emit=Emit(**how)), SCHEMA)


def version(end: int, n: int, change: int, number: int, timing: str) -> Row:
    start = end - 10
    return {
        "window_start": start,
        "window_end": end,
        "n": n,
        "version": number,
        "timing": timing,
        "change": change,
    }


def test_on_time_late_and_final() -> None:
    driver = counting(Tumbling(10), info=True)
    assert put_out(driver, page(1)) == put_out(driver, page(12)) == []
    assert put_out(driver, soft(10)) == [version(10, 1, 1, 0, "on_time")]
    taken_back = [version(10, 1, -1, 0, "on_time"), version(10, 2, 1, 1, "late")]
    assert put_out(driver, page(3)) == taken_back
    assert put_out(driver, Linear(10)) == []  # it has not changed
    assert put_out(driver, page(15)) == []
    assert put_out(driver, Linear(20)) == [version(20, 2, 1, 0, "final")]
    assert driver.punctuation() == [Linear(20), Linear(30)]
    assert driver.watermarks() == [soft(20)]


def test_sessions_take_back_those_that_merge() -> None:
    driver = counting(Session(10), early=AfterCount(2))
    assert put_out(driver, page(1)) == put_out(driver, page(15)) == []
    whole = {"window_start": 1, "window_end": 25, "n": 3}
    longer = {"window_start": 1, "window_end": 31, "n": 4}
    assert put_out(driver, page(7)) == [whole | {"change": 1}]
    assert put_out(driver, soft(40)) == []
    assert put_out(driver, page(21)) == [whole | {"change": -1}, longer | {"change": 1}]
    assert put_out(driver, Linear(32)) == []


def test_a_late_tuple_that_merges_two_sessions_takes_both_back() -> None:
    driver = counting(Session(10), early=AfterCount(1))
    assert len(put_out(driver, page(0, 20))) == 2
    assert [(row["window_end"], row["change"]) for row in put_out(driver, page(10))] == [
        (10, -1),
        (30, -1),
        (30, 1),
    ]


def test_bounds_of_results_wait_for_versions_that_may_be_taken_back() -> None:
    driver = counting(Session(10), early=AfterCount(2), late=None)
    put_out(driver, page(1, 5))
    put_out(driver, page(14))  # longer now, and no version of that is out
    driver.feed(0, Linear(16))
    assert driver.punctuation() == [Linear(15)]
    assert [row["change"] for row in put_out(driver, Linear(25))] == [-1, 1]


@pytest.mark.parametrize(
    ("windows", "aggregate", "stamp", "below"),
    [
        (Session(10), Count(), "start", 22),
        (Session(10), Count(), "end", 32),
        (Tumbling(10), Median("v"), "start", 20),
        (Tumbling(10), Median("v"), "end", 30),
    ],
)
def test_bounds_of_a_group_wait_for_its_own_versions_alone(
    windows: Any, aggregate: Any, stamp: Any, below: int
) -> None:
    schema = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
    operator = WindowAggregate(windows, {"a": aggregate}, ("k",), emit=Emit(early=AfterCount(1)), stamp=stamp)
    driver = Driver(operator, schema)
    driver.feed(0, Page.of(schema, {"ts": [3, 4, 25], "k": ["slow", "over", "fast"], "v": [1, 2, 3]}))
    driver.feed(0, GroupWise.of({"k": ["over", "new", "fast"]}, [FOREVER, 7, 22]))
    [bounds] = driver.punctuation()
    assert isinstance(bounds, GroupWise)
    of = dict(zip(bounds.groups["k"].to_pylist(), bounds.below.tolist(), strict=True))
    assert (of["over"], of["fast"]) == (FOREVER, below)


def test_sums_of_sums() -> None:
    inner = WindowAggregate(Tumbling(60), {"v": Sum("v")}, stamp="start", emit=Emit())
    hourly = WindowAggregate(Tumbling(3600), {"sum": Sum("v")})
    first = Driver(inner, SCHEMA)
    second = Driver(hourly, first.operator.schemas_out[0])
    script: list[Message] = [page(10, v=3), soft(60), page(20, v=4), Linear(3600)]
    for message in script:
        for _, out in first.feed(0, message):
            second.feed(0, out)
    assert [row["v"] * row["change"] for row in first.rows()] == [3, -3, 7]
    assert [(row["window_end"], row["sum"]) for row in second.rows()] == [(3600, 7)]


CHOICES = [(1, True, 1), (2, True, 1), (None, True, 1), (None, True, 2), (3, False, None), (None, False, 1)]


@pytest.mark.parametrize("on_time", [False, True])
@pytest.mark.parametrize(("range_", "slide"), [(10, 10), (20, 5)])
def test_versions_after_a_match_are_those_of_the_definition(range_: int, slide: int, on_time: bool) -> None:
    twos = AfterMatch(pc.field("v") == 2)
    for seed in range(3):
        draw, promised = random.Random(seed), 0
        naive = NaiveVersions(grid(range_, slide), after_match(2), on_time, after_match(2), strict=False)
        emit = Emit(early=twos, on_time=on_time, late=twos)
        driver = Driver(WindowAggregate(Sliding(range_, slide), ASKED, emit=emit), SCHEMA)
        for _ in range(25):
            tuples = [(promised + draw.randrange(30), draw.randrange(3)) for _ in range(draw.randrange(1, 4))]
            columns = {"ts": [t for t, _ in tuples], "v": [v for _, v in tuples]}
            assert multiset(put_out(driver, Page.of(SCHEMA, columns))) == multiset(naive.page(tuples))
            bound = promised + draw.randrange(30)
            assert multiset(put_out(driver, soft(bound))) == multiset(naive.watermark(bound))
            promised += draw.randrange(12)
            assert multiset(put_out(driver, Linear(promised))) == multiset(naive.promise(promised))
            driver.move()


@pytest.mark.slow(keep=6)
@pytest.mark.parametrize(("early", "on_time", "late"), CHOICES)
@pytest.mark.parametrize("kind", ["tumbling", "sliding", "sessions"])
def test_every_version_is_that_of_the_definition(
    kind: str, early: int | None, on_time: bool, late: int | None
) -> None:
    definition: Any = {"tumbling": Tumbling(10), "sliding": Sliding(20, 5), "sessions": Session(4)}[kind]
    windows = {"tumbling": grid(10, 10), "sliding": grid(20, 5), "sessions": sessions(4)}[kind]
    for seed in range(3):
        draw = random.Random(seed)
        naive = NaiveVersions(windows, early, on_time, late, strict=kind == "sessions")
        triggers = [None if n is None else AfterCount(n) for n in (early, late)]
        emit = Emit(early=triggers[0], on_time=on_time, late=triggers[1])
        driver = Driver(WindowAggregate(definition, ASKED, emit=emit), SCHEMA)
        promised = 0
        for _ in range(25):
            what = draw.choice(["page", "page", "page", "soft", "hard"])
            if what == "page":
                tuples = [
                    (promised + draw.randrange(30), draw.randrange(3)) for _ in range(draw.randrange(1, 4))
                ]
                columns = {"ts": [t for t, _ in tuples], "v": [v for _, v in tuples]}
                found, wanted = put_out(driver, Page.of(SCHEMA, columns)), naive.page(tuples)
            elif what == "soft":
                bound = promised + draw.randrange(30)
                found, wanted = put_out(driver, soft(bound)), naive.watermark(bound)
            else:
                promised += draw.randrange(12)
                found, wanted = put_out(driver, Linear(promised)), naive.promise(promised)
            assert multiset(found) == multiset(wanted), (seed, what)
            driver.move()
        assert multiset(put_out(driver, Linear(FOREVER))) == multiset(naive.promise(FOREVER))
        assert driver.operator.state().in_use == (0, 0, 0)


def numbers(driver: Driver, *messages: Message) -> list[list[int]]:
    """The counts that are put out, message by message."""
    return [[row["n"] for row in put_out(driver, message) if row["change"] > 0] for message in messages]


def test_triggers_compose() -> None:
    one: list[Message] = [page(1)] * 6
    assert numbers(counting(Tumbling(10), early=AfterCount(2)), *one) == [[], [2], [], [4], [], [6]]
    each = AfterEach(AfterCount(1), AfterCount(3))
    assert numbers(counting(Tumbling(10), early=each), *one) == [[1], [], [], [4], [], []]
    assert numbers(counting(Tumbling(10), early=Once(AfterCount(2))), *one) == [[], [2], [], [], [], []]
    until = OrFinally(AfterCount(1), AfterChange("n", 2))
    assert numbers(counting(Tumbling(10), early=until), *one) == [[1], [], [], [], [], []]
    change = AfterChange("n", 2)
    assert numbers(counting(Tumbling(10), early=change), *one) == [[1], [], [], [4], [], []]
    both = AfterAll(AfterCount(2), AfterFraction(0.5))
    halves: list[Message] = [page(1), page(1), soft(5), page(1), page(1), page(1)]
    assert numbers(counting(Tumbling(10), early=both), *halves) == [[], [], [], [3], [], []]
    any_ = AfterAny(AfterCount(3), AfterFraction(0.5))
    assert numbers(counting(Tumbling(10), early=any_), *halves) == [[], [], [], [3], [], []]
    assert eval(repr(each)) == each != both
    assert len({each, both, AfterEach(AfterCount(1), AfterCount(3))}) == 2


def matched(windows: Any, emit: Emit) -> Driver:
    return Driver(WindowAggregate(windows, {"n": Count()}, emit=emit), SCHEMA)


def test_a_version_after_a_tuple_that_matches() -> None:
    mark = AfterMatch(pc.field("v") < 0)
    tuples: list[Message] = [page(1), page(2, v=-1), page(3), page(4), page(5, v=-2), page(6, v=-2)]
    assert numbers(matched(Tumbling(10), Emit(early=mark)), *tuples) == [[], [2], [], [], [5], [6]]
    both = AfterAll(mark, AfterCount(3))
    assert numbers(matched(Tumbling(10), Emit(early=both)), *tuples) == [[], [], [3], [], [], [6]]
    driver = matched(Session(4), Emit(early=mark))
    merging: list[Message] = [page(0, v=-1), page(8, v=-1), page(4), page(5, v=-1)]
    assert numbers(driver, *merging) == [[1], [1], [], [4]]
    assert put_out(driver, Linear(FOREVER)) == []


def ticking(driver: Driver, *moments: int) -> list[list[int]]:
    return [
        [
            row["n"]
            for _, out in driver.clock(now)
            if isinstance(out, Page)
            for row in out.to_pylist()
            if row["change"] > 0
        ]
        for now in moments
    ]


@pytest.mark.parametrize("windows", [Tumbling(10), Session(9), Landmark(10)])
def test_a_version_after_a_delay_on_the_arrival_clock(windows: Any) -> None:
    driver = matched(windows, Emit(early=AfterAny(AfterDelay("8 s"), AfterCount(4))))
    assert driver.operator.clock_every == 2
    assert ticking(driver, 100) == [[]]
    assert numbers(driver, page(1)) == [[]]
    assert ticking(driver, 102) == [[]]
    assert numbers(driver, page(2)) == [[]]
    driver.move()
    assert ticking(driver, 106, 108, 110, 120) == [[], [2], [], []]  # once, until another tuple comes
    assert numbers(driver, page(3)) == [[]]
    assert ticking(driver, 126, 128) == [[], [3]]
    assert numbers(driver, page(3), page(3), page(3), page(3)) == [[], [], [], [7]]
    assert ticking(driver, 200) == [[]]
    put_out(driver, Linear(FOREVER))
    assert driver.operator.state().in_use == (0, 0, 0)


@pytest.mark.parametrize("windows", [Tumbling(10), PartitionedTupleBased(3, 3, order="time")])
def test_a_version_on_request_of_its_group(windows: Any) -> None:
    schema = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
    ask = Schema({"at": pa.int64(), "k": pa.string()}, "at", "s")
    on_request = Emit(early=OnRequest(), late=OnRequest())
    counted = WindowAggregate(windows, {"n": Count()}, ("k",), emit=on_request)
    driver = Driver(counted, schema, ask)
    assert counted.partition_keys((schema, ask)) == [("k", "k")]

    def found(port: int, message: Message) -> list[tuple[str, int]]:
        rows = [
            row for _, out in driver.feed(port, message) if isinstance(out, Page) for row in out.to_pylist()
        ]
        return [(row["k"], row["n"]) for row in rows if row["change"] > 0]

    assert found(0, Page.of(schema, {"ts": [1, 2, 3], "k": ["a", "a", "b"]})) == []
    assert found(1, Page.of(ask, {"at": [7], "k": ["a"]})) == [("a", 2)]
    assert found(1, Page.of(ask, {"at": [8, 8], "k": ["a", "c"]})) == []  # nothing is new
    assert found(1, Linear(FOREVER)) == []
    assert found(0, Linear(FOREVER)) == [("b", 1)]


def test_a_request_without_columns_of_groups_is_for_all() -> None:
    ask = Schema({"at": pa.int64()}, "at", "s")
    driver = Driver(WindowAggregate(Tumbling(10), ASKED, emit=Emit(early=OnRequest())), SCHEMA, ask)
    driver.feed(0, page(1, 12))
    [(_, answer)] = driver.feed(1, Page.of(ask, {"at": [1]}))
    assert isinstance(answer, Page)
    assert answer.column("window_end").to_pylist() == [10, 20]


def test_windows_that_follow_from_tuples_are_taken_back_when_they_are_no_more() -> None:
    driver = Driver(
        WindowAggregate(TupleBased(2, 2, order="time"), ASKED, emit=Emit(early=AfterCount(1))), SCHEMA
    )
    assert [(row["s"], row["change"]) for row in put_out(driver, page(2, v=2))] == [(2, 1)]
    assert [(row["s"], row["change"]) for row in put_out(driver, page(4, v=4))] == [(2, -1), (6, 1)]
    assert [(row["s"], row["change"]) for row in put_out(driver, page(1, v=1))] == [(6, -1), (3, 1), (4, 1)]
    assert put_out(driver, soft(3)) == []
    assert [(row["s"], row["change"]) for row in put_out(driver, Linear(FOREVER))] == []


def test_a_median_is_corrected() -> None:
    driver = Driver(WindowAggregate(Tumbling(10), {"m": Median("v")}, emit=Emit()), SCHEMA)
    assert put_out(driver, page(1, v=1)) == put_out(driver, page(2, v=3)) == []
    assert [(row["m"], row["change"]) for row in put_out(driver, soft(10))] == [(2, 1)]
    assert [(row["m"], row["change"]) for row in put_out(driver, page(3, v=3))] == [(2, -1), (3, 1)]
    assert put_out(driver, Linear(20)) == []


def test_versions_of_a_revision_stream() -> None:
    changes = Schema({"ts": pa.int64(), "v": pa.int64(), "change": pa.int8()}, "ts", "s", change="change")
    driver = Driver(WindowAggregate(Tumbling(10), {"m": Max("v")}, emit=Emit()), changes)
    feed: list[Message] = [Page.of(changes, {"ts": [1, 2], "v": [7, 5], "change": [1, 1]}), soft(10)]
    assert [(row["m"], row["change"]) for m in feed for row in put_out(driver, m)] == [(7, 1)]
    taken_back = Page.of(changes, {"ts": [1], "v": [7], "change": [-1]})
    assert [(row["m"], row["change"]) for row in put_out(driver, taken_back)] == [(7, -1), (5, 1)]
    assert put_out(driver, Linear(10)) == []
    assert driver.operator.state().in_use == (0, 0, 0)


@pytest.mark.parametrize("windows", [Session(5, most=20), LastRows(2, 10), Intervals([(0, 100)])], ids=str)
def test_a_row_that_waits_keeps_its_group_when_windows_are_read_from_copies(windows) -> None:
    changes = Schema({"ts": pa.int64(), "k": pa.string(), "change": pa.int8()}, "ts", "s", change="change")
    count = WindowAggregate(windows, {"n": Count()}, ("k",), emit=Emit(early=AfterCount(2)))
    driver = Driver(count, changes)
    put_out(driver, Page.of(changes, {"ts": [50], "k": ["a"], "change": [1]}))
    put_out(driver, Linear(5))  # no group has anything in a window
    two = Page.of(changes, {"ts": [51, 52], "k": ["b", "b"], "change": [1, 1]})
    assert {(row["k"], row["n"]) for row in put_out(driver, two)} == {("b", 2)}
    driver.move()
    put_out(driver, Linear(FOREVER))
    assert {(row["k"], row["n"]) for row in driver.content()} == {("a", 1), ("b", 2)}


def test_on_time_may_be_repeated() -> None:
    driver = counting(Tumbling(10), early=AfterCount(1), repeat=True)
    assert [row["change"] for message in (page(1), soft(10)) for row in put_out(driver, message)] == [
        1,
        -1,
        1,
    ]


def test_accumulating_puts_new_versions_out_alone() -> None:
    driver = counting(Tumbling(10), early=AfterCount(1), mode="accumulating", info=True)
    assert driver.operator.schemas_out[0].change is None
    rows = [row for message in (page(1), page(2), soft(10), Linear(10)) for row in put_out(driver, message)]
    assert [(row["n"], row["version"], row["timing"]) for row in rows] == [(1, 0, "early"), (2, 1, "early")]


def test_versions_that_discard_add_up() -> None:
    emit = Emit(early=AfterCount(1), mode="discarding")
    driver = Driver(WindowAggregate(Sliding(20, 10), ASKED, emit=emit), SCHEMA)
    rows = [
        row for m in (page(1, v=5), page(12, v=2), page(3, v=-1), Linear(50)) for row in put_out(driver, m)
    ]
    assert [(row["window_end"], row["n"], row["s"]) for row in rows] == [
        (10, 1, 5), (20, 1, 5), (20, 1, 2), (30, 1, 2), (10, 1, -1), (20, 1, -1),
    ]  # fmt: skip


def test_a_result_that_is_no_number_is_not_put_out_again() -> None:
    schema = Schema({"ts": pa.int64(), "x": pa.float64()}, "ts", "s")
    driver = Driver(WindowAggregate(Tumbling(10), {"a": Avg("x")}, emit=Emit(early=AfterCount(1))), schema)
    nan = Page.of(schema, {"ts": [1], "x": [float("nan")]})
    assert [len(put_out(driver, message)) for message in (nan, nan, Linear(10))] == [1, 0, 0]


@pytest.mark.parametrize(
    ("windows", "aggregates", "emit", "message"),
    [
        (TupleBased(2, 2), ASKED, Emit(), "final once they are full"),
        (TupleBased(2, 2, order="time"), ASKED, Emit(mode="discarding"), "extents of .* follow from tuples"),
        (Tumbling(10), ASKED, Emit(early=AfterMatch("v")), "must be boolean"),
        (Tumbling(10), ASKED, Emit(early=AfterDelay("1 rows")), "AfterDelay"),
        (Tumbling(10), ASKED, Emit(early=AfterDelay(0)), "at least 1 s"),
        (Session(10), ASKED, Emit(mode="accumulating"), "use 'retracting'"),
        (Tumbling(10), {"a": Avg("v")}, Emit(mode="discarding"), r"integers alone; got 'a': Avg \(double\)"),
        (
            Intervals([(0, 10)]),
            ASKED,
            Emit(mode="accumulating"),
            "are given, and their versions are emitted as retr",
        ),
        (Tumbling(10), {"change": Count()}, Emit(), "rename it"),
        (Tumbling(10), ASKED, Emit(early=AfterAny(AfterChange("q", 1))), "one of the results"),
        (
            Tumbling(10),
            {"l": Collect("v", 2)},
            Emit(early=AfterChange("l", 1)),
            "compares numbers and moments",
        ),
    ],
)
def test_what_has_no_versions_is_refused(windows: Any, aggregates: Any, emit: Emit, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        WindowAggregate(windows, aggregates, emit=emit).opened(SCHEMA)


@pytest.mark.parametrize(
    "make",
    [
        lambda: AfterCount(0), lambda: AfterFraction(1.0), lambda: AfterChange("n", -1), AfterAny,
        lambda: Emit(early=3), lambda: Emit(mode="all"),  # type: ignore[arg-type]
        lambda: WindowAggregate(Tumbling(1), ASKED, empty=True, emit=Emit()),
    ],
)  # fmt: skip
def test_wrong_parameters_are_refused(make: Any) -> None:
    with pytest.raises(GraphError):
        make()


def test_a_graph_with_versions_and_its_twin_without_them() -> None:
    graph = Graph("speculation")
    edge = Punctuate(BoundedDisorder(30), granularity=10, watermark=BoundedDisorder(3))
    windows = WindowAggregate(Tumbling(10), ASKED, emit=Emit(early=AfterCount(1)))
    versions = graph.add("sums", windows, graph.add("edge", edge, graph.source("in", SCHEMA)))
    graph.sink("versions", versions)
    graph.sink("final", graph.add("finalize", Finalize(), versions))
    draw = random.Random(1)
    times = [max(i - draw.choice([0, 0, 2, 9, 25]), 0) for i in range(200)]
    feed = [Page.of(SCHEMA, {"ts": times[i : i + 7], "v": times[i : i + 7]}) for i in range(0, 200, 7)]
    outcome = replay(graph, {"in": feed})
    final = multiset(outcome.results["final"].to_pylist())
    assert outcome.results["versions"].num_rows > 2 * outcome.results["final"].num_rows
    assert multiset(outcome.final("versions").to_pylist()) == final
    assert multiset(replay(in_order(graph), {"in": feed}).results["final"].to_pylist()) == final
    alone = Driver(WindowAggregate(Tumbling(10), ASKED), SCHEMA)
    for message in feed:
        alone.feed(0, message)
    alone.feed(0, END)
    assert multiset(alone.rows()) == final


def late_rows(*windows: tuple[int, int, int]) -> list[Row]:
    return [
        {"window_start": end - 10, "window_end": end, "n": n, "change": change} for end, n, change in windows
    ]


def test_a_window_that_was_empty_on_time_has_no_version_to_take_back() -> None:
    driver = counting(Tumbling(10), late=AfterCount(2))
    put_out(driver, page(25))
    put_out(driver, soft(20))
    assert put_out(driver, page(3)) == []  # a tuple too few
    driver.move()
    assert put_out(driver, page(4, 13)) == late_rows((10, 2, 1))
    assert put_out(driver, Linear(30)) == late_rows((20, 1, 1), (30, 1, 1))


def test_a_version_on_time_is_taken_back_though_its_group_ended_in_between() -> None:
    schema = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
    driver = Driver(
        WindowAggregate(Tumbling(10), {"n": Count()}, ("k",), emit=Emit(late=AfterCount(1))), schema
    )

    def rows(message: Message) -> list[tuple[int, int]]:
        return [(row["n"], row["change"]) for row in put_out(driver, message)]

    rows(Page.of(schema, {"ts": [3, 3], "k": ["a", "b"]}))
    assert rows(Watermark(GroupWise.of({"k": ["a"]}, [10]))) == [(1, 1)]
    assert rows(Watermark(GroupWise.of({"k": ["a"]}, [FOREVER]))) == []
    assert rows(Watermark(Linear(10))) == [(1, 1)]  # b's
    assert rows(Page.of(schema, {"ts": [4], "k": ["a"]})) == [(1, -1), (2, 1)]
    assert rows(Linear(10)) == []


@pytest.mark.parametrize("windows", [Tumbling(10), Sliding(20, 10)], ids=["tumbling", "sliding"])
def test_windows_of_many_groups_are_read_as_they_are(windows: Any) -> None:
    """So many that the rows of panes are swept: on time, after late tuples, and in the end."""
    schema, many = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s"), 3000

    def tuples(time: int, groups: int) -> Page:
        return Page.of(schema, {"ts": [time] * groups, "k": list(range(groups))})

    def counts(message: Message) -> dict[tuple[int, int], int]:
        """By end and version, of how many groups."""
        found: dict[tuple[int, int], int] = {}
        for row in put_out(driver, message):
            of = row["window_end"], row["n"] * row["change"]
            found[of] = found.get(of, 0) + 1
        return found

    driver = Driver(WindowAggregate(windows, {"n": Count()}, ("k",), emit=Emit(late=AfterCount(1))), schema)
    overlap = windows.range // 10
    put_out(driver, tuples(3, many))
    put_out(driver, tuples(4, many))
    assert counts(soft(10)) == {(10, 2): many}
    assert counts(tuples(5, 7)) == {(10, -2): 7, (10, 3): 7}
    assert counts(tuples(6, many)) == {(10, -2): many - 7, (10, -3): 7, (10, 3): many - 7, (10, 4): 7}
    assert counts(Linear(10)) == {}
    assert counts(Linear(40)) == ({(20, 3): many - 7, (20, 4): 7} if overlap == 2 else {})
    assert driver.operator.state().partials == 0


@pytest.mark.parametrize("windows", [Sliding(40, 10), Sliding(25, 10)], ids=["slides", "parts of slides"])
def test_a_sum_of_floats_is_taken_back_to_the_last_digit(windows: Any) -> None:
    """Sums of panes depend on their order, and many windows are put together in another one than few."""
    schema, rng = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.float64()}, "ts", "s"), random.Random(0)

    def tuples(many: int, least: int, most: int) -> Page:
        times = [rng.randrange(least, most) for _ in range(many)]
        keys, values = [rng.randrange(1000) for _ in times], [rng.random() for _ in times]
        return Page.of(schema, {"ts": times, "k": keys, "v": values})

    driver = Driver(WindowAggregate(windows, {"s": Sum("v")}, ("k",), emit=Emit()), schema)
    net: dict[tuple[int, int, float], int] = {}
    late = tuples(500, 30, 100), tuples(500, 30, 100)
    for message in (tuples(20_000, 0, 100), soft(80), *late, soft(90), Linear(85), Linear(200)):
        for row in put_out(driver, message):
            of = row["k"], row["window_end"], row["s"]
            net[of] = net.get(of, 0) + row["change"]
    assert set(net.values()) <= {0, 1}
    assert len({of[:2] for of, many in net.items() if many}) == sum(net.values())
