"""Sketches: within their errors, and the same in any order and division."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from oop_engine import GraphError, Page, Schema
from oop_engine.aggregates import ApproxCountDistinct, ApproxQuantile, Quantile
from oop_engine.operators import Sliding, WindowAggregate
from oop_engine.operators.levels.consolidate import Consolidate
from oop_engine.operators.levels.partial_aggregate import PartialAggregate
from oop_engine.testing import END, Driver, multiset

SCHEMA = Schema({"ts": pa.int64(), "x": pa.float64(), "t": pa.string()}, "ts", "s")
QUANTILES = (0.0, 0.1, 0.5, 0.99, 1.0)
ASKED = {f"q{q}": ApproxQuantile("x", q) for q in QUANTILES} | {
    "n": ApproxCountDistinct("x"), "t": ApproxCountDistinct("t", 0.05),
}  # fmt: skip


def stream(rows):
    draw = random.Random(7)
    sizes = [draw.choice([-1, 1]) * 10 ** draw.uniform(-9, 9) for _ in range(rows)]
    values = [draw.choice([size, size, 0.0, None]) for size in sizes]
    return [{"ts": draw.randrange(20), "x": x, "t": None if x is None else str(x)} for x in values]


def page(rows):
    return Page.of(SCHEMA, {name: [row[name] for row in rows] for name in SCHEMA.names})


def played(operator, rows, size):
    driver = Driver(operator, SCHEMA)
    for begin in range(0, len(rows), size):
        driver.feed(0, page(rows[begin : begin + size]))
        driver.move()  # through a snapshot
    driver.feed(0, END)
    return driver.rows()


ROWS = stream(6000)
WINDOWS = Sliding(20, 10)


def test_errors_are_within_their_limits():
    exact = WindowAggregate(WINDOWS, {f"q{q}": Quantile("x", q, "lower") for q in QUANTILES})
    for found, wanted in zip(
        played(WindowAggregate(WINDOWS, ASKED), ROWS, 2000), played(exact, ROWS, 2000), strict=True
    ):
        for q in QUANTILES:
            assert found[f"q{q}"] == pytest.approx(wanted[f"q{q}"], rel=0.01, abs=0)
        inside = [
            r for r in ROWS if found["window_start"] <= r["ts"] < found["window_end"] and r["x"] is not None
        ]
        different = len({row["x"] for row in inside})
        assert found["n"] == pytest.approx(different, rel=0.05)  # three standard errors
        assert found["t"] == pytest.approx(different, rel=0.15)


@pytest.mark.parametrize("size", [1500, 6000])
def test_order_pages_and_halves_change_nothing(size):
    wanted = multiset(played(WindowAggregate(WINDOWS, ASKED), ROWS, 3000))
    mixed = random.Random(3).sample(ROWS, len(ROWS))
    assert multiset(played(WindowAggregate(WINDOWS, ASKED), mixed, size)) == wanted
    first = PartialAggregate(WINDOWS, ASKED)
    [rows] = first.output_schemas((SCHEMA,))
    second = Driver(Consolidate(WINDOWS, ASKED, tuples=SCHEMA), rows)
    half = Driver(first, SCHEMA)
    for begin in range(0, len(mixed), size):
        for message in half.feed(0, page(mixed[begin : begin + size])):
            second.feed(0, message[1] if isinstance(message, tuple) else message)
    second.feed(0, END)
    assert multiset(second.rows()) == wanted


def test_infinities_nan_and_few_values():
    inf = float("inf")
    operator = WindowAggregate(
        Sliding(10, 10), {f"q{q}": ApproxQuantile("x", q) for q in (0, 0.34, 1)} | {"n": ASKED["n"]}
    )
    rows = [{"ts": 1, "x": x, "t": None} for x in (inf, -inf, -0.0, 0.0)]
    [row] = played(operator, rows, 2)
    assert [row["q0"], row["q0.34"], row["q1"], row["n"]] == [-inf, 0.0, inf, 3]
    [row] = played(operator, [*rows, {"ts": 1, "x": float("nan"), "t": None}], 5)
    assert row["q1"] != row["q1"]
    [row] = played(operator, [{"ts": 1, "x": None, "t": None}], 1)
    assert [row["q1"], row["n"]] == [None, 0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ApproxQuantile("x", 1.5), "q must be from 0 to 1"),
        (lambda: ApproxQuantile("x", 0.5, 0.0), "error must be from 0.0001 to 0.5"),
        (lambda: ApproxCountDistinct("x", 2.0), "error must be from 0.0001 to 0.5"),
    ],
)
def test_parameters_that_cannot_be_are_refused_when_built(make, message):
    with pytest.raises(GraphError, match=message):
        make()
