"""Heads and copies with a dictionary for a shuffle: the same results as in one piece."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from oop_engine.testing import multiset
from operators.in_order.rewrite import in_order
from tests.oop_engine.spark.staged import Given, run_staged
from tests.test_random_graphs import SCHEMA, Built, graphs, pages


@pytest.mark.parametrize("order", ["out", "in"])
def test_random_graphs(order: str) -> None:
    @settings(max_examples=40, phases=[Phase.generate])  # to shrink such graphs takes minutes
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
