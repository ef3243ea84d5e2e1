"""Aggregates of all values of a window: types, ties, NaN, and what is refused when built."""

from __future__ import annotations

import datetime
import decimal
import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import GraphError, Linear, Page, Schema
from oop_engine.aggregates import (
    ArgMax,
    ArgMin,
    Collect,
    CountDistinct,
    First,
    HeavyHitters,
    Last,
    MaxCount,
    Median,
    Mode,
    Quantile,
    TopK,
)
from oop_engine.operators import Max, Min, Sliding, Tumbling, WindowAggregate
from oop_engine.operators.aggregates import Part
from oop_engine.operators.aggregates.ragged import Ragged
from oop_engine.operators.slicing.accumulators import accumulator
from oop_engine.testing import END, Driver
from oop_engine.thesis import PartialAggregate
from tests.naive import values as naive
from tests.naive.aggregates import aggregate

NAN = float("nan")
D = decimal.Decimal
DAY = datetime.date(2024, 2, 28)
TYPES = [
    (pa.int8(), [3, -128, 127, 3]),
    (pa.int64(), [2**63 - 1, -(2**63), 0, 0]),
    (pa.uint64(), [2**64 - 1, 0, 2**63, 0]),
    (pa.float32(), [0.5, -math.inf, math.inf, 0.5]),
    (pa.float64(), [-0.0, 0.0, -1e300, 5e-324]),
    (pa.bool_(), [True, False, True]),
    (pa.date32(), [DAY, DAY + datetime.timedelta(1), DAY]),
    (pa.timestamp("us"), [datetime.datetime(1960, 1, 1), datetime.datetime(2020, 5, 5, 3)]),
    (pa.decimal128(20, 2), [D("1.50"), D("-2.25"), D("1.50"), D("100.00")]),
    (pa.string(), ["b", "", "é", "Z", "b"]),
    (pa.binary(), [b"\xff", b"", b"\x00", b"\xff"]),
    (pa.large_binary(), [b"\xff", b""]),
    (pa.large_string(), ["b", "", "é"]),
    (pa.dictionary(pa.int8(), pa.string()), ["b", "a", "b"]),
    (pa.dictionary(pa.int32(), pa.float64()), [2.5, -1.0, 2.5]),
]


def results(aggregates, kind, given, *, pages=1):
    """The results of one window over some values, in pages of them."""
    schema = Schema({"ts": pa.int64(), "c": kind}, "ts", "s")
    driver = Driver(WindowAggregate(Tumbling(10), aggregates), schema)
    for some in np.array_split(np.arange(len(given)), pages):
        if some.size:
            column = pa.array([given[i] for i in some], kind)
            driver.feed(0, Page.of(schema, {"ts": pa.array([1] * some.size), "c": column}))
    driver.feed(0, END)
    [row] = driver.rows()
    return row


@pytest.mark.parametrize(
    ("kind", "given"), TYPES, ids=lambda value: str(value) if not isinstance(value, list) else ""
)
@pytest.mark.parametrize("pages", [1, 3])
def test_values_of_any_type_in_order_are_put_in_order(kind, given, pages):
    given = [*given, None, *given[:1]]
    rows = [{"ts": 1, "c": value} for value in given]
    asked = {"low": Quantile("c", 0.25, "lower"), "near": Quantile("c", 0.6, "nearest"), "mode": Mode("c"),
             "n": CountDistinct("c"), "top": TopK("c", 3), "heavy": HeavyHitters("c", 0.3),
             "min": Min("c"), "max": Max("c"), "first": First("c"), "last": Last("c"), "often": MaxCount("c"),
             "some": Collect("c", 3), "all": TopK("c", 9, most=9)}  # fmt: skip
    wanted = {"low": naive.quantile("c", 0.25, "lower"), "near": naive.quantile("c", 0.6, "nearest"),
              "mode": naive.mode("c"), "n": naive.distinct("c"), "top": naive.top("c", 3),
              "heavy": naive.heavy("c", 0.3), "some": naive.collected("c", 3), "all": naive.top("c", 9),
              **{name: aggregate(name, "c") for name in ("min", "max", "first", "last")},
              "often": aggregate("maxcount", "c")}  # fmt: skip
    found = results(asked, kind, given, pages=pages)
    for name, of in wanted.items():
        assert found[name] == of(rows), name


def test_nan_is_one_value_and_the_largest_and_there_is_one_zero():
    odd = np.array([0x7FF8000000000001, -0x0008000000000000], np.int64).view(np.float64).tolist()
    row = results(
        {"n": CountDistinct("c"), "top": TopK("c", 1), "m": Median("c"), "max": Quantile("c", 1, "lower")},
        pa.float64(), [NAN, *odd, 0.0, -0.0, math.inf],
    )  # fmt: skip
    assert row["n"] == 3
    assert math.isnan(row["top"][0]["value"])
    assert row["top"][0]["count"] == 3
    assert math.isnan(row["m"])
    assert math.isnan(row["max"])


