"""A streaming query without Spark: its log of offsets and commits, and all of our own, in one process.

It does with a checkpoint what Spark does, so what a damaged file or a crash comes to is tried here in milliseconds.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.streaming.datasource import ReadMaxFiles

from oop_engine import Graph, Page, Schema, write_trace
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
from oop_engine.spark.io.segments import Files
from oop_engine.spark.io.sinks import Parquet
from oop_engine.spark.io.source import _StreamReader
from oop_engine.spark.io.spool import spool
from oop_engine.spark.io.to_sink import ToSink, batch_results
from oop_engine.spark.run import pieces_of
from oop_engine.spark.state.checkpoint import Checkpoint
from oop_engine.spark.tasks.job import Job, PackedJob, addresses_of
from oop_engine.spark.tasks.record import METRICS, Record
from oop_engine.spark.tasks.rows import records_of
from oop_engine.spark.tasks.stage_task import InMicroBatch
from oop_engine.spark.tasks.task_metrics import Totals
from oop_engine.testing import multiset

SCHEMA = Schema({"ts": pa.timestamp("s"), "key": pa.int64(), "n": pa.int64()}, "ts")
SEGMENTS, ROWS, KEYS, DISORDER, PARTITIONS = 6, 60, 5, 12, 2


def graph(width: int = 20) -> Graph:
    """Sums by key over a folder of segments and a feed that is spooled."""
    made = Graph("stand-in")
    policy = PerGroup(BoundedDisorder(DISORDER), by=["key"])
    for name in ("left", "right"):
        made.source(name, SCHEMA)
        made.add(f"{name}-edge", Punctuate(policy, granularity=5), name)
    made.add("union", Meld(2), "left-edge", "right-edge")
    windows = WindowAggregate(Sliding(width, 5), {"sum": Sum("n"), "tuples": Count()}, by=["key"])
    made.sink("out", made.add("sums", windows, "union"))
    return made


def pages(seed: int) -> Iterator[Page]:
    """Yield a page a segment."""
    rng = np.random.default_rng(seed)
    for number in range(SEGMENTS):
        arrival = np.sort(rng.integers(10 * number, 10 * number + 10, ROWS))
        columns = {"key": rng.integers(0, KEYS, ROWS), "n": rng.integers(0, 100, ROWS)}
        yield Page.of(
            SCHEMA,
            {"ts": pa.array(arrival - rng.integers(0, DISORDER, ROWS), pa.timestamp("s")), **columns},
            arrival,
        )


def add_segments(place: Path, start: int, stop: int) -> None:
    """Write some segments of the left source; with the last one it ends."""
    (place / "left").mkdir(parents=True, exist_ok=True)
    for number, page in list(enumerate(pages(1)))[start:stop]:
        write_trace(place / "left" / f"{number:03d}.msgpack", SCHEMA, [page])
    if stop == SEGMENTS:
        (place / "left" / "_SUCCESS").touch()


def results(place: Path) -> Any:
    """Return all results that a reader of the folder sees."""
    files = (place / "results" / "out").glob("*.parquet")
    return multiset([row for path in files for row in pq.ParquetFile(path).read().to_pylist()])


def go_on(place: Path, made: Graph | None = None) -> None:
    """Start the query, and run it until it has read all there is."""
    kept, sink = Checkpoint(place / "checkpoint"), Parquet(place / "results")
    pieces = pieces_of(made or graph(), 2, split=False)
    plan = pieces.plan
    kept.check(plan)
    sink.start({node.name: plan.schema(node.inputs[0]) for node in plan.of_kind("sink")}, kept.query())
    sink.check(kept.made())
    spooled = spool({"right": pages(2)}, {"right": SCHEMA}, kept.folder / "feeds", rows=ROWS)
    sizes = kept.sizes(PARTITIONS, None)
    sources = kept.keep(pieces, {"left": Files(str(place / "left"), SCHEMA), **spooled}, sizes)
    chains, subtasks = str(kept.folder / "heads"), str(kept.folder / "copies")
    job = Job(
        pieces, addresses_of(pieces, sizes[0]), sources, sizes[0], chains, subtasks, segments_per_batch=2
    )
    _Query(kept, job.packed(), sink).run()


class _Query:
    def __init__(self, kept: Checkpoint, packed: PackedJob, sink: Parquet) -> None:
        self._kept, self._packed, self._sink = kept, packed, sink
        self._reader = _StreamReader(packed)
        self._log = _Log(kept.folder / "spark")
        edges = [edge for edge in packed.job.cut.edges if edge.component is None]
        self._schemas = {edge.number: (edge.sink, edge.schema) for edge in edges}

    def run(self) -> None:
        for number in iter(self._following, None):
            start = self._log.offset(number - 1) if number else self._reader.initialOffset()
            self._batch(number, start, self._log.offset(number))
            self._log.commit(number)

    def _following(self) -> int | None:
        """Return the next micro-batch, once it is in the log; None: all has been read."""
        begun, done = self._log.newest("offsets"), self._log.newest("commits")
        if begun > done:
            return begun
        start = self._log.offset(begun) if begun >= 0 else self._reader.initialOffset()
        stop = self._reader.latestOffset(start, ReadMaxFiles(2))
        if stop == start:
            return None
        self._log.begin(begun + 1, stop)
        return begun + 1

    def _batch(self, number: int, start: dict[str, int], stop: dict[str, int]) -> None:
        states = self._kept.begin(number)
        records: list[Record] = []
        for part in self._reader.partitions(start, stop):
            records += [record for rows in self._reader.read(part) for record in records_of(rows)]
        for level in range(1, self._packed.job.cut.levels + 1):
            records = [*InMicroBatch(self._packed, level, number, states)(iter(records))]
        work = self._sink.worker()
        arrived = [*ToSink(work, self._schemas, number)(iter(records))]
        totals = Totals()
        totals.take(record for record in arrived if record.edge == METRICS)
        results = (record for record in arrived if record.edge != METRICS)
        made = self._sink.commit(number, batch_results(work, self._schemas, results))
        self._kept.end(number, totals.states, made)


class _Log:
    """What Spark writes, as its file system writes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("offsets", "commits"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        if not (folder / "metadata").exists():
            self._write("metadata", '{"id":"0d7c"}')

    def newest(self, name: str) -> int:
        return max((int(p.name) for p in (self._folder / name).glob("[0-9]*")), default=-1)

    def begin(self, batch: int, offset: dict[str, int]) -> None:
        self._write(f"offsets/{batch}", f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(offset)}')

    def commit(self, batch: int) -> None:
        self._write(f"commits/{batch}", 'v1\n{"nextBatchWatermarkMs":0}')

    def offset(self, batch: int) -> dict[str, int]:
        found: dict[str, int] = json.loads((self._folder / f"offsets/{batch}").read_text().splitlines()[2])
        return found

    def _write(self, name: str, text: str) -> None:
        """Write a file, and then its checksums: there may be a kill between the two."""
        path, content = self._folder / name, text.encode()
        unfinished = path.with_name(f".{path.name}.tmp")
        unfinished.write_bytes(content)
        unfinished.replace(path)
        sums = b"crc\0" + (512).to_bytes(4, "big") + zlib.crc32(content).to_bytes(4, "big")
        path.with_name(f".{path.name}.crc").write_bytes(sums)
