"""A graph that is warm: its first rows load no kernel, and hold up nobody in the event loop for that."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import Graph, Page, Schema
from oop_engine.aggregates import UserDefined
from oop_engine.core.operator import Emission, Operator
from oop_engine.lab import warm
from oop_engine.lab.invented import invented
from oop_engine.lab.own.without_own import is_own
from oop_engine.operators import BoundedDisorder, Count, Filter, Max, Punctuate, Tumbling, WindowAggregate
from tests.children import MOST_S

CODE = """
import asyncio, datetime, sys
import pyarrow as pa
from oop_engine import Graph, Local, Schema
from oop_engine.lab import warm
from oop_engine.operators import BoundedDisorder, Count, Max, Punctuate, Tumbling, WindowAggregate
from oop_engine.system.kernel import Kernel

schema = Schema({"ts": pa.timestamp("ms"), "host": pa.string(), "ms": pa.float64()}, "ts")

def graph():
    graph = Graph("g")
    edge = graph.add("edge", Punctuate(BoundedDisorder("30 s")), graph.source("log", schema))
    count = WindowAggregate(Tumbling("1 min"), {"n": Count(), "most": Max("ms")}, by=("host",))
    graph.sink("out", graph.add("count", count, edge))
    return graph

def loaded():
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("oop_engine"):
            made = [each for each in vars(module).values() if isinstance(each, Kernel) and "_made" in vars(each)]
            found |= {id(each): len(each.dispatcher().signatures) for each in made}
    return len(found), sum(found.values())

async def main():
    assert loaded() == (0, 0)
    await warm(graph())
    before = loaded()
    assert min(before) > 3, before
    async with Local(graph(), lambda result: None) as local:
        for second in (0, 50, 48, 60, 200, 130, 900):
            moment = datetime.datetime(2026, 3, 1) + datetime.timedelta(seconds=second)
            await local.push("log", [{"ts": moment, "host": "a", "ms": 1.5}])
        await local.push("log", [{"ts": moment, "host": f"h{n}", "ms": 1.5} for n in range(1000)])
    assert loaded() == before, (before, loaded())

