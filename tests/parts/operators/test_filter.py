"""Filter: which rows pass, in which pages, and what is refused."""

from __future__ import annotations

import pickle

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
