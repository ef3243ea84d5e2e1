from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, ContractError, Linear, Operator, Page, UsageError
from oop_engine.core.graphs.graph import Graph
from oop_engine.errors import OperatorError
from oop_engine.extend import Emission, Message
from oop_engine.runners.dispatch import Result
from oop_engine.runners.event_loop import run_async
from oop_engine.runners.inline import Inline
from oop_engine.runners.local import Local
from oop_engine.testing import multiset
from tests.children import started
from tests.parts.toys import Fail, Hold, Promise, chain, diamond, merged, page_of


def rows(results: list[Result]) -> list[tuple[str, dict]]:
    return [(r.sink, row) for r in results if isinstance(r.message, Page) for row in r.message.to_pylist()]


def as_multiset(results: list[Result]) -> object:
    return multiset({"sink": sink, **row} for sink, row in rows(results))


EVENTS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), max_size=16)


@pytest.mark.parametrize("build", [lambda: merged(5), lambda: merged(60, clock_every=10, lull=100), diamond])
def test_local_gives_what_inline_gives(build: Callable[[], Graph]) -> None:
    @given(EVENTS, st.integers(1, 4), st.integers(1, 3), st.booleans())
    def holds(events: list[tuple[str, int]], size: int, capacity: int, at_once: bool) -> None:
        expected: list[Result] = []
        found: list[Result] = []
        inline = Inline(build(), expected.append, check=False)
        sources = [node.name for node in inline.plan.of_kind("source")]
        pages: list[tuple[str, Page]] = []
        for start in range(0, len(events), size):
            for source in sources:
                part = [(i, ts) for i, (name, ts) in enumerate(events) if len(sources) == 1 or name == source]
                part = [(ts, i) for i, ts in part if start <= i < start + size]
                if part:
                    pages.append((source, page_of(part, [i for _, i in part])))

        async def main() -> None:
            async with Local(build(), found.append, capacity=capacity) as local:
                for source, page in pages:
                    await local.push(source, page, at_once=at_once)
                await local.end(sources[-1])

        for source, page in pages:
            inline.push(source, page)
        for source in sources:
            inline.end(source)
        inline.drain()
        run_async(main())
        assert as_multiset(found) == as_multiset(expected)

    holds()


def running() -> set[str]:
    me = asyncio.current_task()
    return {task.get_name() for task in asyncio.all_tasks() if task is not me}


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(50):
        await asyncio.sleep(0)


def gated(local: Local, name: str) -> asyncio.Event:
    """Let no page go out of an operator before the event."""
    gate = asyncio.Event()
    send = local.way.send

    async def wait(routes, message, now, born, *, alone=False) -> None:  # type: ignore[no-untyped-def]
        if routes is local._stations[name].routes[0] and isinstance(message, Page):
            await gate.wait()
        await send(routes, message, now, born, alone=alone)

    local.way.send = wait  # type: ignore[assignment, method-assign]
    return gate


async def test_a_slow_consumer_makes_the_producer_wait() -> None:
    class Slow(Operator):
        """Its runner cannot send on: the inbox behind it is full."""

    pushed: list[int] = []
    local = Local(chain(Operator(), Slow()), lambda _: None, capacity=2, exact=True)
    gate = gated(local, "o1")

    async def produce() -> None:
        for number in range(100):
            await local.push("source", page_of([(number, number)]), number)
            pushed.append(number)

    async with local:
        producer = asyncio.ensure_future(produce())
        await settle()
        assert len(pushed) == 6  # two inboxes of 2, and one in the hands of each operator
        await settle()
        assert len(pushed) == 6
        gate.set()
        await producer
    assert len(pushed) == 100
    assert local.statistics.edges["o1 -> sink"].tuples == 100


async def push_into(local: Local, *messages: tuple[str, Message]) -> None:
    async with local:
        for source, message in messages:
            await local.push(source, message)


def push_many(local: Local) -> Awaitable[None]:
    async def push() -> None:
        for number in range(1000):
            await local.push("source", page_of([(number, number)]))

    return push()


@pytest.mark.parametrize("at", [0, 5, 999])
async def test_an_error_cancels_everything_and_comes_out_bare(at: int) -> None:
    with pytest.raises(OperatorError, match=f"no {at}"):
        async with Local(chain(Operator(), Fail(at), Hold()), print, capacity=2) as local:
            await push_many(local)
    assert running() == set()


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_small_page_that_is_handled_at_once_is_answered_before_the_push_returns(
    at_once: bool,
) -> None:
    results: list[Result] = []
    async with Local(chain(Operator(), Operator()), results.append) as local:
        await settle()  # its tasks wait for messages
        await local.push("source", page_of([(1, 1)]), at_once=at_once)
        assert len(results) == at_once
        await local.push("source", page_of([(n, n) for n in range(100)]), at_once=at_once)
        assert len(results) == at_once  # a page that is not small waits for its turn
    assert sum(result.message.rows for result in results if isinstance(result.message, Page)) == 101


async def test_an_error_of_an_operator_that_works_at_once_is_that_of_its_pusher_too() -> None:
    async def push(local: Local) -> None:
        async with local:
            await settle()
            await local.push("source", page_of([(0, 0)]), at_once=True)
            for number in (1, 2):
                with pytest.raises(OperatorError, match="no 1"):
                    await local.push("source", page_of([(number, number)]), at_once=True)

    with pytest.raises(OperatorError, match="no 1"):
        await push(Local(chain(Operator(), Fail(1)), print))
    assert running() == set()


