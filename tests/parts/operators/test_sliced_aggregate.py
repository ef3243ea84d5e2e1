"""WindowAggregate against the definition, and against an operator for each definition."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, ContractError, GraphError, GroupWise, Joint, Linear, Page, Schema
from oop_engine.operators.aggregates import Count, Max, Sum
from oop_engine.operators.slicing import window_states
from oop_engine.operators.slicing.panes import pane_ring, slice_windows
from oop_engine.operators.slicing.stores import slice_ring
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Landmark, Sliding, Tumbling, TupleBased
from oop_engine.testing import Driver, multiset
from tests.naive.many_windows import many
from tests.parts.operators.test_window_aggregate import AGGREGATES, BY, ORACLE
from tests.parts.operators.window_streams import SCHEMA, Checked, events, page, rows

LENGTH = st.integers(1, 25)
DEFINITIONS = st.dictionaries(
    st.sampled_from("abcdef"), st.tuples(LENGTH, LENGTH, st.integers(-9, 9)), min_size=1, max_size=5
)
MINUTES = {"1": Tumbling(60), "2": Sliding(120, 60), "5": Tumbling(300)}
KEYED = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")


def row(ts, k="a", j=0, v=1, x=0.5):
    return {"ts": ts, "k": k, "j": j, "v": v, "x": x}


def sliced(definitions, *of, **more) -> WindowAggregate:
    return WindowAggregate({name: Sliding(*d) for name, d in definitions.items()}, *of, **more)


def check(definitions, by, of, said, stamp="end") -> None:
    driver = Checked(sliced(definitions, AGGREGATES, by, stamp=stamp), SCHEMA).play(said)
    assert multiset(driver.rows()) == multiset(many(of, "ts", by, ORACLE, definitions))
    state = driver.operator.state()
    assert state.partials == state.groups == 0


@settings(max_examples=40, deadline=None)
@given(data=st.data(), of=rows(), by=BY, definitions=DEFINITIONS, stamp=st.sampled_from(["end", "start"]))
def test_windows_are_those_of_the_definitions(data, of, by, definitions, stamp):
    check(definitions, by, of, data.draw(events(of)), stamp)


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (slice_windows, "_CELLS", 1),
        (slice_ring, "_SLICES", 3),
        (slice_ring, "_EACH", 0),
        (slice_ring, "_EACH", 10**9),
        (slice_ring, "_SOME", 1),
        (window_states, "_FEW", 1),
    ],
)
def test_however_the_work_is_cut(module, name, value, monkeypatch):
    """A few groups and slices at a time; each group for itself, or all together."""
    monkeypatch.setattr(module, name, value)

    @settings(max_examples=25, deadline=None)
    @given(data=st.data(), of=rows(), by=BY, definitions=DEFINITIONS)
    def holds(data, of, by, definitions):
        check(definitions, by, of, data.draw(events(of)))

    holds()


@settings(max_examples=30, deadline=None)
@given(
    data=st.data(),
    of=rows(st.sampled_from([-(2**61), -(2**61) + 3, 0, 4, 10**9, 2**61, 2**61 + 9])),
    by=BY,
    definitions=DEFINITIONS,
)
def test_times_far_apart(data, of, by, definitions):
    check(definitions, by, of, data.draw(events(of, kinds="pgm")))


def stream(rows_: int, groups: int, gap: int = 0):
    """Pages of a keyed stream with some disorder, each with the promise that follows it."""
    rng = np.random.default_rng(3)
    for at in range(0, 1200, 120):
        times = at + rng.integers(0, 150, rows_)
        times[: rows_ // 10] += gap
        columns = {"ts": times, "k": rng.integers(0, groups, rows_), "v": rng.integers(-5, 9, rows_)}
        yield Page.of(KEYED, columns), Linear(at + 119)


@pytest.mark.parametrize("groups", [1, 40, 3000])
@pytest.mark.parametrize("gap", [0, 10**7])
def test_the_rows_are_those_of_an_operator_for_each_definition(groups, gap):
    asked = {"n": Count(), "s": Sum("v"), "top": Max("v")}
    driver = Driver(WindowAggregate(MINUTES, asked, ("k",)), KEYED)
    others = {name: Driver(WindowAggregate(of, asked, ("k",)), KEYED) for name, of in MINUTES.items()}
    for cut, promise in stream(2000, groups, gap):
        for one in (driver, *others.values()):
            one.feed(0, cut)
            one.feed(0, promise)
        driver.move()
    for one in (driver, *others.values()):
        one.feed(0, "end")
    found = pa.Table.from_batches([p.batch for p in driver.pages()])
    for name, other in others.items():
        mine = found.filter(pa.compute.equal(found["window"], name)).drop_columns("window")
        assert multiset(mine.to_pylist()) == multiset(other.rows())


def test_results_leave_by_end_then_definition_then_group():
    driver = Driver(
        WindowAggregate({"long": Tumbling(20), "short": Tumbling(10)}, {"n": Count()}, ("k",)), SCHEMA
    )
    driver.feed(0, page([row(15, "b"), row(5, "a"), row(18, "a"), row(25, "b")]))
    (_, closed), promise = driver.feed(0, Linear(20))
    assert [(r["window_end"], r["window"], r["k"]) for r in closed.to_pylist()] == [
        (10, "short", "a"), (20, "long", "b"), (20, "long", "a"), (20, "short", "b"), (20, "short", "a"),
    ]  # fmt: skip
    assert promise == (0, Linear(30))


def test_a_promise_is_the_least_of_all_definitions():
    driver = Driver(sliced({"a": (10, 10, 0), "b": (30, 30, 5)}, {"n": Count()}, ("k", "j")), SCHEMA)
    assert driver.feed(0, Linear(12)) == [(0, Linear(20))]
    assert driver.feed(0, Linear(30)) == [(0, Linear(35))]
    bounds = GroupWise.of({"k": ["a", "z"]}, [64, 66])
    assert driver.feed(0, bounds) == [(0, GroupWise(bounds.groups, np.array([65, 70])))]
    start = Driver(sliced({"a": (10, 10, 0), "b": (30, 30, 5)}, {"n": Count()}, stamp="start"), SCHEMA)
    assert start.feed(0, Linear(12)) == [(0, Linear(5))]
    assert start.feed(0, Linear(FOREVER)) == [(0, Linear(FOREVER))]


def test_a_group_may_be_ahead_of_the_others():
    driver = Driver(sliced({"a": (10, 10, 0), "b": (30, 10, 0)}, {"n": Count()}, ("k",)), SCHEMA)
    driver.feed(0, page([row(1, "a"), row(2, "b"), row(13, "a")]))
    [(_, ahead), _] = driver.feed(0, GroupWise.of({"k": ["a"]}, [10]))
    assert [(r["window"], r["k"], r["n"]) for r in ahead.to_pylist()] == [("a", "a", 1), ("b", "a", 1)]
    [(_, rest), _] = driver.feed(0, Linear(20))
    assert [(r["window_end"], r["window"], r["k"], r["n"]) for r in rest.to_pylist()] == [
        (10, "a", "b", 1), (10, "b", "b", 1), (20, "a", "a", 1), (20, "b", "a", 2), (20, "b", "b", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "definitions",
    [
        {"short": (2, 1, 0), "long": (120, 60, 0)},
        {"a": (10, 5, 0), "b": (10, 5, 3)},
        {"a": (10, 10, 0)},
    ],
)
def test_a_linear_bound_behind_that_of_a_group_opens_nothing_again(definitions):
    of = [row(91), row(75), row(80, "b"), row(99, "b")]
    driver = Checked(sliced(definitions, {"n": Count()}, ("k",)), SCHEMA)
    driver.play([page(of), GroupWise.of({"k": ["a"]}, [95]), Linear(92), Linear(94)])
    assert multiset(driver.rows()) == multiset(many(of, "ts", ("k",), {"n": ORACLE["n"]}, definitions))


def test_joint_bounds_close_and_end_here():
    driver = Driver(WindowAggregate(MINUTES, {"n": Count()}, ("j",)), SCHEMA)
    driver.feed(0, page([row(1, j=0), row(61, j=0), row(1, j=2)]))
    [(_, closed)] = driver.feed(0, Joint.of(j=2, ts=60))
    assert [(r["j"], r["window"], r["window_end"]) for r in closed.to_pylist()] == [
        (0, "1", 60),
        (0, "2", 60),
    ]
    assert driver.feed(0, Joint.of(v=9, ts=99)) == []


def test_a_tuple_is_kept_once():
    driver = Driver(WindowAggregate({f"{n}": Tumbling(n) for n in range(1, 21)}, {"n": Count()}), SCHEMA)
    driver.feed(0, page([row(ts) for ts in range(40)]))
    assert driver.operator.state().partials == 40
    driver.feed(0, Linear(40))
    assert driver.operator.state().partials == 12  # windows of 14 s began at 28, others later


@pytest.mark.parametrize("far", [[], [row(10**12)]], ids=["in a ring", "in a table"])
def test_a_sum_that_passes_64_bits_is_told_with_group_and_window(far):
    driver = Driver(sliced({"a": (10, 10, 0), "b": (40, 20, 0)}, {"s": Sum("v")}, ("k",)), SCHEMA)
    driver.feed(0, page(far))
    driver.feed(0, page([row(1, "q", v=2**62), row(11, "q", v=2**62), row(11, "p")]))
    with pytest.raises(ContractError, match=r"window \[-20, 20\) of group {'k': 'q'}"):
        driver.feed(0, Linear(20))
    driver = Driver(sliced({"a": (10, 10, 0), "b": (40, 20, 0)}, {"s": Sum("v")}, ("k",)), SCHEMA)
    driver.feed(0, page([row(11, "q", v=2**62), row(12, "q", v=2**62)]))
    with pytest.raises(ContractError, match=r"window \[10, 20\) of group {'k': 'q'}"):
        driver.feed(0, Linear(20))


def test_tuples_between_windows_are_not_kept():
    driver = Driver(sliced({"a": (5, 20, 0), "b": (5, 10, 0)}, {"s": Sum("v")}), SCHEMA)
    driver.feed(0, page([row(1, v=2**62), row(2, v=2**62), row(7)]))
    assert driver.operator.state().partials == 1


def test_what_shares_a_ring_is_explained():
    definitions = {
        "1 s": Tumbling("1 s"),
        "7 s": Tumbling("7 s"),
        "odd": Tumbling("60001 ms"),
        "5 min": Sliding("5 min", "1 min"),
    }
    schema = Schema({"ts": pa.timestamp("ms")}, "ts")
    assert WindowAggregate(definitions, {"n": Count()}).explain((schema,)) == (
        "slices of 1000 ms shared by '1 s', '7 s', '5 min': 1 to 300 a window, one ring, windows by differences of "
        "running sums; slices of 60001 ms of 'odd': 1 a window, one ring, windows by differences of running sums"
    )


def test_of_many_definitions_the_first_and_the_last_are_explained():
    definitions = {str(length): Tumbling(length) for length in range(1, 101)}
    assert WindowAggregate(definitions, {"hi": Max("v")}).explain((SCHEMA,)) == (
        "slices of 1 s shared by 100 definitions, '1' to '100': 1 to 100 a window, one ring, windows by two stacks"
    )


def test_it_describes_itself_and_can_be_sent():
    operator = WindowAggregate(MINUTES, {"n": Count()}, ("k",))
    assert operator.describe() == (
        "WindowAggregate('1': Tumbling(60), '2': Sliding(120, 60), '5': Tumbling(300); n=Count(); by k)"
    )
    assert pickle.loads(pickle.dumps(operator)).describe() == operator.describe()
    twenty = WindowAggregate({f"{n}": Tumbling(n) for n in range(1, 21)}, {"n": Count()})
    assert (
        twenty.describe()
        == "WindowAggregate('1': Tumbling(1), ... 20 definitions, '20': Tumbling(20); n=Count())"
    )


@pytest.mark.parametrize(
    ("windows", "aggregates", "says"),
    [
        ({}, {"n": Count()}, "windows must be named definitions"),
        ({1: Tumbling(5)}, {"n": Count()}, "names of windows must be strings"),
        ({"a": Landmark(5), "b": TupleBased(5, 1)}, {"n": Count()}, "or over the same rows"),
        ({"a": Tumbling(0)}, {"n": Count()}, "'a': range must be > 0"),
        ({"a": Tumbling(5)}, {"window": Count()}, "the definition's name"),
        (
            {"a": Tumbling(5), "b" * 8192: Tumbling(9)},
            {"n": Count()},
            "at most 8,191 characters; got one of 8,192",
        ),
    ],
)
def test_what_is_refused(windows, aggregates, says):
    with pytest.raises(GraphError, match=says):
        WindowAggregate(windows, aggregates).output_schemas((SCHEMA,))


def test_names_may_be_empty_or_of_any_letters_and_length():
    definitions = dict.fromkeys(("", "a", "größer", "窓", "x" * 300, "b"), (1, 1, 0))
    driver = Driver(sliced(definitions, {"n": Count()}), SCHEMA)
    driver.feed(0, page([row(ts) for ts in (0, 1, 2)]))
    driver.feed(0, "end")
    assert [found["window"] for found in driver.rows()] == [*definitions] * 3


def test_windows_may_be_far_longer_than_others():
    """Of more slices than may share a ring, and with a gap of many slices in the stream."""
    definitions = {"one": (1, 1, 0), "long": (5000, 1000, 0), "longest": (60_000, 20_000, 0)}
    driver = Driver(sliced(definitions, {"n": Count(), "s": Sum("v")}, ("k",)), SCHEMA)
    of = [row(ts, k) for ts in (*range(0, 3000, 7), *range(90_000, 91_000, 11)) for k in "ab"]
    driver.feed(0, page(of))
    driver.feed(0, Linear(50_000))
    driver.feed(0, "end")
    oracle = {"n": ORACLE["n"], "s": ORACLE["sv"]}
    assert multiset(driver.rows()) == multiset(many(of, "ts", ("k",), oracle, definitions))
    assert "slices of 1 s of 'one'" in driver.operator.explain((SCHEMA,))


@pytest.mark.parametrize("time", [2**63 - 500, -(2**63) + 500, 2**63 - 1, -(2**63) + 1])
def test_times_must_leave_room_for_the_longest_window(time):
    """Also where the slices that they go into would fit."""
    windows = {"short": Tumbling(10), "long": Sliding(1000, 10)}
    driver = Driver(WindowAggregate(windows, {"n": Count()}), KEYED)
    with pytest.raises(ContractError, match="fit 64 bits"):
        driver.feed(0, Page.of(KEYED, {"ts": [time], "k": [1], "v": [1]}))


@pytest.mark.parametrize("floor", [None, 0])
@pytest.mark.parametrize("times", [[5, 7, 10**7], [10**7, 5, 7, 12], [0, 10**6, 10**6 + 5, 3]], ids=str)
def test_windows_of_tuples_far_apart_start_where_they_do(
    monkeypatch: pytest.MonkeyPatch, floor: int | None, times: list[int]
) -> None:
    """Some are in the ring and some in the table; both come together, of one group."""
    if floor is not None:
        monkeypatch.setattr(pane_ring, "_FLOOR", floor)
        monkeypatch.setattr(pane_ring, "_SPARSE", 1)
    definitions = {"a": (10, 10, 0), "b": (15, 5, 0)}
    schema = Schema({"ts": pa.int64()}, "ts", "s")
    driver = Driver(sliced(definitions, {"n": Count()}, ()), schema)
    for time in times:
        driver.feed(0, Page.of(schema, {"ts": [time]}))
    functions = {"n": ORACLE["n"]}
    assert multiset(driver.run([]).rows()) == multiset(
        many([{"ts": time} for time in times], "ts", (), functions, definitions)
    )
