"""Running the graph over the segments, with an account of every row."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from oop_engine.core.errors import TraceError
from oop_engine.core.graphs.graph import Graph, Plan
from oop_engine.core.units import TIME_UNITS, Length
from oop_engine.pipeline.segmented import Segmented
from oop_engine.spark.io.parquet import Parquet
from oop_engine.spark.run import BatchDone, SparkOutcome, run_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Folders", "default_partition", "run_graph"]

_WIDTHS = ("1 s", "1 min", "1 h", "1 d", "30 d")
_SECONDS = (1, 60, 3600, 86_400)
_MOST_PARTITIONS = 400


class Folders:
    """Where a run keeps its results and its checkpoint, within ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.results, self.checkpoint = folder / "results", folder / "checkpoint"
        self._key = folder / "steps" / "running"

    def claim(self, key: str, *, anew: bool = False) -> bool:
        """Return whether a run of ``key`` was begun here and can go on; else, or if ``anew``, make room for one."""
        if not anew and self._key.exists() and self._key.read_text() == key and self.checkpoint.exists():
            return True
        self.release()
        shutil.rmtree(self.results, ignore_errors=True)
        self._key.write_text(key)
        return False

    def release(self) -> None:
        """Remove the checkpoint of a run that is not to go on, its key first."""
        self._key.unlink(missing_ok=True)
        shutil.rmtree(self.checkpoint, ignore_errors=True)


def run_graph(
    spark: SparkSession,
    graph: Graph,
    sources: Mapping[str, Segmented],
    folders: Folders,
    *,
    key: str,
    batch: bool,
    partition: Length,
    on_batch: Callable[[BatchDone], None] | None = None,
) -> dict[str, Any]:
    """Run ``graph``; return late tuples by source, and results by sink.

    A run in micro-batches that was stopped goes on where it was.  Raises ``TraceError`` if not every tuple of the
    segments went in.
    """
    goes_on = folders.claim(key, anew=batch)
    wanted = sum(map(_rows, sources.values()))

    def run() -> SparkOutcome:
        return run_on_spark(
            graph, dict(sources), spark=spark, batch=batch, checkpoint=folders.checkpoint,
            sink=Parquet(folders.results, partition), on_batch=on_batch,
        )  # fmt: skip

    outcome = run()
    if goes_on and outcome.tuples != wanted:  # batches before the stop are not counted again
        folders.claim(key, anew=True)
        outcome = run()
    if outcome.tuples != wanted:
        msg = f"run: the input has {wanted:,} tuples, {outcome.tuples:,} were read: give another --out"
        raise TraceError(msg)
    folders.release()
    return {
        "late": _late(graph.plan(), outcome),
        "results": {
            node.name: _written(folders.results / node.name) for node in graph.plan().of_kind("sink")
        },
        "tuples": outcome.tuples,
        "batches": outcome.batches[-1].number + 1,  # those before a stop count too
        "peak_state_bytes": outcome.statistics.peak.nbytes,
    }


def _rows(source: Segmented) -> int:
    return sum(pq.read_metadata(path).num_rows for path in Path(source.folder).glob("*.parquet"))


def _late(plan: Plan, outcome: SparkOutcome) -> dict[str, int]:
    """Return the late tuples by source: those that the generators of punctuation behind it refused."""
    late_by_source = {node.name: 0 for node in plan.of_kind("source")}
    for node in plan.of_kind("operator"):
        if plan.operator(node.name).makes_progress and node.name in outcome.statistics.operators:
            late = outcome.statistics.operators[node.name].counts.get("late", 0)
            source = node.name
            while source not in late_by_source:  # generators have one input each, and stand behind a source
                source = plan.node(source).inputs[0].node
            late_by_source[source] += late
    return late_by_source


def _written(folder: Path) -> dict[str, Any]:
    files = [path for path in folder.rglob("*.parquet") if "_unfinished" not in path.parts]
    return {
        "folder": str(folder),
        "rows": sum(pq.read_metadata(path).num_rows for path in files),
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "partitions": len({path.parent for path in files}),
    }


def default_partition(span: int, unit: str) -> Length:
    """Return the length of a partition of results, so that there are some hundreds at most."""
    if unit not in TIME_UNITS:
        width = 1
        while span > _MOST_PARTITIONS * width:
            width *= 10
        return width
    enough = (
        w for w, s in zip(_WIDTHS, _SECONDS, strict=False) if span <= _MOST_PARTITIONS * s * TIME_UNITS[unit]
    )
    return next(enough, _WIDTHS[-1])
