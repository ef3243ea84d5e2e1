"""Sketches of the library: their errors, and the laws that hold all the same."""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import GraphError, Page, Schema
from oop_engine.aggregates import FrequentItems, Kll, TDigest
from oop_engine.core.saved import Saved
from oop_engine.core.snapshot import Later
from oop_engine.errors import SetupError, SnapshotError
from oop_engine.operators import Session, Sliding, Tumbling, WindowAggregate
from oop_engine.testing import END, Case, Driver, contract_suite

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "x": pa.float64()}, "ts", "s")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Kll("x", 1.5), "q must be from 0 to 1; got 1.5"),
        (lambda: Kll("x", 0.5, k=2), "k must be from 8 to 65,535; got 2"),
        (lambda: TDigest("x", 0.5, k=2), "k must be from 10 to 10,000; got 2"),
        (lambda: FrequentItems("k", 0), "share must be above 0 and to 1; got 0"),
        (lambda: FrequentItems("k", 0.1, size=100), "a power of two; got 100"),
    ],
)
def test_parameters_that_cannot_be_are_refused(make, message):
    with pytest.raises(GraphError, match=message):
        make()


def test_without_the_library_one_line_tells_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(SetupError, match=r"Kll needs datasketches, .*pip install 'oop-engine\[sketches\]'"):
        WindowAggregate(Tumbling(10), {"q": Kll("x", 0.5)}).output_schemas((SCHEMA,))


pytest.importorskip(
    "datasketches", reason="the extra sketches is not installed: pip install 'oop-engine[sketches]'"
)

ASKED = {"kll": Kll("x", 0.5), "digest": TDigest("x", 0.9), "often": FrequentItems("k", 0.3)}
ORDER = "a sketch of the library depends on the order of its tuples; its error is tested by itself"
EXEMPT = dict.fromkeys(("oracle", "order", "cuts", "division"), ORDER)
DOMAINS: dict[str, list[Any]] = {
    "ts": list(range(-30, 90)),
    "k": ["a", "b", None],
    "x": [-1.5, 0.0, 3.0, None],
}

test_the_other_laws_hold = contract_suite(
    [
        Case("sketches", WindowAggregate(Sliding(20, 10), ASKED), (SCHEMA,), lambda _: [], DOMAINS, EXEMPT),
        Case(
            "sessions", WindowAggregate(Session(5), ASKED, ("k",)), (SCHEMA,), lambda _: [], DOMAINS, EXEMPT
        ),
    ],
    examples=5,
    together=True,
)


def played(aggregates, columns, pages):
    kinds = {name: pa.array(column).type for name, column in columns.items()}
    schema = Schema({"ts": pa.int64(), **kinds}, "ts", "s")
    driver = Driver(WindowAggregate(Sliding(100, 50), aggregates), schema)
    size = len(next(iter(columns.values())))
    for some in np.array_split(np.arange(size), pages):
        page = {name: [column[i] for i in some] for name, column in columns.items()}
        driver.feed(0, Page.of(schema, {"ts": [50 + i % 50 for i in some.tolist()], **page}))
    driver.feed(0, END)
    return driver.rows()[0]


def test_quantiles_are_within_their_error_of_the_exact_ones():
    draw = random.Random(5)
    values = [draw.gauss(0, 1) for _ in range(20_000)]
    shares = (0.01, 0.5, 0.99)
    asked = {f"{kind.__name__} {q}": kind("x", q) for q in shares for kind in (Kll, TDigest)}
    row, ordered = played(asked, {"x": values}, 40), np.sort(values)
    for q in shares:
        for kind, error in (
            (Kll, 0.04),
            (TDigest, 0.02 if q == 0.5 else 0.005),
        ):  # of Kll three times its error
            rank = np.searchsorted(ordered, row[f"{kind.__name__} {q}"]) / ordered.size
            assert abs(rank - q) < error, (kind, q)


def test_frequent_items_leave_none_out_and_count_within_their_error():
    draw = random.Random(6)
    texts = [f"t{min(int(draw.paretovariate(0.8)), 5000)}" for _ in range(20_000)]
    row, exact = played({"often": FrequentItems("t", 0.02, size=256)}, {"t": texts}, 40), Counter(texts)
    found = {one["value"]: one["count"] for one in row["often"]}
    assert {text for text, count in exact.items() if count >= 400} <= set(found)
    assert all(0 <= count - exact[text] <= 3.5 / 256 * len(texts) for text, count in found.items())
    assert [one["count"] for one in row["often"]] == sorted(found.values(), reverse=True)


def test_few_values_are_exact_and_none_are_null():
    row = played({**ASKED, "often": FrequentItems("k", 0.3)}, {"k": ["a", "b", "a"], "x": [1.0, 5.0, 3.0]}, 2)
    assert row["kll"] == 3.0
    assert row["often"] == [{"value": "a", "count": 2}, {"value": "b", "count": 1}]
    nothing = {"k": [None, None, "z"], "x": [None, float("nan"), None]}
    assert played({"kll": Kll("x", 0.5), "digest": TDigest("x", 0.5)}, nothing, 1)["kll"] is None


def test_explain_says_that_the_order_matters():
    words = WindowAggregate(Tumbling(10), ASKED).explain((SCHEMA,))
    assert words.endswith("'often' depends on the order of arrival, within its error")


def test_bytes_that_are_no_sketch_are_refused():
    operator = WindowAggregate(Tumbling(10), {"kll": Kll("x", 0.5)}).opened(SCHEMA)
    list(operator.on_page(0, Page.of(SCHEMA, {"ts": [1], "k": ["a"], "x": [2.0]})))
    saved = operator.save()

    def spoilt(part):
        if isinstance(part, Later):
            return spoilt(part.make())
        if isinstance(part, dict):
            return {name: spoilt(one) for name, one in part.items()}
        if isinstance(part, list):
            return [spoilt(one) for one in part]
        if isinstance(part, pa.RecordBatch) and part.schema.names == ["values"]:
            return pa.RecordBatch.from_arrays([pa.array([b"no"] * len(part), pa.binary())], names=["values"])
        return part

    with pytest.raises(SnapshotError, match="no sketch"):
        operator.opened(SCHEMA).load(Saved.of(spoilt(saved)))
