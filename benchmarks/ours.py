"""Ours: the floor and the engine, as contenders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from benchmarks.contender import Contender
from benchmarks.data import Columns
from benchmarks.workload import PAGE, Workload
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.w3 import PacketsByAddress, PacketsBySender
from benchmarks.workloads.w5 import TwentyWindowsApart, TwentyWindowsChained
from oop_engine import Graph, Page
from oop_engine.operators.rewrites.in_order import in_order as twin
from oop_engine.runners.dispatch import Result
from oop_engine.runners.event_loop import run_async
from oop_engine.runners.inline import Inline
from oop_engine.runners.local import Local

__all__ = ["contender", "engine", "floor", "push_all", "run_graph"]


def contender(name: str, workload: str, columns: Columns) -> Contender:
    """Return the contender of that name: the floor, the engine, or the engine used in another way."""
    asked = WORKLOADS[workload]
    match name:
        case "floor":
            return floor(asked, columns)
        case "in order":
            return engine(asked, columns, in_order=True)
        case "engine, pages of 256":
            return engine(asked, columns, page=256)
        case "engine, pushed":
            return engine(asked, columns, pushed=True)
        case "engine, pushed, pages of 256":
            return engine(asked, columns, page=256, pushed=True)
        case "engine, text keys":
            return engine(PacketsByAddress(workload), columns)
        case "engine, final results alone":
            return engine(PacketsBySender(workload), columns)
        case "engine, cascade":
            return engine(TwentyWindowsChained(workload), columns)
        case "engine, nothing shared":
            return engine(TwentyWindowsApart(workload), columns)
    return engine(asked, columns)


def floor(workload: Workload, columns: Columns) -> Contender:
    """Return the loop of one purpose; it is compiled before."""
    run = workload.floor(columns)
    return Contender(lambda: None, lambda _: run(), lambda found: found)


def engine(
    workload: Workload, columns: Columns, *, page: int = PAGE, in_order: bool = False, pushed: bool = False
) -> Contender:
    """Return the graph, or its in-order twin, in the plain loop, or with its queues."""
    run_all = push_all if pushed else run_graph
    feed = list(workload.feed(columns, page))

    def graph() -> Graph:
        return twin(workload.graph()) if in_order else workload.graph()

    schemas = _sink_schemas(graph())

    def prepare() -> list[tuple[str, Page]]:
        # New objects over the same columns: a page remembers what it was asked for.
        return [(source, Page(cut.schema, cut.batch)) for source, cut in feed]

    def run(pages: list[tuple[str, Page]]) -> list[Result]:
        kept: list[Result] = []
        run_all(graph(), pages, kept.append)
        return kept

    def columns_of(kept: list[Result]) -> Columns:
        batches: dict[str, list[pa.RecordBatch]] = {sink: [] for sink in schemas}
        for result in kept:
            if isinstance(result.message, Page):
                batches[result.sink].append(result.message.batch)
        return workload.results({s: pa.Table.from_batches(b, schema=schemas[s]) for s, b in batches.items()})

    return Contender(prepare, run, columns_of)


def run_graph(graph: Graph, pages: Sequence[tuple[str, Page]], on_result: Callable[[Result], Any]) -> Inline:
    """Push ``pages``, each as soon as the one before is dealt with; return the runner."""
    runner = Inline(graph, on_result)
    for source, page in pages:
        runner.push(source, page)
        runner.drain()
    for node in runner.plan.of_kind("source"):
        runner.end(node.name)
    runner.drain()
    return runner


def push_all(graph: Graph, pages: Sequence[tuple[str, Page]], on_result: Callable[[Result], Any]) -> Local:
    """Push ``pages``, each as soon as there is room for it in the queue; return the runner."""
    runner = Local(graph, on_result)

    async def push() -> None:
        async with runner:
            for source, page in pages:
                await runner.push(source, page)

    run_async(push())
    return runner


def _sink_schemas(graph: Graph) -> dict[str, pa.Schema]:
    plan = graph.plan()
    return {node.name: plan.schema(node.inputs[0]).fields for node in plan.of_kind("sink")}
