"""The virtual time of results under Local: that of Inline, to a page where inputs meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import Graph, Page, replay
from oop_engine.extend import Message
from oop_engine.operators import Count, Meld, Ordered, Punctuate, Tumbling, WindowAggregate
from oop_engine.runners.local import Local
from tests.parts.toys import SCHEMA, Hold, Promise, Union, chain, merged, page_of

Arrivals = list[tuple[int, int]]


def branches() -> Graph:
    """One source, two ways of different lengths, united."""
    graph = Graph("branches")
    promised = graph.add("promise", Promise(8, 5), graph.source("a", SCHEMA))
    short = graph.add("short", Hold(), promised)
    long = graph.add("long", Hold(), graph.add("first", Hold(), promised))
    graph.sink("sink", graph.add("hold", Hold(), graph.add("union", Union(), short, long)))
    return graph


def emitted(graph: Graph, feeds: Any, on: Any) -> list[tuple[Any, int]]:
    outcome = replay(graph, feeds, on=on, check=True)
    rows = [tuple(row.values()) for row in outcome.results["sink"].to_pylist()]
    return sorted(zip(rows, outcome.emitted["sink"].tolist(), strict=True))


@st.composite
def arrivals(draw: st.DrawFn) -> Arrivals:
    now, rows = 100, []
    for _ in range(draw(st.integers(0, 20))):
        now += draw(st.sampled_from([1, 2, 9]))
        rows.append((now - draw(st.integers(0, 8)), now))
    return rows


def pages(rows: Arrivals, first_id: int, size: int) -> list[Message]:
    numbered = [(ts, first_id + n, at) for n, (ts, at) in enumerate(rows)]
    parts = [numbered[i : i + size] for i in range(0, len(rows), size)]
    return [page_of([row[:2] for row in part], [at for *_, at in part]) for part in parts]


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("build", [lambda: merged(8, 5), branches], ids=["two sources", "two ways"])
@given(arrivals(), arrivals(), st.integers(1, 7), st.integers(1, 7))
def test_where_inputs_meet_it_is_right_to_a_page(
    build: Callable[[], Graph], one: Arrivals, other: Arrivals, size: int, other_size: int
) -> None:
    feeds = {"a": pages(one, 0, size)}
    if "b" in build().nodes:
        feeds["b"] = pages(other, 1000, other_size)
    inline, local = (emitted(build(), feeds, on) for on in ("inline", "local"))
    assert [row for row, _ in inline] == [row for row, _ in local]
    feed_pages = [page for feed in feeds.values() for page in feed if isinstance(page, Page)]
    arrived = [page.arrival for page in feed_pages if page.arrival is not None]
    for (_, right), (_, found) in zip(inline, local, strict=True):
        assert right <= found <= max([right, *(at[-1] for at in arrived if at[0] <= right)])
        if size == other_size == 1:
            assert found == right


def test_no_result_comes_before_its_own_tuples() -> None:
    graph = Graph("two")
    edges = [graph.add(f"p{i}", Punctuate(Ordered(), 10), graph.source(f"s{i}", SCHEMA)) for i in range(2)]
    counted = WindowAggregate(Tumbling(10), {"n": Count()})
    graph.sink("sink", graph.add("count", counted, graph.add("meld", Meld(2), *edges)))
    far = [page_of([(t, t), (t + 100, t + 100)], [t, t + 100]) for t in (5, 305)]
    feeds = {"s0": far, "s1": [page_of([(7, 7)], [7])]}
    expected = [((0, 10, 2), 105), ((100, 110, 1), 305), ((300, 310, 1), 405), ((400, 410, 1), 405)]
    assert emitted(graph, feeds, "local") == emitted(graph, feeds, "inline") == expected


async def test_what_was_pushed_has_been_worked_off_when_it_has_settled() -> None:
    results: list[Any] = []
    local = Local(merged(0), results.append)
    assert not local.in_step
    async with local:
        await local.settle()
        for number in range(1, 30):
            for source in "ab":
                await local.push(source, page_of([(number * 10, number)]))
            await local.settle()
            assert sum(len(r.message) for r in results if isinstance(r.message, Page)) == 2 * (number - 1)
    assert Local(chain(Hold()), print).in_step
