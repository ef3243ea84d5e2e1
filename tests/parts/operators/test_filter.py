"""Filter: which rows pass, in which pages, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import ContractError, GraphError, GroupWise, Joint, Linear, Page, Schema
from oop_engine.operators.filter import Filter
from oop_engine.testing import Driver

SCHEMA = Schema({"ts": pa.int64(), "n": pa.int64(), "ok": pa.bool_()}, "ts", "s")
PAGE = Page.of(SCHEMA, {"ts": [1, 2, 3], "n": [5, None, -5], "ok": [None, True, False]}, arrival=[7, 8, 9])


@pytest.mark.parametrize(
    ("predicate", "times"),
    [
        (pc.field("n") > 0, [1]),
        (lambda batch: pc.less(batch["n"], 0), [3]),
        (lambda batch: batch["ts"].to_numpy() > 1, [2, 3]),
        (lambda batch: pa.chunked_array([[True], [False, True]]) if batch.num_rows else batch["ok"], [1, 3]),
        ("ok", [2]),
    ],
)
def test_rows_for_which_it_is_true_keep_their_arrival(predicate, times):
    [(_, page)] = Driver(Filter(predicate), SCHEMA).feed(0, PAGE)
    assert page.times.tolist() == times
    assert page.arrival.tolist() == [6 + t for t in times]
    [(_, inside)] = Driver(Filter(predicate), SCHEMA).feed(0, PAGE.without_arrival())
    assert inside == page
    assert inside.arrival is None


def test_a_page_that_passes_whole_is_not_copied():
    [(_, page)] = Driver(Filter(pc.field("ts") > 0), SCHEMA).feed(0, PAGE)
    assert page is PAGE


def test_nothing_leaves_when_nothing_passes():
    assert Driver(Filter(pc.field("ts") > 9), SCHEMA).feed(0, PAGE) == []


@pytest.mark.parametrize("promise", [Linear(3), GroupWise.of({"n": [5]}, [9]), Joint.of(n=3)])
def test_every_promise_passes(promise):
    assert Driver(Filter("ok"), SCHEMA).feed(0, promise) == [(0, promise)]


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        (pc.field("n") + 1, "boolean"),
        (pc.field("len") > 1, "len"),
        ("len", "no column 'len'"),
        (lambda batch: batch["n"][0] > 1, "empty page"),
        (lambda batch: pa.array([], pa.null()), "no type"),
        (42, "42"),
    ],
)
def test_what_cannot_be_a_predicate_is_refused_when_built(predicate, words):
    with pytest.raises(GraphError, match=words) as told:
        Filter(predicate).output_schemas((SCHEMA,))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        (pc.field("ts") / (pc.field("ts") - 2) > 1, "divide by zero"),
        (lambda batch: batch["ok"].slice(0, 1), "gave 1 for 3 rows"),
    ],
)
def test_data_it_cannot_be_evaluated_on(predicate, words):
    with pytest.raises(ContractError, match=words):
        Driver(Filter(predicate), SCHEMA).feed(0, PAGE)


def test_description_survives_pickling():
    copy = pickle.loads(pickle.dumps(Filter(pc.field("n") > 0)))
    assert copy.describe() == "Filter (n > 0)"
    assert Driver(copy, SCHEMA).feed(0, PAGE)[0][1].times.tolist() == [1]


@pytest.mark.parametrize("share", [0.02, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("unit", ["int64", "timestamp"])
def test_large_pages_keep_the_rows_that_the_predicate_keeps(share: float, unit: str) -> None:
    """By bits or by numbers of rows, column by column, each asked for in any order."""
    draw = np.random.default_rng(3)
    kind = pa.int64() if unit == "int64" else pa.timestamp("us")
    schema = Schema(
        pa.schema([("name", pa.string()), ("ts", kind), ("v", pa.float64()), ("tags", pa.list_(pa.int64()))]),
        "ts",
        "us",
    )
    rows = 20_000
    v = [
        None if missing else float(x)
        for missing, x in zip(draw.random(rows) < 0.1, draw.random(rows), strict=True)
    ]
    page = Page.of(schema, {
        "name": [None if i % 7 == 0 else f"host{i % 50}" for i in range(rows)],
        "ts": pa.array(np.arange(rows), pa.int64()).cast(kind), "v": v, "tags": [[i, i] for i in range(rows)],
    })  # fmt: skip
    [(_, kept)] = Filter(pc.field("v") < share).opened(schema).on_page(0, page)
    assert isinstance(kept, Page)
    rows_kept = [row for row in page.to_pylist() if row["v"] is not None and row["v"] < share]
    assert kept.times.tolist() == [i for i, x in enumerate(v) if x is not None and x < share]
    assert kept.column("tags").to_pylist() == [row["tags"] for row in rows_kept]
    assert len(kept) == len(rows_kept)
    assert kept.to_pylist() == rows_kept
    assert kept.settled() == Page(schema, page.batch.filter(pc.less(page.column("v"), share)))
