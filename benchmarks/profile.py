"""``python -m benchmarks.profile W2``: where the time of the engine goes.

Each call is counted for one of these, by where it is: kernels (compiled loops), Arrow (calls into
it), NumPy, the runner (queue, routes, statistics), Python of the kernel, Python of operators.  The
profiler makes Python calls dearer than they are: shares are of what it saw, and the time without
it stands above the table.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from benchmarks.field import ROOT
from benchmarks.ours import contender
from benchmarks.report import CONSOLE
from benchmarks.workloads import WORKLOADS

__all__ = ["main"]

RUNNER = ("oop_engine/runners/", "oop_engine/core/graphs/statistics.py", "oop_engine/core/operator.py")


class Call(NamedTuple):
    """A function, what kind of work it is, how often it was called, its own seconds."""

    place: str
    kind: str
    calls: int
    own_s: float


def main(arguments: list[str] | None = None) -> None:
    """Run a workload, then again under the profiler; print shares and the dearest functions."""
    parser = argparse.ArgumentParser("python -m benchmarks.profile", description=__doc__)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--contender", default="engine", help="engine, 'in order', ...")
    parser.add_argument("--top", type=int, default=15)
    asked = parser.parse_args(arguments)
    columns = WORKLOADS[asked.workload].data(asked.rows)
    able = contender(asked.contender, asked.workload, columns)
    able.run(able.prepare())
    given = able.prepare()
    began = time.process_time()
    able.run(given)
    plain = time.process_time() - began
    calls = list(profiled(able.run, able.prepare()))
    CONSOLE.print(f"{asked.workload}, {asked.contender}, {asked.rows:,} tuples: {plain:.3f} CPU s unprofiled")
    _show_shares(calls)
    _show_calls(calls, asked.top)


def profiled(run: object, given: object) -> Iterator[Call]:
    """Yield every function that ran."""
    profiler = cProfile.Profile(time.process_time)  # what others do to the machine is none of ours
    profiler.runcall(run, given)  # type: ignore[arg-type]
    stats = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    for (file, line, name), (_, calls, own, _, _) in stats.items():
        yield Call(_place(file, line, name), kind_of(file, name), calls, own)


def kind_of(file: str, name: str) -> str:
    """Return what kind of work a function is."""
    if "/operators/kernels/" in file:
        return "kernels"
    if "pyarrow" in file or "pyarrow" in name:
        return "Arrow"
    if "numpy" in file or "numpy" in name:
        return "NumPy"
    if any(part in file for part in RUNNER) or "heapq" in name:
        return "runner"
    if "/operators/" in file:
        return "Python of operators"
    return "Python of the kernel" if "/oop_engine/" in file else "other"


def _place(file: str, line: int, name: str) -> str:
    path = Path(file)
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else Path(*path.parts[-2:])
    return name if file == "~" else f"{shown}:{line} {name}"


def _show_shares(calls: list[Call]) -> None:
    shares: defaultdict[str, float] = defaultdict(float)
    counts: defaultdict[str, int] = defaultdict(int)
    for call in calls:
        shares[call.kind] += call.own_s
        counts[call.kind] += call.calls
    whole = sum(shares.values())
    table = Table("kind", "share", "seconds", "calls", title="profiled", title_justify="left")
    for kind, own in sorted(shares.items(), key=lambda item: -item[1]):
        table.add_row(kind, f"{own / whole:.0%}", f"{own:.3f}", f"{counts[kind]:,}")
    CONSOLE.print(table)


def _show_calls(calls: list[Call], top: int) -> None:
    table = Table("own s", "calls", "kind", "function", title="dearest", title_justify="left")
    for call in sorted(calls, key=lambda call: -call.own_s)[:top]:
        table.add_row(f"{call.own_s:.3f}", f"{call.calls:,}", call.kind, call.place)
    CONSOLE.print(table)


if __name__ == "__main__":
    main()
