"""The benchmark of queries: all ways have one answer, and plans as short as the graph by hand."""

from __future__ import annotations

import pytest

from benchmarks import query
from oop_engine import sql


@pytest.mark.parametrize("name", query.CASES)
def test_all_ways_have_one_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "ROUNDS", 1)
    feeds = {of: query.rows(3000, seed) for seed, of in enumerate(("log", "other"))}
    assert set(query.measured(feeds, name)) == {"by hand", "words", "SQL"}


@pytest.mark.parametrize("name", ["tumbling", "sliding", "union"])
def test_plans_have_the_nodes_of_the_graph_by_hand(name: str) -> None:
    hand, words, text = query.CASES[name]
    wanted = sorted(type(node.operator).__name__ for node in hand().nodes.values())
    for made in (words, sql(text, log=query.LOG, other=query.OTHER)):
        assert sorted(type(node.operator).__name__ for node in made.graph.nodes.values()) == wanted
