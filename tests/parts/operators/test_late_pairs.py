"""Pages of joined tuples: columns are copied when they are read, and are those of a join that copies at once."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import FOREVER, Graph, Linear, Page, Schema, replay
from oop_engine.core.late.late_page import LateColumns, LatePage
from oop_engine.operators import (
    Band,
    BoundedDisorder,
    Count,
    OAJoin,
    Project,
    Punctuate,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.runners.inline import Inline
from oop_engine.testing import multiset
from oop_engine.testing.case import typed

SIZES = [600, 1, 800, 40, 900]
TYPES = [pa.int32(), pa.int64(), pa.timestamp("us")]


def schema(time: pa.DataType) -> Schema:
    n = pa.dictionary(pa.int32(), pa.string())
    return Schema(
        {"n": n, "ts": time, "k": pa.int32(), "x": pa.float64()}, "ts", "" if time == TYPES[2] else "s"
    )


def pages(of: Schema, side: int) -> Iterator[Page]:
    draw = np.random.default_rng(side)
    for number, rows in enumerate(SIZES):
        times = 100 * number + draw.integers(0, 300, rows)
        x = pa.array(draw.random(rows), mask=draw.random(rows) < 0.1 * side)
        names = [f"{side}-{number}-{row % 3}" for row in range(rows)]
        keys = pa.array(draw.integers(0, 9, rows), mask=draw.random(rows) < 0.01)
        yield Page.of(of, {"n": names, "ts": typed(times.tolist(), of.type_of("ts")), "k": keys, "x": x})


def messages(of: Schema) -> Iterator[tuple[int, Page | Linear]]:
    for number, both in enumerate(zip(pages(of, 0), pages(of, 1), strict=True)):
        yield from enumerate(both)
        if number > 2:
            yield number % 2, Linear(100 * number)
    yield from ((side, Linear(FOREVER)) for side in (0, 1))


@pytest.mark.parametrize("time", TYPES, ids=str)
@pytest.mark.parametrize("kind", ["inner", "left", "full"])
def test_rows_are_those_of_a_join_that_copies_at_once(kind: str, time: pa.DataType) -> None:
    of = schema(time)
    late = OAJoin([("k", "k")], Band(3, 5), how=kind).opened(of, of)
    once = OAJoin([("k", "k")], Band(3, 5), how=kind).opened(of, of)
    once._held._late = None
    found: list[list[Page]] = [[], []]
    for side, message in messages(of):
        for number, join in enumerate((late, once)):
            sent = (
                join.on_page(side, message)
                if isinstance(message, Page)
                else join.on_punctuation(side, message)
            )
            found[number] += [out for _, out in sent if isinstance(out, Page)]
    assert sum(isinstance(page, LatePage) for page in found[0]) >= 3
    assert not any(isinstance(page, LatePage) for page in found[1])
    for page in found[0]:  # read behind all that came later
        assert page.times.tolist() == Page(page.schema, page.batch).times.tolist()
    rows = [pa.Table.from_batches([page.batch for page in of_one]).to_pylist() for of_one in found]
    assert multiset(rows[0]) == multiset(rows[1])


@pytest.mark.parametrize("rows", [1, 7])
def test_small_pages_have_the_same_rows_in_order_and_leave_the_same_state(rows: int) -> None:
    of = schema(pa.int64())
    late, once = (OAJoin([("k", "k")], Band(3, 5)).opened(of, of) for _ in range(2))
    once._held._late = None
    for side, message in messages(of):
        small = (
            [message]
            if isinstance(message, Linear)
            else [message.slice(i, i + rows) for i in range(0, 99, rows)]
        )
        for each in (part for part in small if not isinstance(part, Page) or len(part)):
            found = [
                list(join.on_page(side, each) if isinstance(each, Page) else join.on_punctuation(side, each))
                for join in (late, once)
            ]
            assert late.state() == once.state()
            pages = [[out for _, out in sent if isinstance(out, Page)] for sent in found]
            assert all(isinstance(page, LatePage) for page in pages[0])
            assert [page.batch.to_pylist() for page in pages[0]] == [
                page.batch.to_pylist() for page in pages[1]
            ]


def test_a_page_that_has_its_columns_keeps_nothing_that_they_were_made_of() -> None:
    of = Schema({"ts": pa.int64()}, "ts", "s")
    page = LatePage(of, 2, lambda _: pa.array([7, 5]), lambda: np.array([7, 5]))
    made = weakref.ref(page.columns)
    assert page.owned() is page
    assert made() is None
    assert page.times.tolist() == page.column("ts").to_pylist() == [7, 5]


def test_only_the_columns_that_are_read_are_made() -> None:
    of = schema(pa.int64())
    join = OAJoin([("k", "k")], Band(3, 5)).opened(of, of)
    found = [
        out for side, page in messages(of) if isinstance(page, Page) for _, out in join.on_page(side, page)
    ]
    late = [page for page in found if isinstance(page, LatePage)]
    for page in late:
        assert len(page) == page.times.size == len(page.column("x_right"))
        assert list(page.columns._made) == [page.schema.names.index("x_right")]
        whole = page.settled()
        assert type(whole) is Page
        assert whole == page == pickle.loads(pickle.dumps(page))
        assert whole.times.tolist() == page.times.tolist() == page.slice(0, len(page)).times.tolist()
    assert len(late) == len(found) >= 3


@pytest.mark.parametrize("projected", [False, True])
def test_a_window_behind_a_join_reads_what_it_needs(projected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made = set()
    at = LateColumns._at

    def noted(columns: LateColumns, place: int) -> pa.Array:
        made.add(columns._schema.names[place])
        return at(columns, place)

    monkeypatch.setattr(LateColumns, "_at", noted)
    of, graph = schema(pa.int64()), Graph("sums")
    edges = [
        graph.add(f"{s}-edge", Punctuate(BoundedDisorder(400)), graph.source(s, of))
        for s in ("left", "right")
    ]
    join = graph.add("join", OAJoin([("k", "k")], Band(3, 5)), *edges)
    sums = WindowAggregate(Tumbling(100), {"rows": Count(), "x": Sum("x")}, by=("k_right",))
    if projected:
        join = graph.add("narrow", Project({"at": "ts", "x": "x", "k_right": "k_right"}), join)
    graph.sink("sums", graph.add("count", sums, join))
    feeds = {name: list(pages(of, side)) for side, name in enumerate(("left", "right"))}
    rows = replay(graph, feeds).results["sums"]
    assert made == {"x", "k_right"} | ({"ts"} if projected else set())
    tables = [pa.Table.from_batches([page.batch for page in feed]).to_pylist() for feed in feeds.values()]
    pairs = sum(a["k"] == b["k"] is not None and -3 <= b["ts"] - a["ts"] <= 5 for a, b in _near(*tables))
    assert sum(rows["rows"].to_pylist()) == pairs > 3_000


def _near(left: list, right: list) -> Iterator[tuple]:  # type: ignore[type-arg]
    """Yield pairs of equal keys, those that match among them."""
    by_key: dict[int, list] = {}  # type: ignore[type-arg]
    for row in right:
        by_key.setdefault(row["k"], []).append(row)
    for row in left:
        yield from ((row, other) for other in by_key.get(row["k"], []))


def test_a_sink_is_given_columns_that_are_made() -> None:
    of, graph, found = schema(pa.int64()), Graph("pairs"), list[object]()
    join = OAJoin([("k", "k")], Band(3, 5))
    graph.sink("pairs", graph.add("join", join, graph.source("left", of), graph.source("right", of)))
    local = Inline(graph, lambda result: found.append(result.message))
    for side, page in messages(of):
        if isinstance(page, Page):
            local.push(("left", "right")[side], page)
    local.drain()
    assert {type(page) for page in found} == {Page}