@pytest.mark.parametrize(
    ("given", "wanted"),
    [([1, 2], 1.5), ([2**53 + 1] * 2, float(2**53)), ([5], 5.0), ([None], None), ([-3, 7, 7, 7], 7.0)],
)
def test_medians(given, wanted):
    assert results({"m": Median("c")}, pa.int64(), given)["m"] == wanted


def test_between_infinities_there_is_no_number():
    assert math.isnan(results({"m": Median("c")}, pa.float64(), [-math.inf, math.inf])["m"])
    assert results({"m": Median("c")}, pa.float64(), [-math.inf, 1.0])["m"] == -math.inf


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()])
def test_of_no_values_results_are_null_and_a_count_is_zero(kind):
    asked = {"q": Quantile("c", 0.5, "lower"), "mode": Mode("c"), "n": CountDistinct("c"), "top": TopK("c", 3),
             "heavy": HeavyHitters("c", 0.3)}  # fmt: skip
    found = results(asked, kind, [None, None])
    assert [found[name] for name in asked] == [None, None, 0, None, None]


@pytest.mark.parametrize("method", ["linear", "lower", "nearest"])
def test_quantiles_of_many_values_in_pages(method):
    draw = random.Random(5)
    given = [draw.randrange(-40, 40) for _ in range(500)]
    rows = [{"c": value} for value in given]
    asked = {f"q{q}": Quantile("c", q, method) for q in (0, 0.01, 0.5, 0.99, 1)}
    found = results(asked, pa.int64(), given, pages=40)
    for name, one in asked.items():
        assert found[name] == naive.quantile("c", one.q, method)(rows)


WRONG: dict[str, Any] = {"q": ("c", "0.5"), "method": ("c", 0.5, "higher"), "k": ("c", 1.5)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Quantile("c", 1.01), "q must be from 0 to 1; got 1.01"),
        (lambda: Quantile("c", -0.1), "q must be from 0 to 1"),
        (lambda: Quantile("c", NAN), "q must be from 0 to 1"),
        (lambda: Quantile(*WRONG["q"]), "q must be a number"),
        (lambda: Quantile(*WRONG["method"]), "method must be one of linear, lower, nearest"),
        (lambda: TopK("c", 0), "at least 1; got 0"),
        (lambda: TopK(*WRONG["k"]), "k must be an integer; got 1.5"),
        (lambda: HeavyHitters("c", 0), "above 0 and at most 1; got 0"),
        (lambda: HeavyHitters("c", 1.5), "above 0 and at most 1"),
        (lambda: Collect("c", 0), "most must be a number of values, from 1 to 32,767; got 0"),
        (lambda: Median("c", most=40_000), "Median: most must be a number of values"),
    ],
)
def test_parameters_that_cannot_be_are_refused_when_built(make, message):
    with pytest.raises(GraphError, match=message):
        make()


@pytest.mark.parametrize(
    ("aggregate", "kind", "message"),
    [
        (Median("c"), pa.string(), r"take Quantile\('c', 0.5, method='lower'\)"),
        (Quantile("c", 0.9), pa.bool_(), r"take Quantile\('c', 0.9, method='lower'\)"),
        (Mode("c"), pa.list_(pa.int64()), "needs values in order"),
        (Mode("other"), pa.int64(), "other"),
        (Min("c"), pa.list_(pa.int64()), "needs numbers, booleans"),
        (Collect("c", 2), pa.struct([]), "needs numbers, booleans"),
    ],
)
def test_columns_that_do_not_fit_are_refused_when_built(aggregate, kind, message):
    schema = Schema({"ts": pa.int64(), "c": kind}, "ts", "s")
    with pytest.raises(GraphError, match=message):
        WindowAggregate(Tumbling(10), {"r": aggregate}).output_schemas((schema,))


SCHEMA = Schema({"ts": pa.int64(), "c": pa.int64()}, "ts", "s")


def test_aggregates_over_one_column_share_its_values():
    one = WindowAggregate(Tumbling(10), {"m": Median("c")}).opened(SCHEMA)
    all_of = {"m": Median("c"), "q": Quantile("c", 0.9), "n": CountDistinct("c"), "top": TopK("c", 1)}
    many = WindowAggregate(Tumbling(10), all_of).opened(SCHEMA)
    for operator in (one, many):
        list(operator.on_page(0, Page.of(SCHEMA, {"ts": [1, 2, 3, 11], "c": [4, 4, 5, 4]})))
    assert many.state() == one.state()
    assert many.state().partials == 3  # values


def test_state_is_gone_with_the_windows():
    operator = WindowAggregate(Sliding(20, 10), {"m": Median("c")}).opened(SCHEMA)
    list(operator.on_page(0, Page.of(SCHEMA, {"ts": list(range(40)), "c": list(range(40))})))
    before = operator.state().partials
    list(operator.on_punctuation(0, Linear(30)))
    assert before == 40
    assert operator.state().partials == 20  # of a window that is open