async def test_an_error_while_the_sources_are_ended_comes_out_bare() -> None:
    results: list[Result] = []
    with pytest.raises(OperatorError, match="no end"):
        async with Local(chain(Fail(FOREVER), Operator()), results.append, capacity=1) as local:
            await local.push("source", page_of([(1, 1)]))
    assert running() == set()


async def test_an_error_at_the_end_of_one_source_while_another_is_ended() -> None:
    graph = Graph("two")
    schema = chain(Operator()).plan().schemas
    first = next(iter(schema.values()))
    graph.sink("one", graph.add("fail", Fail(3), graph.source("a", first)))
    graph.sink("two", graph.add("pass", Operator(), graph.source("b", first)))
    local = Local(graph, lambda _: None, capacity=1)
    with pytest.raises(OperatorError, match="no 3"):  # still ahead when the block is left
        await push_into(local, ("a", page_of([(1, 1)])), ("b", page_of([(1, 1)])), ("a", page_of([(1, 3)])))
    assert running() == set()


async def test_an_error_of_the_block_comes_out_bare_too() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with Local(chain(Hold()), print):
            raise KeyError("mine")
    assert running() == set()


async def test_an_error_of_the_receiver_comes_out_bare() -> None:
    def refuse(_: Result) -> None:
        raise BrokenPipeError("nobody listens")

    with pytest.raises(BrokenPipeError, match="nobody listens"):
        async with Local(chain(Hold()), refuse) as local:
            await local.push("source", page_of([(1, 1)]))
    assert running() == set()


async def test_cancelling_leaves_no_task() -> None:
    inside = asyncio.Event()

    async def main() -> None:
        async with Local(chain(Operator(), Hold()), print) as local:
            await local.push("source", page_of([(1, 1)]))
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.ensure_future(main())
    await inside.wait()
    assert {"o0", "o1"} <= running()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running() == set()


async def test_a_source_that_lies_is_caught_at_its_edge() -> None:
    local = Local(chain(Hold()), print, check=True)
    with pytest.raises(ContractError, match=r"^edge 'source -> o0': tuple {'ts': 4, 'id': 1} came after"):
        await push_into(local, ("source", Linear(5)), ("source", page_of([(4, 1)])))


async def test_an_operator_that_lies_is_caught_at_its_edge() -> None:
    class Liar(Operator):
        def on_page(self, port: int, page: Page) -> Iterator[Emission]:
            yield 0, Linear(100)
            yield 0, page

    with pytest.raises(ContractError, match=r"^edge 'o0 -> sink': tuple"):
        async with Local(chain(Liar()), lambda _: None, check=True) as local:
            await local.push("source", page_of([(4, 1)]))


async def test_wrong_sources_are_refused() -> None:
    async with Local(merged(0), print) as local:
        with pytest.raises(UsageError, match="graph 'merged' has no source 'c'; it has a, b"):
            await local.push("c", Linear(1))
        await local.end("a")
        with pytest.raises(UsageError, match="source 'a' has ended"):
            await local.push("a", Linear(1))
        with pytest.raises(UsageError, match="source 'a' has ended"):
            await local.end("a")


async def test_ticks_after_the_end_of_a_source_block_nobody() -> None:
    results: list[Result] = []
    async with Local(merged(0, clock_every=10, lull=5), results.append, check=True, capacity=1) as local:
        assert local.clock_every == 10
        await local.push("a", page_of([(10, 1)], [10]))
        await local.end("a")
        async with asyncio.timeout(20):
            for now in range(20, 1000, 10):
                await local.clock(now)
        await local.push("b", page_of([(2000, 2)], [2000]))
    assert [row["id"] for _, row in rows(results)] == [1, 2]
    assert local.operators["left"].ticks == []  # type: ignore[attr-defined]
    assert len(local.operators["right"].ticks) == 98  # type: ignore[attr-defined]


async def test_no_tick_overtakes_a_page_on_its_way() -> None:
    results: list[Result] = []
    lull = Promise(slack=0, clock_every=10, lull=5)
    async with Local(chain(Operator(), Operator(), lull, Hold()), results.append, check=True) as local:
        for ts in range(3, 300, 10):
            await local.push("source", page_of([(ts, ts)], [ts]))
            await local.clock(ts + 7)
    assert [row["id"] for _, row in rows(results)] == [*range(3, 300, 10)]
    assert local.operators["o2"].ticks == [*range(10, 310, 10)]  # type: ignore[attr-defined]


async def test_counts_and_states_are_told() -> None:
    local = Local(chain(Promise(5), Hold()), lambda _: None)
    async with local:
        await local.push("source", page_of([(ts, ts) for ts in range(40)], list(range(40))))
    assert local.statistics.count("held") == 40
    assert local.statistics.state.tuples == 0
    assert 10 <= local.statistics.peak.tuples <= 40


def test_uvloop_is_used_where_it_is_there() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def loop() -> type:
        return type(asyncio.get_running_loop())

    assert issubclass(run_async(loop()), uvloop.Loop)


INTERRUPTED = """
import asyncio, sys
from oop_engine.runners.event_loop import run_async
from oop_engine.runners.local import Local
from tests.parts.toys import Hold, Promise, chain, page_of

async def main():
    try:
        async with Local(chain(Promise(5), Hold()), lambda _: None) as local:
            await local.push("source", page_of([(1, 1)]))
            print("ready", flush=True)
            while True:
                await local.push("source", page_of([(1, 1)]))
                await asyncio.sleep(0)
    finally:
        left = [t.get_name() for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        print("left", left, flush=True)

try:
    run_async(main())
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_ends_it_promptly_and_leaves_no_task() -> None:
    with started([sys.executable, "-c", INTERRUPTED]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
    assert out == "left []\n"
    assert process.returncode == 130
