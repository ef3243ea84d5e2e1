"""Delays over one's own trace are those of rows that come one by one, however many rows it has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import Graph, Page, Schema
from oop_engine.lab.comparison import Comparison, compare
from oop_engine.lab.own import small_pages
from oop_engine.operators import (
    Band,
    BoundedDisorder,
    Count,
    Emit,
    Meld,
    OAJoin,
    Punctuate,
    Session,
    Sliding,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.triggers import AfterCount

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")
ASKED = {"n": Count(), "s": Sum("k")}
KINDS: dict[str, Any] = {
    "tumbling": lambda: WindowAggregate(Tumbling(50), ASKED, by=("k",)),
    "sliding": lambda: WindowAggregate(Sliding(100, 30), ASKED),
    "session": lambda: WindowAggregate(Session(15), ASKED, by=("k",)),
    "retracting": lambda: WindowAggregate(Tumbling(200), ASKED, emit=Emit(early=AfterCount(7))),
    "discarding": lambda: WindowAggregate(
        Tumbling(200), ASKED, by=("k",), emit=Emit(early=AfterCount(5), mode="discarding")
    ),
}
FIGURES = ("late", "results", "missing", "wrong")


def feed(rng: np.random.Generator, rows: int, *, arrivals: bool) -> list[Page]:
    times = np.sort(rng.integers(0, 3 * rows, rows)) + rng.integers(-20, 20, rows)
    came = np.sort(rng.integers(0, 3 * rows, rows)) + 20 if arrivals else None
    return [Page.of(SCHEMA, {"ts": times, "k": rng.integers(0, 3, rows)}, arrival=came)]


def graph_of(kind: str, slacks: list[int]) -> Graph:
    graph = Graph(kind)
    edges = [
        graph.add(f"edge-{name}", Punctuate(BoundedDisorder(slack)), graph.source(name, SCHEMA))
        for name, slack in zip("ab", slacks, strict=False)
    ]
    if kind == "join":
        last = graph.add("join", OAJoin([("k", "k")], Band(5, 5)), *edges)
    else:
        merged = graph.add("all", Meld(2), *edges) if len(edges) == 2 else edges[0]
        last = graph.add("windows", KINDS[kind](), merged)
    graph.sink("out", last)
    return graph


def figures(comparison: Comparison) -> list[Any]:
    return [
        (run.variant, *(getattr(run, name) for name in FIGURES), sorted(run.delays_s), sorted(run.excess_s))
        for run in comparison.runs
    ]


@pytest.mark.slow(keep=2)
@pytest.mark.parametrize(
    ("kind", "sources"),
    [("tumbling", 2), ("sliding", 1), ("session", 1), ("retracting", 1), ("discarding", 2), ("join", 2)],
)
def test_delays_are_those_of_rows_one_by_one(
    monkeypatch: pytest.MonkeyPatch, kind: str, sources: int
) -> None:
    rng = np.random.default_rng([*map(ord, kind)])
    graph = graph_of(kind, rng.integers(0, 30, sources).tolist())
    feeds = {name: feed(rng, 100, arrivals=sources == 2) for name in "ab"[:sources]}
    found = []
    for alone in (10**6, 0):
        monkeypatch.setattr(small_pages, "_ALONE", alone)
        found.append(compare(graph, feeds))
    one_by_one, in_pages = map(figures, found)
    assert in_pages == one_by_one
    assert found[1].claims[-1].holds


def test_delays_of_a_long_trace_are_those_of_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window is emitted by the row that raises the largest time so far to its end and the slack."""
    monkeypatch.setattr(small_pages, "_ALONE", 20)
    rng, slack = np.random.default_rng(5), 7
    times = np.maximum(np.arange(100, 1000) + rng.integers(-3, 4, 900), 100)
    found = compare(graph_of("tumbling", [slack]), {"a": [Page.of(SCHEMA, {"ts": times, "k": times % 3})]})
    largest = np.maximum.accumulate(times)
    ends = np.arange(times.min() // 50 + 1, times.max() // 50 + 1) * 50
    closing = np.minimum(np.searchsorted(largest, ends + slack), times.size - 1)  # or the end of the trace
    expected = np.repeat(largest[closing] - ends, 3)  # of three groups
    for run in found.runs:
        assert sorted(run.delays_s) == sorted(expected), run.variant
    assert [claim.holds for claim in found.claims] == [True, True, True]


def test_a_delay_that_may_be_too_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_pages, "_ALONE", 0)
    monkeypatch.setattr(small_pages, "_MOST", 0)
    times = np.arange(0, 5000, 5)
    found = compare(graph_of("sliding", [0]), {"a": [Page.of(SCHEMA, {"ts": times, "k": times})]})
    claim = found.claims[-1]
    assert claim.holds is None
    assert claim.figures["delays are too long by at most"] == "315 s"  # 64 rows, 5 s apart
    assert "1,000 rows came in pages of several" in claim.figures["not checked"]
