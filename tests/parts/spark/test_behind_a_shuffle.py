"""Operators behind a shuffle by other keys: results do not depend on segments, micro-batches or groups."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import Graph, Operator, Page, Schema, run
from oop_engine.aggregates import CountDistinct, First, Last, Median
from oop_engine.operators import (
    BoundedDisorder,
    Count,
    Distinct,
    Emit,
    Latest,
    Max,
    PerGroup,
    Punctuate,
    Session,
    Sum,
    TopN,
    Tumbling,
    WindowAggregate,
)
from oop_engine.testing import multiset
from oop_engine.windows import Delimited, LastRows, PartitionedTupleBased, RowsBetween, TupleBased
from tests.parts.spark.staged import Given, run_staged

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "j": pa.int64(), "v": pa.int64()}, "ts", "s")
ASKED = {"v": Sum("v"), "n": Count()}
K, J, TIE = ("k", "j"), ("j",), ("v",)  # rows of one time, key and value are alike, but for their number
FIRST: dict[str, Operator] = {
    "tumbling": WindowAggregate(Tumbling(5), ASKED, by=K),
    "session": WindowAggregate(Session(3), ASKED, by=K),
    "distinct": Distinct(by=(*K, "v")),
    "ranks": WindowAggregate(
        PartitionedTupleBased(2, 1, order="time", tie=TIE), {"v": Sum("v"), "j": Max("j")}, by=("k",)
    ),
    "versions": WindowAggregate(Tumbling(5), ASKED, by=K, emit=Emit()),
}
SUM = {"s": Sum("v")}
SECOND: dict[str, Operator] = {
    "tumbling": WindowAggregate(Tumbling(10), {**SUM, "n": Count(), "m": Max("v")}, by=J),
    "lists": WindowAggregate(Tumbling(10), {"d": CountDistinct("v"), "m": Median("v")}, by=J),
    "first and last": WindowAggregate(Tumbling(10), {"f": First("v"), "l": Last("v")}, by=J),
    "session": WindowAggregate(Session(6), SUM, by=J),
    "ranks": WindowAggregate(PartitionedTupleBased(3, 1, order="time", tie=TIE), SUM, by=J),
    "ranks of all": WindowAggregate(TupleBased(3, 1, order="time", tie=(*J, *TIE)), SUM),
    "rows around": WindowAggregate(RowsBetween(-2, 0, tie=TIE), SUM, by=J),
    "last rows": WindowAggregate(LastRows(3, 4, tie=TIE), SUM, by=J),
    "marks": WindowAggregate(Delimited(pc.field("v") > 6), SUM, by=J),
    "distinct": Distinct(by=("j", "v")),
    "top": TopN(2, ["-v"], by=J),
    "latest": Latest(by=J, where=pc.field("v") > 4),
}
PAIRS = [
    (first, second) for first in FIRST for second in SECOND if (first, second) != ("versions", "latest")
]  # Latest takes no revisions


def graph_of(first: str, second: str, *, by_key: bool) -> Graph:
    graph, linear = Graph("shuffled"), BoundedDisorder(25)
    policy = PerGroup(BoundedDisorder(8), by=("k",), linear=linear) if by_key else linear
    edge = graph.add("edge", Punctuate(policy), graph.source("in", SCHEMA))
    graph.sink("out", graph.add("second", SECOND[second], graph.add("first", FIRST[first], edge)))
    return graph


def page_of(draw: random.Random) -> Page:
    rows = draw.choice([20, 60, 120])
    columns = {
        name: [draw.randrange(most) for _ in range(rows)] for name, most in (("k", 4), ("j", 3), ("v", 10))
    }
    times = [row // 2 - draw.randrange(20) for row in range(rows)]
    return Page.of(SCHEMA, {"ts": times, **columns}, np.arange(rows))


@pytest.mark.slow(keep=6)
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_results_are_those_of_one_page(first: str, second: str) -> None:
    for seed in range(4):
        draw = random.Random(seed)
        page, size, by_key = page_of(draw), draw.choice([1, 3, 7, 50]), seed % 2 == 1
        wanted = run(graph_of(first, second, by_key=by_key), {"in": [page]}).results["out"].to_pylist()
        assert wanted
        segments = [[page.slice(at, min(at + size, len(page)))] for at in range(0, len(page), size)]
        found = run_staged(
            graph_of(first, second, by_key=by_key), {"in": Given(SCHEMA, segments)},
            groups=draw.randrange(1, 5), per_batch=draw.randrange(1, 6), seed=draw.randrange(9),
        )  # fmt: skip
        assert multiset(found["out"]) == multiset(wanted)
