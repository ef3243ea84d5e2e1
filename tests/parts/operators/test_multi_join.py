from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import Graph, GraphError, GroupWise, Linear, Page, Schema
from oop_engine.joins import TumblingBand, multi_join
from oop_engine.operators import AsOf, Band, BoundedDisorder, MultiJoin, Punctuate
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.runners.replay import replay
from oop_engine.testing import Driver, multiset
from tests.naive.joins import band, joined, multi_joined, tumbling

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
    graph = graph_of(how={"towers": "left", "phones": "inner"})
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


SPARSE = Schema({"ts": pa.int64(), "k": pa.int64(), "of": pa.string()}, "ts", "s")

NUMBERS = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")


def drawn(seed: int, rows: int = 60) -> dict[str, list[Page]]:
    """Return streams of which the second has many tuples a key, the last few, both out of order."""
    rng = np.random.default_rng(seed)
    columns = {
        name: {
            "ts": rng.permutation(n),
            "k": rng.integers(0, keys, n),
            "of": np.array(["x", "y", None])[rng.integers(0, 3, n)],
        }
        for name, n, keys in (("calls", rows, 9), ("towers", rows, 3), ("phones", rows // 2, 6))
    }
    return {
        name: [
            Page.of(SPARSE, {n: column[at : at + 13].tolist() for n, column in of.items()})
            for at in range(0, rows, 13)
        ]
        for name, of in columns.items()
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sorted_first", [False, True])
def test_one_operator_has_the_results_of_the_chain(seed: int, sorted_first: bool) -> None:
    feeds = drawn(seed)
    rows = [[row for page in pages for row in page.to_pylist()] for pages in feeds.values()]
    found = []
    for at_once in (False, True):
        graph = Graph("several")
        calls, *others = (
            graph.add(
                f"{name}-edge", Punctuate(BoundedDisorder(60), granularity=7), graph.source(name, SPARSE)
            )
            for name in feeds
        )
        keys = {"towers": [("of", "of"), ("k", "k")], "phones": [("k", "k"), ("of", "of")]}
        bands = {"towers": Band(15, 12), "phones": Band(25, 20)}
        streams = dict(zip(keys, others, strict=True))
        graph.sink("out", multi_join(graph, "all", calls, streams, keys, bands, at_once=at_once))
        graph = in_order(graph) if sorted_first else graph
        found.append(multiset(replay(graph, feeds).results["out"].to_pylist()))
    expected = multi_joined(rows, [("k",) * 3, ("of",) * 3], {"towers": band(15, 12), "phones": band(25, 20)})
    assert found[0] == found[1] == multiset(expected)
    assert expected


@pytest.mark.parametrize("last", range(3))
@pytest.mark.parametrize("rows", [8191, 8193, 20_000])
def test_a_page_of_any_size_has_all_its_results(last: int, rows: int) -> None:
    driver = Driver(MultiJoin("a", {"b": Band(5, 5), "c": Band(5, 5)}, [("k", "k", "k")]), *[NUMBERS] * 3)
    numbers = np.arange(rows)
    for port in sorted(range(3), key=lambda port: port == last):
        driver.feed(port, Page.of(NUMBERS, {"ts": numbers, "k": numbers}))
    found = np.concatenate([page.times for page in driver.pages()])
    assert np.array_equal(np.sort(found), numbers)


def test_the_stream_with_the_fewest_matches_is_asked_first() -> None:
    join = MultiJoin("a", {"many": Band(9, 9), "few": Band(9, 9)}, [("k", "k", "k")])
    driver = Driver(join, SPARSE, SPARSE, SPARSE)
    page = {"ts": [1, 2, 3], "k": [1, 1, 1], "of": ["x"] * 3}
    driver.feed(1, Page.of(SPARSE, page))
    driver.feed(0, Page.of(SPARSE, page))  # nothing of "few", after it has been found in "many"
    driver.feed(0, Page.of(SPARSE, page))
    assert driver.operator.counts() == {
        "behind": 0, "probes_many": 3, "matches_many": 9, "probes_few": 6, "matches_few": 0,
    }  # fmt: skip
    assert driver.operator.state().tuples == 9
    driver.feed(2, Linear(30))
    assert driver.operator.state().tuples == 9  # "many" may have partners for the anchor's
    driver.feed(1, Linear(30))
    assert driver.operator.state().tuples == 3
    driver.feed(0, Linear(30))
    assert driver.operator.state().tuples == 0


def test_a_key_is_over_for_all_streams_when_the_others_have_passed_it() -> None:
    join = MultiJoin("a", {"b": Band(1, 1), "c": Band(1, 1)}, [("k", "k", "k")])
    driver = Driver(join, SPARSE, SPARSE, SPARSE)
    for port in range(3):
        driver.feed(port, Page.of(SPARSE, {"ts": [5, 5], "k": [1, 2], "of": ["x", "x"]}))
    driver.feed(1, GroupWise.of({"k": [1]}, [20]))
    assert driver.operator.state().tuples == 6
    assert driver.feed(2, GroupWise.of({"k": [1]}, [20])) == []
    assert (
        driver.operator.state().tuples == 5
    )  # the anchor's tuple of 1; those of b and c wait for more of it
    [(_, behind)] = driver.feed(0, GroupWise.of({"k": [1]}, [30]))
    assert behind == GroupWise.of({"k": [1]}, [19])
    assert driver.operator.state().tuples == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("a", {"b": Band(1, 1)}, []), "two or more streams beside 'a'; got .'b'.: use OAJoin"),
        (
            ("a", {"b": Band(1, 1), "c": Band(1, 1)}, [("k", "k")]),
            "keys must be names, or tuples \\(a column, b column, c column\\)",
        ),
        (("a", {"b": Band(1, 1), "c": AsOf()}, []), "got one for .'c'.: use multi_join"),
    ],
)
def test_what_one_operator_cannot_join(given: Any, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        MultiJoin(*given)


def test_at_once_goes_by_the_same_columns() -> None:
    with pytest.raises(GraphError, match="by the same columns of the anchor"):
        graph_of(keys={"towers": [("k", "k")], "phones": [("v", "v")]}, at_once=True)


def test_there_must_be_others() -> None:
    graph = Graph("none")
    with pytest.raises(GraphError, match="there must be streams to join with; got none"):
        multi_join(graph, "all", graph.source("calls", SCHEMA), {}, [], Band(1, 1))
