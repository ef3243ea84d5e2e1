"""A graph in which all waits for the end of a source says so."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pyarrow as pa
import pytest

from oop_engine import Graph, Linear, Operator, Page, Schema, replay
from oop_engine.core.graphs.waiting import waiting
from oop_engine.extend import Message
from oop_engine.operators import (
    Band,
    Count,
    Distinct,
    Filter,
    Meld,
    OAJoin,
    Ordered,
    Punctuate,
    Tumbling,
    WindowAggregate,
)
from oop_engine.windows import TupleBased

S = Schema({"ts": pa.int64()}, "ts", "s")
COUNT = {"n": Count()}


def behind(operator: Operator, *before: Operator) -> Graph:
    """source -> before ... -> operator -> sink"""
    graph = Graph("g")
    stream = graph.source("s", S)
    for number, one in enumerate(before):
        stream = graph.add(f"b{number}", one, stream)
    graph.sink("o", graph.add("last", operator, stream))
    return graph


@pytest.mark.parametrize(
    ("operator", "what"),
    [
        (WindowAggregate(Tumbling(10), COUNT), "results"),
        (WindowAggregate({"a": Tumbling(10)}, COUNT), "results"),
        (Distinct(("ts",)), "every value is kept"),
    ],
)
def test_what_waits_for_promises_that_nobody_makes_is_told(operator: Operator, what: str) -> None:
    before = Filter(pa.compute.field("ts") >= 0)
    assert waiting(behind(operator, before).plan()) == {
        "s": "graph 'g': no Punctuate follows source 's', so unless its feed carries punctuation, "
        f"these wait for its end: 'last' ({what}); put a Punctuate behind it"
    }
    assert waiting(behind(operator, before, Punctuate(Ordered(), 1)).plan()) == {}


@pytest.mark.parametrize(
    "operator", [Filter(pa.compute.field("ts") >= 0), WindowAggregate(TupleBased(2, 2), COUNT)]
)
def test_what_waits_for_no_promise_is_not(operator: Operator) -> None:
    assert waiting(behind(operator).plan()) == {}


def test_one_input_without_promises_is_enough() -> None:
    graph = Graph("g")
    left = graph.add("edge", Punctuate(Ordered(), 1), graph.source("l", S))
    right = graph.source("r", S)
    both = graph.add("both", Meld(2), left, right)
    graph.sink("counts", graph.add("count", WindowAggregate(Tumbling(10), COUNT), both))
    graph.sink("pairs", graph.add("join", OAJoin([], Band(1, 1)), left, right))
    told = waiting(graph.plan())
    assert list(told) == ["r"]
    assert "'join' (every tuple is kept), 'count' (results);" in told["r"]


def pages(number: int, rows: int = 1) -> Iterator[Message]:
    return (Page.of(S, {"ts": range(n, n + rows)}) for n in range(number))


@pytest.mark.parametrize(
    ("feed", "lines"),
    [
        (pages(99), 0),
        (pages(300), 1),
        (pages(2, 50_000), 1),
        (itertools.chain([Linear(0)], pages(300)), 0),
        (itertools.chain(pages(99), [Linear(50)], pages(0)), 0),
    ],
    ids=["few", "many pages", "many tuples", "promises", "promises later"],
)
def test_a_run_says_it_once_where_much_waits(
    feed: Iterator[Message], lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    replay(behind(WindowAggregate(Tumbling(10), COUNT)), {"s": feed})
    assert len(caplog.messages) == lines
    assert all("wait for its end: 'last' (results)" in line for line in caplog.messages)
