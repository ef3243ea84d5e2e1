"""Recovery: costs of checkpoints and of a restart, in CPU seconds.

    python -m benchmarks.studies.recovery [ROWS]

A stream stands still while states are copied; a restart reads files, checks their hashes, unpacks and finds keys again.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine import Graph, Page, Schema
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Sum, Tumbling, WindowAggregate
from oop_engine.runners.inline import Inline
from oop_engine.runners.states import captured
from oop_engine.service.checkpoint_folder import CheckpointFolder
from oop_engine.service.checkpoint_manifest import CheckpointManifest

__all__ = ["recovery"]

SCHEMA = Schema({"ts": pa.int64(), "key": pa.int64(), "v": pa.int64()}, "ts", "ms")
STILL_MB, RESTART_MB = 10, 100


def recovery(part: float = 1.0) -> dict[str, float]:
    """Return the costs; ``part`` below 1 makes the states smaller alike."""
    small, large = _filled(STILL_MB * part), _filled(RESTART_MB * part)
    found = {
        "still_mb": _megabytes(small),
        "still_s": min(_timed(lambda: _captured(small)) for _ in range(5)),
    }
    return found | {"restart_mb": _megabytes(large)} | _restart(large)


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
    return {"record_s": wrote_s, "restart_s": min(took_s), "restart_wall_s": min(wall_s)}


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
