"""Lengths that are allowed and probably not as they were meant: each is named once."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Page, Schema, replay
from oop_engine.core.graphs import lengths
from oop_engine.core.graphs.lengths import doubtful_lengths
from oop_engine.operators import (
    Band,
    BoundedDisorder,
    Count,
    OAJoin,
    PerGroup,
    Punctuate,
    Session,
    Sliding,
    Tumbling,
    WindowAggregate,
)
from oop_engine.windows import TupleBased  # fmt: skip

MOMENTS = Schema({"at": pa.timestamp("ms"), "k": pa.string()}, "at")
SECONDS = Schema({"at": pa.int64(), "k": pa.string()}, "at", "s")


def graph(
    schema: Schema, windows: Any, slack: Any = "5 s", granularity: Any = None, band: Any = None
) -> Graph:
    made = Graph("g")
    edge = made.add("edge", Punctuate(BoundedDisorder(slack), granularity), made.source("in", schema))
    made.sink("out", made.add("count", WindowAggregate(windows, {"n": Count()}, by=("k",)), edge))
    if band is not None:
        policy = PerGroup(BoundedDisorder(slack), ("k",))
        other = made.add("other", Punctuate(policy), made.source("second", schema))
        made.sink("pairs", made.add("join", OAJoin(["k"], band), edge, other))
    return made


def doubts(made: Graph) -> list[str]:
    return [
        line.split(": ", 1)[1].split(" is ")[0].split(" leaves ")[0] for line in doubtful_lengths(made.plan())
    ]


def test_plain_integers_over_moments_are_named_wherever_they_stand() -> None:
    windows = {"a": Tumbling(60), "b": Sliding("1 min", 10_000), "c": Session(30)}
    assert sorted(doubts(graph(MOMENTS, windows, 5, 10, Band(1, "2 s")))) == [
        "Band(before=1)", "BoundedDisorder(slack=5)", "BoundedDisorder(slack=5)", "Punctuate(granularity=10)",
        "Session(gap=30)", "Sliding(slide=10000)", "Tumbling(range=60)",
    ]  # fmt: skip


def test_lengths_with_units_and_own_units_are_not() -> None:
    assert doubts(graph(MOMENTS, Tumbling("1 min"), "5 s", "1 s", Band("1 s", 0))) == []
    assert doubts(graph(SECONDS, Tumbling(60), 5, 10, Band(1, 2))) == []
    assert doubts(graph(MOMENTS, TupleBased(10, 5))) == []


@pytest.mark.parametrize("schema", [MOMENTS, SECONDS])
def test_windows_with_gaps_are_named(schema: Schema) -> None:
    [line] = doubtful_lengths(graph(schema, Sliding("1 min", "5 min")).plan())
    assert line.endswith(
        "leaves gaps: records in 4 min of each 5 min are in no window; if that is not meant, exchange range and slide"
    )


def test_each_is_logged_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lengths, "_LOGGED", set())
    caplog.set_level(logging.WARNING, "oop_engine")
    for _ in range(2):
        replay(graph(MOMENTS, Tumbling(60)), {"in": Page.of(MOMENTS, {"at": [], "k": []})})
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith(
        "graph 'g', node 'count': Tumbling(range=60) is 60 ms, in the unit of 'at'; write the unit"
    )
