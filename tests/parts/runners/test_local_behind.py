"""Local when operators are behind: what waits is worked off together, and nothing else is different."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import Linear, Operator, Page, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.errors import OperatorError
from oop_engine.extend import Emission, Message
from oop_engine.operators import (
    Band,
    BoundedDisorder,
    Count,
    Filter,
    Late,
    Meld,
    OAJoin,
    PerGroup,
    Punctuate,
    Sum,
    Tumbling,
    Upstream,
    WindowAggregate,
)
from oop_engine.operators.in_order.sort import Sort
from oop_engine.runners.dispatch import Result
from oop_engine.runners.event_loop import run_async
from oop_engine.runners.inline import Inline
from oop_engine.runners.local import Local
from oop_engine.system.turn import Turn
from tests.parts.toys import Hold, Promise, chain, page_of

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "id": pa.int64()}, "ts", "s")
Pushed = list[tuple[str, Message]]


def windows(edge: Operator) -> Graph:
    """Tuples of one source, selected, counted in windows of each group; late ones are a result too."""
    graph = Graph("windows")
    some = graph.add("some", Filter(pc.field("id") >= 2), graph.source("left", SCHEMA))
    promised = graph.add("progress", edge, some)
    if "late" in edge.outputs:
        graph.sink("late", promised["late"])
    aggregate = WindowAggregate(Tumbling(10), {"n": Count(), "s": Sum("id")}, by=("k",))
    graph.sink("counts", graph.add("count", aggregate, promised))
    return graph


def joined() -> Graph:
    """Two sources, joined, and melded."""
    graph = Graph("joined")
    left, right = (
        graph.add(f"progress-{name}", Punctuate(BoundedDisorder(9), 5), graph.source(name, SCHEMA))
        for name in ("left", "right")
    )
    graph.sink("pairs", graph.add("join", OAJoin(keys=(("k", "k"),), band=Band(3, 3)), left, right))
    melded = graph.add("meld", Meld(2), left, right)
    graph.sink("all", graph.add("count", WindowAggregate(Tumbling(10), {"n": Count()}), melded))
    return graph


GRAPHS = {
    "promises at multiples": lambda: windows(Punctuate(BoundedDisorder(9), 5, Late.DIVERT)),
    "promises by the page": lambda: windows(Punctuate(BoundedDisorder(9), late=Late.DIVERT)),
    "promises of groups": lambda: windows(Punctuate(PerGroup(BoundedDisorder(4), ("k",)), 5, Late.DIVERT)),
    "promises of the source": lambda: windows(Punctuate(Upstream(), late=Late.DIVERT)),
    "sorted": lambda: windows(Sort(BoundedDisorder(9), 5)),
    "sorted by the page": lambda: windows(Sort(BoundedDisorder(9))),
    "two sources": joined,
}
TUPLES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2)), max_size=40)


@st.composite
def pushes(draw: st.DrawFn, sources: list[str], *, arrivals: bool) -> Pushed:
    """Pages of a few tuples, with a promise in between that the source may not keep to."""
    tuples = [(ts, k, number) for number, (ts, k) in enumerate(draw(TUPLES))]
    found: Pushed = []
    while tuples:
        size = draw(st.integers(1, 4))
        part, tuples = tuples[:size], tuples[size:]
        columns = {name: [row[n] for row in part] for n, name in enumerate(SCHEMA.names)}
        page = Page.of(SCHEMA, columns, columns["id"] if arrivals else None)
        found.append((draw(st.sampled_from(sources)), page))
        if draw(st.integers(0, 5)) == 0:
            found.append((found[-1][0], Linear(draw(st.integers(0, 40)))))
    return found


def inline(graph: Graph, pushed: Pushed) -> tuple[list[Result], Inline]:
    results: list[Result] = []
    runner = Inline(graph, results.append)
    for source, message in pushed:
        runner.push(source, message)
        runner.drain()
    for node in runner.plan.of_kind("source"):
        runner.end(node.name)
    runner.drain()
    return results, runner


def local(graph: Graph, pushed: Pushed, **more: Any) -> tuple[list[Result], Local]:
    """Push everything before any operator gets its turn, as far as the queues take it."""
    results: list[Result] = []
    runner = Local(graph, results.append, **more)

    async def main() -> None:
        async with runner:
            for source, message in pushed:
                await runner.push(source, message)

    run_async(main())
    return results, runner


def rows(results: list[Result], *, moments: bool = False) -> Counter[Any]:
    """Return what came out of each sink, with the moment if asked for."""
    return Counter(
        (r.sink, r.now if moments else None, *row.items())
        for r in results
        if isinstance(r.message, Page)
        for row in r.message.to_pylist()
    )


@pytest.mark.slow(keep=3)
@pytest.mark.parametrize("name", GRAPHS)
@given(st.data(), st.booleans(), st.integers(1, 16), st.sampled_from([0, 2**12, 2**21]))
def test_results_and_late_tuples_are_those_of_inline(
    name: str, data: st.DataObject, arrivals: bool, capacity: int, room: int
) -> None:
    graph = GRAPHS[name]()
    sources = [node.name for node in graph.plan().of_kind("source")]
    if len(sources) > 1:
        arrivals = False  # first come, first served, else
    pushed = data.draw(pushes(sources, arrivals=arrivals))
    expected, one = inline(graph, pushed)
    exact = data.draw(st.booleans())
    found, other = local(graph, pushed, capacity=capacity, room=room, exact=exact)
    assert rows(found, moments=arrivals and exact) == rows(expected, moments=arrivals and exact)
    assert other.statistics.count("late") == one.statistics.count("late")
    assert [(e.tuples) for e in other.statistics.edges.values()] == [
        e.tuples for e in one.statistics.edges.values()
    ]


class Counted(Operator):
    """Passes everything, and knows how often it was called."""

    def open(self) -> None:
        self.pages: list[int] = []
        self.promises: list[int] = []

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        self.pages.append(len(page))
        yield 0, page

    def on_punctuation(self, port: int, punctuation: Message) -> Iterator[Emission]:
        assert isinstance(punctuation, Linear)
        self.promises.append(punctuation.below)
        yield 0, punctuation


def test_a_flood_of_small_pages_is_worked_off_in_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turn, "is_long", lambda turn: False)  # also on a slow machine
    pushed: Pushed = []
    for number in range(500):
        pushed += [("source", page_of([(number, number)])), ("source", Linear(number))]
    results, runner = local(chain(Counted(), Hold()), pushed)
    counted = runner.operators["o0"]
    assert isinstance(counted, Counted)
    assert sum(counted.pages) == 500
    assert len(counted.pages) == len(counted.promises) - 1 <= 2  # the last one is of the end
    edge = runner.statistics.edges["source -> o0"]
    assert (edge.pages, edge.punctuations) == (500, 500)
    assert sum(rows(results).values()) == 500


async def test_an_operator_that_is_not_behind_takes_each_message_as_it_comes() -> None:
    results: list[Result] = []
    async with Local(chain(Counted()), results.append) as runner:
        for number in range(20):
            await runner.push("source", page_of([(number, number)]))
            while len(results) <= number:
                await asyncio.sleep(0)
    counted = runner.operators["o0"]
    assert isinstance(counted, Counted)
    assert counted.pages == [1] * 20


async def test_a_small_message_goes_through_idle_operators_in_one_task() -> None:
    ran_by: list[str] = []

    class Noted(Operator):
        def on_page(self, port: int, page: Page) -> Iterator[Emission]:
            task = asyncio.current_task()
            assert task is not None
            ran_by.append(task.get_name())
            yield 0, page

    async with Local(chain(*(Noted() for _ in range(3))), lambda _: None) as runner:
        await asyncio.sleep(0)
        for rows in (1, 65):
            await runner.push("source", page_of([(0, number) for number in range(rows)]))
            await runner.settle()
    assert ran_by == ["o0", "o0", "o0", "o0", "o1", "o2"]


async def test_others_wait_while_a_message_is_handled_for_an_operator() -> None:
    """A receiver waits in the task of one input: what comes from the other one is taken later, by its own task."""
    graph, handed, results = Graph("two"), asyncio.Event(), list[int]()
    schema = page_of([(0, 0)]).schema
    edges = [graph.add(f"edge-{name}", Operator(), graph.source(name, schema)) for name in "ab"]
    graph.sink("out", graph.add("meld", Meld(2), *edges))

    async def receive(result: Result) -> None:
        if isinstance(result.message, Page):
            await handed.wait()
            results.extend(result.message.column("id").to_pylist())

    async with Local(graph, receive) as runner:
        for number, name in enumerate("abbaab"):
            await runner.push(name, page_of([(0, number)]))
            for _ in range(5):
                await asyncio.sleep(0)
        settled = asyncio.ensure_future(runner.settle())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not settled.done()
        assert not results
        handed.set()
        await settled
        assert sorted(results) == list(range(6))
        assert [n for n in results if n in (0, 3, 4)] == [0, 3, 4]
        assert [n for n in results if n in (1, 2, 5)] == [1, 2, 5]


async def test_an_error_behind_idle_operators_names_its_own() -> None:
    class Breaks(Operator):
        def on_page(self, port: int, page: Page) -> Iterator[Emission]:
            raise ZeroDivisionError

    with pytest.raises(OperatorError, match="operator 'o1' \\(Breaks\\)"):
        async with Local(chain(Operator(), Breaks(), Operator()), lambda _: None) as runner:
            await runner.push("source", page_of([(0, 0)]))


async def test_small_pages_wait_in_bounded_memory() -> None:
    pushed = 0
    local = Local(chain(Counted(), Counted()), lambda _: None, capacity=2, room=20_000)
    gate, send = asyncio.Event(), local.way.send

    async def wait(routes: Any, message: Any, now: int, born: float, *, alone: bool = False) -> None:
        if routes is local._stations["o1"].routes[0]:
            await gate.wait()
        await send(routes, message, now, born, alone=alone)

    local.way.send = wait  # type: ignore[method-assign]

    async def produce() -> None:
        nonlocal pushed
        for number in range(1_000):
            await local.push("source", page_of([(number, number)]))
            pushed += 1

    async with local:
        producer = asyncio.ensure_future(produce())
        for _ in range(50):
            await asyncio.sleep(0)
        waiting = pushed
        assert 20 < waiting < 500
        for _ in range(50):
            await asyncio.sleep(0)
        assert pushed == waiting
        gate.set()
        await producer
    assert local.statistics.edges["o1 -> sink"].tuples == 1_000


@pytest.mark.parametrize("ticks", [True, False])
def test_a_tick_is_never_passed(ticks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turn, "is_long", lambda turn: False)  # also on a slow machine
    found: list[Result] = []
    local = Local(chain(Promise(0, clock_every=10, lull=5), Hold()), found.append)

    async def main() -> None:
        async with local:
            for number in range(0, 100, 10):
                await local.push("source", page_of([(number, number)]))
                if ticks:
                    await local.clock(number + 10)

    run_async(main())
    assert sum(rows(found).values()) == 10  # else the next page would be behind the clock's promise
    assert local.operators["o0"].ticks == [*range(10, 110, 10)] * ticks  # type: ignore[attr-defined]
    assert len([r for r in found if isinstance(r.message, Page)]) == (10 if ticks else 3)
