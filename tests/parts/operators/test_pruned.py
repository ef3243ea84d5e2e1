"""Only the columns that are read travel, in order and out of order, by one rule."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import Graph, Operator, Page, Schema
from oop_engine.aggregates import UserDefined
from oop_engine.core.punctuation import FOREVER, GroupWise, Linear
from oop_engine.operators import (
    ArrivalTime,
    Band,
    BoundedDisorder,
    Count,
    Distinct,
    Emit,
    Expire,
    Filter,
    Finalize,
    Guard,
    Late,
    Latest,
    Meld,
    MultiJoin,
    OAJoin,
    Ordered,
    Project,
    PrunePunctuation,
    Punctuate,
    Session,
    Shed,
    Sum,
    TopN,
    Tumbling,
    Upstream,
    WindowAggregate,
    WithColumns,
)
from oop_engine.operators.in_order.merge import Merge
from oop_engine.operators.in_order.opib_join import OPIBJoin
from oop_engine.operators.in_order.opob_join import OPOBJoin
from oop_engine.operators.in_order.sort import Sort
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.rewrites.pruned import pruned
from oop_engine.operators.windows import Windows
from oop_engine.runners.replay import replay
from oop_engine.triggers import AfterMatch
from oop_engine.windows import (
    Delimited,
    Frames,
    LastRows,
    PartitionedTupleBased,
    RowsBetween,
    SlideByTuple,
    UserWindows,
)

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
            Filter(pc.field("flag") == 1),
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
    some = graph.add("some", Filter(lambda batch: pc.equal(batch["a"], 1)), edge)
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


def sums(windows: Windows | dict[str, Windows], **more: object) -> WindowAggregate:
    return WindowAggregate(windows, {"s": Sum("v")}, ("k",), **more)  # type: ignore[arg-type]


LATEST = UserDefined(
    lambda v: (v.to_numpy(zero_copy_only=False),), lambda a, b: b, lambda state: state[0], reads=("v",),
    state_types=("int64",), returns=pa.int64(), commutative=False, tie=("a",),
)  # fmt: skip

OWN = {
    "sessions": (sums(Session(3)), "k v"),
    "several definitions": (sums({"short": Session(3), "grid": Tumbling(5)}), "k v"),
    "ranks": (sums(PartitionedTupleBased(2, 2, order="time", tie=["a"])), "k v a"),
    "markers": (sums(Delimited(pc.field("flag") == 1)), "k v flag"),
    "frames": (sums(Frames(pc.field("a") == 1, pc.field("b") == 1)), "k v a b"),
    "last rows": (sums(LastRows(2, 5)), "k v"),
    "tuples": (sums(SlideByTuple(5, carry=("a",))), "k v a"),
    "rows between": (sums(RowsBetween(-1, 1, carry=("a",), tie=("b",))), "k v a b"),
    "own windows": (
        sums(UserWindows(lambda *given: (given[0], given[0] + 1), reads=("b",), back=9)),
        "k v b",
    ),
    "order": (WindowAggregate(Tumbling(5), {"l": LATEST}), "v a"),
    "versions": (sums(Tumbling(5), emit=Emit(early=AfterMatch(pc.field("flag") == 1))), "k v flag"),
    "first rows": (TopN(1, ["v"], ["k"]), "k v"),
    "one key": (Distinct(("k",)), "k"),
}
"""Operators, and the columns that they read themselves, beside the time, if a later one reads nothing."""


@pytest.mark.parametrize("name", OWN)
def test_an_operator_reads_its_own_columns(name: str) -> None:
    operator, columns = OWN[name]
    behind = tuple(frozenset[str]() for _ in operator.outputs)
    [read] = operator.reads((WIDE,), behind)
    assert read - {"ts"} == set(columns.split())


PASSING = {
    "computed": (WithColumns({"c": pc.field("a") + pc.field("v")}), "a v"),
    "replaced": (WithColumns({"k": pc.field("a")}), "a k"),
    "shifted": (Expire(5), ""),
    "changes": (Latest(["v"], pc.field("flag") == 1), "v flag"),
    "stamped": (ArrivalTime("came"), ""),
    "guarded": (Guard(5, of="stream"), ""),
    "shed by key": (Shed(2, by=("b",)), "b"),
    "described": (PrunePunctuation(groups=pa.RecordBatch.from_pydict({"b": [0, 1]})), "b"),
    "final": (Finalize(), ""),
}
"""Operators, and the columns that they read beside those that a later one reads."""


@pytest.mark.parametrize("name", PASSING)
def test_an_operator_reads_what_a_later_one_does(name: str) -> None:
    operator, columns = PASSING[name]
    later = [
        frozenset({"k", "at", "weight", "c"}).intersection(out.names)
        for out in operator.output_schemas((WIDE,))
    ]
    [read] = operator.reads((WIDE,), tuple(later))
    assert read - {"ts"} == {*columns.split(), "k"}


def test_rows_that_are_equal_in_order_go_by_all_columns_up_to_the_last_one_read() -> None:
    """The first of two rows of one order is the one with the lesser flag, and this decides which b is there."""
    first = TopN(1, ["v"], timed=False)
    assert first.reads((WIDE,), (frozenset({"flag"}),)) == (frozenset({"ts", "k", "v", "flag"}),)
    assert first.reads((WIDE,), (frozenset(),)) == (frozenset({"v"}),)


def tripled(last: Operator) -> Graph:
    graph = Graph("three")
    links = [
        graph.add(f"{name}-edge", Punctuate(BoundedDisorder(9)), graph.source(name, WIDE))
        for name in ("one", "two", "three")
    ]
    join = MultiJoin("one", {"two": Band(2, 2), "three": Band(2, 2)}, ["k"])
    graph.sink("out", graph.add("last", last, graph.add("pairs", join, *links)))
    return graph


def test_a_join_of_three_keeps_what_is_read_in_both_orders() -> None:
    graph = tripled(Project({"ts": "ts", "flag_two": "flag_two", "b_three": "b_three"}))
    twin, free = in_order(graph), pruned(graph)
    # Left columns stay for the names of those beside them.
    narrow = {
        "one-edge": ["ts", "k", "flag", "b"],
        "two-edge": ["ts", "k", "flag"],
        "three-edge": ["ts", "k", "b"],
    }
    assert kept(twin, Sort) == narrow | {"pairs": ["ts", "flag_two", "b_three"]}
    assert [*kept(free, Project).values()][:3] == [*narrow.values()]
    feeds = {name: [wide(times)] for name, times in zip(narrow, (TIMES, TIMES[::-1], TIMES), strict=True)}
    feeds = {name.removesuffix("-edge"): feed for name, feed in feeds.items()}
    found = [replay(one, feeds).results["out"].sort_by("ts") for one in (graph, twin, free)]
    assert found[0].num_rows > 0
    whole = [sorted(map(str, one.to_pylist())) for one in found]
    assert whole[0] == whole[1] == whole[2]


def test_only_stores_get_fewer_columns_where_they_are_given() -> None:
    """A filter that reads most columns, and a window aggregate, copy none that is worth a pass of its own."""
    graph = Graph("joined")
    links = [
        graph.add(f"{name}-edge", Punctuate(BoundedDisorder(9)), graph.source(name, WIDE))
        for name in ("one", "two")
    ]
    some = [graph.add(f"{one.node}-some", Filter(pc.field("flag") == 1), one) for one in links]
    pairs = graph.add("pairs", OAJoin([("k", "k")], Band(3, 3)), *some)
    few = graph.add("few", Project(["ts", "k", "v"]), pairs)
    graph.sink("out", graph.add("n", WindowAggregate(Tumbling(10), {"s": Sum("v")}, ["k"]), few))
    lazy = pruned(graph, (OAJoin,))
    assert "few" not in lazy.nodes
    # The left v stays for its name, so four of six columns are read there, and three on the right: half of them pay.
    assert kept(lazy, Filter) == {"one-edge-some": WIDE.names, "two-edge-some": ["ts", "k", "flag"]}
    assert rows(lazy) == rows(graph) == rows(pruned(graph))
    assert pruned(lazy, (OAJoin,)).text() == lazy.text()


def test_a_projection_that_others_read_stays() -> None:
    graph = Graph("two readers")
    edge = graph.add("edge", Punctuate(BoundedDisorder(9)), graph.source("one", WIDE))
    few = graph.add("few", Project(["ts", "v"]), edge)
    graph.sink("out", graph.add("n", WindowAggregate(Tumbling(10), {"s": Sum("v")}), few))
    graph.sink("rows", few)
    assert "few" in pruned(graph, (OAJoin,)).nodes
