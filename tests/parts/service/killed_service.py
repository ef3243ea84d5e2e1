"""A service over files that is killed: ``python -m tests.parts.service.killed_service FOLDER [delta]``.

It prints a line before each commit, and one behind it.  ``delta``: the results are versions, merged into a Delta table.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine import Graph, Schema, serve
from oop_engine.connectors.tailing import followed
from oop_engine.operators import BoundedDisorder, Count, Emit, Meld, Punctuate, Sum, Tumbling, WindowAggregate
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import DeltaFolder, PartFiles
from oop_engine.sources import FileTail
from oop_engine.triggers import AfterCount

LOGS = ("east", "west")
SCHEMA = Schema({"ts": pa.int64(), "key": pa.string(), "n": pa.int64()}, "ts", "s")


def counts(emit: Emit | None = None) -> Graph:
    graph = Graph("counts")
    edges = [
        graph.add(f"{name}-edge", Punctuate(BoundedDisorder(9)), graph.source(name, SCHEMA)) for name in LOGS
    ]
    sums = WindowAggregate(Tumbling(20), {"rows": Count(), "sum": Sum("n")}, by=("key",), emit=emit)
    graph.sink("out", graph.add("count", sums, graph.add("both", Meld(len(LOGS)), *edges)))
    return graph


class Told(PartFiles):
    """Tells of its commits."""

    async def commit(self, prepared: Any) -> None:
        print("commits", flush=True)
        await super().commit(prepared)
        print("committed", flush=True)


class ToldMerge(Told, DeltaFolder):
    """Tells of its merges."""

    def _drop(self, files: list[str]) -> None:
        print("merged", flush=True)
        super()._drop(files)


def main(folder: Path, delta: bool) -> None:
    followed._BLOCK = 512  # small pieces, so that there are many moments to die at
    sources = {name: FileTail(folder / f"{name}.jsonl", follow=False) for name in LOGS}
    graph, sink = counts(), Told(folder / "out")
    if delta:
        graph, sink = counts(Emit(early=AfterCount(5))), ToldMerge(folder / "out", key=("key", "window_end"))
    run_async(serve(graph, sources, {"out": sink}, checkpoint=folder / "state", every_s=0.01))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] == ["delta"])
