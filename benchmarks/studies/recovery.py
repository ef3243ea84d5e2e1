"""Recovery: costs of checkpoints and of a restart, in CPU seconds.

    python -m benchmarks.studies.recovery [ROWS]

A stream stands still while states are copied; a restart reads files, checks their hashes, unpacks and finds keys again.
W2 and W3 are served with a checkpoint every ``EVERY_S`` and without, by turns, so that there is a difference to
measure; a checkpoint every ten seconds has its share of that.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.workload import PAGE
from benchmarks.workloads import WORKLOADS
from oop_engine import Graph, Page, Schema
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Sum, Tumbling, WindowAggregate
from oop_engine.runners.inline import Inline
from oop_engine.runners.states import captured
from oop_engine.service.checkpoint_folder import CheckpointFolder
from oop_engine.service.checkpoint_manifest import CheckpointManifest
from oop_engine.service.service import Service
from oop_engine.sinks import Callback

__all__ = ["recovery"]

SCHEMA = Schema({"ts": pa.int64(), "key": pa.int64(), "v": pa.int64()}, "ts", "ms")
STILL_MB, RESTART_MB = 10, 100
EVERY_S, APART_S = 0.2, 10.0  # between checkpoints: as they are measured, and as they are meant
LAPS, TURNS = 8, 3  # of the stream of a workload, in a turn


def recovery(part: float = 1.0) -> dict[str, float]:
    """Return the costs; ``part`` below 1 makes the states smaller alike."""
    small, large = _filled(STILL_MB * part), _filled(RESTART_MB * part)
    found = {
        "still_mb": _megabytes(small),
        "still_s": min(_timed(lambda: _captured(small)) for _ in range(5)),
    }
    shares = {f"{name}_{of}": got for name in ("W2", "W3") for of, got in _shares(name, part).items()}
    return found | {"restart_mb": _megabytes(large)} | _restart(large) | shares


def _shares(workload: str, part: float) -> dict[str, float]:
    """Return which part of the throughput checkpoints every ten seconds take, by CPU and by the clock."""
    asked = WORKLOADS[workload]
    feed = [page for _, page in asked.feed(asked.data(int(asked.rows * part)), PAGE)]
    turns = [(_serve(asked.graph(), feed, 1e6), _serve(asked.graph(), feed, EVERY_S)) for _ in range(TURNS)]
    without, with_them = (np.array(of) for of in zip(*turns, strict=True))
    more = (with_them[:, :2] - without[:, :2]) / np.maximum(with_them[:, 2:3] - without[:, 2:3], 1)
    cpu_s, wall_s = np.median(more, axis=0)
    return {
        "checkpoint_cpu_s": float(cpu_s),
        "checkpoint_wall_s": float(wall_s),
        "checkpoints": float(with_them[:, 2].sum()),
        "cpu_share": float(cpu_s) / APART_S,
        "wall_share": float(wall_s) / APART_S,
        "still_s": float(np.median(with_them[:, 3])),
    }


def _serve(graph: Graph, feed: Sequence[Page], every_s: float) -> tuple[float, float, float, float]:
    """Serve a stream in laps; return CPU and wall seconds, checkpoints, and how long one held the stream."""

    async def laps() -> AsyncIterator[Page]:
        first, last = feed[0].times.min(), feed[-1].times.max()
        for lap in range(LAPS):
            for page in feed:
                yield _later(page, lap * int(last - first))

    async def run() -> tuple[float, float, float, float]:
        sinks = {node.name: Callback(lambda page: None) for node in graph.plan().of_kind("sink")}
        with TemporaryDirectory() as folder:
            service = Service(
                graph, {"tuples": laps()}, sinks, folder=CheckpointFolder(Path(folder)), every_s=every_s
            )
            cpu, wall = time.process_time(), time.perf_counter()
            served = await service.run(asyncio.Event())
            took = time.process_time() - cpu, time.perf_counter() - wall
        still = [kept.still_s for kept in service.kept]
        return *took, served.epochs, float(np.median(still)) if still else 0.0

    return asyncio.run(run())


def _later(page: Page, by: int) -> Page:
    """Return a page whose times are so much later."""
    schema, at = page.schema, page.schema.names.index(page.schema.progressing)
    kind = schema.type_of(schema.progressing)
    times = pa.array(page.times + by).cast(kind)
    return Page(schema, page.batch.set_column(at, schema.fields.field(at), times))


def _graph() -> Graph:
    graph = Graph("recovery")
    edge = graph.add("edge", Punctuate(BoundedDisorder("100 ms")), graph.source("in", SCHEMA))
    count = WindowAggregate(Tumbling("1 s"), {"n": Count(), "total": Sum("v")}, by=("key",))
    graph.sink("out", graph.add("count", count, edge))
    return graph


def _filled(megabytes: float) -> Inline:
    """Return a graph whose states are about so many bytes in a snapshot, in groups of random keys."""
    runner, groups = Inline(_graph(), lambda result: None), max(int(megabytes * 1e6 / 20), 10)
    random = np.random.default_rng(7)
    for keys in np.array_split(random.permutation(groups), max(groups // 65_536, 1)):
        values = random.integers(0, 1 << 30, len(keys))
        runner.push("in", Page.of(SCHEMA, {"ts": np.zeros(len(keys), np.int64), "key": keys, "v": values}))
        runner.drain()
    return runner


def _captured(runner: Inline) -> dict[str, Callable[[], bytes]]:
    return captured("Inline", runner.operators, {})


def _megabytes(runner: Inline) -> float:
    return sum(map(len, runner.snapshot().values())) / 1e6


def _restart(runner: Inline) -> dict[str, float]:
    """Return CPU and wall seconds from the folder to states that are loaded, and those of writing it."""
    states = runner.snapshot()
    kinds = {name: (type(operator).__name__, 1) for name, operator in runner.operators.items()}
    with TemporaryDirectory() as name:
        folder = CheckpointFolder(Path(name))
        folder.claim()
        wrote_s = _timed(lambda: folder.record(CheckpointManifest("recovery", {}, {}), states, kinds))
        took_s, wall_s = [], []
        for _ in range(3):
            again, wall = Inline(_graph(), lambda result: None), time.perf_counter()
            took_s.append(_timed(lambda: again.restore(_read(Path(name)))))  # noqa: B023
            wall_s.append(time.perf_counter() - wall)
    first = {
        "restart_first_s": took_s[0],
        "restart_first_wall_s": wall_s[0],
    }  # memory that is new to the process
    return {"record_s": wrote_s, "restart_s": min(took_s), "restart_wall_s": min(wall_s), **first}


def _read(place: Path) -> dict[str, bytes]:
    folder = CheckpointFolder(place)
    manifest = folder.claim()
    assert manifest is not None
    return folder.states_of(manifest)


def _timed(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    print(json.dumps(recovery(min(int(sys.argv[1]) / 5_000_000, 1.0) if len(sys.argv) > 1 else 1.0)))
