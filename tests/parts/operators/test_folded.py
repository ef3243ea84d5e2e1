"""Windows folded on the bound: aggregates of all kinds, errors, order of combination, what is kept."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray

from oop_engine import FOREVER, ContractError, GraphError, GroupWise, Joint, Linear, Page, Schema
from oop_engine.aggregates import UserDefined
from oop_engine.core.saved import Saved
from oop_engine.errors import SnapshotError
from oop_engine.extend import Windows
from oop_engine.operators import Count, Session, Sliding, Sum, Tumbling, WindowAggregate
from oop_engine.operators.windows import Due, FinalTuples, Folding, SliceView
from oop_engine.testing import END, Case, Driver, contract_suite, multiset
from oop_engine.thesis import Bucket, PartialAggregate
from oop_engine.windows import (
    Delimited,
    Frames,
    Global,
    LastRows,
    PartitionedTupleBased,
    RowsBetween,
    SlideByTuple,
    TupleBased,
    UserWindows,
)
from tests.laws.test_matrix import AGGREGATES, ROWS, SCHEMA, close, function, played, product
from tests.naive import folded as naive
from tests.naive.sessions import sessions, whole
from tests.naive.windows import Row, aggregate, result, sliding

Integers = NDArray[np.int64]
K = ("k",)
TIE = ("v", "x", "b")
BIG = pc.field("v") > 2
SMALL = pc.field("v") < 0


def no_windows(times: Any, columns: Any, begin: int, bound: int, ended: bool) -> tuple[Any, Any]:
    return [], []


def big(row: Row) -> bool:
    return row["v"] is not None and row["v"] > 2


def small(row: Row) -> bool:
    return row["v"] is not None and row["v"] < 0


Oracle = Callable[[list[Row], dict[str, Any]], list[Row]]
WINDOWS: dict[str, tuple[Windows, Oracle]] = {
    "ranked": (
        PartitionedTupleBased(5, 2, order="time", tie=TIE),
        lambda rows, of: naive.ranked(rows, K, of, 5, 2, TIE, grouped=True),
    ),
    "ranked in the stream": (
        TupleBased(7, 3, order="time", tie=("k", *TIE)),
        lambda rows, of: naive.ranked(rows, K, of, 7, 3, ("k", *TIE), grouped=False),
    ),
    "delimited": (Delimited(BIG), lambda rows, of: naive.delimited(rows, K, of, big, "group")),
    "delimited by all": (Delimited(BIG, "stream"), lambda rows, of: naive.delimited(rows, K, of, big, "stream")),
    "for each tuple": (SlideByTuple(12), lambda rows, of: naive.slide_by_tuple(rows, K, of, 12)),
    "rows around": (RowsBetween(-3, 2, tie=TIE), lambda rows, of: naive.rows_between(rows, K, of, -3, 2, TIE)),
    "rows before": (RowsBetween(-4, -2, tie=TIE), lambda rows, of: naive.rows_between(rows, K, of, -4, -2, TIE)),
    "rows behind": (RowsBetween(1, 2, tie=TIE), lambda rows, of: naive.rows_between(rows, K, of, 1, 2, TIE)),
    "last rows": (
        LastRows(4, 5, tie=TIE),
        lambda rows, of: naive.last_rows(rows, K, of, 4, 5, 0, TIE),
    ),
    "frames": (
        Frames(BIG, SMALL, tie=TIE, unfinished=True),
        lambda rows, of: naive.frames(rows, K, of, big, small, TIE, unfinished=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("window", WINDOWS)
def test_every_aggregate_is_that_of_the_definition(window: str) -> None:
    definition, oracle = WINDOWS[window]
    asked = {name: of for name, (of, *_) in AGGREGATES.items()}
    functions = {name: function(window, *of) for name, (_, *of) in AGGREGATES.items()}
    functions["user"] = lambda rows: product(rows) if rows else None  # it has no identity
    found = [close(row) for row in played(WindowAggregate(definition, asked, K)).rows()]
    assert multiset(found) == multiset([close(row) for row in oracle(ROWS, functions)])


MIXED: dict[str, Windows] = {
    "ten": Tumbling(10), "pause": Session(3), "marks": Delimited(BIG), "each": SlideByTuple(12),
    "last": LastRows(2, 5, tie=TIE),
}  # fmt: skip
FUNCTIONS = {"n": aggregate("count"), "s": aggregate("sum", "v")}


def test_windows_of_all_kinds_go_into_one_operator() -> None:
    found = played(WindowAggregate(MIXED, {"n": Count(), "s": Sum("v")}, K)).rows()
    wanted = {
        "ten": sliding(ROWS, "ts", K, FUNCTIONS, 10, 10),
        "pause": sessions(ROWS, "ts", K, FUNCTIONS, 3),
        "marks": naive.delimited(ROWS, K, FUNCTIONS, big, "group"),
        "each": naive.slide_by_tuple(ROWS, K, FUNCTIONS, 12),
        "last": naive.last_rows(ROWS, K, FUNCTIONS, 2, 5, 0, TIE),
    }
    rows = [{**row, "window": name} for name, some in wanted.items() for row in some]
    assert multiset(found) == multiset(rows)


ROLLING = UserDefined(  # of digits in order: the number they spell, modulo a prime; associative, not commutative
    lift=lambda v: (v.fill_null(0).to_numpy(zero_copy_only=False).astype("int64") % 1009, np.full(len(v), 31)),
    combine=lambda a, b: ((a[0] * b[1] + b[0]) % 1009, a[1] * b[1] % 1009),
    lower=lambda state: state[0], reads=("v",), state_types=("int64", "int64"), returns=pa.int64(),
)  # fmt: skip


def spelt(rows: list[Row]) -> int:
    number = 0
    for row in rows:
        number = (number * 31 + (row["v"] or 0)) % 1009
    return number


def test_a_bound_of_one_group_leaves_another_open_that_is_ahead() -> None:
    first = UserDefined(
        lambda v: (v.to_numpy(zero_copy_only=False),), lambda a, b: a, lambda state: state[0], reads=("v",),
        state_types=("int64",), returns=pa.int64(), commutative=False,
    )  # fmt: skip
    schema = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
    driver = Driver(WindowAggregate(Sliding(10, 5), {"f": first}, ("k",)), schema)
    driver.feed(0, Page.of(schema, {"ts": [20, 31, 20, 31], "k": ["a", "a", "b", "b"], "v": [1, 2, 3, 4]}))
    for key in ("a", "b"):
        groups = pa.RecordBatch.from_pydict({"k": [key]})
        driver.feed(0, GroupWise(groups, np.array([30])))
    assert [(row["k"], row["window_end"], row["f"]) for row in driver.rows()] == [
        ("a", 25, 1), ("a", 30, 1), ("b", 25, 3), ("b", 30, 3),
    ]  # fmt: skip


@pytest.mark.parametrize("window", ["ranked", "ranked in the stream", "last rows", "frames", "rows around"])
def test_tuples_are_combined_in_order_of_time(window: str) -> None:
    definition, oracle = WINDOWS[window]
    found = played(WindowAggregate(definition, {"r": ROLLING}, K)).rows()
    assert multiset(found) == multiset(oracle(ROWS, {"r": spelt}))


ORDERED = dataclasses.replace(ROLLING, commutative=False, tie=("v",))


def spelt_in_order(rows: list[Row]) -> int:
    return spelt(sorted(rows, key=lambda row: (row["ts"], row["v"] is None, row["v"] or 0)))


@pytest.mark.parametrize("stamp", ["end", "start"])
@pytest.mark.parametrize("grid", [(10, 10, 0), (20, 5, 3), (17, 5, -2), (4, 9, 2)])
def test_a_grid_is_folded_in_time_order_where_order_matters(grid: tuple[int, ...], stamp: str) -> None:
    aggregates = {"r": ORDERED, "n": Count()}
    of = played(WindowAggregate(Sliding(*grid), aggregates, K, stamp=stamp))  # type: ignore[arg-type]
    wanted = sliding(ROWS, "ts", K, {"r": spelt_in_order, "n": aggregate("count")}, *grid)
    assert multiset(of.rows()) == multiset(wanted)
    assert of.operator.state().in_use == (0, 0, 0)


def test_sessions_are_folded_in_time_order_where_order_matters() -> None:
    found = played(WindowAggregate({"a": Session(3), "b": Tumbling(10)}, {"r": ORDERED}, K)).rows()
    functions: dict[str, Callable[[list[Row]], Any]] = {"r": spelt_in_order}
    wanted = {"a": sessions(ROWS, "ts", K, functions, 3), "b": sliding(ROWS, "ts", K, functions, 10, 10)}
    rows = [{**row, "window": name} for name, some in wanted.items() for row in some]
    assert multiset(found) == multiset(rows)


@pytest.mark.parametrize("base", [2**62 - 5000, 1001 - 2**62])
def test_last_rows_are_exact_where_floats_are_not(base: int) -> None:
    rows = [{**row, "ts": base + row["ts"]} for row in ROWS]
    found = played(WindowAggregate(LastRows(3, 7, tie=TIE), {"n": Count()}, K), rows).rows()
    assert multiset(found) == multiset(naive.last_rows(rows, K, {"n": len}, 3, 7, tie=TIE))


@pytest.mark.parametrize("stamp", ["end", "start"])
@pytest.mark.parametrize("by", [(), K])
def test_a_global_window_is_folded_in_time_order_where_order_matters(by: tuple[str, ...], stamp: str) -> None:
    of = played(WindowAggregate(Global(), {"r": ORDERED}, by, stamp=stamp))  # type: ignore[arg-type]
    assert multiset(of.rows()) == multiset(whole(ROWS, "ts", by, {"r": spelt_in_order}))
    assert of.operator.state().in_use == (0, 0, 0)


@pytest.mark.parametrize(
    ("windows", "aggregate"),
    [
        (Tumbling(5), Count()),
        (Frames(BIG, SMALL), Count()),
        (SlideByTuple(5, carry=("v",)), Count()),
        (SlideByTuple(5, own=True), Count()),
        (SlideByTuple(5, 2, of="rank"), Count()),
        (SlideByTuple(5), ORDERED),
    ],
)
def test_bins_take_windows_of_each_tuple_alone(windows: Windows, aggregate: Any) -> None:
    with pytest.raises(GraphError, match="strategy='bins' needs windows of each tuple"):
        WindowAggregate(windows, {"r": aggregate}, strategy="bins").opened(SCHEMA)


def test_definitions_that_need_the_order_of_time_hold_tuples_once() -> None:
    of: dict[str, Windows] = {"a": LastRows(3, 100), "b": SlideByTuple(50), "c": LastRows(10, 50)}
    windows = of | {"own": Delimited(BIG)}
    held = Driver(WindowAggregate(windows, {"n": Count()}, K), SCHEMA)
    held.feed(0, Page.of(SCHEMA, {name: [row[name] for row in ROWS] for name in SCHEMA.names}))
    assert held.operator.state().tuples == 2 * len(ROWS)
    ranks = {"three": TupleBased(3, 3, order="time"), "five": TupleBased(5, 2, order="time", tie=TIE)}
    held = Driver(WindowAggregate(ranks, {"n": Count()}, K), SCHEMA)
    held.feed(0, Page.of(SCHEMA, {name: [row[name] for row in ROWS] for name in SCHEMA.names}))
    assert held.operator.state().tuples == len(ROWS)


def test_windows_of_ranks_in_the_stream_share_tuples_and_are_those_of_each() -> None:
    ranks = {"three": (3, 3), "five": (5, 2), "eight": (8, 4)}
    windows = {name: TupleBased(*of, order="time", tie=TIE) for name, of in ranks.items()}
    aggregates, functions = {"n": Count(), "s": Sum("v")}, {"n": len, "s": aggregate("sum", "v")}
    found = played(WindowAggregate(windows, aggregates, K)).rows()
    wanted = [
        {**row, "window": name}
        for name, of in ranks.items()
        for row in naive.ranked(ROWS, K, functions, *of, TIE, grouped=False)
    ]
    assert multiset(found) == multiset(wanted)


def test_bins_hold_no_tuple_and_say_a_sum_that_is_too_large() -> None:
    schema = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")
    asked = WindowAggregate(SlideByTuple(5), {"s": Sum("v")}, strategy="bins")
    assert asked.explain((schema,)).startswith("bins, as asked: two partial aggregates a tuple")
    driver = Driver(asked, schema)
    driver.feed(0, Page.of(schema, {"ts": [1, 9, 3], "v": [2**62, 1, 2**62 - 1]}))
    assert driver.operator.state().in_use[:2] == (0, 6)
    driver.feed(0, Page.of(schema, {"ts": [2], "v": [1]}))
    with pytest.raises(ContractError, match=r"in window \[-1, 4\): cast"):
        driver.feed(0, Linear(5))


@pytest.mark.parametrize(
    ("windows", "aggregates", "words"),
    [
        (Tumbling(5), {"r": dataclasses.replace(ROLLING, tie=("v",))}, "add commutative=False"),
        (Tumbling(5), {"r": dataclasses.replace(ORDERED, tie=("w",))}, "no column 'w'"),
        (Tumbling(5), {"r": ORDERED, "s": dataclasses.replace(ORDERED, tie=())}, "must have the same tie"),
    ],
)
def test_orders_that_cannot_be_kept_are_refused(windows: Windows, aggregates: Any, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        WindowAggregate(windows, aggregates).opened(SCHEMA)
    with pytest.raises(GraphError, match="'r' is not commutative, so all windows must be folded in order"):
        PartialAggregate(Session(5), {"r": ORDERED}, K).output_schemas((SCHEMA,))
    if isinstance(windows, Tumbling):
        with pytest.raises(GraphError):
            PartialAggregate(windows, aggregates).output_schemas((SCHEMA,))


def test_explain_names_the_branch_that_holds_tuples() -> None:
    def words(windows: Windows, of: UserDefined) -> str:
        return WindowAggregate(windows, {"r": of}).explain((SCHEMA,)).rpartition("; ")[2]

    held = "'r' is not commutative: tuples are held until a bound has passed them, equal times by v, then as they came"
    assert words(Sliding(20, 10), ORDERED) == held
    assert words(Session(5), ORDERED) == held
    assert (
        words(Sliding(20, 10), ROLLING) == "'r' is commutative: tuples are folded as they come, in any order"
    )
    assert (
        words(LastRows(2, 5), ROLLING)
        == "'r' is commutative: tuples are held where windows follow from their order"
    )


@pytest.mark.parametrize(
    ("windows", "words"),
    [
        (TupleBased(3, 3, order="late"), "order must be 'arrival' or 'time'"),  # type: ignore[arg-type]
        (TupleBased(3, 3, tie=("v",)), "goes with order='time'"),
        (TupleBased(3, 3, order="time", tie=("w",)), "no column 'w'"),
        (TupleBased(0, 3, order="time"), "range must be > 0"),
        (PartitionedTupleBased(3, 3, order="time"), "name its columns with by"),
        (Delimited("v"), "a predicate must be boolean"),
        (Delimited(pc.field("w") > 1), "does not evaluate"),
        (Delimited(BIG, "world"), "scope must be 'group' or 'stream'"),  # type: ignore[arg-type]
        (SlideByTuple(5, of="time"), "of must be 'tuple', 'arrival' or 'rank'"),  # type: ignore[arg-type]
        (SlideByTuple(5, 2), "add of='rank'"),
        (SlideByTuple(5, 0, of="rank"), "every must be a number of tuples"),
        (SlideByTuple(0), "range must be > 0"),
        (SlideByTuple(5, carry=("w",)), "no column 'w'"),
        (RowsBetween(0, 1, carry=("w",)), "no column 'w'"),
        (RowsBetween(1, 0), "first must not be behind last; got first=1, last=0"),
        (RowsBetween(-(2**41), 0), "first must be at most 2.40 tuples away"),
        (LastRows(0, 5), "rows must be a number of tuples"),
        (LastRows(2, -5), "every must be > 0"),
        (Frames("v", SMALL), "a predicate must be boolean"),
        (Frames(BIG, SMALL, most=0), "most must be > 0"),
        (UserWindows(no_windows, back=-1), "back must be >= 0"),
    ],
)  # fmt: skip
def test_wrong_definitions_are_refused_when_the_graph_is_built(windows: Windows, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        WindowAggregate(windows, {"n": Count()}).opened(SCHEMA)


def test_columns_and_options_that_do_not_go_together_are_refused() -> None:
    for asked in ({"strategy": "panes"}, {"empty": True}):
        with pytest.raises(GraphError, match="needs windows on a grid"):
            WindowAggregate(SlideByTuple(5), {"n": Count()}, **asked).opened(SCHEMA)  # type: ignore[arg-type]
    both: dict[str, Windows] = {"ten": Tumbling(10), "three": TupleBased(3, 3, order="time")}
    with pytest.raises(GraphError, match="'ten' have window_start, window_end, those of 'three'"):
        WindowAggregate(both, {"n": Count()}).opened(SCHEMA)
    with pytest.raises(GraphError, match="output columns must differ"):
        WindowAggregate(SlideByTuple(5, carry=("k",)), {"n": Count()}, K).opened(SCHEMA)
    with pytest.raises(GraphError):
        Bucket(SlideByTuple(5)).opened(SCHEMA)


def page(times: Sequence[int], v: Sequence[int | None] | None = None, k: str = "a") -> Page:
    values = v or [1] * len(times)
    columns = {name: [None] * len(times) for name in SCHEMA.names}
    return Page.of(SCHEMA, columns | {"ts": times, "k": [k] * len(times), "v": values})


def driver(windows: Windows | Mapping[str, Windows], by: tuple[str, ...] = (), **asked: Any) -> Driver:
    return Driver(WindowAggregate(windows, {"s": Sum("v")}, by, **asked), SCHEMA)


def test_what_is_above_the_bound_is_held_and_nothing_else() -> None:
    for windows in (TupleBased(4, 2, order="time"), SlideByTuple(10), LastRows(3, 10), Delimited(BIG)):
        of = driver(windows)
        draw = random.Random(3)
        for second in range(0, 1000, 10):
            of.feed(0, page([second + draw.randrange(-5, 6) for _ in range(20)]))
            of.feed(0, Linear(second - 5 + 10 - 5))
            state = of.operator.state()
            assert state.tuples <= 20
            assert state.partials <= 12
        of.feed(0, END)
        assert of.operator.state().in_use == (0, 0, 0)


def test_an_open_window_keeps_the_punctuation_behind_its_last_tuple() -> None:
    of = driver(TupleBased(2, 2, order="time"))
    of.feed(0, page([3, 7, 12]))
    assert of.feed(0, Linear(50))[-1] == (0, Linear(13))
    of.feed(0, page([60]))
    assert of.feed(0, Linear(61))[-1] == (0, Linear(62))


def test_a_marker_right_at_the_bound_of_its_group_closes_a_window() -> None:
    of = driver(Delimited(BIG), K)
    of.feed(0, page([3, 7], [1, 9]))
    of.feed(0, page([2, 7], [1, 1], "b"))
    of.feed(0, GroupWise.of({"k": ["a", "b"]}, [7, 7]))
    assert [(row["k"], row["window_end"]) for row in of.rows()] == [("a", 7)]
    of.feed(0, GroupWise.of({"k": ["a"]}, [FOREVER]))
    assert [(row["k"], row["window_end"]) for row in of.rows()] == [("a", 7), ("a", 8)]


def test_joint_punctuation_closes_groups() -> None:
    of = Driver(WindowAggregate(SlideByTuple(10), {"n": Count()}, ("v",)), SCHEMA)
    of.feed(0, page([1, 2, 3], [1, 2, 3]))
    of.feed(0, Joint.of(ts=3, v=3))
    assert sorted(row["v"] for row in of.rows()) == [1, 2]


def test_a_sum_that_does_not_fit_names_the_window() -> None:
    for windows, extent in (
        (TupleBased(3, 1, order="time"), "\\[1, 4\\)"), (SlideByTuple(5), "\\[-1, 4\\)"),
        (Delimited(SMALL), "\\[1, 4\\)"),
    ):  # fmt: skip
        of = driver(windows, K)
        of.feed(0, page([1, 2, 3], [1, 2**62, 2**62]))
        with pytest.raises(ContractError, match=f"does not in window {extent} of group"):
            of.feed(0, END)


def test_times_at_the_ends_of_64_bits_are_refused() -> None:
    for windows in (
        TupleBased(3, 1, order="time"),
        SlideByTuple(5),
        LastRows(2, 5),
        Delimited(BIG),
        Frames(BIG, SMALL),
    ):
        with pytest.raises(ContractError, match="must lie in"):
            driver(windows).feed(0, page([FOREVER]))


def test_a_clock_far_ahead_is_an_error_of_the_last_rows() -> None:
    of = driver(LastRows(2, 1))
    of.feed(0, page([1, 10**9]))
    with pytest.raises(ContractError, match="put a Guard in front"):
        of.feed(0, END)


def test_last_rows_go_on_through_lulls_as_far_as_bounds_do() -> None:
    of = Driver(WindowAggregate(LastRows(2, 10, lulls=True), {"n": Count(), "s": Sum("v")}, K), SCHEMA)
    rows = [row for row in ROWS if row["ts"] < 60]
    of.feed(0, Page.of(SCHEMA, {name: [row[name] for row in rows] for name in SCHEMA.names}))
    out = of.feed(0, Linear(200))
    assert out[-1] == (0, Linear(210))
    found = of.feed(0, END)
    assert not [message for _, message in found if isinstance(message, Page)]
    wanted = naive.last_rows(rows, K, {"n": aggregate("count")}, 2, 10, bound=200)
    ends = [(row["k"], row["window_end"], row["n"]) for row in of.rows()]
    assert sorted(ends) == sorted((row["k"], row["window_end"], row["n"]) for row in wanted)


@pytest.mark.parametrize(
    ("cut", "words"),
    [
        (lambda *_: ([3], [2]), "windows \\[start, end\\)"),
        (lambda *_: ([3], [99]), "windows \\[start, end\\)"),
        (lambda *_: ([3], [4, 5]), "as many starts as ends"),
        (lambda *_: ([3.5], [4.5]), "integers"),
        (lambda *_: 7, "integers"),
    ],
)
def test_a_function_that_cuts_other_windows_is_told(cut: Any, words: str) -> None:
    of = driver(UserWindows(cut))
    of.feed(0, page([3, 5]))
    with pytest.raises(ContractError, match=words):
        of.feed(0, Linear(10))


def test_a_snapshot_with_slots_of_no_group_is_refused() -> None:
    of = driver(SlideByTuple(5), K)
    of.feed(0, page([3, 5]))
    of.feed(0, Linear(4))
    saved = of.operator.save()
    [store] = saved["closing"]["stores"]
    store["slices"][0] = np.array([7], np.int8)
    with pytest.raises(SnapshotError):
        of.operator.opened(SCHEMA).load(Saved.of(saved))


def test_explain_names_slices_ties_and_the_moment() -> None:
    words = WindowAggregate(TupleBased(6, 4, order="time"), {"n": Count()}).explain((SCHEMA,))
    assert words == (
        "slices of 2 tuples each, ranked by time, equal times as they came, folded in time order once a bound has "
        "passed; tuples above it are held"
    )
    assert "v > 2" in WindowAggregate(Delimited(BIG), {"n": Count()}).describe()
    third = WindowAggregate(SlideByTuple(5, every=3, of="rank"), {"n": Count()})
    assert "of one time, a window for each 3 tuples by time," in third.explain((SCHEMA,))
    cut_by_all = WindowAggregate(Delimited(BIG, scope="stream"), {"n": Count()}, ("k",))
    assert "all tuples from one of any group to the next with" in cut_by_all.explain((SCHEMA,))


@dataclass(frozen=True)
class Days(Folding):
    """Every second window of 10, by places alone: a definition of one's own."""

    def bound(self, schema: Schema, place: str = "Days") -> Days:
        return self

    def words(self) -> str:
        return "ten units"

    def places(self, final: FinalTuples) -> Integers:
        tens = final.times // 10
        return np.where(tens % 2 == 0, tens + 2**40, -1)

    def due(self, view: SliceView) -> Due:
        tens = view.places - 2**40
        rows = np.flatnonzero(10 * tens + 10 <= view.bounds[view.groups])
        last = view.begins[1:] - 1
        closed = 10 * (view.places[last] - 2**40) + 10 <= view.bounds
        return Due(
            view.groups[rows], 10 * tens[rows], 10 * tens[rows] + 10, rows, rows + 1, last + closed, view.cut
        )


def _days(inputs: list[list[Row]]) -> list[Row]:
    found = []
    for key, rows in naive.groups_of(inputs[0], K).items():
        for ten in {row["ts"] // 10 for row in rows if row["ts"] // 10 % 2 == 0}:
            inside = [row for row in rows if row["ts"] // 10 == ten]
            found.append(result(K, key, (10 * ten, 10 * ten + 10), FUNCTIONS, inside))
    return found


test_a_definition_of_ones_own_keeps_the_laws = contract_suite(
    [
        Case(
            "days", WindowAggregate(Days(), {"n": Count(), "s": Sum("v")}, K), (SCHEMA,), _days,
            {"ts": list(range(-30, 60)), "k": ["a", "b", None], "v": [-5, 0, 7, None], "x": [0.5, None],
             "c": ["left"], "y": [b""]},
        )
    ],
    examples=10,
    together=True,
)  # fmt: skip