def test_a_sample_holds_no_more_than_it_is_asked_to():
    operator = WindowAggregate(Tumbling(100), {"m": Median("c", most=9)}).opened(SCHEMA)
    for begin in (0, 40):
        list(operator.on_page(0, Page.of(SCHEMA, {"ts": list(range(begin, begin + 40)), "c": [7] * 40})))
    before = operator.state().partials
    [(_, page), _] = list(operator.on_punctuation(0, Linear(100)))
    assert before <= 18  # a page's are merged when windows close
    assert page.to_pylist()[0]["m"] == 7.0


def test_nan_is_chosen_only_where_there_is_nothing_else():
    schema = Schema({"ts": pa.int64(), "t": pa.string(), "x": pa.float64()}, "ts", "s")
    asked = {"low": ArgMin("t", "x"), "high": ArgMax("t", "x"), "of": ArgMax("x", "t")}
    for xs, wanted in (([NAN, 1.0], ("b", "b", 1.0)), ([NAN, NAN], ("a", "b", None))):
        driver = Driver(WindowAggregate(Tumbling(10), asked), schema)
        driver.feed(0, Page.of(schema, {"ts": [1, 2], "t": ["a", "b"], "x": xs}))
        driver.feed(0, END)
        [row] = driver.rows()
        assert (row["low"], row["high"]) == wanted[:2]
        assert row["of"] == wanted[2] or math.isnan(row["of"])


@pytest.mark.parametrize("strategy", ["auto", "windows", "panes", "adaptive"])
def test_explain_says_that_values_are_in_runs(strategy):
    operator = WindowAggregate(Sliding(20, 10), {"m": Median("c")}, strategy=strategy)
    assert operator.explain((SCHEMA,)).startswith("runs of panes: lists of values")


def test_a_first_half_sends_lists():
    first = PartialAggregate(Tumbling(10), {"m": Median("c")}).opened(SCHEMA)
    [(_, page)] = first.on_page(0, Page.of(SCHEMA, {"ts": [1, 2, 3], "c": [7, 5, 7]}))
    assert page.to_pylist() == [{"pane_start": 0, "state0_values_0": [5, 7], "state0_values_1": [1, 2]}]


def column(*rows):
    flat = np.array([value for row in rows for value, _ in row], np.int64)
    counts = np.array([count for row in rows for _, count in row], np.int64)
    return Ragged.of(np.array([len(row) for row in rows]), (flat, counts), pa.int64())


def shown(ragged):
    found = ragged.compact()
    ends = found.begins + found.lengths
    return [
        list(zip(found.flat[0][a:b].tolist(), found.flat[1][a:b].tolist(), strict=True))
        for a, b in zip(found.begins, ends, strict=True)
    ]


def test_a_ragged_column_stands_in_for_an_array():
    rows = [[(1, 1), (2, 5)], [], [(7, 1)]]
    of = column(*rows)
    assert shown(of[np.array([2, 0, 0])]) == [rows[2], rows[0], rows[0]]
    assert shown(of[np.array([False, True, True])]) == rows[1:]
    assert shown(of[1:]) == rows[1:]
    assert shown(np.concatenate([of[:1], of[1:], of])) == [*rows, *rows]
    other = of.copy()
    other[np.array([1, 2])] = column([(3, 3)], [])
    assert shown(other) == [rows[0], [(3, 3)], []]
    assert shown(of) == rows
    assert of[np.array([2])].nbytes < of.nbytes  # what is not asked for any more is let go


def test_lists_are_merged_by_value():
    draw = random.Random(3)
    rows = [
        sorted({draw.randrange(30): draw.randrange(1, 4) for _ in range(draw.randrange(6))}.items())
        for _ in range(40)
    ]
    starts = np.array([0, 1, 3, 3 + 7, 39])
    [merged] = accumulator(Part("values", "c", types=(pa.int64(),))).reduce((column(*rows),), starts)
    for found, begin, end in zip(shown(merged), starts, [*starts[1:], 40], strict=True):
        wanted = {}
        for value, count in (pair for row in rows[begin:end] for pair in row):
            wanted[value] = wanted.get(value, 0) + count
        assert found == sorted(wanted.items())


@pytest.mark.parametrize("ts", [2**61 + 3, -(2**61) - 3, 2**62 - 20, 20 - 2**62])
def test_windows_of_one_second_far_away_are_taken_over_from_a_snapshot(ts):
    driver = Driver(WindowAggregate(Tumbling(1), {"m": Median("c")}), SCHEMA)
    driver.feed(0, Page.of(SCHEMA, {"ts": [ts, ts], "c": [1, 3]}))
    driver.move()
    driver.feed(0, END)
    assert driver.rows() == [{"window_start": ts, "window_end": ts + 1, "m": 2.0}]
