"""Graphs as plain data: through JSON and back they are the same, and nothing else is made of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import Graph, GraphError, Operator, Schema, replay, scan, sql
from oop_engine.core.arguments import checked_arguments
from oop_engine.core.graphs.fingerprint import described, fingerprint
from oop_engine.core.graphs.plain import of_plain, plain
from oop_engine.operators import Emit, Filter, Late
from oop_engine.testing import Case
from oop_engine.triggers import AfterAny, AfterCount, AfterDelay
from tests.cases import all_cases
from tests.parts.query.nexmark import QUERIES
from tests.parts.query.nexmark_data import events

SCHEMA = Schema({"ts": pa.int64(), "len": pa.int64(), "k": pa.string()}, "ts", "s")
PREDICATE = (pc.field("len") > 40) & pc.is_in(pc.field("k"), value_set=pa.array(["a", "b"]))


def through_json(value: Any) -> Any:
    return of_plain(json.loads(json.dumps(plain(value, "here"))), "here", {})


def refusal(case: Case) -> str:
    try:
        plain(case.operator, "here")
    except GraphError as error:
        return str(error)
    return ""


CASES = [(case, refusal(case)) for case in all_cases()]
PLAIN = [case for case, why in CASES if not why]


def test_only_operators_with_functions_have_no_plain_form() -> None:
    refused = [why for _, why in CASES if why]
    assert all("is a function" in why for why in refused)
    assert 0 < len(refused) < len(PLAIN) / 5


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_an_operator_is_the_same_again(case: Case) -> None:
    again = through_json(case.operator)
    for one in (again, case.operator):
        one.output_schemas(case.inputs)  # it may note how often it wants the clock
    assert fingerprint(again) == fingerprint(case.operator)
    assert plain(again, "here") == plain(case.operator, "here")


@pytest.mark.parametrize(
    "value",
    [
        float("inf"),
        -0.0,
        "5 s",
        b"\0a",
        timedelta(days=1, microseconds=3),
        np.timedelta64(5, "ns"),
        np.datetime64("2026-01-01T00:00:00.000001"),
        datetime(2026, 1, 1, tzinfo=UTC),
        Late.DIVERT,
        Emit(early=AfterAny(AfterCount(3), AfterDelay("1 s"))),
        pa.timestamp("us", "Europe/Berlin"),
        pa.list_(pa.field("item", pa.decimal128(5, 2), nullable=False)),
        Schema(pa.schema([pa.field("ts", pa.int64(), nullable=False, metadata={"a": "b"})]), "ts", "s"),
        frozenset({"linear", "joint"}),
    ],
    ids=lambda value: "a set" if isinstance(value, frozenset) else repr(value),  # its order goes by the hash seed
)  # fmt: skip
def test_a_value_is_the_same_again(value: Any) -> None:
    again = through_json(value)
    assert (type(again), sorted(repr(again))) == (type(value), sorted(repr(value)))


def test_expressions_have_their_text_and_go_on() -> None:
    data = plain(Filter(PREDICATE), "here")
    assert data["with"]["predicate"]["expression"] == str(PREDICATE)
    assert str(of_plain(data, "here", {}).predicate) == str(PREDICATE)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_the_same_graph_again(name: str) -> None:
    tables = events(500)
    given = {of: scan(table, of).event_time("date_time", "5 s") for of, table in tables.items()}
    graph = sql(QUERIES[name], **given).graph
    again = Graph.of_plain(json.loads(json.dumps(graph.plain())))
    assert again.plain() == graph.plain()
    assert described(again.plan()) == described(graph.plan())
    feeds = {of: table for of, table in tables.items() if of in graph.nodes}
    assert replay(again, feeds).table.equals(replay(graph, feeds).table)


def test_a_function_is_refused_by_name() -> None:
    graph = Graph("g")
    log = graph.source("log", SCHEMA)
    graph.sink("out", graph.add("long", Filter(is_long), log))
    with pytest.raises(
        GraphError, match="graph 'g', node 'long', predicate of Filter: is_long is a function"
    ):
        graph.plain()


def is_long(batch: pa.RecordBatch) -> pa.Array:
    return pc.greater(batch["len"], 40)


@checked_arguments
class Mine(Operator):
    def __init__(self, n: int) -> None:
        self.n = n

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return inputs


def test_an_operator_of_ones_own_is_given_by_name() -> None:
    graph = Graph("g")
    graph.sink("out", graph.add("mine", Mine(3), graph.source("log", SCHEMA)))
    data = json.loads(json.dumps(graph.plain()))
    with pytest.raises(GraphError, match="node 'mine': there is no 'Mine' in"):
        Graph.of_plain(data)
    made = Graph.of_plain(data, {"Mine": Mine}).nodes["mine"].operator
    assert isinstance(made, Mine)
    assert made.n == 3


def alone(kind: str, own: Any = None) -> dict[str, Any]:
    return {"graph": "g", "nodes": [{"name": "a", "node": kind, "is": own}]}


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"graph": "g", "nodes": 3},
        alone("source"),
        alone("thing"),
        alone("operator", {"kind": "oop_engine.operators.Late", "member": "DROP"}),
        alone("source", {"kind": "oop_engine.operators.annotations", "with": {}}),
        alone("operator", {"kind": "oop_engine.operators.Filter", "with": {"x": 1}}),
        alone("operator", {"kind": "os.system", "with": {"command": "true"}}),
        alone("operator", {"expression": "x", "arrow": "eA=="}),
        alone("operator", {"__class__": "os.system"}),
    ],
    ids=repr,
)
def test_other_data_are_refused(data: Any) -> None:
    with pytest.raises(GraphError):
        Graph.of_plain(data)
