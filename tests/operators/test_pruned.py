"""Only the columns that are read travel, in order and out of order, by one rule."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import Graph, Page, Schema
from oop_engine.core.punctuation import FOREVER, GroupWise, Linear
from oop_engine.operators import (
    Band,
    BoundedDisorder,
    Count,
    Late,
    Meld,
    OAJoin,
    Ordered,
    Project,
    Punctuate,
    Select,
    Sum,
    Tumbling,
    Upstream,
    WindowAggregate,
)
from oop_engine.operators.in_order.merge import Merge
from oop_engine.operators.in_order.opib_join import OPIBJoin
from oop_engine.operators.in_order.opob_join import OPOBJoin
from oop_engine.operators.in_order.sort import Sort
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.rewrites.pruned import pruned
from oop_engine.runners.replay import replay

WIDE = Schema({name: pa.int64() for name in ("ts", "k", "v", "flag", "a", "b")}, "ts", "s")
TIMES = [3, 1, 7, 4, 12, 9, 15, 2, 21, 30]


def wide(times: list[int] = TIMES) -> Page:
    number = range(len(times))
    columns = {"ts": times, "k": [i % 3 for i in number], "v": [i * i for i in number]}
    rest = {name: [i % 2 for i in number] for name in ("flag", "a", "b")}
    return Page.of(WIDE, columns | rest, arrival=[*number])


def united(by: tuple[str, ...] = ("k",)) -> Graph:
    """Two links, those with a flag of them united, and summed."""
    graph = Graph("sums")
    links = [
        graph.add(
            f"{name}-long",
            Select(pc.field("flag") == 1),
            graph.add(f"{name}-edge", Punctuate(BoundedDisorder(9)), graph.source(name, WIDE)),
        )
        for name in ("one", "two")
    ]
    total = WindowAggregate(Tumbling(10), {"s": Sum("v")}, by)
    graph.sink("out", graph.add("sum", total, graph.add("both", Meld(2), *links)))
    return graph


def joined() -> Graph:
    graph = Graph("pairs")
    links = [
        graph.add(f"{name}-edge", Punctuate(BoundedDisorder(9)), graph.source(name, WIDE))
        for name in ("one", "two")
    ]
    pairs = graph.add("pairs", OAJoin(["k"], Band(5, 5)), *links)
    graph.sink("out", graph.add("sum", WindowAggregate(Tumbling(10), {"s": Sum("v_right")}), pairs))
    return graph


def kept(graph: Graph, kind: type) -> dict[str, list[str]]:
    """Return the columns that come out of the operators of a kind."""
    plan = graph.plan()
    return {
        node.name: plan.schema(stream).names
        for node in plan.nodes
        for stream in plan.schemas
        if stream.node == node.name and stream.port == node.ports[0] and isinstance(node.operator, kind)
    }


def rows(graph: Graph) -> list[tuple[object, ...]]:
    found = replay(graph, {"one": [wide()], "two": [wide(TIMES[::-1])]}).results["out"]
    return sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.mark.parametrize("windows", ["buffer", "reduce"])
def test_a_union_in_order_buffers_what_is_read(windows) -> None:
    twin = in_order(united(), windows=windows)
    assert kept(twin, Sort) == {f"{name}-edge": ["ts", "k", "v", "flag"] for name in ("one", "two")}
    assert kept(twin, Merge) == {"both": ["ts", "k", "v"]}
    assert rows(twin) == rows(united()) == rows(pruned(united()))


def test_a_union_out_of_order_passes_what_is_read() -> None:
    assert kept(pruned(united()), Meld) == {"both": ["ts", "k", "v"]}
    assert kept(pruned(united(())), Meld) == {"both": ["ts", "v"]}


@pytest.mark.parametrize("join", ["output", "input"])
def test_a_join_keeps_what_is_read_in_both_orders(join) -> None:
    twin, free = in_order(joined(), join=join), pruned(joined())
    of_join = OPOBJoin if join == "output" else OPIBJoin
    # The left v stays, for the right one is called v_right beside it.
    narrow = {"one-edge": ["ts", "k", "v"], "two-edge": ["ts", "k", "v"]}
    assert kept(twin, Sort) == narrow
    assert [*kept(free, Project).values()][:2] == [*narrow.values()]
    if join == "output":
        assert kept(twin, of_join) == {"pairs": ["ts", "v_right"]}
    assert rows(twin) == rows(joined()) == rows(free)


def test_what_is_pruned_stays_as_it_is() -> None:
    for graph in (united(), joined()):
        once = pruned(graph)
        assert pruned(once).text() == once.text()


def test_a_function_may_read_any_column() -> None:
    graph = Graph("any")
    edge = graph.add("edge", Punctuate(Ordered()), graph.source("one", WIDE))
    some = graph.add("some", Select(lambda batch: pc.equal(batch["a"], 1)), edge)
    graph.sink("out", graph.add("n", WindowAggregate(Tumbling(10), {"n": Count()}), some))
    assert kept(in_order(graph), Sort) == {"edge": WIDE.names}


def test_promises_about_columns_that_are_not_read_still_make_tuples_late() -> None:
    """The source's own punctuation by ``a`` decides; ``a`` itself is read by no operator."""
    graph = Graph("late")
    edge = graph.add("edge", Punctuate(Upstream(), late=Late.DROP), graph.source("one", WIDE))
    graph.sink("out", graph.add("n", WindowAggregate(Tumbling(10), {"n": Count()}), edge))
    over = GroupWise(
        pa.RecordBatch.from_pydict({"a": [1]}, pa.schema([("a", pa.int64())])), np.array([FOREVER])
    )
    first, then = wide().slice(0, 4), wide().slice(4, len(TIMES))
    feed = [first, over, then, Linear(40)]
    plans = [graph, pruned(graph), in_order(graph), in_order(graph, windows="reduce")]
    outcomes = [replay(plan, {"one": feed}) for plan in plans]
    assert len({outcome.statistics.count("late") for outcome in outcomes}) == 1
    assert outcomes[0].statistics.count("late") > 0
    assert all(one.results["out"].equals(outcomes[0].results["out"]) for one in outcomes)
    assert kept(in_order(graph), Sort) == {"edge": ["ts"]}
