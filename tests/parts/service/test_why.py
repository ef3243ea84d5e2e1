"""Why a window is still open: the input that holds it, and by how much."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import FOREVER, Graph, GroupWise, Linear, Page, Schema, why
from oop_engine.operators import BoundedDisorder, Count, Filter, Meld, Punctuate, Tumbling, WindowAggregate
from oop_engine.runners.inline import Inline

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")


def melded(*, generated: bool) -> Inline:
    graph = Graph("melded")
    edges = [graph.source(name, SCHEMA) for name in ("east", "west", "north")]
    if generated:
        edges = [graph.add(f"{s.node}-edge", Punctuate(BoundedDisorder(5)), s) for s in edges]
        edges[1] = graph.add("west-filter", Filter(pc.field("ts") >= 0), edges[1])
    count = WindowAggregate(Tumbling(60), {"n": Count()}, by=("key",))
    graph.sink("out", graph.add("count", count, graph.add("both", Meld(3), *edges)))
    return Inline(graph, lambda result: None)


def page(ts: int) -> Page:
    return Page.of(SCHEMA, {"ts": [ts], "key": ["a"]})


@pytest.mark.parametrize("generated", [False, True])
def test_the_slowest_source_is_named_and_how_far_it_is_behind(generated: bool) -> None:
    inline = melded(generated=generated)
    for source, ts in (("east", 105), ("west", 45), ("north", 90)):
        inline.push(source, page(ts))
        inline.push(source, Linear(ts - 5))
    inline.drain()
    [line] = why(inline)
    assert line.startswith("'count' (results) keeps ")
    assert line.endswith("it waits for 'west', whose bound is 40 s, 60 s behind 'east'")


def test_a_source_without_punctuation_is_named() -> None:
    inline = melded(generated=False)
    for source in ("east", "west", "north"):
        inline.push(source, page(50))
    inline.push("east", Linear(100))
    inline.push("west", GroupWise.of({"key": ["b"]}, [100]))
    inline.push("north", Linear(90))
    inline.drain()
    assert why(inline)[0].endswith(
        "it waits for 'west', of which no punctuation for the whole stream has come; "
        "of its groups key='a' has no bound yet"
    )


def test_the_group_that_is_furthest_behind_is_named() -> None:
    inline = melded(generated=False)
    for source in ("east", "west", "north"):
        inline.push(source, Page.of(SCHEMA, {"ts": [50, 150], "key": ["a", "b"]}))
        inline.push(source, GroupWise.of({"key": ["a", "b"]}, [40, 100]))
        inline.push(source, Linear(10))
    inline.drain()
    assert why(inline)[0].endswith(
        "whose bound is 10 s; of its groups key='a' is furthest behind, with results from 60 s on"
    )
    assert inline.operators["count"].slowest_groups(1) == [({"key": "a"}, 60)]
    assert inline.operators["count"].slowest_groups(9)[1:] == [({"key": "b"}, 120)]


def test_a_source_that_has_ended_is_told_apart() -> None:
    inline = melded(generated=False)
    for source, below in (("east", FOREVER), ("west", 40), ("north", 90)):
        inline.push(source, page(50))
        inline.push(source, Linear(below))
    inline.drain()
    assert why(inline)[0].endswith("it waits for 'west', whose bound is 40 s; 'east' has ended")


def test_an_operator_that_keeps_nothing_waits_for_nothing() -> None:
    assert why(melded(generated=True)) == []
