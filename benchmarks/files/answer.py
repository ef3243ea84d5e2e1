"""Answer: a program that answers one question from files to a file, as often as it is told to.

    python -m benchmarks.files.answer CONTENDER QUESTION RESULTS TURNS SOURCE=PATH...

It prints the wall and CPU seconds of its last turn as JSON.  What is cold is seen from outside, with one turn.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.process import cpu_seconds

__all__ = ["GRAPHS", "main"]

GRAPHS = Path(__file__).with_name("graphs.py")
Answer = Callable[[str, Mapping[str, str], str], None]
"""Called with a question, the files by source, and the file for the results."""


def main(contender: str, question: str, results: str, turns: str, *sources: str) -> None:
    """Answer ``turns`` times; print what the last one took."""
    paths = dict(source.split("=", 1) for source in sources)
    answer = _engine if contender == "engine" else _peer(contender)
    for _ in range(int(turns)):
        cpu, wall = cpu_seconds(), time.perf_counter()
        answer(question, paths, results)
        took = {"wall_s": time.perf_counter() - wall, "cpu_s": cpu_seconds() - cpu}
    print(json.dumps(took))


def _engine(question: str, paths: Mapping[str, str], results: str) -> None:
    from oop_engine.cli.running.at_rest import at_rest

    sources = tuple(f"{name}={path}" for name, path in paths.items())
    at_rest(Path(f"{GRAPHS}:{question}"), sources, Path(results), None, None, None, as_json=False)


def _peer(contender: str) -> Answer:
    name, _, threads = contender.partition("-")
    return {"duckdb": _duckdb, "polars": _polars}[name](threads)


def _duckdb(threads: str) -> Answer:
    import duckdb

    base = duckdb.connect()
    base.execute(f"set threads = {threads}")
    base.execute("set preserve_insertion_order = false")

    def answer(question: str, paths: Mapping[str, str], results: str) -> None:
        for name, path in paths.items():
            if path.endswith(".arrow"):
                from pyarrow import dataset

                base.register(name, dataset.dataset(path, format="ipc"))
                continue
            base.execute(f"create or replace view {name} as select * from '{path}'")
        base.execute(f"copy ({_sql(question)}) to '{results}' (format parquet)")

    return answer


def _polars(threads: str) -> Answer:
    os.environ["POLARS_MAX_THREADS"] = threads
    import polars

    scans = {
        ".parquet": polars.scan_parquet,
        ".csv": polars.scan_csv,
        ".jsonl": polars.scan_ndjson,
        ".arrow": polars.scan_ipc,
    }

    def answer(question: str, paths: Mapping[str, str], results: str) -> None:
        frames = {name: scans[Path(path).suffix](path) for name, path in paths.items()}
        with polars.SQLContext(frames) as context:
            context.execute(_sql(question)).sink_parquet(results)

    return answer


def _sql(question: str) -> str:
    from benchmarks.files.sql import SQL

    return SQL[question]


if __name__ == "__main__":
    main(*sys.argv[1:])
