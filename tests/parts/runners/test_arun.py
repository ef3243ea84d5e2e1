"""The asynchronous entry: the results of ``run`` inside a running loop; who is slow makes the feeds wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import ContractError, Graph, Operator, Page, UsageError, arun, run
from oop_engine.errors import OperatorError
from oop_engine.extend import Message
from oop_engine.outcomes import Result
from oop_engine.testing import multiset
from tests.parts.toys import SCHEMA, Fail, Hold, Promise, chain, merged, page_of

MOST_S = 60


def pages(count: int, every: int = 1) -> list[Message]:
    """Pages of one tuple; number ``n`` is of ``n * every``, and comes then."""
    return [page_of([(n * every, n)], [n * every]) for n in range(count)]


class Feed:
    """An asynchronous feed that knows how much was read of it, and whether it was closed."""

    def __init__(self, messages: Iterable[Any], until: asyncio.Event | None = None) -> None:
        self._messages, self._until = messages, until
        self.read, self.closed = 0, False
        self._begun = self._each()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._begun

    async def aclose(self) -> None:
        await self._begun.aclose()  # type: ignore[attr-defined]
        self.closed = True

    async def _each(self) -> AsyncIterator[Any]:
        for message in self._messages:
            self.read += 1
            yield message
            await asyncio.sleep(0)
        if self._until is not None:
            await self._until.wait()


def others() -> set[str]:
    """Tasks beside the test's own."""
    return {task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()}


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(300):
        await asyncio.sleep(0)


def two(rows: int) -> dict[str, list[Message]]:
    return {"a": pages(rows, 3), "b": pages(rows, 5)}


async def test_inside_a_running_loop_it_gives_what_run_gives() -> None:
    found = await arun(merged(5, clock_every=10, lull=20), two(40))
    expected = await asyncio.to_thread(run, merged(5, clock_every=10, lull=20), two(40), on="local")
    inline = run(merged(5, clock_every=10, lull=20), two(40))
    assert found.results == expected.results
    assert {n: e.tolist() for n, e in found.emitted.items()} == {
        n: e.tolist() for n, e in inline.emitted.items()
    }
    assert multiset(found.results["sink"].to_pylist()) == multiset(inline.results["sink"].to_pylist())
    assert found.tuples == inline.tuples == 80


@pytest.mark.parametrize("both", [True, False])
async def test_feeds_may_be_asynchronous_all_or_some(both: bool) -> None:
    feeds = two(40)
    told: list[int] = []
    live = {"a": Feed(feeds["a"]), "b": Feed(feeds["b"]) if both else feeds["b"]}
    found = await arun(merged(5), live, check=True, on_tuples=told.append)
    expected = run(merged(5), two(40)).results["sink"]
    assert multiset(found.results["sink"].to_pylist()) == multiset(expected.to_pylist())
    assert found.tuples == sum(told) == 80
    assert live["a"].closed  # type: ignore[union-attr]


async def test_an_asynchronous_feed_may_bring_arrow_data() -> None:
    table = pa.table({"ts": [1, 2, 3], "id": [7, 8, 9]})
    found = await arun(chain(Operator()), {"source": Feed([table, page_of([(4, 1)])])})
    assert found.results["sink"].column("id").to_pylist() == [7, 8, 9, 1]


async def test_a_feed_that_is_silent_makes_nobody_wait() -> None:
    """Its heartbeat goes by the arrivals of the other feed, so results leave before it has ended."""
    enough = asyncio.Event()

    def seen(result: Result) -> None:
        if isinstance(result.message, Page) and result.now >= 150:
            enough.set()

    graph = merged(0, clock_every=10, lull=20)
    async with asyncio.timeout(MOST_S):
        await arun(graph, {"a": pages(60, 5), "b": Feed([], until=enough)}, on_result=seen)
    assert enough.is_set()


async def test_without_a_clock_there_are_no_ticks_and_no_arrivals() -> None:
    class Timeless(Operator):
        makes_progress = True
        clock_every = 1

        def on_page(self, port: int, page: Page) -> Any:
            assert page.arrival is None
            yield 0, page

        def on_clock(self, now: int) -> Any:
            raise AssertionError(now)

    found = await arun(chain(Timeless()), {"source": Feed(pages(20, 7))}, flat_out=True)
    assert found.results["sink"].num_rows == 20


async def test_a_slow_consumer_makes_the_feed_wait() -> None:
    gate = asyncio.Event()
    taken: list[Result] = []

    async def take(result: Result) -> None:
        await gate.wait()
        if isinstance(result.message, Page):
            taken.append(result)

    feed = Feed(pages(500))
    running = asyncio.ensure_future(arun(chain(Operator(), Operator()), {"source": feed}, on_result=take))
    await settle()
    stopped_at = feed.read
    assert 0 < stopped_at <= 2 * 16 + 5  # what two queues hold, and what is in somebody's hands
    await settle()
    assert (feed.read, taken) == (stopped_at, [])
    gate.set()
    outcome = await running
    assert (feed.read, len(taken), outcome.results["sink"].num_rows) == (500, 500, 0)


