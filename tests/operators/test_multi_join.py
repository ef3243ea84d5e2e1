from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, GraphError, Page, Schema
from oop_engine.operators import Band, BoundedDisorder, Punctuate, TumblingBand, multi_join
from oop_engine.runners.replay import replay
from oop_engine.testing import multiset
from tests.naive.joins import band, joined, tumbling

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
ROWS = {
    name: [{"ts": 3 * i + shift, "k": "abc"[i % (2 + shift)], "v": i} for i in range(12)]
    for shift, name in enumerate(("calls", "towers"))
}
ROWS["phones"] = [{"ts": 2 * i, "k": "ab"[i % 2], "v": -i} for i in range(16)]


def graph_of(**options: Any) -> Graph:
    graph = Graph("several")
    streams = {
        name: graph.add(f"{name}-edge", Punctuate(BoundedDisorder(0)), graph.source(name, SCHEMA))
        for name in ROWS
    }
    given = {"keys": [("k", "k")], "bands": {"towers": Band(1, 2), "phones": TumblingBand(4)}} | options
    others = {name: streams[name] for name in ("towers", "phones")}
    graph.sink("out", multi_join(graph, "all", streams["calls"], others, **given))
    return graph


def test_a_chain_is_the_join_of_each_with_the_anchor() -> None:
    graph = graph_of(kind={"towers": "left", "phones": "inner"})
    feeds = {
        name: [Page.of(SCHEMA, {n: [r[n] for r in rows] for n in SCHEMA.names})]
        for name, rows in ROWS.items()
    }
    found = replay(graph, feeds).results["out"].to_pylist()
    names = SCHEMA.names
    towers = joined(
        "left",
        ROWS["calls"],
        ROWS["towers"],
        [("k", "k")],
        band(1, 2),
        names=(names, names),
        suffix="_towers",
    )
    both = [*names, *(f"{n}_towers" for n in names)]
    expected = joined(
        "inner", towers, ROWS["phones"], [("k", "k")], tumbling(4), names=(both, names), suffix="_phones"
    )
    assert expected
    assert multiset(found) == multiset(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"bands": {"towers": Band(1, 2)}},
            "bands must have one for each of .'phones', 'towers'.; got .'towers'.",
        ),
        ({"keys": {"x": []}}, "keys must have one for each"),
    ],
)
def test_each_name_has_its_own_or_all_have_one(options: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        graph_of(**options)


def test_there_must_be_others() -> None:
    graph = Graph("none")
    with pytest.raises(GraphError, match="there must be streams to join with; got none"):
        multi_join(graph, "all", graph.source("calls", SCHEMA), {}, [], Band(1, 1))
