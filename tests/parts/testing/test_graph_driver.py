"""GraphDriver: feed, let time pass, expect."""

from __future__ import annotations

import pyarrow as pa
import pytest

from oop_engine import ContractError, Graph, Linear, Page, Schema, UsageError
from oop_engine.operators import (
    BoundedDisorder,
    Count,
    Late,
    Meld,
    Ordered,
    Punctuate,
    Tumbling,
    WindowAggregate,
)
from oop_engine.policies import Heartbeat
from oop_engine.testing import GraphDriver

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")


def requests() -> Graph:
    graph = Graph("requests")
    east = graph.add("east-edge", Punctuate(Ordered(), 10), graph.source("east", SCHEMA))
    west = graph.add(
        "west-edge", Punctuate(BoundedDisorder(5), 10, late=Late.DIVERT), graph.source("west", SCHEMA)
    )
    graph.sink("late", west["late"])
    both = graph.add("both", Meld(2), east, west["out"])
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(10), {"n": Count()}, by=("k",)), both))
    return graph


def row(ts: int, k: str = "a") -> dict:
    return {"ts": ts, "k": k}


def test_results_are_expected_step_by_step() -> None:
    driver = GraphDriver(requests())
    driver.feed("east", [row(1), row(11)])
    driver.feed("west", Page.of(SCHEMA, {"ts": [9], "k": ["b"]}))
    driver.expect("out", [])
    assert driver.state().partials == 3
    driver.feed("west", [row(16)])
    driver.expect(
        "out",
        [
            {"window_start": 0, "window_end": 10, "k": "b", "n": 1},
            {"window_start": 0, "window_end": 10, "k": "a", "n": 1},
        ],
    )
    assert driver.punctuation("out") == [Linear(10), Linear(20)]
    driver.feed("west", [row(3)])
    assert driver.rows("late") == [row(3)]
    assert driver.counts("west-edge") == {"late": 1}
    driver.end("east")
    driver.end()
    assert [r["n"] for r in driver.rows("out")] == [2]
    assert driver.rows("out") == []


def test_time_passes_when_the_test_says_so() -> None:
    graph = Graph("lull")
    policy = Heartbeat(Ordered(), threshold=10, slack=5, every=10)
    edge = graph.add("edge", Punctuate(policy, 10), graph.source("in", SCHEMA))
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(10), {"n": Count()}), edge))
    driver = GraphDriver(graph)
    driver.feed("in", [row(1)], now=2)
    driver.clock(10)
    assert driver.rows("out") == []
    driver.clock(20)
    driver.expect("out", [{"window_start": 0, "window_end": 10, "n": 1}])


def test_to_move_changes_nothing() -> None:
    stayed, moved = GraphDriver(requests()), GraphDriver(requests())
    for driver in (stayed, moved):
        driver.feed("east", [row(1), row(12)])
        if driver is moved:
            driver.move()
        driver.feed("west", [row(5, "b")])
        driver.end()
    assert stayed.rows("out") == moved.rows("out") != []


def test_what_was_expected_and_did_not_come_is_told() -> None:
    driver = GraphDriver(requests())
    driver.feed("east", [row(1)])
    driver.end()
    with pytest.raises(
        AssertionError, match=r"sink 'out': missing \[\{.*'n': 2.*\], not expected \[\{.*'n': 1"
    ):
        driver.expect("out", [{"window_start": 0, "window_end": 10, "k": "a", "n": 2}])


def test_punctuation_is_held_against_the_tuples() -> None:
    graph = Graph("bare")
    graph.sink("out", graph.source("in", SCHEMA))
    driver = GraphDriver(graph)
    driver.feed("in", Linear(10))
    with pytest.raises(ContractError, match="'ts': 5"):
        driver.feed("in", [row(5)])


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda d: d.feed("north", [row(1)]), UsageError, "'north'"),
        (
            lambda d: d.feed("east", [{"ts": 1, "K": 5}]),
            ContractError,
            "no column 'K'; did you mean k",
        ),
        (lambda d: d.rows("in"), UsageError, "has no sink 'in'; there are late, out"),
        (lambda d: d.counts("nobody"), UsageError, "has no operator 'nobody'; there are east-edge"),
    ],
)
def test_wrong_names_and_tuples_are_refused(wrong, error, words) -> None:
    with pytest.raises(error, match=words):
        wrong(GraphDriver(requests()))
