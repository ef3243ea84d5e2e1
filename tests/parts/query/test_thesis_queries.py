"""The thesis's queries in its own syntax: the very graphs that the scenarios build by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from oop_engine import Graph, Operator, Schema, sql, stream
from oop_engine.core.graphs.fingerprint import fingerprint
from oop_engine.core.graphs.stream import Stream
from oop_engine.operators import Count, Max, OAJoin, Punctuate, Sum, WindowAggregate
from oop_engine.operators.joining.bands import Band, TumblingBand
from oop_engine.operators.windows import (
    Landmark,
    PartitionedTupleBased,
    SlideByTuple,
    Sliding,
    TupleBased,
)
from oop_engine.query import DataStream
from oop_engine.query.step import of_operator, of_source
from oop_engine.scenarios.thesis import (
    adapt_wid,
    joint,
    late_join,
    late_tumbling_join,
    links,
    packet_join,
    paned_wid,
    rows_wid,
    slide_by_tuple,
    two_level,
    union_count,
    union_join,
)

PACKETS = {"ts": "int64", "srcIP": "int64", "destIP": "int64", "length": "int64"}
MAIN = {
    name: stream(name, PACKETS).event_time("ts", "ordered", unit="s")
    for name in ("Main1", "Main2", "Control")
}

BY_SCENARIOS = {
    "Q1-2": (
        links, "meld, no heartbeat", {"range": "1 min"},
        "SELECT count(*) AS packets [RANGE 1 min, SLIDE 1 min, WA ts] FROM M1 UNION M2 UNION C",
    ),
    "Q3-1": (
        late_join, "OA-Join", {"band": "3"},
        "SELECT count(*) AS n [RANGE 1 min, SLIDE 1 min, WA S0.ts] FROM S0 [RANGE 3 min, WA ts], "
        "S1 [RANGE 3 min, WA ts] WHERE S0.connection = S1.connection",
    ),
    "Q5-5": (
        slide_by_tuple, "fold", {"range": "2000"},
        "SELECT count(*) AS n, sum(v) AS total [RANGE 2000, RATTR ts, SLIDE 1 row, SATTR row-num] FROM tuples",
    ),
    "Q6-2": (
        paned_wid, "WID", {"shape": "20 x 5"},
        "SELECT max(len) AS longest [RANGE 100, SLIDE 20, WA ts] FROM packets",
    ),
    "Q6-7": (
        adapt_wid, "WID", {"data": "Q6-7 DS3"},
        "SELECT srcIP, sum(len) AS bytes [RANGE 1000, SLIDE 1000, WA ts] FROM main1 GROUP BY srcIP",
    ),
    "Q6-8": (
        adapt_wid, "WID", {"data": "Q6-8 2 s"},
        "SELECT srcIP, count(*) AS packets [RANGE 10000, SLIDE 1000, WA ts] FROM main1 UNION main2 UNION control "
        "GROUP BY srcIP",
    ),
    "table 6-1": (
        rows_wid, "WID", {"slide": "100"},
        "SELECT max(v) AS most [RANGE 4000, SLIDE 100, WA row] FROM rows",
    ),
    "Q7-1": (
        joint, "individual", {"band": "60"},
        "SELECT S1.ts AS ts_right, count(*) AS n [RANGE 1, SLIDE 1, WA S0.ts] FROM S0 [RANGE 60, WA ts], "
        "S1 [RANGE 60, WA ts] WHERE S0.connection = S1.connection GROUP BY S1.ts",
    ),
    "Q7-2": (
        packet_join, "OA-Join", {"band": "5"},
        "SELECT count(*) AS pairs [RANGE 1 min, SLIDE 1 min, WA M1.ts] FROM M1 [RANGE 5 s, WA ts], "
        "M2 [RANGE 5 s, WA ts] WHERE M1.src = M2.dst AND M1.dst = M2.src AND M1.src_port = M2.dst_port "
        "AND M1.dst_port = M2.src_port",
    ),
    "Q8-1": (
        two_level, "one level", {},
        "SELECT src, dst, count(*) AS n [RANGE 1 min, SLIDE 1 min, WA ts] FROM main GROUP BY src, dst",
    ),
    "Q8-2": (
        union_count, "Meld", {},
        "SELECT src, dst, count(*) AS n [RANGE 1 min, SLIDE 1 min, WA ts] FROM M1 UNION M2 GROUP BY src, dst",
    ),
    "Q8-3": (
        union_join, "Meld, OA-Join", {},
        "SELECT count(*) AS n [RANGE 10 s, SLIDE 10 s, WA M1.ts] FROM A UNION B AS M1, C UNION D AS M2 "
        "[RANGE TUMBLING 10 s, WA ts], WHERE M1.connection = M2.connection",
    ),
    "Q8-4": (
        late_tumbling_join, "Meld, OA-Join", {},
        "SELECT count(*) AS n [RANGE 1 min, SLIDE 1 min, WA M1.ts] FROM M1, M2 UNION C AS M3 "
        "[RANGE TUMBLING 1 min, WA ts] WHERE M1.connection = M3.connection",
    ),
    "Q8-5": (
        links, "meld, no heartbeat", {"range": "5 min"},
        "SELECT count(*) AS packets [RANGE 5 min, SLIDE 1 min, WA ts] FROM M1 UNION M2 UNION C",
    ),
}  # fmt: skip

BY_HAND = {
    "Q1-1, Q5-1, Q6-1": (
        "SELECT srcIP, count(*) AS n [RANGE 10 minutes, SLIDE 1 minute, WA ts] FROM Main1 GROUP BY srcIP",
        WindowAggregate(Sliding("10 minutes", "1 minute"), {"n": Count()}, ["srcIP"]),
    ),
    "Q5-1 with WATTR": (
        "SELECT srcIP, count(*) AS n [RANGE 10 minutes, SLIDE 1 minute, WATTR ts] FROM Main1 GROUP BY srcIP",
        WindowAggregate(Sliding("10 minutes", "1 minute"), {"n": Count()}, ["srcIP"]),
    ),
    "Q5-2": (
        "SELECT srcIP, max(length) AS m [RANGE 1000 rows, SLIDE 10 rows, WA row-num, PA srcIP] FROM Main1",
        WindowAggregate(PartitionedTupleBased(1000, 10), {"m": Max("length")}, ["srcIP"]),
    ),
    "Q5-3": (
        "SELECT srcIP, max(length) AS m [RANGE 1000 rows, SLIDE 10 rows, WA row-num] FROM Main1 GROUP BY srcIP",
        WindowAggregate(TupleBased(1000, 10), {"m": Max("length")}, ["srcIP"]),
    ),
    "Q5-4": (
        "SELECT srcIP, count(*) AS n [RANGE ALL, SLIDE 1 minute, WA ts] FROM Main1 GROUP BY srcIP",
        WindowAggregate(Landmark("1 minute"), {"n": Count()}, ["srcIP"]),
    ),
    "Q5-5": (
        "SELECT max(length) AS m [RANGE 5 minutes, RATTR ts, SLIDE 1 row, SATTR row-num] FROM Main1",
        WindowAggregate(SlideByTuple("5 minutes"), {"m": Max("length")}),
    ),
    "Q5-6": (
        "SELECT count(*) AS n [RANGE 5 minutes, RATTR ts, SLIDE 5 rows, SATTR rank(ts)] FROM Main1",
        WindowAggregate(SlideByTuple("5 minutes", 5, "rank"), {"n": Count()}),
    ),
    "Q6-2": (
        "SELECT max(length) AS m [RANGE 4 minutes, SLIDE 1 minute, WA ts] FROM Main1",
        WindowAggregate(Sliding("4 minutes", "1 minute"), {"m": Max("length")}),
    ),
    "Q6-3, Q6-5": (
        "SELECT srcIP, count(*) AS n [RANGE 4 minutes, SLIDE 1 minute, WA ts] FROM Main1 GROUP BY srcIP",
        WindowAggregate(Sliding("4 minutes", "1 minute"), {"n": Count()}, ["srcIP"]),
    ),
    "Q6-6": (
        "SELECT srcIP, sum(length) AS n [RANGE 10 seconds, SLIDE 1 second, WA ts] FROM Main1 GROUP BY srcIP",
        WindowAggregate(Sliding("10 seconds", "1 second"), {"n": Sum("length")}, ["srcIP"]),
    ),
}  # fmt: skip

JOINS: dict[str, tuple[str, Band | TumblingBand]] = {
    "Q3-1, Q5-8": (
        "SELECT * FROM Main1 [WA ts, RANGE 3 min], Main2 [WA ts, RANGE 2 min] WHERE Main1.srcIP = Main2.destIP",
        Band("2 min", "3 min"),
    ),
    "Q5-7": (
        "SELECT * FROM Main1, Main2 [RANGE TUMBLING 5 minutes, WA ts], WHERE Main1.srcIP = Main2.destIP",
        TumblingBand("5 minutes"),
    ),
}


def canonical(graph: Graph) -> list[Any]:
    """Return what a graph computes at its sinks, whatever its nodes are called."""
    return [tree(graph, node.inputs[0]) for node in graph.nodes.values() if node.kind == "sink"]


def tree(graph: Graph, of: Stream) -> Any:
    node = graph.nodes[of.node]
    if node.operator is None:
        return [node.name, str(node.schema)]
    schema = graph.plan().schema(node.inputs[0])
    return [*meaning(node.operator, schema), of.port, [tree(graph, one) for one in node.inputs]]


def meaning(operator: Operator, schema: Schema) -> list[Any]:
    """Return the parameters of an operator, lengths in units, without the strategy that a scenario tries."""
    if not isinstance(operator, WindowAggregate):
        return [type(operator).__name__, fingerprint(operator)]
    windows = operator.windows.bound(schema)
    return [
        type(windows).__name__,
        fingerprint([windows, operator.aggregates, list(operator.by), operator.stamp]),
    ]


def given(graph: Graph) -> Iterator[tuple[str, DataStream]]:
    """Yield the sources of a scenario, each with its edge."""
    edges = {
        node.inputs[0].node: node.operator
        for node in graph.nodes.values()
        if isinstance(node.operator, Punctuate)
    }
    for node in graph.nodes.values():
        if node.kind == "source":
            assert isinstance(node.schema, Schema)
            source = of_source(node.name, node.schema)
            edge = edges.get(node.name)
            yield node.name, DataStream(source if edge is None else of_operator("event-time", edge, source))


@pytest.mark.parametrize("name", BY_SCENARIOS)
def test_a_query_gives_the_graph_of_its_scenario(name: str) -> None:
    scenario, plan, settings, text = BY_SCENARIOS[name]
    values = scenario.SCENARIO.values(settings)
    [graph] = [one.graph for one in scenario.SCENARIO.variants(values) if one.name == plan]
    assert canonical(sql(text, **dict(given(graph))).graph) == canonical(graph)


@pytest.mark.parametrize("name", BY_HAND)
def test_a_query_gives_one_aggregate(name: str) -> None:
    text, operator = BY_HAND[name]
    query = sql(text, **MAIN)
    [found] = [
        one.operator for one in query.graph.nodes.values() if isinstance(one.operator, WindowAggregate)
    ]
    assert meaning(found, MAIN["Main1"].schema) == meaning(operator, MAIN["Main1"].schema)
    assert list(query.graph.nodes) == ["Main1", "event-time", "agg", "result"]


@pytest.mark.parametrize("name", JOINS)
def test_a_query_gives_one_join(name: str) -> None:
    text, band = JOINS[name]
    [found] = [node for node in sql(text, **MAIN).graph.nodes.values() if isinstance(node.operator, OAJoin)]
    assert fingerprint(found.operator) == fingerprint(OAJoin([("srcIP", "destIP")], band))


def test_minutes_as_the_event_time_are_grouped_by_it() -> None:
    query = sql(
        "SELECT srcIP, ts, count(*) AS n FROM Main1 WHERE srcIP = 1 OR srcIP = 2 GROUP BY srcIP, ts", **MAIN
    )
    [found] = [
        one.operator for one in query.graph.nodes.values() if isinstance(one.operator, WindowAggregate)
    ]
    assert (found.by, found.stamp) == (("srcIP",), "start")  # Q2-1
    rows = [{"ts": 1, "srcIP": 1, "destIP": 0, "length": 0}] * 2 + [
        {"ts": 2, "srcIP": 3, "destIP": 0, "length": 0}
    ]
    assert query.run(rows).table.to_pylist() == [{"srcIP": 1, "ts": 1, "n": 2}]
