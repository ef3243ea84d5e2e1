"""``python -m benchmarks.spark``: our runner and Spark alone, in turns, in one session; see the README."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.spark import queries
from benchmarks.spark.measure import HDFS, ROCKSDB, Batch, Measured, ours, sparks, sparks_batch
from benchmarks.spark.traces import Measurements, Trace
from benchmarks.spark.truth import check_join, check_sums, true_pairs, true_sums
from oop_engine.spark.session.session import session

OUT = Path(__file__).with_name("results.json")
SESSION = {"spark.driver.memory": "6g"}


@dataclass
class Variant:
    """One way to answer a question; ``run`` measures it, ``check`` says how many results lack.

    ``size``: files in a micro-batch; 0: it is a batch.
    """

    name: str
    size: int
    run: Callable[[], Measured]
    check: Callable[[Any], int]
    runs: list[Measured] = field(default_factory=list)
    lacking: int = 0

    def take_turn(self) -> None:
        """Run once more."""
        done = self.run()
        self.lacking = self.check(done.results)
        self.runs.append(done)
        print(
            f"  {self.name:34} {done.wall_s:6.2f} s, {done.cpu_s:6.2f} CPU s, load {done.load:.1f}",
            flush=True,
        )

    @property
    def counted(self) -> list[Measured]:
        """The runs but the first, which had much to compile and to load; the first where there is no other."""
        return self.runs[1:] or self.runs

    @property
    def steady(self) -> list[Batch]:
        """Steady micro-batches; of a batch, whole runs."""
        steady = [batch for run in self.counted for batch in run.steady]
        return steady or [Batch(run.rows, run.wall_s, run.cpu_s) for run in self.counted]

    @property
    def rate(self) -> float:
        """Tuples a second: the median."""
        return median(batch.rows / batch.wall_s for batch in self.steady)

    @property
    def per_cpu(self) -> float:
        """Tuples for a CPU second of all processes: the median."""
        return median(batch.rows / batch.cpu_s for batch in self.steady)

    def told(self) -> dict[str, Any]:
        """Return figures, and what they were made from."""
        figures = {
            "rows_per_s": round(self.rate),
            "rows_per_cpu_s": round(self.per_cpu),
            "lacking": self.lacking,
        }
        return figures | {"runs": [run.told() for run in self.runs]}


def sums(spark: Any, trace: Trace, sizes: list[int]) -> list[Variant]:
    """Return all ways to the sums."""
    truth = true_sums(trace)
    whole, part = (partial(check_sums, truth=truth, complete=c) for c in (True, False))
    graph = queries.sums(trace)
    found = []
    for files in sizes:
        rows = f"{files * trace.made.file_rows // 1000}k a batch"
        query = partial(queries.spark_sums, trace=trace, files=files)
        found += [
            Variant(f"spark hdfs, {rows}", files, partial(sparks, spark, query, HDFS), part),
            Variant(f"ours, {rows}", files, partial(ours, spark, graph, trace, files), whole),
        ]
    replay = partial(queries.spark_sums, trace=trace, files=0)
    found.append(Variant("ours, replay", 0, partial(ours, spark, graph, trace, sizes[0], batch=True), whole))
    found.append(Variant("spark, replay", 0, partial(sparks_batch, spark, replay, trace.made.rows), whole))
    query = partial(queries.spark_sums, trace=trace, files=sizes[0])
    rows = f"{sizes[0] * trace.made.file_rows // 1000}k a batch"
    found.append(Variant(f"spark rocksdb, {rows}", sizes[0], partial(sparks, spark, query, ROCKSDB), part))
    return found


def join(spark: Any, small: Trace, large: Trace, files: int) -> list[Variant]:
    """Return all ways to the join, in micro-batches of ``files`` files, small ones and large ones."""
    found = []
    for trace in (small, large):
        size = files * trace.made.file_rows
        truth, rows = true_pairs(trace), f"{size // 1000}k a batch"
        graph, query = queries.join(trace), partial(queries.spark_join, trace=trace, files=files)
        check, spark_check = (
            partial(check_join, truth=truth, columns=columns, complete=True)
            for columns in (("ts", "ts_right"), ("ts_a", "ts_b"))
        )
        found += [
            Variant(f"spark hdfs, {rows}", size, partial(sparks, spark, query, HDFS), spark_check),
            Variant(f"ours, {rows}", size, partial(ours, spark, graph, trace, files), check),
        ]
        if trace is small:
            rocks = partial(sparks, spark, query, ROCKSDB)
            found.append(Variant(f"spark rocksdb, {rows}", size, rocks, spark_check))
    replay = partial(ours, spark, queries.join(large), large, files, batch=True)
    return [*found, Variant("ours, replay", 0, replay, check)]


def ratios(variants: list[Variant]) -> dict[str, dict[str, float]]:
    """Return how often as fast each is as Spark's own streaming query, by the clock and by CPU seconds.

    As the faster of those with as many tuples in a micro-batch; where there is none, and for a batch: of all.
    """
    own = [v for v in variants if v.name.startswith("spark") and v.size]
    found = {}
    for v in variants:
        same = [o for o in own if o.size == v.size] or own
        found[v.name] = {
            "wall": round(v.rate / max(o.rate for o in same), 2),
            "cpu": round(v.per_cpu / max(o.per_cpu for o in same), 2),
        }
    return found


def table(title: str, variants: list[Variant]) -> None:
    """Print the figures."""
    print(f"\n{title}\n\n| | tuples/s | ratio | tuples/CPU s | ratio | first batch | lacking |")
    print("|---|---|---|---|---|---|---|")
    compared = ratios(variants)
    for v in variants:
        first = median(run.batches[0].wall_s for run in v.counted)
        print(
            f"| {v.name} | {v.rate / 1e6:.3f} M | {compared[v.name]['wall']:.1f} | {v.per_cpu / 1e6:.3f} M "
            f"| {compared[v.name]['cpu']:.1f} | {first:.2f} s | {v.lacking} |"
        )


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "?")
    packages = {name: version(name) for name in ("pyspark", "pyarrow", "numpy", "numba", "pandas")}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gib": memory,
        "python": platform.python_version(),
    } | packages


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--rounds", type=int, default=4, help="turns of each variant")
    parser.add_argument("--rows", type=int, default=5_000_000, help="tuples of the trace of the sums")
    parser.add_argument("--only", choices=["sums", "join"], help="one of the questions")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "oop-engine-benchmarks")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    made = Measurements(rows=given.rows).at(given.data / "sums")
    pairs = Measurements(rows=400_000, keys=1000, span=40, file_rows=20_000).at(given.data / "join")
    large = Measurements(rows=2_000_000, keys=1000, span=200, file_rows=100_000).at(given.data / "join-large")
    began = time.perf_counter()
    with session("local[2]", SESSION) as spark:
        start_s = time.perf_counter() - began
        questions = {"sums": sums(spark, made, [10, 20]), "join": join(spark, pairs, large, 4)}
        questions = {name: v for name, v in questions.items() if given.only in (None, name)}
        for turn in range(given.rounds):
            for name, variants in questions.items():
                print(f"turn {turn + 1}, {name}")
                for variant in variants:
                    variant.take_turn()
            _keep(given.out, start_s, questions)  # what there is, should the next turn not end
    for name, variants in questions.items():
        table(name, variants)


def _keep(out: Path, start_s: float, questions: dict[str, list[Variant]]) -> None:
    """Write the figures; those of a question that was not asked stay as they are."""
    told = json.loads(out.read_text()) if out.exists() else {}
    told |= {"machine": machine(), "session_s": round(start_s, 2)}
    for name, variants in questions.items():
        told[name] = {"ratios": ratios(variants), "variants": {v.name: v.told() for v in variants}}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
