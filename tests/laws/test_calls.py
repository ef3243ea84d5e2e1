"""How long the way of a small message is: Python calls of a hop, and files of operators that it enters.

A page of one row costs what its calls cost, so a layer more is seen here before it is felt.  Bounds are what is
there now; whoever makes the way shorter lowers them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import oop_engine
from oop_engine import Graph, Linear, Page, Schema
from oop_engine.core.late.late_page import packed_rows
from oop_engine.operators import (
    BoundedDisorder,
    Count,
    Meld,
    Punctuate,
    Session,
    Sliding,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.runners.inline import Inline
from oop_engine.runners.local import Local
from oop_engine.system.kernel import numba
from oop_engine.windows import (
    Delimited,
    Frames,
    Intervals,
    Landmark,
    LastRows,
    PartitionedTupleBased,
    RowsBetween,
    SlideByTuple,
)

CALLS_OF_A_PAGE = 53  # pushed, and worked off up to the sink; closes nothing
CALLS_OF_A_CLOSING_PAGE = 145  # the same, but a punctuation follows from it, and a window leaves
CALLS_OF_A_SERVED_ROW = 78  # pushed into ``Local`` by a task with nothing else to do; closes nothing
FILES_OF_A_PAGE = 7  # of operators, inside WindowAggregate; one of them is about keys
FILES_OF_A_PUNCTUATION = 12  # the same, where a window with a sum leaves

OPERATORS = Path(oop_engine.__file__).parent / "operators"
SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")


@pytest.fixture(autouse=True)
def by_numba() -> None:
    """Let Numba call kernels, as it does once they have been called often, in whatever order tests run."""
    numba()


def row(ts: int) -> Page:
    return Page.of(SCHEMA, {"ts": [ts], "k": [1], "v": [3]})


def calls(work: Callable[[], object]) -> list[CodeType]:
    """The functions that are called, or gone on with, until ``work`` is done; each as often as it is."""
    found: list[CodeType] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            found.append(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found[1:]  # without ``work`` itself


def files(codes: list[CodeType]) -> set[str]:
    """The files of operators among those that functions are in."""
    paths = {Path(code.co_filename) for code in codes}
    return {str(path.relative_to(OPERATORS)) for path in paths if path.is_relative_to(OPERATORS)}


def by_file(codes: list[CodeType]) -> str:
    """What to look at where a bound is broken."""
    return "\n".join(f"{Path(code.co_filename).name}: {code.co_name}" for code in codes)


def aggregate(of: Any, **options: Any) -> WindowAggregate:
    return WindowAggregate(of, {"n": Count(), "s": Sum("v")}, by=("k",), **options)


def windows() -> WindowAggregate:
    return aggregate(Sliding(30, 10))


KINDS: dict[str, tuple[Callable[[], WindowAggregate], int, int]] = {
    "tumbling": (lambda: aggregate(Tumbling(10)), 50, 169),
    "empty windows": (lambda: aggregate(Sliding(20, 5), empty=True), 50, 189),
    "two grids": (lambda: aggregate({"a": Tumbling(10), "b": Sliding(30, 10)}), 52, 207),
    "adaptive": (lambda: aggregate(Sliding(30, 10), strategy="adaptive"), 94, 297),
    "changing": (lambda: aggregate({"a": Tumbling(10)}, changing=True), 74, 247),
    "landmark": (lambda: aggregate(Landmark(10)), 102, 356),
    "session": (lambda: aggregate(Session(1)), 70, 215),
    "capped session": (lambda: aggregate(Session(10, most=9)), 73, 302),
    "rows by arrival": (lambda: aggregate(PartitionedTupleBased(5, 2)), 221, 266),
    "rows by time": (lambda: aggregate(PartitionedTupleBased(5, 2, order="time")), 73, 365),
    "rows around": (lambda: aggregate(RowsBetween(-3, 0)), 73, 368),
    "last rows": (lambda: aggregate(LastRows(3, 10)), 74, 386),
    "by tuple": (lambda: aggregate(SlideByTuple(10)), 73, 360),
    "delimited": (lambda: aggregate(Delimited(pc.field("v") == 3)), 88, 373),
    "frames": (lambda: aggregate(Frames(pc.field("v") == 3, pc.field("v") == 3)), 94, 327),
    "intervals": (lambda: aggregate(Intervals([(10 * n, 10 * n + 10) for n in range(60)])), 72, 310),
}
"""Windows; the calls of a page of one row, and of one behind which a window closes (four of each are room)."""


def one(ts: int) -> Page:
    page = packed_rows(SCHEMA, [(ts, 1, 3)])
    assert page is not None
    return page


def two_sources_graph(of: WindowAggregate) -> Graph:
    graph = Graph("two")
    edges = [
        graph.add(f"edge_{name}", Punctuate(BoundedDisorder(5), granularity=10), graph.source(name, SCHEMA))
        for name in "ab"
    ]
    graph.sink("out", graph.add("windows", of, graph.add("both", Meld(2), *edges)))
    return graph


def push(runner: Inline, source: str, page: Page) -> None:
    runner.push(source, page)
    runner.drain()


def in_full_swing(of: WindowAggregate | None = None) -> Inline:
    """A graph that has closed windows, so that all it looks up once has been looked up."""
    runner = Inline(two_sources_graph(of or windows()), lambda result: None)
    for ts in range(0, 400, 2):
        push(runner, "a", row(ts))
        push(runner, "b", row(ts))
    return runner


def results(runner: Inline) -> int:
    return runner.statistics.edges["windows -> out"].pages


def test_a_page_of_one_row_takes_few_calls() -> None:
    runner, page = in_full_swing(), row(400)
    before = results(runner)
    found = calls(lambda: push(runner, "a", page))
    assert results(runner) == before > 0
    assert len(found) <= CALLS_OF_A_PAGE, by_file(found)


def test_a_page_of_one_row_that_closes_a_window_takes_few_calls() -> None:
    runner, page = in_full_swing(), row(416)
    push(runner, "a", page)
    before = results(runner)
    found = calls(lambda: push(runner, "b", page))
    assert results(runner) > before
    assert len(found) <= CALLS_OF_A_CLOSING_PAGE, by_file(found)


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_of_one_row_takes_few_calls_in_windows_of_each_kind(kind: str) -> None:
    make, quiet, closing = KINDS[kind]
    runner = in_full_swing(make())
    page = row(402)
    push(runner, "a", row(400))
    found = calls(lambda: push(runner, "a", page))
    assert len(found) <= quiet, by_file(found)
    for source, ts in (("a", 416), ("b", 418), ("a", 436)):  # several windows close, as they do below
        push(runner, source, row(ts))
    before, page = results(runner), row(438)
    found = calls(lambda: push(runner, "b", page))
    assert results(runner) > before
    assert len(found) <= closing, by_file(found)


async def test_a_row_that_comes_alone_takes_few_calls_in_a_service() -> None:
    results: list[Any] = []
    async with Local(two_sources_graph(windows()), results.append) as local:
        await asyncio.sleep(0)
        for ts in range(200):
            for source in "ab":
                await local.push(source, one(ts), at_once=True)
        before, page = len(results), one(200)
        work = local.push("a", page, at_once=True)
        found = calls(lambda: next(work.__await__(), None))
        assert len(results) == before > 0
        assert len(found) <= CALLS_OF_A_SERVED_ROW, by_file(found)
        assert local.statistics.edges["both -> windows"].tuples == 401


def test_a_page_enters_few_files_of_an_aggregate_and_so_does_a_punctuation() -> None:
    operator = windows().opened(SCHEMA)
    for ts in range(100):
        list(operator.on_page(0, row(ts)))
    list(operator.on_punctuation(0, Linear(90)))
    page = row(100)
    entered = files(calls(lambda: list(operator.on_page(0, page))))
    assert 1 < len(entered) <= FILES_OF_A_PAGE, sorted(entered)
    emitted = list[Any]()
    closing = files(calls(lambda: emitted.extend(operator.on_punctuation(0, Linear(100)))))
    assert len(emitted) == 2  # a window and the punctuation behind it
    assert 1 < len(closing) <= FILES_OF_A_PUNCTUATION, sorted(closing)


def test_a_generator_that_goes_on_counts_again() -> None:
    def twice() -> Iterator[int]:
        yield from (inner(), inner())

    def inner() -> int:
        return 1

    names = [code.co_name for code in calls(lambda: list(twice()))]
    assert names == ["twice", "inner", "inner", "twice", "twice"]
