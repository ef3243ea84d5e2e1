"""Mistakes in what an operator yields or returns are named with node, method and way out; nothing vanishes."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import (
    ContractError,
    Graph,
    GraphError,
    GroupWise,
    Joint,
    Linear,
    Local,
    Operator,
    Page,
    Schema,
    Watermark,
    run,
)
from oop_engine.errors import OperatorError
from oop_engine.operators import BoundedDisorder, Punctuate
from oop_engine.testing import Driver

COLUMNS: dict[str, pa.DataType] = {"ts": pa.int64(), "k": pa.string()}
SCHEMA = Schema(COLUMNS, "ts", "s")
ROWS = [{"ts": ts, "k": "a"} for ts in (3, 1, 12, 9, 30)]
Method = Callable[[Any, int, Any], Any]


def graph_of(**methods: Method) -> Graph:
    graph = Graph("g")
    edge = graph.add("edge", Punctuate(BoundedDisorder(5)), graph.source("in", SCHEMA))
    graph.sink("out", graph.add("mine", type("Mine", (Operator,), methods)(), edge))
    return graph


async def pushed(graph: Graph, found: list[Any]) -> None:
    async with Local(graph, found.append) as local:
        for row in ROWS:
            await local.push("in", [row])


def yields(*found: Any) -> Method:
    def method(self: Any, port: int, message: Any) -> Any:
        yield from found

    return method


async def _waits(self: Any, port: int, message: Any) -> Any:
    return [(port, message)]


async def _asks(self: Any, port: int, message: Any) -> Any:
    yield port, message


def as_page(schema: Schema) -> Method:
    def method(self: Any, port: int, page: Page) -> Any:
        columns = {name: page.column(name).cast(schema.type_of(name)) for name in schema.names}
        yield 0, Page.of(schema, columns)

    return method


NEITHER = "on_page must return a generator, or another iterable, of (output port, Page or punctuation); got"
PAIR = "on_page must yield a port and a message; got"
PORT = "on_page: an output port is the number of one of out, 0 alone; got"
WRONG: dict[str, tuple[Method, str]] = {
    "none": (yields(None, (0, Linear(1))), f"{PAIR} None (NoneType)"),
    "list": (yields([0, Linear(1)]), f"{PAIR} [0, Linear(below=1)] (list)"),
    "three": (yields((0, Linear(1), 1)), f"{PAIR} (0, Linear(below=1), 1) (tuple)"),
    "bare": (lambda self, port, page: (port, page), f"{PAIR} 0 (int)"),
    "returns none": (lambda self, port, page: None, f"{NEITHER} None (NoneType): yield each of them"),
    "returns page": (lambda self, port, page: page, f"{NEITHER} Page("),
    "coroutine": (_waits, "(coroutine): def, not async def: an operator does no I/O"),
    "asynchronous generator": (_asks, "(async_generator): def, not async def"),
    "name": (yields(("out", Linear(1))), f"{PORT} 'out'"),
    "float": (yields((0.0, Linear(1))), f"{PORT} 0.0"),
    "bool": (yields((False, Linear(1))), f"{PORT} False"),
    "other port": (yields((1, Linear(1))), f"{PORT} 1"),
    "message": (yields((0, {"ts": 1})), "on_page: a message is a Page or a punctuation; got {'ts': 1} (dict)"),
    "class": (yields((0, Linear)), "on_page: a message is a Page or a punctuation; got <class"),
    "order": (as_page(Schema({"k": pa.string(), "ts": pa.int64()}, "ts", "s")), "must have the announced schema"),
    "type": (as_page(Schema(COLUMNS | {"k": pa.large_string()}, "ts", "s")), "must have the announced schema"),
    "unit": (as_page(Schema(COLUMNS, "ts", "ms")), "must have the announced schema"),
    "column": (as_page(Schema({"ts": pa.int64()}, "ts", "s")), "it lacks 'k': yield Page(self.schemas_out[port], ...)"),
    "half a bound": (yields((0, Linear(2.5))), "an integer of 64 bits; got 2.5"),  # type: ignore[arg-type]
    "moment": (yields((0, Linear(datetime.datetime(2026, 1, 1)))), "an integer of 64 bits; "),  # type: ignore[arg-type]
    "joint": (yields((0, Joint((("ts", 2.5),)))), "an integer of 64 bits; got 2.5"),  # type: ignore[arg-type]
    "watermark": (yields((0, Watermark(Linear(2.5)))), "an integer of 64 bits; got 2.5"),  # type: ignore[arg-type]
    "far bound": (yields((0, Linear(2**70))), "an integer of 64 bits; got 11805916207"),
    "dictionary": (yields((0, Joint({"ts": 5}))), "the bounds of a Joint must be pairs"),  # type: ignore[arg-type]
    "no bounds": (yields((0, Joint(()))), "the bounds of a Joint must be pairs"),
    "no watermark": (yields((0, Watermark(None))), "must be of a Linear or a GroupWise"),  # type: ignore[arg-type]
    "of bounds": (yields((0, Watermark(Joint((("ts", 5),))))), "must be of a Linear"),  # type: ignore[arg-type]
    "no column": (yields((0, GroupWise.of({"nope": ["a"]}, [3]))), "about columns of (ts+: int64, k: string; unit s)"),
    "key": (yields((0, GroupWise.of({"k": [5]}, [3]))), "the groups of a punctuation by 'k' must be"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_named_with_its_place(name: str) -> None:
    method, words = WRONG[name]
    found: list[Any] = []
    for attempt in (
        lambda: run(graph_of(on_page=method), {"in": ROWS}),
        lambda: run(graph_of(on_page=method), {"in": ROWS}, check=True),
        lambda: asyncio.run(pushed(graph_of(on_page=method), found)),
    ):
        with pytest.raises(ContractError) as caught:
            attempt()
        assert str(caught.value).startswith("graph 'g', operator 'mine'")
        assert words in str(caught.value)
    assert not found


@pytest.mark.parametrize("method", ["on_punctuation", "on_end"])
def test_each_method_has_its_name(method: str) -> None:
    with pytest.raises(ContractError, match=f"{method} must return a generator"):
        run(graph_of(**{method: lambda self, port, message=None: None}), {"in": ROWS})


def test_a_port_of_numpy_is_a_port() -> None:
    graph = graph_of(on_page=lambda self, port, page: [(np.int64(0), page)])
    assert run(graph, {"in": ROWS}).table.num_rows == len(ROWS)


def test_the_kit_names_mistakes_as_runners_do() -> None:
    operator = type("Mine", (Operator,), {"on_page": yields(None)})()
    with pytest.raises(ContractError, match="on_page must yield a port and a message; got None"):
        Driver(operator, SCHEMA).feed(0, ROWS)


def test_groups_that_are_no_batch_have_a_way_out() -> None:
    with pytest.raises(ContractError, match=r"GroupWise.of\(\{"):
        GroupWise(("k",), [3])  # type: ignore[arg-type]


FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "inputs": ({"inputs": "in"}, "graph 'g': 'mine' (Mine): inputs must be a tuple of names of ports; got 'in': write"),
    "outputs": ({"outputs": "out"}, "outputs must be a tuple of names of ports; got 'out': write ('out',)"),
    "no outputs": ({"outputs": ()}, "outputs must be a tuple of names of ports; got ()"),
    "equal outputs": ({"outputs": ("a", "a")}, "outputs must have different names; got ('a', 'a')"),
    "state": ({"state": 5}, "'mine' (Mine): state must be a method, def state(self, ...); got 5"),
    "keeps_order": ({"keeps_order": True}, "keeps_order must be a method"),
    "version": ({"state_version": "2"}, "state_version must be a whole number from 1 on; got '2'"),
    "revisions": ({"revisions": "pass"}, "got 'pass'; did you mean passes?"),
    "clock": ({"clock_every": "1 s"}, "clock_every must be None, or a whole number of units above 0; got '1 s'"),
    "schemas none": ({"output_schemas": lambda self, inputs: None}, "output_schemas must return a tuple of 1 Schema"),
    "schema alone": ({"output_schemas": lambda self, inputs: inputs[0]}, "one for each of out; got Schema("),
    "two schemas": ({"output_schemas": lambda self, inputs: inputs * 2}, "one for each of out; got (Schema("),
    "fields": ({"output_schemas": lambda self, inputs: (inputs[0].fields,)}, "one for each of out; got (ts: int64"),
    "schemas fail": ({"output_schemas": lambda self: ()}, "node 'mine' (Mine): output_schemas failed: TypeError"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_refused_when_the_graph_is_built(name: str) -> None:
    members, words = FORMS[name]
    with pytest.raises(GraphError) as caught:
        run(graph_of(**members), {"in": ROWS})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def _fail(*_: Any) -> Any:
    raise RuntimeError("no")


@pytest.mark.parametrize("method", ["open", "state"])
def test_errors_of_methods_name_the_operator(method: str) -> None:
    with pytest.raises(OperatorError, match=r"graph 'g', operator 'mine' \(Mine\).*RuntimeError: no"):
        run(graph_of(**{method: _fail}), {"in": ROWS})


def test_memory_that_is_used_again_does_not_change_pages() -> None:
    def on_page(self: Any, port: int, page: Page) -> Any:
        times = np.zeros(1, np.int64)
        for ts in page.times.tolist():
            times[:] = ts
            yield 0, Page.of(SCHEMA, {"ts": times, "k": ["a"]}, arrival=times)

    found = run(graph_of(on_page=on_page), {"in": ROWS}).table
    assert found["ts"].to_pylist() == [row["ts"] for row in ROWS]


@pytest.mark.parametrize("of", ["pages", "columns"])
def test_memory_that_a_feed_uses_again_does_not_change_rows(of: str) -> None:
    def feed() -> Any:
        times = np.zeros(40_000, np.int64)  # its copy is in memory of Arrow
        for first in (0, 100_000, 200_000):
            times[:] = np.arange(first, first + times.size)
            columns = {"ts": times, "k": ["a"] * times.size}
            yield Page.of(SCHEMA, columns) if of == "pages" else columns

    graph = Graph("g")
    graph.sink("out", graph.add("edge", Punctuate(BoundedDisorder(5)), graph.source("in", SCHEMA)))
    times = run(graph, {"in": feed()}).table["ts"].to_numpy()
    assert np.array_equal(times, np.concatenate([np.arange(at, at + 40_000) for at in (0, 100_000, 200_000)]))
