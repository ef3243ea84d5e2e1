"""Punctuation that no operator can use is dropped where it is made, and nothing else changes."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from oop_engine import Graph, Operator, Page, Schema
from oop_engine.core.punctuation import EVERYTHING, Wants
from oop_engine.operators import (
    Band,
    BoundedDisorder,
    Count,
    Emit,
    Meld,
    OAJoin,
    Ordered,
    PerGroup,
    Project,
    PrunePunctuation,
    Punctuate,
    Session,
    Sliding,
    Tumbling,
    WindowAggregate,
    WithColumns,
)
from oop_engine.rewrites import prune_punctuation
from oop_engine.runners.replay import replay
from oop_engine.testing import multiset

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "j": pa.int64()}, "ts", "s")
GROUPS = PerGroup(BoundedDisorder(5), ("k",), linear=BoundedDisorder(9))


def count(windows: object = None, by: Sequence[str] = (), **more: object) -> WindowAggregate:
    return WindowAggregate(windows or Tumbling(60), {"n": Count()}, by, **more)  # type: ignore[arg-type]


def chain(*operators: Operator) -> Graph:
    graph = Graph("chain")
    stream = graph.source("in", SCHEMA)
    for number, operator in enumerate(operators):
        stream = graph.add(f"op{number}", operator, stream)
    graph.sink("out", stream)
    return graph


def added(graph: Graph) -> dict[str, str]:
    plan = prune_punctuation(graph).plan()
    return {
        name: plan.operator(name).describe()
        for name in {node.name for node in plan.nodes} - graph.nodes.keys()
    }


@pytest.mark.parametrize(
    ("operators", "found"),
    [
        ((Punctuate(Ordered()), count()), {"op0-pruned": "PrunePunctuation(linear, joint at 60)"}),
        ((Punctuate(Ordered(), 60), count()), {}),
        ((Punctuate(Ordered(), "2 min"), count()), {}),
        ((Punctuate(GROUPS, 60), count()), {"op0-pruned": "PrunePunctuation(linear, joint at 60)"}),
        ((Punctuate(GROUPS, 60), count(by=("k", "j"))), {}),
        (
            (Punctuate(GROUPS, 7), count({"a": Sliding(60, 20), "b": Tumbling(30)}, by=("j",))),
            {"op0-pruned": "PrunePunctuation(linear, groups, joint at 10 by j)"},
        ),
        ((Punctuate(Ordered(), 7), count(Session(5))), {}),
        (
            (Punctuate(GROUPS), Project({"time": "ts", "key": "k"}), count(by=("key",))),
            {"op0-pruned": "PrunePunctuation(linear, groups, joint at 60 by k)"},
        ),
        ((Punctuate(GROUPS), WithColumns({"k": "j"}), count(by=("k",))), {
            "op0-pruned": "PrunePunctuation(linear, groups, joint at 60 by j)"
        }),
        ((Punctuate(Ordered(), 60, watermark=BoundedDisorder(0)), count()), {
            "op0-pruned": "PrunePunctuation(linear, joint at 60)"
        }),
        ((Punctuate(BoundedDisorder(9), 60, watermark=Ordered()), count(emit=Emit())), {}),
        ((Punctuate(GROUPS),), {"op0-pruned": "PrunePunctuation(linear)"}),
    ],
)  # fmt: skip
def test_a_describe_stands_where_something_would_be_dropped(operators, found):
    assert added(chain(*operators)) == found


def test_a_join_wants_group_wise_punctuation_of_its_keys():
    graph = Graph("join")
    links = [graph.add(f"{n}-edge", Punctuate(GROUPS, 10), graph.source(n, SCHEMA)) for n in "ab"]
    pairs = graph.add("pairs", OAJoin([("k", "k")], Band(0, 5)), *links)
    graph.sink("out", graph.add("count", count(by=("j",)), pairs))
    assert added(graph) == {"pairs-pruned": "PrunePunctuation(linear, groups, joint at 60 by j)"}


def test_a_union_wants_as_much_as_all_that_read_it():
    graph = Graph("union")
    links = [graph.add(f"{n}-edge", Punctuate(Ordered(), 5), graph.source(n, SCHEMA)) for n in "ab"]
    union = graph.add("union", Meld(2), *links)
    graph.sink("long", graph.add("minutes", count(), union))
    graph.sink("short", graph.add("tens", count(Tumbling(90)), union))
    assert added(graph) == dict.fromkeys(
        ["a-edge-pruned", "b-edge-pruned"], "PrunePunctuation(linear, joint at 30)"
    )


def test_an_operator_of_your_own_wants_everything_unless_it_answers():
    assert Operator().wants((SCHEMA,), Wants(60)) == (EVERYTHING,)
    assert added(chain(Punctuate(GROUPS, 7), PrunePunctuation(), count())) == {}


def test_late_tuples_stay_the_same():
    rows = [5, 61, 58, 66, 3, 130, 119]
    page = Page.of(SCHEMA, {"ts": rows, "k": ["a"] * 7, "j": [0] * 7}, arrival=list(range(7)))
    graph = chain(Punctuate(BoundedDisorder(4)), count())
    outcomes = [replay(plan, {"in": [page]}) for plan in (graph, prune_punctuation(graph))]
    late = [outcome.statistics.count("late") for outcome in outcomes]
    tables = [multiset(outcome.results["out"].to_pylist()) for outcome in outcomes]
    assert late[0] == late[1] == 2
    assert tables[0] == tables[1]