async def test_results_of_a_sink_are_taken_one_after_the_other() -> None:
    inside, ids = 0, []

    async def take(result: Result) -> None:
        nonlocal inside
        inside += 1
        await asyncio.sleep(0)
        assert inside == 1
        inside -= 1
        if isinstance(result.message, Page):
            ids.extend(result.message.column("id").to_pylist())

    await arun(chain(Promise(3), Hold()), {"source": pages(50)}, on_result=take)
    assert ids == [*range(50)]


async def test_cancelling_it_leaves_no_task_and_closes_the_feeds() -> None:
    feed = Feed(pages(3), until=asyncio.Event())
    running = asyncio.ensure_future(arun(chain(Operator(), Hold()), {"source": feed}))
    await settle()
    assert {"o0", "o1", "feed source"} <= others()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (others(), feed.closed) == (set(), True)


async def test_cancelling_while_a_consumer_waits_is_no_error_of_the_consumer() -> None:
    async def take(result: Result) -> None:
        await asyncio.Event().wait()

    running = asyncio.ensure_future(arun(chain(Operator()), {"source": Feed(pages(9))}, on_result=take))
    await settle()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert others() == set()


@pytest.mark.parametrize("live", [True, False])
async def test_an_error_of_an_operator_comes_out_bare(live: bool) -> None:
    feed = Feed(pages(100))
    feeds = {"source": feed if live else pages(100)}
    with pytest.raises(OperatorError, match=r"^graph 'chain', operator 'o1' \(Fail\).* no 40"):
        await arun(chain(Operator(), Fail(40), Hold()), feeds)
    assert (others(), feed.closed) == (set(), live)


async def test_an_error_of_a_feed_comes_out_bare() -> None:
    def cut_off() -> Any:
        yield page_of([(1, 1)])
        raise EOFError("cut off")

    with pytest.raises(EOFError, match="cut off"):
        await arun(merged(0), {"a": Feed(cut_off()), "b": (other := Feed(pages(1000)))})
    assert (others(), other.closed) == (set(), True)


@pytest.mark.parametrize(
    ("raised", "found", "words"),
    [
        (BrokenPipeError("nobody listens"), BrokenPipeError, "nobody listens"),
        (asyncio.CancelledError("mine"), OperatorError, "graph 'chain', sink 'sink', page of 1 row"),
    ],
)
async def test_an_error_of_a_consumer_comes_out(
    raised: BaseException, found: type[Exception], words: str
) -> None:
    async def refuse(result: Result) -> None:
        await asyncio.sleep(0)
        raise raised

    with pytest.raises(found, match=words):
        await arun(chain(Operator()), {"source": pages(3)}, on_result=refuse)
    assert others() == set()


async def asks_for_a_loop() -> None:
    run(chain(Operator()), {"source": []}, on="local")


async def asks_with_a_live_feed() -> None:
    run(chain(Operator()), {"source": Feed([])})


async def asks_with_a_consumer() -> None:
    async def take(result: Result) -> None: ...

    run(chain(Operator()), {"source": []}, on_result=take)


@pytest.mark.parametrize("ask", [asks_for_a_loop, asks_with_a_live_feed, asks_with_a_consumer])
async def test_what_needs_a_running_loop_names_the_way_out(ask: Callable[[], Any]) -> None:
    with pytest.raises(UsageError, match=r"^graph 'chain': .*: await arun\(graph, feeds\) instead$"):
        await ask()


def test_spark_reads_no_live_feed() -> None:
    with pytest.raises(
        UsageError, match=r"on Spark a feed is read again .* got asynchronous ones for source: write"
    ):
        run(chain(Operator()), {"source": Feed([])}, on="spark")


async def test_live_feeds_have_a_pace_of_their_own() -> None:
    with pytest.raises(
        UsageError, match="asynchronous feeds have a pace of their own; got speed=2: leave it out"
    ):
        await arun(chain(Operator()), {"source": Feed([])}, speed=2)


async def test_what_may_not_enter_is_refused_as_anywhere() -> None:
    with pytest.raises(ContractError, match="arrivals must not go back; got 4 s after 5: sort"):
        await arun(chain(Operator()), {"source": Feed([*pages(6), *pages(5)[4:]])})
    with pytest.raises(ContractError, match=r"row 1: a feed of arun takes a Page, .* got 'text' \(str\)"):
        await arun(chain(Operator()), {"source": Feed(["text"])})
    with pytest.raises(UsageError, match="got feeds for other"):
        await arun(chain(Operator()), {"other": Feed([])})


async def test_a_graph_without_operators_has_a_consumer_too() -> None:
    graph = Graph("straight")
    graph.sink("sink", graph.source("source", SCHEMA))
    taken = []

    async def take(result: Result) -> None:
        taken.append(result.sink)

    await arun(graph, {"source": Feed(pages(3))}, on_result=take)
    assert taken == ["sink"] * 3
