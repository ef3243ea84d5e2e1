"""A program over a cluster of two executors on this machine: each is a process of its own, as on other machines.

``bare``: their Python lacks all packages.
"""

from __future__ import annotations

import os
import sys
import tempfile
import venv
from pathlib import Path

import pyarrow as pa

from oop_engine import EngineError, Graph, Page, Schema, run
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Sum, Tumbling, WindowAggregate
from oop_engine.spark.session.java import java_home

SCHEMA = Schema({"ts": pa.timestamp("s", "UTC"), "k": pa.string(), "v": pa.int64()}, "ts")


def graph() -> Graph:
    found = Graph("sums")
    edge = found.add("edge", Punctuate(BoundedDisorder("1 min")), found.source("in", SCHEMA))
    sums = WindowAggregate(Tumbling("1 min"), {"n": Count(), "s": Sum("v")}, by=("k",))
    found.sink("out", found.add("sums", sums, edge))
    return found


def pages() -> list[Page]:
    """Return pages that overlap in time, of seven keys: several key groups, on both executors."""
    numbers = [*range(100)]
    keys = [f"k{number % 7}" for number in numbers]
    times = [pa.array([30 * page + number for number in numbers], SCHEMA.type_of("ts")) for page in range(10)]
    return [Page.of(SCHEMA, {"ts": ts, "k": keys, "v": numbers}) for ts in times]


def rows(outcome: object) -> list[str]:
    return sorted(map(str, outcome.results["out"].to_pylist()))  # type: ignore[attr-defined]


def main(python: str) -> None:
    from pyspark.sql import SparkSession

    os.environ |= {
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    made = SparkSession.builder.master("local-cluster[2,1,1024]").config(
        map={
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.speculation": "true",
            "spark.speculation.multiplier": "1.1",
            "spark.speculation.quantile": "0.1",
        }
    )
    spark = made.getOrCreate()
    try:
        wanted = rows(run(graph(), {"in": pages()}))
        for batch in (True, False):
            try:
                print(rows(run(graph(), {"in": pages()}, on="spark", batch=batch)) == wanted, flush=True)
            except EngineError as error:
                print(type(error).__name__, error, flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        if bare := sys.argv[1:] == ["bare"]:
            venv.create(Path(folder) / "bare", with_pip=False)
        main(str(Path(folder) / "bare" / "bin" / "python") if bare else sys.executable)
