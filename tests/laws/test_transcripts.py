"""Every transcript, in every order its promises allow, cut into pages in any way, on every runner."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import groupby

import pytest

from oop_engine import Change, GraphError, Page
from oop_engine.core.graphs.graph import Graph
from oop_engine.extend import Message
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.runners.dispatch import Result
from oop_engine.runners.event_loop import run_async
from oop_engine.runners.inline import Inline
from oop_engine.runners.local import Local
from tests.transcripts import Clock, Expected, Row, Step, Transcript, transcripts

Rows = list[tuple[str, Row]]
Order = Callable[[list[Step]], list[Rows]]
Event = tuple[str, Message] | Clock

FILES = ["windows.toml", "aggregates.toml", "progress.toml", "joins.toml", "sessions.toml", "folded.toml"]
TRANSCRIPTS = [t for file in FILES for t in transcripts(file)]
WRONG = transcripts("wrong.toml")
CUTS = [1, 2, 1000]


def as_given(steps: list[Step]) -> list[Rows]:
    return [list(step.rows) for step in steps]


def reversed_(steps: list[Step]) -> list[Rows]:
    return [step.rows[::-1] for step in steps]


def shuffled(seed: int) -> Order:
    def order(steps: list[Step]) -> list[Rows]:
        draw = random.Random(seed)
        return [draw.sample(step.rows, len(step.rows)) for step in steps]

    order.__name__ = f"shuffled_{seed}"
    return order


def all_before_the_first_promise(steps: list[Step]) -> list[Rows]:
    """A tuple may come before a promise that it came after, never the other way; none comes before a change."""
    orders: list[Rows] = [[] for _ in steps]
    first = 0
    for number, step in enumerate(steps):
        orders[first] += step.rows
        if isinstance(step.then, tuple) and isinstance(step.then[1], Change):
            first = number + 1
    for rows in orders:
        random.Random(7).shuffle(rows)
    return orders


ORDERS = [as_given, reversed_, shuffled(1), all_before_the_first_promise]


def pages(transcript: Transcript, rows: Rows, cut: int) -> Iterator[tuple[str, Page]]:
    """Neighbouring rows of a source make pages of at most ``cut``."""
    for source, run in groupby(rows, key=lambda row: row[0]):
        same = [row for _, row in run]
        schema = transcript.schema(source)
        for start in range(0, len(same), cut):
            part = same[start : start + cut]
            yield source, Page.of(schema, {n: [row.get(n) for row in part] for n in schema.names})


class Collected:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.rows: Rows = []

    def __call__(self, result: Result) -> None:
        if isinstance(result.message, Page):
            self.rows += [(result.sink, row) for row in result.message.to_pylist()]

    @property
    def values(self) -> Expected:
        return self.transcript.values(self.rows)


def run_inline(transcript: Transcript, graph: Graph, arrivals: list[Rows], cut: int) -> Iterator[Expected]:
    """Yield what is out after each step."""
    collected = Collected(transcript)
    runner = Inline(graph, collected, check=True)
    sources = [node.name for node in runner.plan.of_kind("source")]
    for step, rows in zip(transcript.steps, arrivals, strict=True):
        for source, page in pages(transcript, rows, cut):
            runner.push(source, page)
        match step.then:
            case Clock(now):
                runner.clock(now)
            case (source, promise):
                runner.push(source, promise)
            case None:
                for source in sources:
                    runner.end(source)
        runner.drain()
        yield collected.values


def run_local(transcript: Transcript, graph: Graph, arrivals: list[Rows], cut: int) -> Expected:
    collected = Collected(transcript)

    async def run() -> None:
        async with Local(graph, collected, check=True, capacity=2) as runner:
            for step, rows in zip(transcript.steps, arrivals, strict=True):
                for source, page in pages(transcript, rows, cut):
                    await runner.push(source, page)
                if isinstance(step.then, Clock):
                    await runner.clock(step.then.now)
                elif step.then is not None:
                    await runner.push(*step.then)

    run_async(run())
    return collected.values


def orders(transcript: Transcript) -> list[Order]:
    return ORDERS if transcript.order is None else [as_given]


def check_inline(transcript: Transcript, order: Order) -> None:
    arrivals = order(transcript.steps)
    for cut in CUTS:
        outs = list(run_inline(transcript, transcript.graph, arrivals, cut))
        assert outs[-1] == transcript.expected, f"pages of {cut}"
        if order is not all_before_the_first_promise:
            for number, (out, step) in enumerate(zip(outs, transcript.steps, strict=True)):
                assert out == step.out, f"pages of {cut}: after step {number}, {step.then}"


def on_each(chosen: list[Transcript]) -> pytest.MarkDecorator:
    pairs = [pytest.param(t, order, id=f"{t.name}-{order.__name__}") for t in chosen for order in orders(t)]
    return pytest.mark.parametrize(("transcript", "order"), pairs)


@pytest.mark.slow(keep=100)
@on_each(TRANSCRIPTS)
def test_inline(transcript: Transcript, order: Order) -> None:
    check_inline(transcript, order)


@pytest.mark.slow(keep=60)
@on_each(TRANSCRIPTS)
def test_local(transcript: Transcript, order: Order) -> None:
    arrivals = order(transcript.steps)
    for cut in CUTS[1:]:
        assert run_local(transcript, transcript.graph, arrivals, cut) == transcript.expected


@pytest.mark.slow(keep=60)
@on_each([t for t in TRANSCRIPTS if t.twin is None])
def test_in_order_twin(transcript: Transcript, order: Order) -> None:
    for join in ("output", "input") if "OAJoin" in transcript.graph.text() else ("output",):
        twin = in_order(transcript.graph, join=join)
        for cut in CUTS:
            *_, out = run_inline(transcript, twin, order(transcript.steps), cut)
            assert out == transcript.expected, f"{join}, pages of {cut}"


@pytest.mark.parametrize("transcript", [t for t in TRANSCRIPTS if t.twin is not None], ids=lambda t: t.name)
def test_where_there_is_no_twin_the_rewrite_says_so(transcript: Transcript) -> None:
    with pytest.raises(GraphError, match=r"in[- ]order"):
        in_order(transcript.graph).plan()


@pytest.mark.parametrize("transcript", WRONG, ids=lambda t: t.name)
def test_a_wrong_transcript_fails(transcript: Transcript) -> None:
    with pytest.raises(AssertionError):
        check_inline(transcript, as_given)


def test_names_tell_transcripts_apart() -> None:
    names = [transcript.name for transcript in [*TRANSCRIPTS, *WRONG]]
    assert len(set(names)) == len(names)