asyncio.run(main())
"""


@pytest.mark.slow
def test_the_first_rows_of_a_warm_graph_load_no_kernel() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, timeout=MOST_S, check=False
    )
    assert done.returncode == 0, done.stderr


MANY = """
import asyncio, datetime, sys, threading
import pyarrow as pa
from oop_engine import Graph, Local, Schema, serve
from oop_engine.lab import warm
from oop_engine.sinks import Gathered
from oop_engine.aggregates import Median
from oop_engine.operators import (
    AsOf,
    Avg,
    Band,
    BoundedDisorder,
    Count,
    Distinct,
    Max,
    OAJoin,
    PerGroup,
    Punctuate,
    Session,
    Sliding,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.system import kernel
from oop_engine.system.ready import ready_kernel

HERE, loaded = threading.get_ident(), []
def noting(of, name):
    was = getattr(of, name)
    def noted(*given):
        if threading.get_ident() == HERE:
            loaded.append(getattr(given[0], "py_func", given[0]).__qualname__)
        return was(*given)
    setattr(of, name, noted)

noting(kernel.Kernel, "_compiled")
noting(ready_kernel, "_loaded")
noting(__import__("numba").core.dispatcher.Dispatcher, "compile")

schema = Schema({"ts": pa.timestamp("ms"), "host": pa.string(), "n": pa.int64(), "ms": pa.float64()}, "ts")
all_of = {"count": Count(), "sum": Sum("n"), "most": Max("ms"), "mean": Avg("ms")}
policy = BoundedDisorder("30 s")

def graph(operator, policy=policy):
    graph = Graph("g")
    names = "ab"[: len(operator.inputs)]
    ends = [graph.add(f"{name}-edge", Punctuate(policy), graph.source(name, schema)) for name in names]
    graph.sink("out", graph.add("operator", operator, *ends))
    return graph

def graphs():
    yield graph(WindowAggregate(Tumbling("1 min"), all_of, by=("host",)))
    yield graph(WindowAggregate(Sliding("5 min", "1 min"), {"n": Count()}, by=("host",)))
    yield graph(WindowAggregate(Tumbling("1 min"), {"mid": Median("ms")}, by=("n",)))
    yield graph(WindowAggregate(Session("30 s"), all_of, by=("host",)))
    yield graph(WindowAggregate(Session("30 s"), all_of, by=("n",)), PerGroup(policy, ("n",)))
    yield graph(Distinct(("host", "ts")))
    yield graph(OAJoin([("host", "host")], Band("10 s", "10 s")))
    yield graph(OAJoin([("n", "n")], AsOf(), how="left"))
    yield graph(OAJoin([("host", "host"), ("n", "n")], Band("10 s", "10 s"), how="left"))

def row(second, host, n, ms=1.5):
    return {"ts": datetime.datetime(2026, 3, 1) + datetime.timedelta(seconds=second), "host": host, "n": n, "ms": ms}

def lists():
    yield [row(0, "a", 1)]
    yield [row(50, "a", 1), row(48, "b", 2), row(60, None, 3, None)]
    yield [row(70 + n % 40 - n % 3, f"host {n % 7}", n % 7) for n in range(300)]
    yield [row(4000 + n // 10, f"a long name of the host number {n}", n * 1_000_003, None) for n in range(300)]
    yield [row(4100 + second, "a", 1) for second in (0, 40, 20, 10, 5)]
    yield [row(9000, "a", 1)]

async def pushed(graph):
    async with Local(graph, lambda result: None) as local:
        for rows in lists():
            for source in sorted(each.name for each in graph.plan().of_kind("source")):
                await local.push(source, rows)
                for each in rows[:3]:
                    await local.push_row(source, each)
                await local.settle()

async def main():
    for each in graphs():
        await warm(each)
        assert not loaded, loaded
        await pushed(each)
        sources = {node.name: [*lists()] for node in each.plan().of_kind("source")}
        await serve(each, sources, {"out": Gathered()})
        assert not loaded, (loaded, each.plan().node("operator").operator)

asyncio.run(main())
"""


@pytest.mark.slow
def test_no_turn_of_the_loop_loads_a_kernel_of_a_warm_graph() -> None:
    """Neither to make graphs nor to run them, in ``Local`` and in ``serve``."""
    done = subprocess.run(
        [sys.executable, "-c", MANY], capture_output=True, text=True, timeout=MOST_S, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(), pa.binary(), pa.bool_(), pa.decimal128(9, 2), pa.date32(), pa.timestamp("us", "UTC"), pa.float32(),
        pa.uint8(), pa.duration("s"), pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.int64()), pa.null(),
        pa.struct([("a", pa.int64())]),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("unit", ["s", "ns"])
def test_rows_of_all_types_areinvented(kind: pa.DataType, unit: str) -> None:
    schema = Schema({"ts": pa.timestamp(unit) if unit == "ns" else pa.int32(), "value": kind}, "ts", unit)
    pages = [*invented(schema, 2, 50, 1, 7)]
    assert [len(page) for page in pages] == [50, 50]
    values = pa.concat_tables([pa.table(page.batch) for page in pages])["value"]
    nested = pa.types.is_nested(kind) or kind == pa.null()
    assert (
        pc.count_distinct(values.cast(pa.string()) if not nested else values.is_valid()).as_py() > 1 - nested
    )


WORDS = "is not warm"


class Fails(Operator):
    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        msg = "there is no host seven"
        raise LookupError(msg)


async def test_an_operator_that_fails_on_invented_rows_is_told(caplog: pytest.LogCaptureFixture) -> None:
    graph = Graph("picky")
    graph.sink("out", graph.add("mine", Fails(), graph.source("in", Schema({"ts": pa.int64()}, "ts", "s"))))
    with caplog.at_level(logging.WARNING):
        await warm(graph)
        assert WORDS not in caplog.text  # nothing of the user is called unasked
        await warm(graph, own=True)
    assert f"graph 'picky': {WORDS} behind an operator that fails on invented rows" in caplog.text
    assert "there is no host seven" in caplog.text


CALLED: list[str] = []


def lifted(values: pa.Array) -> tuple[Any, ...]:
    CALLED.extend(["lift"][: len(values)])
    return (values.to_numpy(zero_copy_only=False),)


def either(a: Any, b: Any) -> tuple[Any, ...]:
    return (a[0] + b[0],)


def result(state: Any) -> Any:
    return state[0]


def kept(batch: pa.RecordBatch) -> pa.Array:
    CALLED.extend(["kept"][: len(batch)])  # a graph is checked without rows
    return pc.greater(batch["n"], 3)


async def test_nothing_of_the_user_is_called_unasked(caplog: pytest.LogCaptureFixture) -> None:
    graph, schema = Graph("mine"), Schema({"ts": pa.int64(), "n": pa.int64()}, "ts", "s")
    edge = graph.add("edge", Punctuate(BoundedDisorder(5)), graph.source("in", schema))
    some = graph.add("some", Filter(kept), edge)
    total = UserDefined(lifted, either, result, reads=("n",), state_types=("int64",), returns=pa.int64())
    mine = graph.add("mine", WindowAggregate(Tumbling(10), {"total": total}), some)
    graph.sink("out", graph.add("all", WindowAggregate(Tumbling(100), {"most": Max("total")}), mine))
    with caplog.at_level(logging.WARNING):
        await warm(graph)
        assert not CALLED
        await warm(graph, own=True)
    assert set(CALLED) == {"lift", "kept"}
    assert WORDS not in caplog.text


def test_what_a_library_has_is_not_the_users() -> None:
    of_library = (
        Filter(pc.field("n") > 3),
        WindowAggregate(Tumbling(10), {"n": Count()}),
        Punctuate(BoundedDisorder(5)),
    )
    assert not any(map(is_own, of_library))
    assert all(map(is_own, (Fails(), Filter(kept), Filter(partial(kept)), {"a": [Fails]})))
