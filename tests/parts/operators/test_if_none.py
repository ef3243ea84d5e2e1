"""IfNone: a row at the end of a stream that has none."""

from __future__ import annotations

import pyarrow as pa
import pytest

from oop_engine import FOREVER, Graph, GraphError, GroupWise, Linear, Page, Schema, Watermark, run
from oop_engine.operators import BoundedDisorder, IfNone, Punctuate
from oop_engine.testing import Driver

SCHEMA = Schema({"ts": pa.timestamp("s"), "n": pa.int64(), "m": pa.decimal128(9, 2)}, "ts")


def test_a_stream_without_rows_ends_with_the_given_one() -> None:
    some = Driver(IfNone({"n": 0}), SCHEMA)
    assert some.feed(0, Linear(7)) == []
    assert some.feed(0, Watermark(Linear(9))) == []
    [(_, page), (_, end)] = some.feed(0, Linear(FOREVER))
    assert isinstance(page, Page)
    assert [(row["n"], row["m"], page.times.tolist()) for row in page.to_pylist()] == [(0, None, [0])]
    assert end == Linear(FOREVER)


def test_a_stream_with_rows_is_as_it_was_and_its_bound_follows_the_first() -> None:
    some = Driver(IfNone({"n": 0}), SCHEMA)
    some.feed(0, Linear(7))
    page = Page.of(SCHEMA, {"ts": pa.array([8], pa.timestamp("s")), "n": [1], "m": [None]})
    assert [message for _, message in some.feed(0, page)] == [page, Linear(7)]
    assert [message for _, message in some.feed(0, Linear(9))] == [Linear(9)]
    assert [message for _, message in some.feed(0, Linear(FOREVER))] == [Linear(FOREVER)]


def test_punctuation_of_groups_ends_here() -> None:
    some = Driver(IfNone({"n": 0}), SCHEMA)
    assert some.feed(0, GroupWise.of({"n": [0]}, [5])) == []


@pytest.mark.parametrize(
    ("row", "words"), [({"o": 1}, "no column 'o'"), ({"n": "x"}, "row\\['n'\\] must be of")]
)
def test_a_row_that_does_not_fit_is_refused(row: dict[str, object], words: str) -> None:
    graph = Graph("none")
    log = graph.add("time", Punctuate(BoundedDisorder(0)), graph.source("log", SCHEMA))
    with pytest.raises(GraphError, match=words):
        graph.add("some", IfNone(row), log)


def test_a_run_over_no_rows_has_one() -> None:
    graph = Graph("none")
    log = graph.add("time", Punctuate(BoundedDisorder(0)), graph.source("log", SCHEMA))
    graph.sink("out", graph.add("some", IfNone({"n": 3}), log))
    assert run(graph, {"log": SCHEMA.fields.empty_table()}).results["out"]["n"].to_pylist() == [3]


def test_a_page_without_rows_is_no_row() -> None:
    some = Driver(IfNone({"n": 0}), SCHEMA)
    some.feed(0, Page.empty(SCHEMA))
    assert [
        page.to_pylist()[0]["n"] for _, page in some.feed(0, Linear(FOREVER)) if isinstance(page, Page)
    ] == [0]
    assert not [
        page for _, page in some.feed(0, Linear(FOREVER)) if isinstance(page, Page)
    ]  # nor a second one
