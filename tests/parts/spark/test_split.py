"""What is split for Spark, what stays as it is, and that the results are the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oop_engine import Graph, Page, Schema, replay
from oop_engine.operators.aggregates import Count
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.joining.bands import Band
from oop_engine.operators.meld import Meld
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Landmark, Session, Sliding, Tumbling, Windows
from oop_engine.scenarios.thesis.links import SCENARIO as LINKS
from oop_engine.spark import Parquet
from oop_engine.spark.plan.sampled import worth_halves
from oop_engine.spark.plan.two_level import scaled, splittable
from oop_engine.spark.run import pieces_of, run_on_spark
from oop_engine.testing import multiset
from tests.laws.test_random_graphs import SCHEMA as RANDOM
from tests.laws.test_random_graphs import Built, graphs, pages
from tests.parts.spark.staged import Given, run_staged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
SLIDING = Sliding(20, 10)


def counted(
    by: tuple[str, ...] = (), sources: int = 2, windows: Windows | Mapping[str, Windows] = SLIDING
) -> Graph:
    graph = Graph("counted")
    edges = [graph.add(f"edge{i}", Punctuate(BoundedDisorder(5)), graph.source(f"source{i}", SCHEMA))
             for i in range(sources)]  # fmt: skip
    tuples = graph.add("union", Meld(sources), *edges) if sources > 1 else edges[0]
    graph.sink("counts", graph.add("count", WindowAggregate(windows, {"n": Count()}, by), tuples))
    return graph


def test_of_an_aggregate_without_by_the_sources_send_partials() -> None:
    pieces = pieces_of(counted(), groups=4)
    assert [chain.nodes for chain in pieces.chains] == [
        ("edge0", "count-partial-0"),
        ("edge1", "count-partial-1"),
    ]
    assert [(component.nodes, component.groups) for component in pieces.components] == [
        (("union", "count"), 1)
    ]


@pytest.mark.parametrize("windows", [{"a": SLIDING, "b": Tumbling(7)}, {"a": SLIDING, "b": Session(5)}])
def test_windows_by_name_send_partials_too(windows: Mapping[str, Windows]) -> None:
    pieces = pieces_of(counted(windows=windows), groups=4)
    sent = {edge.stream.node for edge in pieces.edges if edge.component is not None}
    assert sent == {"count-partial-0", "count-partial-1"}


def test_the_links_send_partials() -> None:
    values = LINKS.values({"tuples": "1000"})
    graph = next(variant.graph for variant in LINKS.variants(values) if variant.name == "meld")
    sent = {edge.stream.node for edge in pieces_of(graph).edges if edge.component is not None}
    assert sent == {"count-partial-0", "count-partial-1", "count-partial-2"}


def test_the_subtasks_before_a_total_send_partials() -> None:
    graph = counted(("k",))
    graph.sink("totals", graph.add("total", WindowAggregate(SLIDING, {"n": Count()}), "count"))
    pieces = pieces_of(graph, groups=4)
    assert [(component.nodes, component.groups) for component in pieces.components] == [
        (("union", "count", "total-partial"), 4),
        (("total",), 1),
    ]


@pytest.mark.parametrize(
    "graph",
    [
        counted(("k",)),
        counted(sources=1),  # the source reads all of it anyway
        counted(windows=Landmark(10)),  # has no panes
        next(v.graph for v in LINKS.variants(LINKS.values({"tuples": "1000"})) if v.order == "in"),
    ],
    ids=["by", "one source", "landmark", "in order"],
)
def test_what_need_not_or_cannot_be_split_stays_as_it_is(graph: Graph) -> None:
    assert scaled(graph) == (graph, {})


def test_names_that_are_taken_are_no_error() -> None:
    graph = counted()
    graph.sink("count-partial-0", "count")
    assert scaled(graph) == (graph, {})


def test_what_is_not_asked_for_is_not_done() -> None:
    graph = counted()
    assert scaled(graph, split=False) == (graph, {})
    assert pieces_of(graph, split=False).components[0].nodes == ("union", "count")


def test_balanced_are_aggregates_by_a_key_behind_sources() -> None:
    graph = counted(("k",))
    twin, columns = scaled(graph, balance=True)
    assert columns == {"count-partial-0": ("k",), "count-partial-1": ("k",)}
    assert twin.nodes["union"].inputs[0].node == "count-partial-0"


def test_not_balanced_is_what_comes_from_behind_a_shuffle() -> None:
    graph = Graph("joined")
    left, right = (
        graph.add(f"{name}-edge", Punctuate(BoundedDisorder(5)), graph.source(name, SCHEMA))
        for name in ("left", "right")
    )
    joined = graph.add("join", OAJoin((("k", "k"),), band=Band(0, 5)), left, right)
    graph.sink("counts", graph.add("count", WindowAggregate(Sliding(20, 10), {"n": Count()}, ("k",)), joined))
    assert scaled(graph, balance=True) == (graph, {})


def rows_of_keys(keys: int, count: int = 8192) -> list[Page]:
    """Return two pages of rows at five times a second, some late, with so many keys."""
    times = np.arange(count) // 200
    columns: dict[str, Any] = {
        "ts": times - np.arange(count) * 7 % 8,
        "k": [f"key {n % keys}" for n in range(count)],
    }
    half = count // 2
    return [
        Page.of(SCHEMA, {n: c[at : at + half] for n, c in columns.items()}, times[at : at + half])
        for at in (0, half)
    ]


@pytest.mark.parametrize(("keys", "count", "split"), [(5, 8192, ["count"]), (4000, 8192, []), (5, 2000, [])])
def test_an_aggregate_of_few_groups_is_split_by_the_first_rows(
    keys: int, count: int, split: list[str]
) -> None:
    graph = counted(("k",), sources=1)
    assert worth_halves(graph, {"source0": Given(SCHEMA, [rows_of_keys(keys, count)])}) == split


def test_what_has_no_halves_beside_its_source_is_not_sampled() -> None:
    given = {"source0": Given(SCHEMA, [rows_of_keys(5)])}
    for graph, unordered in ((counted(("k",), 1, Landmark(10)), ()), (counted(("k",), 1), ("source0",))):
        assert worth_halves(graph, given, unordered) == []


@pytest.mark.slow
@pytest.mark.spark
def test_of_few_groups_partials_are_shuffled_and_results_are_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    graph = counted(("k",))
    feeds = {"source0": rows_of_keys(5), "source1": rows_of_keys(3)}
    expected = replay(graph, feeds)
    kept = {"spark": spark, "checkpoint": tmp_path / "checkpoint", "sink": Parquet(tmp_path / "out")}
    found = run_on_spark(graph, feeds, segment_rows=4096, **kept)
    assert [chain.nodes for chain in found.cut.chains] == [
        ("edge0", "count-partial-0"),
        ("edge1", "count-partial-1"),
    ]
    rows = pq.ParquetDataset(tmp_path / "out").read().to_pylist()
    assert multiset(rows) == multiset(expected.results["counts"].to_pylist())
    assert found.statistics.count("late") == expected.statistics.count("late") > 0
    assert run_on_spark(graph, feeds, segment_rows=4096, **kept).batches == []  # it is split as it was
    whole = run_on_spark(graph, feeds, spark=spark, split=False, batch=True)
    assert [chain.nodes for chain in whole.cut.chains] == [("edge0",), ("edge1",)]


def test_random_graphs() -> None:
    @settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
    @given(graphs(), st.data())
    def holds(built: Built, data: st.DataObject) -> None:
        feeds = {n: Given(RANDOM, [[page] for page in pages(feed, 3)]) for n, feed in built.feeds.items()}
        halves = splittable(built.graph) if data.draw(st.booleans()) else ()
        graph, _ = scaled(built.graph, halves=list(halves))
        found = run_staged(graph, feeds, groups=2, per_batch=data.draw(st.integers(1, 5)))
        for number, told in enumerate(built.told):
            assert multiset(found[f"sink{number}"]) == multiset(told.rows)

    holds()
