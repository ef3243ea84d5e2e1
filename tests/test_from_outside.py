"""What is added from outside: a thing that no file of the packages knows is as good as one of theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Emission, Graph, GraphError, Operator, Page, Schema, run
from oop_engine.core.halves import consolidated
from oop_engine.operators import BoundedDisorder, Meld, Punctuate, Sum, Tumbling, WindowAggregate
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.spark.plan.two_level import scaled
from oop_engine.testing import Case, contract_suite

SCHEMA = Schema({"ts": pa.int64(), "n": pa.int64()}, "ts", "s")
PAGES = {
    "a": [Page.of(SCHEMA, {"ts": [3, 1, 14], "n": [1, 2, 3]})],
    "b": [Page.of(SCHEMA, {"ts": [12, 2, 31], "n": [5, 7, 9]})],
}
SUMS = [(10, 8), (20, 8), (40, 9)]


class Odd(Operator):
    """The tuples whose ``n`` is odd: a toy that answers no question that it need not."""

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        odd = page.column("n").fill_null(0).to_numpy() % 2 == 1
        if odd.any():
            yield 0, page.filter(odd)


class OpenOdd(Odd):
    """The same, which says of itself what it does to order and to unions."""

    distributes = True

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True


class HalvedSum(WindowAggregate):
    """An aggregate whose class no rewrite has heard of."""


def is_odd(inputs: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [row for row in inputs[0] if row["n"] is not None and row["n"] % 2 == 1]


test_operator_keeps_the_laws = contract_suite(
    [Case("odd", Odd(), (SCHEMA,), is_odd), Case("open-odd", OpenOdd(), (SCHEMA,), is_odd)], examples=5
)


def sums_of_odd(odd: Operator) -> Graph:
    graph = Graph("sums of what is odd")
    edges = [
        graph.add(f"edge-{name}", Punctuate(BoundedDisorder(20)), graph.source(name, SCHEMA))
        for name in PAGES
    ]
    graph.add("odd", odd, graph.add("both", Meld(len(edges)), *edges))
    graph.sink("out", graph.add("sum", HalvedSum(Tumbling(10), {"s": Sum("n")}), "odd"))
    return graph


def sums(graph: Graph) -> list[tuple[int, int]]:
    rows = run(graph, PAGES, check=True).results["out"].to_pylist()
    return sorted((row["window_end"], row["s"]) for row in rows)


@pytest.mark.parametrize("odd", [Odd(), OpenOdd()], ids=["silent", "open"])
def test_operator_runs_in_any_graph(odd: Operator) -> None:
    assert sums(sums_of_odd(odd)) == SUMS


def test_operator_that_says_that_it_keeps_order_has_an_in_order_twin() -> None:
    graph = Graph("odd, in order")
    graph.add("edge", Punctuate(BoundedDisorder(20)), graph.source("a", SCHEMA))
    graph.sink("out", graph.add("odd", OpenOdd(), "edge"))
    results = run(in_order(graph), {"a": PAGES["a"]}, check=True).results
    assert results["out"]["ts"].to_pylist() == [3, 14]


def test_operator_that_says_nothing_is_refused_in_order() -> None:
    told = "node 'odd': Odd has no in-order twin: what comes to it in order must leave in order, and Odd.keeps_order()"
    with pytest.raises(GraphError, match=re.escape(told)):
        in_order(sums_of_odd(Odd()))


@pytest.mark.parametrize(
    ("odd", "firsts"),
    [(Odd(), ["sum-partial"]), (OpenOdd(), ["sum-partial-0", "sum-partial-1"])],
    ids=["silent", "open"],
)
def test_rewrite_in_halves_asks_and_knows_no_name(odd: Operator, firsts: list[str]) -> None:
    twin = consolidated(sums_of_odd(odd))
    assert [name for name in twin.nodes if "partial" in name] == firsts
    assert sums(twin) == SUMS
    assert [name for name in scaled(sums_of_odd(odd))[0].nodes if "partial" in name] == firsts
