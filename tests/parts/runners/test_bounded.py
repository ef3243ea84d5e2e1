"""What one message releases does not pile up: it leaves in pages, and each goes all the way before the next is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import Graph, Operator, Page, Schema, replay
from oop_engine.extend import Emission
from oop_engine.operators import Band, Filter, Meld, OAJoin
from oop_engine.operators.in_order.opib_join import OPIBJoin
from oop_engine.runners.dispatch import Result
from oop_engine.testing import Driver

ROWS = 65_536
S = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")
BOTH = pytest.mark.parametrize("on", ["inline", "local"])
Runner = Literal["inline", "local"]


class Many(Operator):
    """Answers a page with many, and notes how many have not come through yet when it is asked for the next one."""

    outputs = ("out", "other")

    def __init__(self, pages: int, seen: list[int], behind: list[int]) -> None:
        self.pages, self.seen, self.behind = pages, seen, behind

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        large = Page.of(S, {"ts": np.arange(ROWS), "k": np.arange(ROWS)})
        for number in range(self.pages):
            yield number % 2, large
            self.behind.append(len(self.behind) + 1 - len(self.seen) // 2)


class Twice(Operator):
    """Hands on each page twice, so that it is in the middle of a message too."""

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        yield 0, page
        yield 0, page


@BOTH
@pytest.mark.parametrize("messages", [1, 3])
def test_a_page_goes_all_the_way_before_the_next_is_made(on: Runner, messages: int) -> None:
    seen: list[int] = []
    behind: list[int] = []
    graph = Graph("many")
    many = graph.add("many", Many(60, seen, behind), graph.source("s", S))
    first = graph.add("first", Meld(2), many, many["other"])
    graph.sink("o", graph.add("again", Twice(), first))

    def receive(result: Result) -> None:
        if isinstance(result.message, Page):
            seen.append(len(result.message))

    replay(graph, {"s": [Page.of(S, {"ts": [1], "k": [1]})] * messages}, on=on, on_result=receive)
    times = len(seen) // 120
    assert len(seen) == 2 * len(behind) == 120 * times
    assert times == messages if on == "inline" else 1 <= times <= messages  # Local takes what waits together
    assert max(behind) <= (0 if on == "inline" else 40)  # two inboxes of 16, and what is in the hands


def one_key(rows: int) -> Page:
    return Page.of(S, {"ts": np.arange(rows), "k": np.zeros(rows, np.int64)})


@BOTH
def test_pairs_of_a_page_leave_a_page_at_a_time(on: Runner) -> None:
    """3,000 tuples of a key on both sides are 9 M pairs, which would take 288 MB."""
    graph = Graph("pairs")
    left, right = graph.source("l", S), graph.source("r", S)
    pairs = graph.add("join", OAJoin([("k", "k")], Band(10_000, 10_000)), left, right)
    graph.sink("o", graph.add("some", Filter(pa.compute.field("ts") >= 0), pairs))
    sizes: list[int] = []
    held: list[int] = []

    def receive(result: Result) -> None:
        if isinstance(result.message, Page):
            sizes.append(len(result.message))
            held.append(pa.total_allocated_bytes())

    before = pa.total_allocated_bytes()
    replay(graph, {"l": [one_key(3000)], "r": [one_key(3000)]}, on=on, on_result=receive)
    assert sum(sizes) == 9_000_000
    assert max(sizes) <= ROWS
    assert max(held) - before < (20 if on == "inline" else 100) * 2**20


def test_an_input_buffered_join_holds_pairs_of_a_few_pages() -> None:
    driver = Driver(OPIBJoin([("k", "k")], Band(10_000, 10_000)), S, S)
    driver.feed(0, one_key(3000))
    driver.feed(1, one_key(3000))
    before, held, sizes, last = pa.total_allocated_bytes(), [], [], 0
    for _, message in driver.operator.on_end(1):
        if isinstance(message, Page):
            assert last <= message.times[0]
            last = int(message.times[-1])
            held.append(pa.total_allocated_bytes())
            sizes.append(len(message))
    assert sum(sizes) == 9_000_000
    assert max(sizes) <= ROWS
    assert max(held) - before < 40 * 2**20
