"""One run of a query, measured: wall seconds of each micro-batch, CPU seconds of all processes."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.spark.traces import Trace
from oop_engine import Graph
from oop_engine.spark.io.segments import Files
from oop_engine.spark.run import run_on_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["HDFS", "ROCKSDB", "Batch", "Measured", "ours", "sparks", "sparks_batch", "tree_cpu"]

_STATE = "org.apache.spark.sql.execution.streaming.state"
HDFS = f"{_STATE}.HDFSBackedStateStoreProvider"
ROCKSDB = f"{_STATE}.RocksDBStateStoreProvider"
WARM_UP = 1  # micro-batches of a query that are not steady yet; the JVM is warm after the first turn


@dataclass(frozen=True)
class Batch:
    """Tuples, wall seconds, and CPU seconds of all processes of a micro-batch."""

    rows: int
    wall_s: float
    cpu_s: float


@dataclass
class Measured:
    """One run; ``results``: all rows that reached the driver."""

    wall_s: float
    cpu_s: float
    batches: list[Batch]
    results: pa.Table = field(repr=False)
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    @property
    def rows(self) -> int:
        """How many tuples came in."""
        return sum(batch.rows for batch in self.batches)

    @property
    def steady(self) -> list[Batch]:
        """The full micro-batches after the first."""
        full = max(batch.rows for batch in self.batches)
        return [batch for batch in self.batches[WARM_UP:] if batch.rows > 0.95 * full]

    def told(self) -> dict[str, Any]:
        """Return what goes into the file of raw results."""
        return {
            "wall_s": round(self.wall_s, 3),
            "cpu_s": round(self.cpu_s, 2),
            "batches": [[b.rows, round(b.wall_s, 3), round(b.cpu_s, 2)] for b in self.batches],
            "results": len(self.results),
            "load": round(self.load, 1),
        }


class _Watch:
    """Tells the wall and CPU seconds since the last time it was asked."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), tree_cpu()

    def lap(self) -> tuple[float, float]:
        """Return both, and start anew."""
        wall, cpu = self.wall, self.cpu
        self.wall, self.cpu = time.perf_counter(), tree_cpu()
        return self.wall - wall, self.cpu - cpu


def ours(spark: SparkSession, graph: Graph, trace: Trace, files: int, *, batch: bool = False) -> Measured:
    """Run our graph, ``files`` of all sources in a micro-batch."""
    sources = trace.made.sources
    feeds = {source: Files(str(trace.path(source)), trace.made.schema) for source in sources}
    whole, each = _Watch(), _Watch()
    batches: list[Batch] = []
    done = run_on_spark(
        graph,
        feeds,
        spark=spark,
        batch=batch,
        segments_per_batch=max(1, files // len(sources)),
        on_batch=lambda b: batches.append(Batch(b.tuples, *each.lap())),
    )
    return Measured(*whole.lap(), batches, done.results["out"])


def sparks(spark: SparkSession, query: Callable[[SparkSession], DataFrame], store: str) -> Measured:
    """Run Spark's own streaming query; its results, too, are collected as Arrow."""
    session = spark.newSession()
    session.conf.set("spark.sql.streaming.stateStore.providerClass", store)
    session.conf.set("spark.sql.shuffle.partitions", spark.conf.get("spark.sql.shuffle.partitions"))
    folder = Path(tempfile.mkdtemp(prefix="benchmark-"))
    results: list[pa.Table] = []
    laps: dict[int, tuple[float, float]] = {}
    whole, each = _Watch(), _Watch()

    def keep(frame: DataFrame, number: int) -> None:
        results.append(frame.toArrow())
        laps[number] = each.lap()

    writer = query(session).writeStream.foreachBatch(keep).option("checkpointLocation", str(folder))
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    took = whole.lap()
    rows = {progress["batchId"]: progress["numInputRows"] for progress in running.recentProgress}
    batches = [Batch(rows.get(number, 0), *lap) for number, lap in laps.items()]
    shutil.rmtree(folder, ignore_errors=True)
    return Measured(*took, batches, pa.concat_tables(results))


def sparks_batch(spark: SparkSession, query: Callable[[SparkSession], DataFrame], rows: int) -> Measured:
    """Run Spark's own query over everything at once."""
    watch = _Watch()
    results = query(spark).toArrow()
    took = watch.lap()
    return Measured(*took, [Batch(rows, *took)], results)


def tree_cpu() -> float:
    """Return the CPU seconds of this process and all below it: JVM, Python workers, those that ended."""
    children: dict[int, list[int]] = {}
    spent: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:  # it has ended meanwhile
            continue
        fields = text[text.rindex(")") + 2 :].split()
        pid = int(stat.parent.name)
        spent[pid] = sum(map(int, fields[11:15]))
        children.setdefault(int(fields[1]), []).append(pid)
    total, todo = 0, [os.getpid()]
    while todo:
        pid = todo.pop()
        total += spent.get(pid, 0)
        todo += children.get(pid, [])
    return float(total / os.sysconf("SC_CLK_TCK"))
