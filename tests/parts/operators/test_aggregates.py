"""Aggregates: user-defined ones, shared parts, and the states behind them."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import ContractError, GraphError, Linear, Page, Schema
from oop_engine.operators.aggregates import (
    M4,
    All,
    Any,
    ArgMax,
    ArgMin,
    Avg,
    Count,
    First,
    GeometricMean,
    Last,
    Max,
    MaxCount,
    Min,
    MinCount,
    Product,
    Stddev,
    Sum,
    UserDefined,
    Var,
    WeightedAvg,
)
from oop_engine.operators.aggregates.base import column_of
from oop_engine.operators.slicing.accumulators import accumulator
from oop_engine.operators.slicing.panes import pane_windows
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Landmark, Sliding, Tumbling, TupleBased
from oop_engine.testing import Driver, multiset
from oop_engine.testing.case import typed
from tests.naive import windows as naive
from tests.parts.operators.window_streams import SCHEMA, Checked, events, page, rows

ALL = [Count("v"), Sum("v"), Sum("x"), Min("v"), Max("x"), Avg("x"), Var("v"), First("x"), Last("v")]
ALL += [ArgMin("x", "v"), ArgMax("j", "x"), MinCount("x"), MaxCount("v"), GeometricMean("x"), Product("v")]
ALL += [Var("v", 0), WeightedAvg("x", "j"), M4("x")]

ASKED = {
    "arg": ArgMin("v", "x"), "most": ArgMax("x", "v"), "lows": MinCount("x"), "highs": MaxCount("x"),
    "mean": GeometricMean("x"), "centre": WeightedAvg("x", "j"), "product": Product("x"), "four": M4("v"),
}  # fmt: skip
FUNCTIONS = {
    "arg": naive.aggregate("argmin", "v", other="x"), "most": naive.aggregate("argmax", "x", other="v"),
    "lows": naive.aggregate("mincount", "x"), "highs": naive.aggregate("maxcount", "x"),
    "mean": naive.aggregate("geometricmean", "x"), "centre": naive.aggregate("weightedavg", "x", other="j"),
    "product": naive.aggregate("product", "x"), "four": naive.aggregate("m4", "v"),
}  # fmt: skip


def lift(values, seconds):
    """(values, x) -> number of values, and the bits of all x together."""
    known = values.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
    return known, 1 << seconds.cast(pa.int64()).to_numpy().astype(np.int64)


def combine(a, b):
    return a[0] + b[0], a[1] | b[1]


def lower(state):
    return state[0] * 100 + state[1]


USER = UserDefined(lift, combine, lower, reads=("v", "j"), state_types=("int64", "int64"), returns=pa.int32())


def naive_user(of):
    if not of:
        return None
    bits = 0
    for r in of:
        bits |= 1 << r["j"]
    return 100 * sum(r["v"] is not None for r in of) + bits


@settings(max_examples=40, deadline=None)
@given(data=st.data(), of=rows(), by=st.sampled_from([(), ("k",)]), empty=st.booleans())
def test_user_defined_aggregates(data, of, by, empty):
    operator = WindowAggregate(Sliding(12, 5), {"u": USER, "n": Count()}, by, empty=empty)
    driver = Checked(operator, SCHEMA).play(data.draw(events(of)))
    functions = {"u": naive_user, "n": naive.aggregate("count")}
    assert multiset(driver.rows()) == multiset(naive.sliding(of, "ts", by, functions, 12, 5, empty=empty))


@settings(max_examples=25, deadline=None)
@given(data=st.data(), of=rows(), by=st.sampled_from([(), ("k",)]), how=st.sampled_from(["auto", "adaptive"]))
def test_aggregates_of_nan_and_zero_weights(data, of, by, how):
    driver = Checked(WindowAggregate(Sliding(12, 5), ASKED, by, strategy=how), SCHEMA)
    driver.play(data.draw(events(of)))
    assert multiset(driver.rows()) == multiset(naive.sliding(of, "ts", by, FUNCTIONS, 12, 5))


@settings(max_examples=20, deadline=None)
@given(data=st.data(), of=rows())
def test_user_defined_aggregates_of_landmark_windows(data, of):
    driver = Checked(WindowAggregate(Landmark(9), {"u": USER}), SCHEMA).play(data.draw(events(of)))
    assert multiset(driver.rows()) == multiset(naive.landmark(of, "ts", (), {"u": naive_user}, 9))


@settings(max_examples=30, deadline=None)
@given(of=rows(size=12), cut=st.integers(0, 12), choice=st.sampled_from(ALL))
def test_combining_states_is_adding_all_values(of, cut, choice):
    parts = choice.parts(SCHEMA)

    def state(some):
        states = States(parts, 1)
        held = page(some)
        inputs = states.prepare(held, held.times)
        states.update(np.zeros(len(some), np.int64), np.arange(len(some) + 1), 0, len(some), inputs)
        return states

    def result(columns):
        values = choice.result(columns, choice.result_type(SCHEMA, "test")).to_pylist()
        return multiset([{"result": value} for value in values])

    one, other = state(of[:cut]), state(of[cut:])
    assert result(one.combine(one.columns, other.columns)) == result(state(of).columns)
    assert result(one.combine(other.columns, one.columns)) == result(state(of).columns)


def test_the_identity_changes_nothing():
    for part in {part for choice in ALL for part in choice.parts(SCHEMA)}:
        of = accumulator(part)
        nothing = tuple(np.array([value]) for value in of.identity)
        together = of.combine(nothing, nothing)
        for a, b in zip(together, nothing, strict=True):
            np.testing.assert_array_equal(a, b)


def test_equal_parts_are_kept_once():
    driver = Driver(WindowAggregate(Tumbling(10), {"a": Avg("x"), "s": Sum("x"), "n": Count("x")}), SCHEMA)
    driver.feed(0, page([{"ts": 1, "k": "a", "j": 0, "v": 0, "x": 2.0}]))
    assert driver.operator.state().partials == 1
    one = Driver(WindowAggregate(Tumbling(10), {"a": Avg("x")}), SCHEMA)
    one.feed(0, page([{"ts": 1, "k": "a", "j": 0, "v": 0, "x": 2.0}]))
    assert one.operator.state().nbytes == driver.operator.state().nbytes


def test_infinities_and_nan_follow_ieee():
    aggregates = {
        "s": Sum("x"),
        "a": Avg("x"),
        "v": Var("x"),
        "lo": Min("x"),
        "hi": Max("x"),
        "sd": Stddev("x"),
    }
    base = {"ts": 1, "k": "a", "j": 0, "v": 0}
    driver = Driver(WindowAggregate(Landmark(10), aggregates), SCHEMA)
    driver.run([(0, page([{**base, "x": x} for x in (float("inf"), 1.0, float("nan"))]))])
    [found] = driver.rows()
    assert all(np.isnan(found[name]) for name in ("s", "a", "v", "sd"))
    assert (found["lo"], found["hi"]) == (1.0, float("inf"))


@pytest.mark.parametrize(
    ("values", "kind"),
    [(["a", None], pa.string()), ([b"a"], pa.binary()), ([True, False], pa.bool_()), ([1.5], pa.float16())],
)
def test_results_that_are_no_numbers_become_a_column(values, kind):
    column = column_of(np.array(values, None if kind == pa.bool_() else object), kind)
    assert (column.type, column.to_pylist()) == (kind, values)


@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, 0.0]])
@pytest.mark.parametrize("windows", [Tumbling(10), Landmark(10), TupleBased(2, 2)])
def test_zero_has_no_sign_so_its_order_of_arrival_is_not_seen(zeros, windows):
    chosen = {"lo": Min("x"), "hi": Max("x"), "first": First("x"), "last": Last("x"), "arg": ArgMax("x", "j")}
    base = {"ts": 1, "k": "a", "j": 0, "v": 0}
    driver = Driver(WindowAggregate(windows, {**chosen, "m4": M4("x")}), SCHEMA)
    [row] = driver.run([(0, page([{**base, "x": x} for x in zeros]))]).rows()
    found = [row[name] for name in chosen] + list(row["m4"].values())
    assert [math.copysign(1, value) for value in found] == [1] * 9


@pytest.mark.slow(keep=5)
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int8(), [-128, 127]),
        (pa.uint32(), [0, 2**32 - 1]),
        (pa.int64(), [-(2**63), 2**63 - 1]),
        (pa.float32(), [-0.5, 1.5]),
        (pa.bool_(), [False, True]),
        (pa.timestamp("us", "UTC"), [1, 2]),
        (pa.date32(), [1, 2]),
        (pa.date64(), [86_400_000, 172_800_000]),
        (pa.time32("s"), [1, 2]),
        (pa.duration("ns"), [1, 2]),
        (pa.uint64(), [3, 2**64 - 1]),
        (pa.decimal128(9, 2), [Decimal("-0.01"), Decimal("0.00")]),
        (pa.decimal128(38, 0), [Decimal(-(10**38) + 1), Decimal(2**64)]),
        (pa.decimal256(76, 3), [Decimal(-(2**130)), Decimal(2**129)]),
    ],
)
def test_chosen_values_keep_their_type(kind, values):
    schema = Schema({"ts": pa.int64(), "c": kind}, "ts", "s")
    aggregates = {"lo": Min("c"), "hi": Max("c"), "first": First("c"), "last": Last("c"), "none": Count("c")}
    aggregates |= {"at": ArgMin("c", "c"), "most": ArgMax("c", "ts"), "lows": MinCount("c"), "four": M4("c")}
    operator = WindowAggregate(Tumbling(10), aggregates).opened(schema)
    column = pa.array([*values, None], kind)
    batch = pa.RecordBatch.from_arrays([pa.array([0, 1, 2]), column], schema=schema.fields)
    list(operator.on_page(0, Page(schema, batch)))
    [(_, found), _] = operator.on_end(0)
    assert [found.column(n)[0] for n in ("lo", "first", "at")] == [column[0]] * 3
    assert [found.column(n)[0] for n in ("hi", "last", "most")] == [column[1]] * 3
    assert [found.column("four")[0][n] for n in ("min", "max", "first", "last")] == [column[0], column[1]] * 2
    assert found.column("lows").to_pylist() == [1]


@pytest.mark.parametrize(
    "kind", [pa.month_day_nano_interval(), pa.struct({"a": pa.int64()}), pa.list_(pa.int64())]
)
@pytest.mark.parametrize("choice", [Sum, Min, Avg, First, MinCount, Product])
def test_types_without_an_order_or_a_sum_are_refused(kind, choice):
    schema = Schema({"ts": pa.int64(), "c": kind}, "ts", "s")
    with pytest.raises(GraphError, match=r"'c' is .*: cast it before"):
        WindowAggregate(Tumbling(1), {"c": choice("c")}).opened(schema)


def test_sums_of_booleans_and_instants_are_refused():
    schema = Schema({"ts": pa.timestamp("s"), "b": pa.bool_()}, "ts")
    for choice in (Sum("ts"), Avg("b"), Var("ts")):
        with pytest.raises(GraphError, match=r"needs an integer(,| or) a float"):
            WindowAggregate(Tumbling(1), {"c": choice}).opened(schema)


@pytest.mark.parametrize("kind", ["object", "U10", "S4", "datetime64[us]"])
def test_user_states_must_be_numbers(kind):
    user = UserDefined(lift, combine, lower, ("v",), (kind,), pa.int64())
    with pytest.raises(GraphError, match="numbers or booleans"):
        WindowAggregate(Tumbling(1), {"u": user}).opened(SCHEMA)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (Any("v"), "needs a bool; 'v' is int64"),
        (All("x"), "needs a bool; 'x' is double"),
        (Var("v", ddof=2), "ddof must be 0 .* or 1 .*; got 2"),
        (ArgMin("v", "nowhere"), "nowhere"),
        (WeightedAvg("v", "k"), "needs an integer or a float, but not uint64; 'k' is string: cast it before"),
        (Sum(pc.field("v") * 2), "a column is given by its name, a text; got .*multiply.*: make it a column"),
    ],
)
def test_what_an_aggregate_cannot_take_is_refused(wrong, why):
    with pytest.raises(GraphError, match=why):
        WindowAggregate(Tumbling(1), {"c": wrong}).opened(SCHEMA)


@settings(max_examples=25, deadline=None)
@given(
    values=st.lists(st.sampled_from([1e200, 1e-200, -3.0, 0.5, 5e-324]), min_size=1, max_size=12),
    data=st.data(),
)
def test_a_product_leaves_the_range_of_floats_in_the_result_alone(values, data):
    base = {"ts": 1, "k": "a", "j": 0, "v": 0}
    found = []
    for order in (values, data.draw(st.permutations(values))):
        driver = Driver(WindowAggregate(Tumbling(10), {"p": Product("x")}), SCHEMA)
        [row] = driver.run([(0, page([{**base, "x": x} for x in order]))]).rows()
        found.append(row["p"])
    exact = math.prod(map(Fraction, values))
    assert found == pytest.approx([_float(exact)] * 2, rel=1e-12, abs=1e-323)


def _float(exact):
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def test_four_parts_of_a_chart_are_those_of_others():
    driver = Driver(WindowAggregate(Tumbling(10), {"m": M4("x"), "lo": Min("x"), "f": First("x")}), SCHEMA)
    alone = Driver(WindowAggregate(Tumbling(10), {"m": M4("x")}), SCHEMA)
    for one in (driver, alone):
        one.feed(0, page([{"ts": 1, "k": "a", "j": 0, "v": 0, "x": 2.0}]))
    assert driver.operator.state().nbytes == alone.operator.state().nbytes


def of_values(kind, values, aggregates, windows=None, strategy="auto"):
    """Return the results of one window with these values of a column ``c``, a page for each."""
    schema = Schema({"ts": pa.int64(), "c": kind}, "ts", "s")
    driver = Driver(WindowAggregate(windows or Tumbling(10), aggregates, strategy=strategy), schema)
    for value in values:
        driver.feed(0, Page.of(schema, {"ts": [1], "c": typed([value], kind)}))
    driver.feed(0, "end")
    return [{name: row[name] for name in aggregates} for row in driver.rows()]


LARGEST = 10**38 - 1


@pytest.mark.parametrize(
    ("kind", "values", "total"),
    [
        (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("0.25"), None], Decimal("-1.25")),
        (pa.decimal128(38, 0), [Decimal(LARGEST), Decimal(-LARGEST), Decimal(LARGEST)], Decimal(LARGEST)),
        (pa.uint64(), [2**63, 2**63 - 1, None], 2**64 - 1),
        (pa.duration("s"), [-5, 7], timedelta(seconds=2)),
        (pa.duration("us"), [None], None),
    ],
)
def test_sums_of_decimals_unsigned_integers_and_durations(kind, values, total):
    [row] = of_values(kind, values, {"s": Sum("c"), "n": Count("c")})
    assert row == {"s": total, "n": sum(v is not None for v in values)}


@pytest.mark.parametrize("windows", [Tumbling(10), Sliding(20, 5), Landmark(10)])
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.decimal128(38, 0), [Decimal(LARGEST), Decimal(1)]),
        (pa.decimal128(38, 0), [Decimal(-LARGEST), Decimal(-LARGEST)]),
        (pa.uint64(), [2**64 - 1, 1]),
        (pa.duration("ns"), [2**63 - 1, 1]),
    ],
)
def test_a_sum_that_does_not_fit_is_an_error(kind, values, windows):
    with pytest.raises(ContractError, match=r"Sum\('c'\) must fit (64 bits|38 digits); it does not"):
        of_values(kind, values, {"s": Sum("c")}, windows)


def test_the_room_of_a_sum_is_that_of_its_own_type():
    schema = Schema({"ts": pa.int64(), "u": pa.uint64(), "d": pa.decimal128(9, 2)}, "ts", "s")
    asked = {"sum": Sum("u"), "least": ArgMin("u", "d")}
    query = WindowAggregate(Tumbling(10), asked).opened(schema)
    page = Page.of(schema, {"ts": [1, 2], "u": [2**63, 2**63], "d": [Decimal(1), Decimal(2)]})
    list(query.on_page(0, page))
    with pytest.raises(ContractError, match="must fit 64 bits"):
        list(query.on_punctuation(0, Linear(10)))


@pytest.mark.parametrize("strategy", ["windows", "panes", "stacks"])
@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from([pa.int64(), pa.int32(), pa.uint32(), pa.int8()]),
    data=st.data(),
)
def test_means_and_variances_of_integers_are_exact(strategy, kind, data):
    half = 2 ** (kind.bit_width - 1)
    least, most = (0, 2 * half - 1) if kind == pa.uint32() else (-half, half - 1)
    near = st.integers(most - 2, most) | st.integers(least, least + 2) | st.integers(0, 3)
    values = data.draw(st.lists(st.none() | near, min_size=1, max_size=9))
    asked = {"a": Avg("c")} | ({"v": Var("c"), "p": Var("c", 0)} if kind != pa.int64() else {})
    windows = TupleBased(100, 100) if strategy == "stacks" else None
    [row] = of_values(kind, values, asked, windows, strategy)
    known = [Fraction(v) for v in values if v is not None]
    mean = sum(known) / len(known) if known else 0
    squares = sum((v - mean) ** 2 for v in known)
    wanted = {
        "a": float(mean) if known else None,
        "v": float(squares / (len(known) - 1)) if len(known) > 1 else None,
        "p": float(squares / len(known)) if known else None,
    }
    for name, found in row.items():
        assert found == (
            wanted[name] if wanted[name] is None else pytest.approx(wanted[name], rel=1e-15, abs=0)
        )


@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.integers(-LARGEST // 6, LARGEST // 6) | st.integers(-9, 9), min_size=1, max_size=6))
def test_means_of_decimals_and_durations_are_rounded_as_written(values):
    decimals = [Decimal(v) for v in values]
    [row] = of_values(pa.decimal128(38, 0), decimals, {"a": Avg("c")})
    assert row["a"] == rounded(Fraction(sum(values), len(values)))
    small = [v % 1000 - 500 for v in values]
    [row] = of_values(pa.duration("s"), small, {"a": Avg("c")})
    assert row["a"] == timedelta(seconds=int(rounded(Fraction(sum(small), len(small)))))


def rounded(exact):
    """A half goes away from zero."""
    size = math.floor(abs(exact) + Fraction(1, 2))
    return Decimal(size if exact >= 0 else -size)


def test_a_mean_of_integers_does_not_depend_on_the_order():
    values = [2**62, 1, -(2**62), 3, 2**53 + 1]
    means = {
        of_values(pa.int64(), order, {"a": Avg("c")})[0]["a"]
        for order in (values, values[::-1], sorted(values))
    }
    assert len(means) == 1
    assert means.pop() == pytest.approx((2**53 + 5) / 5, rel=1e-15)


def total_of(invert=None, **more):
    """The number of values, and their sum modulo 97: a group, so what was added can be taken away."""
    return UserDefined(
        lambda v: ((v.fill_null(0).to_numpy(zero_copy_only=False) % 97).astype(np.int64),),
        lambda a, b: ((a[0] + b[0]) % 97,), lambda state: state[0],
        ("v",), ("int64",), pa.int64(), invert=invert, **more,
    )  # fmt: skip


def taken_away(a, b):
    return ((a[0] - b[0]) % 97,)


def naive_total(of):
    return sum((r["v"] or 0) % 97 for r in of) % 97 if of else None


@settings(max_examples=15, deadline=None)
@given(data=st.data(), of=rows(), by=st.sampled_from([(), ("k",)]), dense=st.booleans())
def test_what_a_user_can_take_away_goes_from_window_to_window(data, of, by, dense):
    calls = []

    def invert(a, b):
        calls.append(len(a[0]))
        return taken_away(a, b)

    operator = WindowAggregate(Sliding(12, 3), {"u": total_of(invert)}, by, strategy="panes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pane_windows, "is_dense", lambda *_: dense)
        driver = Checked(operator, SCHEMA).play(data.draw(events(of)))
    assert multiset(driver.rows()) == multiset(naive.sliding(of, "ts", by, {"u": naive_total}, 12, 3))
    assert dense or not calls


@settings(max_examples=25, deadline=None)
@given(a=rows(size=6), b=rows(size=6))
def test_to_invert_undoes_to_combine(a, b):
    [part] = total_of(taken_away).parts(SCHEMA)
    of = accumulator(part)

    def state(some):
        held = page(some)
        if not some:
            return tuple(np.array([value]) for value in of.identity)
        return of.reduce(of.prepare(held, held.times), np.zeros(1, np.int64))

    one, other = state(a), state(b)
    for found, wanted in zip(of.without(of.combine(one, other), other), one, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_the_identity_is_the_state_of_no_tuples():
    asked = {"u": total_of(identity=(0,)), "null": total_of()}
    driver = Driver(WindowAggregate(Tumbling(10), asked, empty=True), SCHEMA)
    of = [{"ts": ts, "k": "a", "j": 0, "v": 5, "x": 0.0} for ts in (1, 21)]
    found = [(row["u"], row["null"]) for row in driver.run([(0, page(of))]).rows()]
    assert found == [(5, 5), (0, None), (5, 5)]
    with pytest.raises(GraphError, match="identity must have 1 values"):
        WindowAggregate(Tumbling(10), {"u": total_of(identity=(0, 1))}).opened(SCHEMA)
