"""A service over one source, one operator and one sink, of which one has a mistake."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine import Graph, Operator, Page, Schema, serve
from oop_engine.extend import LiveSink, LiveSource, Policy
from oop_engine.operators import BoundedDisorder, Punctuate
from oop_engine.runners.event_loop import run_async

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
ROWS: list[dict[str, Any]] = [{"ts": ts, "k": "ab"[ts % 2]} for ts in (3, 1, 12, 9, 30, 25)]


class Rows(LiveSource):
    """The rows, and then nothing more for now: it stops the service."""

    replayable = True

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop

    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        for number in range(position or 0, len(ROWS)):
            yield ROWS[number], number + 1
        self._stop.set()
        await asyncio.Event().wait()


class Shown(LiveSink):
    """Rows of epochs that were committed."""

    def __init__(self) -> None:
        self.shown: list[Any] = []
        self.waiting: dict[int, list[Any]] = {}

    async def write(self, epoch: int, page: Page) -> None:
        self.waiting.setdefault(epoch, []).extend(page.to_pylist())

    async def prepare(self, epoch: int) -> Any:
        return self.waiting.pop(epoch, None)

    async def commit(self, prepared: Any) -> None:
        self.shown += prepared


def source(read: Callable[..., Any] | None = None, **members: Any) -> LiveSource:
    """Return a source with some members of its own."""
    given = {"replayable": True, **members, **({} if read is None else {"read": read})}
    made: LiveSource = type("Mine", (LiveSource,), given)()
    return made


def sink(**members: Any) -> Shown:
    """Return a sink with some members of its own."""
    made: Shown = type("Mine", (Shown,), members)()
    return made


def graph_of(operator: Operator | None = None, policy: Policy | None = None) -> Graph:
    graph = Graph("g")
    edge = graph.add("edge", Punctuate(policy or BoundedDisorder(5)), graph.source("log", SCHEMA))
    graph.sink("out", edge if operator is None else graph.add("mine", operator, edge))
    return graph


def served(
    folder: Path, *, of: Any = None, into: Any = None, graph: Graph | None = None, **more: Any
) -> list[Any]:
    """Serve; return the rows that a ``Shown`` shows then."""

    async def main() -> None:
        stop = asyncio.Event()
        sources = {"log": Rows(stop) if of is None else of}
        async with asyncio.timeout(60):
            await serve(graph or graph_of(), sources, {"out": into}, checkpoint=folder, stop=stop, **more)

    into = Shown() if into is None else into
    run_async(main())
    return getattr(into, "shown", [])
