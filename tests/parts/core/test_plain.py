"""Arrow data of others: views, runs, frames and readers, made plain at the door."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import ContractError, Graph, GraphError, GroupWise, Linear, Operator, Page, Schema, replay
from oop_engine.core.page import concat, pages
from oop_engine.core.values.kinds import plain_type
from oop_engine.operators import (
    Band,
    BoundedDisorder,
    Count,
    Distinct,
    Filter,
    Meld,
    OAJoin,
    Project,
    Punctuate,
    Tumbling,
    WindowAggregate,
)
from oop_engine.testing import END, Driver

PLAIN = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
TS, KEYS = [5, 1, 7], ["a", "b", "a"]
KINDS = [
    pa.string_view(),
    pa.binary_view(),
    pa.large_string(),
    pa.large_binary(),
    pa.run_end_encoded(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.large_string()),
]
OPERATORS: list[Operator] = [
    WindowAggregate(Tumbling(10), {"n": Count()}, ("k",)),
    Filter(lambda batch: pc.greater(batch["ts"], 1)),
    Punctuate(BoundedDisorder(0), 1),
    Distinct(("k",)),
    Project({"ts": "ts", "key": "k"}),
    Meld(2),
    OAJoin([("k", "k")], Band(0, 10)),
]


def of_kind(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return a column in a type that Arrow may be unable to make of values at once."""
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(pa.array(values, kind.value_type))
    return pa.array(values, pa.string()).cast(kind)


def said(operator: Operator, kind: pa.DataType) -> list[list[str]]:
    """Return the texts that come of texts of a type: with punctuation, and a snapshot midway."""
    schema = Schema({"ts": pa.int64(), "k": kind}, "ts", "s")
    inputs = [schema] * len(operator.inputs)
    driver = Driver(operator, *inputs)
    for port in range(len(inputs)):
        batch = pa.record_batch({"ts": pa.array(TS), "k": of_kind(KEYS, kind)})
        driver.feed(port, Page(schema, batch, np.arange(3)))
        driver.move()
        driver.feed(port, GroupWise(pa.record_batch({"k": of_kind(["a"], kind)}), np.array([10])))
    for port in range(len(inputs)):
        driver.feed(port, END)
    texts = (
        [str(v, "utf-8") if isinstance(v, bytes) else str(v) for v in row.values()] for row in driver.rows()
    )
    return sorted(texts)


@pytest.mark.slow(keep=12)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: type(operator).__name__)
def test_texts_of_any_type_give_what_texts_give(operator: Operator, kind: pa.DataType) -> None:
    assert said(operator, kind) == said(operator, pa.string())


def test_types_are_plain_however_deep() -> None:
    view, text = pa.string_view(), pa.string()
    assert plain_type(pa.list_view(view)) == pa.list_(text)
    assert plain_type(pa.large_list_view(view)) == pa.large_list(text)
    assert plain_type(pa.list_(view, 2)) == pa.list_(text, 2)
    assert plain_type(pa.struct([("a", view)])) == pa.struct([("a", text)])
    assert plain_type(pa.map_(view, view)) == pa.map_(text, text)
    assert plain_type(pa.dictionary(pa.int8(), view)) == pa.dictionary(pa.int32(), text)
    assert plain_type(pa.list_(pa.decimal64(5, 2))) == pa.list_(pa.decimal128(5, 2))
    assert plain_type(pa.decimal128(5)) == pa.decimal128(5)


def test_an_unknown_zone_is_refused_with_the_schema() -> None:
    with pytest.raises(
        GraphError, match=r"'at' is timestamp\[ms, tz=Foo/Bar\], a zone that is not known here"
    ):
        Schema({"ts": pa.int64(), "at": pa.timestamp("ms", "Foo/Bar")}, "ts", "s")


