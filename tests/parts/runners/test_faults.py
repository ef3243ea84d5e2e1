"""What an error of an operator, of a function in it, or of a receiver becomes, under each runner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pyarrow as pa
import pytest

from oop_engine import ContractError, GroupWise, Linear, Operator, Page, Punctuation, replay
from oop_engine.core.operator import State
from oop_engine.errors import LateTuple, OperatorError
from oop_engine.extend import Emission, Message
from oop_engine.operators import Filter, Late, Ordered, Punctuate
from oop_engine.runners.dispatch import Result
from oop_engine.runners.event_loop import run_async
from oop_engine.runners.inline import Inline
from oop_engine.runners.local import Local
from tests.parts.toys import Fail, Hold, Union, chain, merged, page_of

Runner = Literal["inline", "local"]
BOTH = pytest.mark.parametrize("on", ["inline", "local"])


class Raises(Operator):
    """Raises at the message that ``at`` is true of."""

    def __init__(self, error: BaseException, at: Callable[[Any], bool] = lambda _: True) -> None:
        self.error, self.at = error, at

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        yield 0, page
        if self.at(page):
            raise self.error

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if self.at(punctuation):
            raise self.error
        yield 0, punctuation

    def on_end(self, port: int) -> Iterator[Emission]:
        if self.at("end"):
            raise self.error
        yield from ()


PAGES: list[Message] = [page_of([(n, n)], [n]) for n in range(5)]


@BOTH
@pytest.mark.parametrize("behind", [(), (Hold(),), (Operator(), Hold())], ids=len)
def test_a_cancelled_error_of_an_operator_is_an_error_like_any_other(
    on: Runner, behind: tuple[Operator, ...]
) -> None:
    failing = Raises(
        asyncio.CancelledError("a future of mine"), lambda m: isinstance(m, Page) and 2 in m.times
    )
    with pytest.raises(OperatorError, match=r"CancelledError: a future of mine$") as caught:
        replay(chain(failing, *behind), {"source": PAGES}, on=on)
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)


@BOTH
def test_a_cancelled_error_of_an_expression_is_too(on: Runner) -> None:
    def mine(batch: pa.RecordBatch) -> pa.Array:
        if batch.num_rows:
            raise asyncio.CancelledError
        return pa.array([], pa.bool_())

    with pytest.raises(
        OperatorError, match=r"operator 'o0' \(Filter\), page of 1 row, ts 0 to 0 s: CancelledError"
    ):
        replay(chain(Filter(mine), Hold()), {"source": PAGES[:1]}, on=on)


@BOTH
def test_a_cancelled_error_of_a_receiver_is_too(on: Runner) -> None:
    def receive(_: Result) -> None:
        raise asyncio.CancelledError

    with pytest.raises(
        OperatorError, match=r"^graph 'chain', sink 'sink', page of 1 row, ts 0 to 0 s: CancelledErr"
    ):
        replay(chain(Operator()), {"source": PAGES}, on=on, on_result=receive)


def test_a_cancelled_error_of_a_state_does_not_let_local_hang() -> None:
    class Sick(Operator):
        def state(self) -> State:
            raise asyncio.CancelledError

    with pytest.raises(
        OperatorError,
        match=r"^graph 'chain', operator 'o0' \(Sick\)(, the end of its input)?: CancelledError",
    ):
        replay(chain(Sick(), Hold()), {"source": PAGES}, on="local")


BAD_COUNTS: dict[str, tuple[Any, str]] = {
    "none": (
        None,
        r"\): counts\(\) must return whole numbers by their names, such as {'late': 3}; got None$",
    ),
    "floats": ({"late": 1.5}, r"\): counts\(\) must return .*; got {'late': 1.5}$"),
    "numbers": ({3: 1}, r"\): counts\(\) must return .*; got {3: 1}$"),
    "error": (KeyError("mine"), r"\), counts\(\): KeyError: 'mine'$"),
    "ours": (ContractError("no clock"), r"\), counts\(\): no clock$"),
    "cancelled": (asyncio.CancelledError("mine"), r"\), counts\(\): CancelledError: mine$"),
}


class Miscounts(Operator):
    def __init__(self, counts: Any) -> None:
        self.returned = counts

    def counts(self) -> Any:
        if isinstance(self.returned, BaseException):
            raise type(self.returned)(*self.returned.args)  # a new one: its place is put into it
        return self.returned


@BOTH
@pytest.mark.parametrize("case", BAD_COUNTS)
def test_counts_that_are_none_name_their_operator(on: Runner, case: str) -> None:
    counts, words = BAD_COUNTS[case]
    with pytest.raises(
        (OperatorError, ContractError), match=rf"^graph 'chain', operator 'o1' \(Miscounts{words}"
    ):
        replay(chain(Operator(), Miscounts(counts), Hold()), {"source": PAGES}, on=on)


@pytest.mark.parametrize("case", BAD_COUNTS)
async def test_so_do_they_while_a_graph_runs_and_when_it_is_left(case: str) -> None:
    counts, words = BAD_COUNTS[case]
    refused = pytest.raises(
        (OperatorError, ContractError), match=rf"^graph 'chain', operator 'o0' \(Miscounts{words}"
    )
    inline = Inline(chain(Miscounts(counts)), print)
    with refused:
        _ = inline.statistics
    with refused:
        inline.restore(Inline(chain(Miscounts({})), print).snapshot())
    async with Local(chain(Miscounts(counts)), print) as local:
        with refused:
            _ = local.statistics
        with refused:
            local.leave()


@BOTH
async def test_after_an_error_no_operator_is_asked_for_figures(on: Runner) -> None:
    class Half(Raises):
        """Its state is none once its work has broken off."""

        broken = False

        def on_page(self, port: int, page: Page) -> Iterator[Emission]:
            self.broken = True
            return super().on_page(port, page)

        def state(self) -> State:
            return State(tuples=1 // (not self.broken))

        def counts(self) -> dict[str, int]:
            return {"broken": 1 // (not self.broken)}

    graph = chain(Half(KeyError("mine")), Hold())
    if on == "inline":
        inline = Inline(graph, print)
        inline.push("source", PAGES[0])
        with pytest.raises(OperatorError, match="KeyError: 'mine'"):
            inline.drain()
        statistics = inline.statistics
    else:
        local = Local(graph, print)
        with pytest.raises(OperatorError, match="KeyError: 'mine'"):
            await _settled(local, PAGES[0])
        statistics = local.statistics
    assert statistics.operators["o0"].counts == {}


async def _settled(local: Local, page: Any) -> None:
    async with local:
        await local.push("source", page)
        await local.settle()


@BOTH
@pytest.mark.parametrize(
    ("at", "words"),
    [
        (lambda m: isinstance(m, Page), "page of 2 rows, ts 5 to 130 s"),
        (lambda m: isinstance(m, Linear), r"punctuation Linear\(below=\d+\)"),
        (lambda m: isinstance(m, GroupWise), "punctuation for 1 group of id"),
        (lambda m: m == "end", "the end of its input"),
    ],
    ids=["page", "linear", "groups", "end"],
)
def test_an_error_names_the_graph_the_node_and_the_message(
    on: Runner, at: Callable[[Any], bool], words: str
) -> None:
    feed: list[Message] = [page_of([(130, 1), (5, 2)]), GroupWise.of({"id": [1]}, [150]), Linear(131)]
    graph = chain(Operator(), Raises(KeyError("mine"), at))
    with pytest.raises(
        OperatorError, match=rf"^graph 'chain', operator 'o1' \(Raises\), {words}: KeyError: 'mine'$"
    ) as caught:
        replay(graph, {"source": feed}, on=on)
    assert isinstance(caught.value.__cause__, KeyError)


@BOTH
def test_an_error_of_one_of_several_inputs_names_it(on: Runner) -> None:
    class Picky(Union):
        def on_page(self, port: int, page: Page) -> Iterator[Emission]:
            if port:
                raise ValueError("no right")
            yield 0, page

    graph = merged(0)
    graph.sink("more", graph.add("picky", Picky(), "left", "right"))
    with pytest.raises(
        OperatorError, match=r"operator 'picky' \(Picky\), input 'right', page of 1 row, ts 0 to 0 s:"
    ):
        replay(graph, {"a": PAGES[:1], "b": PAGES[:1]}, on=on)


@BOTH
def test_an_error_of_ours_stays_what_it_is(on: Runner) -> None:
    graph = chain(Punctuate(Ordered(), 1, Late.RAISE))
    place = r"^graph 'chain', operator 'o0' \(Punctuate\), page of 2 rows, ts 3 to 9 s: "
    with pytest.raises(LateTuple, match=place) as caught:
        replay(graph, {"source": [page_of([(9, 1), (3, 2)])]}, on=on)
    assert str(caught.value).count("graph") == 1


@BOTH
def test_what_ends_the_program_stays_bare(on: Runner) -> None:
    with pytest.raises(SystemExit):
        replay(chain(Raises(SystemExit(3))), {"source": PAGES}, on=on)


def test_inline_does_not_go_on_after_an_error() -> None:
    inline = Inline(chain(Raises(KeyError("mine"), lambda m: isinstance(m, Page) and 1 in m.times)), print)
    for page in PAGES:
        inline.push("source", page)
    for _ in range(2):
        with pytest.raises(OperatorError, match="KeyError: 'mine'"):
            inline.drain()


async def feed(local: Local, source: str = "source") -> None:
    for number in range(1000):
        await local.push(source, page_of([(number, number)]))


async def outcome_of(task: asyncio.Task[None]) -> BaseException | None:
    """How a feeder ended; it must within a few turns of the loop."""
    for _ in range(50):
        await asyncio.sleep(0)
    assert task.done()
    return task.exception()


async def test_feeders_outside_have_the_error_and_so_has_a_later_push() -> None:
    local = Local(chain(Operator(), Fail(5), Hold()), print, capacity=2, room=1)
    feeders: list[asyncio.Task[None]] = []

    async def main() -> None:
        async with local:
            feeders.extend(asyncio.ensure_future(feed(local)) for _ in range(2))
            await asyncio.Event().wait()

    with pytest.raises(OperatorError, match="ZeroDivisionError: no 5") as caught:
        await main()
    for feeder in feeders:
        assert await outcome_of(feeder) is caught.value
    with pytest.raises(OperatorError, match="no 5"):
        await local.push("source", PAGES[0])  # type: ignore[arg-type]
    with pytest.raises(OperatorError, match="no 5"):
        await local.end("source")


async def test_feeders_outside_learn_of_an_error_of_the_block() -> None:
    local = Local(chain(Operator(), Hold()), print, capacity=2, room=1)
    feeder: asyncio.Task[None]

    async def main() -> None:
        nonlocal feeder
        async with local:
            feeder = asyncio.ensure_future(feed(local))
            await asyncio.sleep(0)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await main()
    assert isinstance(await outcome_of(feeder), KeyError)


async def test_feeders_outside_learn_that_the_block_was_cancelled() -> None:
    local = Local(chain(Operator(), Hold()), print, capacity=2, room=1)
    feeder: asyncio.Task[None]

    async def main() -> None:
        nonlocal feeder
        async with local:
            feeder = asyncio.ensure_future(feed(local))
            await asyncio.Event().wait()

    task = asyncio.ensure_future(main())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "graph 'chain': it was cancelled; nothing can follow" in str(await outcome_of(feeder))


def test_feeders_inside_a_group_of_tasks_leave_the_error_bare() -> None:
    async def main() -> None:
        async with Local(merged(0), print, capacity=2, room=1) as local:
            local.operators["union"].on_page = Fail(0).on_page  # type: ignore[method-assign]
            async with asyncio.TaskGroup() as feeders:
                for source in "ab":
                    feeders.create_task(feed(local, source))

    with pytest.raises(OperatorError, match="ZeroDivisionError: no 0"):
        run_async(main())


def test_a_broken_promise_inside_is_told_by_its_edge_alone() -> None:
    class Liar(Operator):
        def on_page(self, port: int, page: Page) -> Iterator[Emission]:
            yield 0, Linear(100)
            yield 0, page

    for on in ("inline", "local"):
        with pytest.raises(ContractError, match=r"^edge 'o0 -> sink': tuple"):
            replay(chain(Liar()), {"source": PAGES}, on=on, check=True)  # type: ignore[call-overload, arg-type]
