"""A query that is killed again and again: ``python -m tests.parts.spark.killed_query PLACE SINK DIES``.

It says a line at the end of each micro-batch.  DIES, such as ``middle:4``, has the process kill itself in the
commit of batch 4: ``before`` anything is visible, in the ``middle``, or ``after`` all is, when
Spark has not written down that the batch is done.  ``follow`` has it wait for more segments at the end.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from oop_engine import Graph, Page, Schema
from oop_engine.operators import (
    BoundedDisorder,
    Count,
    Meld,
    PerGroup,
    Punctuate,
    Sliding,
    Sum,
    WindowAggregate,
)
from oop_engine.spark.io.result_folder import Written
from oop_engine.spark.io.segments import Files
from oop_engine.spark.io.sinks import BatchResults, Delta, Parquet
from oop_engine.spark.run import BatchDone, run_on_spark

SEGMENTS, ROWS, KEYS, DISORDER = 8, 300, 23, 12
SCHEMA = Schema({"ts": pa.timestamp("s"), "key": pa.int64(), "n": pa.int64()}, "ts")
SINKS: dict[str, tuple[type[Parquet | Delta], int]] = {"parquet": (Parquet, 2), "delta": (Delta, 4)}
"""The sink, and how many segments there are in a micro-batch."""


def graph() -> Graph:
    """Sums by key over two sources, each of which promises by key."""
    made = Graph("killed")
    policy = PerGroup(BoundedDisorder(DISORDER), by=["key"])
    for name in ("left", "right"):
        made.source(name, SCHEMA)
        made.add(f"{name}-edge", Punctuate(policy, granularity=5), name)
    made.add("union", Meld(2), "left-edge", "right-edge")
    windows = WindowAggregate(Sliding(20, 5), {"sum": Sum("n"), "tuples": Count()}, by=["key"])
    made.sink("out", made.add("sums", windows, "union"))
    return made


def pages(seed: int) -> Iterator[Page]:
    """Yield a page a segment; its tuples are out of order, and some of them late."""
    rng = np.random.default_rng(seed)
    for number in range(SEGMENTS):
        arrival = np.sort(rng.integers(10 * number, 10 * number + 10, ROWS))
        behind = rng.integers(0, DISORDER + 2, ROWS)
        columns = {"key": rng.integers(0, KEYS, ROWS), "n": rng.integers(0, 100, ROWS)}
        yield Page.of(SCHEMA, {"ts": pa.array(arrival - behind, pa.timestamp("s")), **columns}, arrival)


def feeds(place: Path) -> dict[str, Files | Iterator[Page]]:
    """A source in files that were there before, and one that is spooled."""
    return {"left": Files(str(place / "left"), SCHEMA, complete=True), "right": pages(2)}


class Dying:
    """A sink that kills its own process in the commit of one batch."""

    def __init__(self, sink: Parquet | Delta, how: str, batch: int) -> None:
        self.sink, self.how, self.batch = sink, how, batch
        self.start, self.worker, self.exactly_once = sink.start, sink.worker, sink.exactly_once
        self.check = sink.check

    def commit(self, batch: int, results: BatchResults) -> Mapping[str, int]:
        if batch != self.batch:
            return self.sink.commit(batch, results)
        if self.how == "middle":  # the first file is there and the others are not
            folder = self.sink._tables["out"].folder
            folder.claim(self.sink._query)
            folder.put([Written.of(results.receipts[0])])
        if self.how == "after":
            self.sink.commit(batch, results)
        os.kill(os.getpid(), signal.SIGKILL)
        return {}


def told(done: BatchDone) -> None:
    print("batch", done.number, flush=True)


def main(place: Path, sink: str, dies: str) -> None:
    how, _, batch = dies.partition(":")
    kind, segments = SINKS[sink]
    run_on_spark(
        graph(),
        feeds(place),
        master="local[2]",
        checkpoint=place / "checkpoint",
        sink=Dying(kind(place / "results"), how, int(batch or -1)),
        follow=how == "follow",
        segments_per_batch=segments,
        segment_rows=ROWS,
        quick=True,
        on_batch=told,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:4])
