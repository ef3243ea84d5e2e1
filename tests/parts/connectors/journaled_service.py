"""A service over lines of TCP that is killed: ``python -m tests.parts.connectors.journaled_service FOLDER``.

It prints its port, then the number of each last row that is in the journal.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine import Graph, Schema, serve
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Sum, Tumbling, WindowAggregate
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import PartFiles
from oop_engine.sources import Journal, TcpLines

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string(), "n": pa.int64()}, "ts", "s")


def counts() -> Graph:
    graph = Graph("counts")
    edge = graph.add("edge", Punctuate(BoundedDisorder(9)), graph.source("calls", SCHEMA))
    sums = WindowAggregate(Tumbling(20), {"rows": Count(), "sum": Sum("n")}, by=("key",))
    graph.sink("out", graph.add("count", sums, edge))
    return graph


class Told(TcpLines):
    """Tells of the port, once it is known."""

    async def _open(self, *args: Any) -> None:
        await super()._open(*args)
        print("port", self.port, flush=True)


class Kept(Journal):
    """Tells of the last row that was handed on."""

    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        async for data, behind in super().read(position):
            print("kept", json.loads(data.splitlines()[-1])["n"], flush=True)
            yield data, behind


async def main(folder: Path, last: int) -> None:
    stop = asyncio.Event()

    class Stops(Kept):
        async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
            async for data, behind in super().read(position):
                yield data, behind
                if f'"n": {last}}}'.encode() in data:
                    stop.set()

    journal = Stops(Told("127.0.0.1", 0), folder / "journal", segment_bytes=4096)
    await serve(
        counts(), {"calls": journal}, {"out": PartFiles(folder / "out")},
        checkpoint=folder / "state", every_s=0.05, stop=stop, drain=True,
    )  # fmt: skip


if __name__ == "__main__":
    run_async(main(Path(sys.argv[1]), int(sys.argv[2])))