@pytest.mark.parametrize(
    ("columns", "arrival", "words"),
    [
        ({"ts": [1]}, None, "there must be a column 'k'; got ts"),
        ({"ts": ["x"], "k": ["a"]}, None, r"page: 'ts' must be int64; got 'x' \(string\): mend it"),
        ({"ts": [2**63], "k": ["a"]}, None, "page: 'ts' must be int64"),
        (
            {"ts": np.array([0.5]), "k": ["a"]},
            None,
            r"page: 'ts' must be int64; got 0.5 \(double\): .* pc.round",
        ),
        (
            {"ts": [1], "k": ["a"]},
            [2**63],
            "arrivals must be integers of 64 bits, one a row; got 9223372036854775808",
        ),
        ({"ts": [1], "k": ["a"]}, [2**70], "arrivals must be integers of 64 bits"),
        ({"ts": [1], "k": ["a"]}, [0.5], "arrivals must be integers of 64 bits, one a row; got float64"),
        ({"ts": [1], "k": ["a"]}, [1, 2], "one arrival a row; got 2 for 1"),
    ],
    ids=range(8),
)
def test_what_does_not_fit_a_page_is_refused(columns: dict[str, Any], arrival: Any, words: str) -> None:
    with pytest.raises(ContractError, match=words):
        Page.of(PLAIN, columns, arrival)


def test_more_texts_than_an_array_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page.of(PLAIN, {"ts": [1], "k": ["a"]})

    def too_many(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays")

    monkeypatch.setattr(pa, "concat_batches", too_many)
    with pytest.raises(ContractError, match=r"2 pages do not fit into one: offset overflow .*large_string"):
        concat(PLAIN, [page, page])


FRAME = pd.DataFrame({"more": [0.5, 1.5, 2.5], "k": KEYS, "ts": TS})
TABLE = pa.table({"k": pa.array(KEYS, pa.large_string()), "ts": pa.array(TS, pa.int32()), "more": [1, 2, 3]})


def reader() -> pa.RecordBatchReader:
    return TABLE.to_reader(max_chunksize=1)


def batches() -> Iterator[pa.RecordBatch]:
    yield from TABLE.to_batches(max_chunksize=2)


@pytest.mark.parametrize("on", ["inline", "local"])
@pytest.mark.parametrize(
    "feed",
    [
        lambda: FRAME,
        lambda: TABLE,
        lambda: TABLE.to_batches()[0],
        lambda: TABLE.to_batches(max_chunksize=1),
        reader,
        batches,
        lambda: [FRAME[:1], TABLE.slice(1), Linear(100)],
    ],
    ids=["pandas", "table", "batch", "batches", "reader", "generator", "mixed"],
)
def test_arrow_data_is_a_feed(feed: Any, on: Any) -> None:
    graph = Graph("g")
    counted = WindowAggregate(Tumbling(10), {"n": Count()}, ("k",))
    graph.sink("out", graph.add("count", counted, graph.source("in", PLAIN)))
    outcome = replay(graph, {"in": feed()}, on=on)
    assert sorted((row["k"], row["n"]) for row in outcome.results["out"].to_pylist()) == [("a", 2), ("b", 1)]
    assert outcome.tuples == 3


@pytest.mark.parametrize("data", [FRAME, TABLE, TABLE.to_batches()[0]], ids=["pandas", "table", "batch"])
def test_arrow_data_is_a_page_and_back(data: Any) -> None:
    page = Page.from_arrow(PLAIN, data)
    assert page == Page.of(PLAIN, {"ts": TS, "k": KEYS})
    assert pa.record_batch(page).equals(page.batch)
    assert pa.table(page).to_pandas()["k"].tolist() == KEYS


def test_pages_are_bounded_and_have_the_arrivals_of_a_column() -> None:
    table = pa.table({"ts": range(10), "k": ["a"] * 10, "came": range(100, 110)})
    found = list(pages(PLAIN, table, arrival="came", rows=4))
    assert [len(page) for page in found] == [4, 4, 2]
    assert [page.arrival.tolist() for page in found if page.arrival is not None][2] == [108, 109]
    with pytest.raises(ContractError, match="there must be a column 'cam' of arrivals"):
        Page.from_arrow(PLAIN, table, arrival="cam")


def test_notebooks_show_tables_and_run_nothing() -> None:
    page = Page.of(PLAIN, {"ts": range(30), "k": ["<script>alert(1)</script>"] * 30})
    graph = Graph("<b>")
    graph.sink("out", graph.source("in", PLAIN))
    shown = [page._repr_html_(), PLAIN._repr_html_(), graph._repr_html_()]
    shown.append(replay(graph, {"in": page})._repr_html_())
    assert all("<table>" in html and "<script>" not in html and "<b>" not in html for html in shown)
    assert shown[0].count("<tr>") == 21
    assert "makes progress, in s" in shown[1]
    assert "30 rows" in shown[3]
