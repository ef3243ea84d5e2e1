"""A service over files that is killed: ``python -m tests.oop_engine.service.killed_service FOLDER``.

It prints a line before each commit, and one behind it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine import FileTail, Graph, PartFiles, Schema, serve
from oop_engine.connectors.sources import file_tail
from oop_engine.operators import BoundedDisorder, Count, Meld, Punctuate, Sum, Tumbling, WindowAggregate
from oop_engine.runners.event_loop import run_async

LOGS = ("east", "west")
SCHEMA = Schema({"ts": pa.int64(), "key": pa.string(), "n": pa.int64()}, "ts", "s")


def counts() -> Graph:
    graph = Graph("counts")
    edges = [
        graph.add(f"{name}-edge", Punctuate(BoundedDisorder(9)), graph.source(name, SCHEMA)) for name in LOGS
    ]
    sums = WindowAggregate(Tumbling(20), {"rows": Count(), "sum": Sum("n")}, by=("key",))
    graph.sink("out", graph.add("count", sums, graph.add("both", Meld(len(LOGS)), *edges)))
    return graph


class Told(PartFiles):
    """Tells of its commits."""

    async def commit(self, prepared: Any) -> None:
        print("commits", flush=True)
        await super().commit(prepared)
        print("committed", flush=True)


def main(folder: Path) -> None:
    file_tail._BLOCK = 512  # small pieces, so that there are many moments to die at
    sources = {name: FileTail(folder / f"{name}.jsonl", follow=False) for name in LOGS}
    served = serve(
        counts(), sources, {"out": Told(folder / "out")}, checkpoint=folder / "state", every_s=0.01
    )
    run_async(served)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
