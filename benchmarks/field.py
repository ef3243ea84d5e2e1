"""Field: who takes part, and with which Python; who is not installed is absent."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.workload import Workload

__all__ = ["PEERS", "ROOT", "Entry", "contenders_of", "entries"]

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = Path(os.environ.get("BENCH_PEERS", ROOT / ".peers"))


@dataclass(frozen=True)
class Entry:
    """A contender: its name, the module that makes it, and the package that it stands on.

    ``rows``: the first so many tuples are all that it is given, so that it ends in time.
    ``workloads``: those it can do; none: all.
    """

    name: str
    module: str
    package: str = ""
    rows: int | None = None
    workloads: tuple[str, ...] = ()

    @cached_property
    def python(self) -> str | None:
        """The interpreter that has the package: its own environment's, or this one; None: absent."""
        own = ENVIRONMENTS / self.package / "bin" / "python"
        return next((p for p in (str(own), sys.executable) if _has(p, self.package)), None)


def _has(python: str, package: str) -> bool:
    if not Path(python).exists():
        return False
    asked = f"import importlib.util as u; raise SystemExit(u.find_spec({package!r}) is None)"
    return not package or subprocess.run([python, "-c", asked], check=False).returncode == 0


_STREAMS = ("W1", "W2", "W3")  # what a streaming system can be asked without writing half of it
_BATCH = (
    *_STREAMS,
    "W4",
    "W5",
    *(f"W6-{kind}-{slide}" for kind in ("min", "avg") for slide in (1, 64, 1024)),
    "W9-median",
)
_NEXMARK = ("Q5", "Q7", "Q11")
PEERS = (
    Entry("Polars", "benchmarks.peers.polars_batch", "polars", None, _BATCH),
    Entry("DuckDB", "benchmarks.peers.duckdb_batch", "duckdb", None, _BATCH),
    Entry("Spark", "benchmarks.peers.spark_batch", "pyspark", 1_000_000, (*_STREAMS, *_NEXMARK, "W4", "W5")),
    Entry("PyFlink", "benchmarks.peers.flink_stream", "pyflink", 500_000, (*_STREAMS, *_NEXMARK)),
    Entry("Bytewax", "benchmarks.peers.bytewax_stream", "bytewax", 50_000, (*_STREAMS, "W4", "W5")),
    Entry("Pathway", "benchmarks.peers.pathway_stream", "pathway", 50_000, _STREAMS),
)


def entries(workload: Workload, names: tuple[str, ...] = ()) -> list[Entry]:
    """Return who is asked this workload's question (of ``names``, or all), installed or not."""
    ours = [Entry(name, "benchmarks.ours") for name in workload.ours]
    peers = [peer for peer in PEERS if workload.name in (peer.workloads or (workload.name,))]
    return [entry for entry in (*ours, *peers) if entry.name in ("floor", *(names or (entry.name,)))]


def contenders_of(workloads: Iterable[Workload]) -> list[str]:
    """Return the names of all who can be asked one of these questions."""
    return list(dict.fromkeys(entry.name for workload in workloads for entry in entries(workload)))
