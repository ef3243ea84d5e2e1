"""Random graphs with versions: their net content is that of the same graph without, and final behind punctuation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import Graph, Page, Schema, replay
from oop_engine.core.graphs.graph import Stream
from oop_engine.operators import (
    Band,
    BoundedDisorder,
    Count,
    Distinct,
    Emit,
    Filter,
    Finalize,
    Max,
    OAJoin,
    Punctuate,
    Session,
    Sliding,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.testing import multiset
from oop_engine.triggers import AfterAny, AfterCount, AfterFraction, AfterMatch
from oop_engine.windows import PartitionedTupleBased

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
ROWS = st.tuples(
    st.integers(-20, 60), st.sampled_from(["a", "b", None]), st.integers(0, 3), st.integers(0, 25)
)
WINDOWS = [Tumbling(10), Sliding(20, 5), Session(4), PartitionedTupleBased(3, 2, order="time", tie=("v",))]
EMITS = [
    Emit(), Emit(early=AfterCount(1)), Emit(early=AfterAny(AfterFraction(0.5), AfterMatch(pc.field("v") > 1))),
    Emit(on_time=False, late=AfterCount(2)),
]  # fmt: skip
BEHIND = ["nothing", "sums", "versions of sums", "distinct", "joined", "selected"]


@dataclass(frozen=True)
class Plan:
    windows: Any
    emit: Emit | None
    behind: str
    soft: int

    def graph(self) -> Graph:
        graph = Graph("versions")
        edge = Punctuate(BoundedDisorder(25), granularity=5, watermark=BoundedDisorder(self.soft))
        stream = graph.add("edge", edge, graph.source("in", SCHEMA))
        asked = {"v": Sum("v"), "n": Count(), "m": Max("v")}
        first = graph.add("first", WindowAggregate(self.windows, asked, ("k",), emit=self.emit), stream)
        last = self._behind(graph, first)
        graph.sink("versions", last)
        graph.sink("final", graph.add("finalize", Finalize(), last))
        return graph

    def _behind(self, graph: Graph, first: Stream) -> Stream:
        match self.behind:
            case "sums" | "versions of sums":
                emit = self.emit if self.behind != "sums" else None
                return graph.add("sums", WindowAggregate(Tumbling(30), {"v": Sum("v")}, emit=emit), first)
            case "distinct":
                return graph.add("distinct", Distinct(("n",)), first)
            case "joined":
                return graph.add("joined", OAJoin([("k", "k")], Band(0, 10)), first, first)
            case "selected":
                return graph.add("some", Filter(pc.field("n") > 1), first)
        return first


@settings(max_examples=20, deadline=None)
@given(st.lists(ROWS, min_size=5, max_size=25), st.data())
def test_the_net_content_is_that_without_versions(rows: list[Any], data: st.DataObject) -> None:
    choices: list[list[Any]] = [WINDOWS, EMITS, BEHIND, [0, 3, 12]]
    plan = Plan(*[data.draw(st.sampled_from(some)) for some in choices])
    rows = sorted(rows, key=lambda row: row[0] + row[3])
    alone = multiset(run(replace(plan, emit=None), rows, 100, "inline").results["versions"].to_pylist())
    for cut, on in ((100, "inline"), (1, "inline"), (data.draw(st.integers(2, 7)), "local")):
        outcome = run(plan, rows, cut, on)
        assert multiset(outcome.final("versions").to_pylist()) == alone
        assert multiset(outcome.results["final"].to_pylist()) == alone
        assert outcome.statistics.state.in_use == (0, 0, 0)


def run(plan: Plan, rows: list[Any], cut: int, on: Any) -> Any:
    """``check=True`` holds every change to the punctuation before it: behind that nothing changes."""
    parts = [rows[start : start + cut] for start in range(0, len(rows), cut)]
    columns = ("ts", "k", "v")
    feed = [
        Page.of(
            SCHEMA, {n: [row[i] for row in part] for i, n in enumerate(columns)}, [r[0] + r[3] for r in part]
        )
        for part in parts
    ]
    return replay(plan.graph(), {"in": feed}, on=on, check=True)
