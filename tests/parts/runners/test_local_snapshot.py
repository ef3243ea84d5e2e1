"""A running ``Local`` is saved between two messages, and another one goes on from there."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import Graph, Linear, Page, Schema, UsageError
from oop_engine.errors import OperatorError, SnapshotError
from oop_engine.operators import (
    BoundedDisorder,
    Count,
    Meld,
    Ordered,
    PerGroup,
    Punctuate,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.outcomes import Result
from oop_engine.policies import Heartbeat
from oop_engine.runners.event_loop import run_async
from oop_engine.runners.local import Local
from oop_engine.testing import multiset
from tests.parts.toys import Fail, chain, page_of

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")
POLICIES = {
    "bounded": BoundedDisorder(7),
    "by-key": PerGroup(BoundedDisorder(3), by=("key",), linear=BoundedDisorder(9)),
    "heartbeat": Heartbeat(Ordered(), threshold=5, slack=2, every=4),
}


def counts(policy: str) -> Graph:
    graph = Graph("counts")
    edges = [
        graph.add(f"{name}-edge", Punctuate(POLICIES[policy]), graph.source(name, SCHEMA)) for name in "ab"
    ]
    count = WindowAggregate(Tumbling(10), {"n": Count()}, by=("key",))
    graph.sink("out", graph.add("count", count, graph.add("both", Meld(2), *edges)))
    return graph


def rows(results: list[Result]) -> object:
    return multiset(
        row for result in results if isinstance(result.message, Page) for row in result.message.to_pylist()
    )


EVENTS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.sampled_from("xyz")), max_size=20)


async def results_of(policy: str, parts: list[list[tuple[int, str, int, str]]], *, ending: bool) -> object:
    """Run parts one after the other, each in a ``Local`` of its own; ``ending``: source a ends with the first."""
    found: list[Result] = []
    saved: dict[str, bytes] = {}
    for number, part in enumerate(parts):
        local = Local(counts(policy), found.append, check=True)
        if number:
            local.restore(saved)
        async with local:
            for now, source, ts, key in part:
                await local.clock(now)
                await local.push(source, Page.of(SCHEMA, {"ts": [ts], "key": [key]}))
                await local.settle()
            if ending and not number:
                await local.end("a")
            if number < len(parts) - 1:
                saved = await local.snapshot()
                local.leave()
    return rows(found)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_snapshot_between_two_messages_changes_nothing(policy: str) -> None:
    @settings(max_examples=6, deadline=None)
    @given(EVENTS, st.integers(0, 20), st.booleans())
    def holds(given: list[tuple[str, int, str]], cut: int, ending: bool) -> None:
        events = [(now, *event) for now, event in enumerate(given)]
        left, right = events[:cut], [event for event in events[cut:] if not ending or event[1] == "b"]
        whole = run_async(results_of(policy, [left, right], ending=ending))
        again = run_async(results_of(policy, [left, [], right], ending=ending))
        assert whole == again == run_async(in_one(policy, left, right, ending=ending))

    holds()


async def in_one(policy: str, left: list, right: list, *, ending: bool) -> object:
    found: list[Result] = []
    async with Local(counts(policy), found.append) as local:
        for number, part in enumerate((left, right)):
            for now, source, ts, key in part:
                await local.clock(now)
                await local.push(source, Page.of(SCHEMA, {"ts": [ts], "key": [key]}))
                await local.settle()
            if ending and not number:
                await local.end("a")
    return rows(found)


def test_a_block_that_is_left_lets_nothing_out() -> None:
    found: list[Result] = []

    async def main() -> None:
        async with Local(counts("bounded"), found.append) as local:
            await local.push("a", Page.of(SCHEMA, {"ts": [1, 2], "key": ["x", "x"]}))
            await local.snapshot()
            local.leave()
        with pytest.raises(UsageError, match="has ended"):
            await local.push("a", Linear(3))

    run_async(main())
    assert rows(found) == multiset([])


def test_a_snapshot_of_another_graph_is_refused() -> None:
    async def main() -> None:
        async with Local(chain(Fail(1)), lambda result: None) as local:
            saved = await local.snapshot()
        with pytest.raises(SnapshotError, match="must have the states of"):
            Local(counts("bounded"), lambda result: None).restore(saved)

    run_async(main())


def test_who_waits_for_a_snapshot_has_the_error_of_an_operator() -> None:
    async def main() -> None:
        local = Local(chain(Fail(1)), lambda result: None)
        async with local:
            await local.push("source", page_of([(1, 1)]))
            await local.snapshot()

    with pytest.raises(OperatorError, match="no 1"):
        run_async(main())


async def test_a_captured_state_is_that_of_then_though_the_graph_goes_on() -> None:
    """Its arrays are packed later, on a thread, when the operator has long written to its own."""
    graph = Graph("captured")
    edge = graph.add("edge", Punctuate(BoundedDisorder(50)), graph.source("in", SCHEMA))
    windows = WindowAggregate(Tumbling(10), {"n": Count(), "s": Sum("ts")}, by=("key",))
    graph.sink("out", graph.add("count", windows, edge))
    async with Local(graph, lambda result: None) as local:
        for since in (0, 500):
            keys = [f"k{(since + n) % 700}" for n in range(600)]
            columns = {"ts": [n % 40 for n in range(600)], "key": keys}
            await local.push("in", Page.of(SCHEMA, columns))
            then = await local.snapshot()
            captured = await local.captured()
            await local.push("in", Page.of(SCHEMA, columns | {"ts": [since + n % 90 for n in range(600)]}))
            await local.settle()
            assert {name: packed() for name, packed in captured.items()} == then
        again = Local(graph, lambda result: None)
        again.restore(then)
        assert {n: op.snapshot() for n, op in again.operators.items()} == {
            n: then[n] for n in again.operators
        }
        local.leave()
