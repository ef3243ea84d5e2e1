"""Source chains and subtasks with a dictionary for a shuffle: the same results as in one piece."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from oop_engine import Graph, Page, replay
from oop_engine.operators.aggregates import Count
from oop_engine.operators.edge.arrival_time import ArrivalTime
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.filter import Filter
from oop_engine.operators.policies.policies import BoundedDisorder, Heartbeat
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Tumbling
from oop_engine.testing import multiset
from tests.laws.test_random_graphs import SCHEMA, Built, graphs, pages
from tests.parts.spark.staged import Given, run_staged


@pytest.mark.slow
@pytest.mark.parametrize("order", ["out", "in"])
def test_random_graphs(order: str) -> None:
    @settings(max_examples=20, phases=[Phase.generate])  # to shrink such graphs takes minutes
    @given(graphs(), st.data())
    def holds(built: Built, data: st.DataObject) -> None:
        rows = data.draw(st.integers(1, 7))
        sources = {
            name: Given(SCHEMA, [[page] for page in pages(feed, rows)]) for name, feed in built.feeds.items()
        }
        graph = built.graph if order == "out" else in_order(built.graph)
        found = run_staged(
            graph,
            sources,
            groups=data.draw(st.integers(1, 4)),
            per_batch=data.draw(st.integers(1, 5)),
            seed=data.draw(st.integers(0, 9)),
        )
        for number, told in enumerate(built.told):
            assert multiset(found[f"sink{number}"]) == multiset(told.rows)

    holds()


def test_a_silence_of_many_ticks_is_little_work() -> None:
    graph = Graph("silent")
    policy = Heartbeat(BoundedDisorder(5), threshold=10, slack=30, every=1)
    edge = graph.add("edge", Punctuate(policy), graph.source("in", SCHEMA))
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(7), {"rows": Count()}, ("k",)), edge))
    arrivals = [0, 9, 13, 10**7, 10**7 + 40, 10**7 + 41]
    times = [0, 9, 4, 10**7 - 50, 10**7 + 12, 10**7 + 30]
    columns = {"ts": times, "k": ["a"] * 6, "n": [1] * 6}
    whole = Page.of(SCHEMA, columns, arrivals)
    segments = [[whole.slice(start, start + 2)] for start in (0, 2, 4)]
    clocks = ((0, 13), (0, 10**7 + 39), (0, 10**7 + 41))
    found = run_staged(graph, {"in": Given(SCHEMA, segments, clocks)}, groups=2, per_batch=1, seed=1)
    outcome = replay(graph, {"in": [whole]})
    assert multiset(found["out"]) == multiset(outcome.results["out"].to_pylist())
    assert outcome.late.total == 1  # what ends a silence moves the clock after itself


def test_an_operator_that_reads_arrivals_has_them_without_a_clock() -> None:
    graph = Graph("stamped")
    stamped = graph.add("it", ArrivalTime("came"), graph.source("in", SCHEMA))
    graph.sink("out", graph.add("kept", Filter(pc.field("n") > 0), stamped))
    page = Page.of(SCHEMA, {"ts": [5, 3, 9], "k": ["a", "b", "a"], "n": [1, 2, 0]}, [10, 20, 30])
    found = run_staged(graph, {"in": Given(SCHEMA, [[page.slice(0, 2)], [page.slice(2, 3)]])})
    assert [(row["ts"], row["came"]) for row in found["out"]] == [(5, 10), (3, 20)]
