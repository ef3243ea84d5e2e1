"""PyFlink: SQL with window functions, in an embedded cluster with one slot, reading a file.

The file is CSV in order of arrival, which Flink reads at some 2 M tuples a second; reading and writing
are part of what is measured.  The watermark lags by the slack; the end of the input lets all windows go.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv
from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

from benchmarks.contender import Contender
from benchmarks.data import SECOND, Columns

__all__ = ["contender"]

SETTINGS = {
    "parallelism.default": "1",
    "table.local-time-zone": "UTC",
    "taskmanager.memory.managed.size": "1gb",
    "rest.bind-address": "127.0.0.1",
    "rest.address": "127.0.0.1",
}


def contender(name: str, workload: str, columns: Columns) -> Contender:
    """Return the query of ``workload`` over ``columns``."""
    folder = Path(tempfile.mkdtemp(prefix="oop-bench-flink-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    csv.write_csv(pa.table(columns), folder / "tuples.csv", csv.WriteOptions(include_header=False))
    flink = _environment()
    query, names = QUERIES[workload]
    flink.execute_sql("drop temporary table if exists tuples")
    fields = ", ".join(f"`{column}` bigint" for column in columns)
    flink.execute_sql(
        f"create temporary table tuples ({fields}, t as to_timestamp_ltz(`ts` / 1000, 3), "
        f"watermark for t as t - interval '7' second) with ({_files(folder / 'tuples.csv')})"
    )
    if "kind" in columns:
        flink.execute_sql("drop temporary view if exists bids")
        flink.execute_sql("create temporary view bids as select * from tuples where kind = 2")
    flink.execute_sql("drop temporary table if exists results")
    fields = ", ".join(f"`{column}` bigint" for column in names)
    flink.execute_sql(f"create temporary table results ({fields}) with ({_files(folder / 'results')})")

    def prepare() -> None:
        shutil.rmtree(folder / "results", ignore_errors=True)

    def run(_: object) -> Path:
        flink.execute_sql(f"insert into results {query}").wait()
        return folder / "results"

    return Contender(prepare, run, lambda found: _columns(found, names))


def _environment() -> TableEnvironment:
    configuration = Configuration()
    for key, value in SETTINGS.items():
        configuration.set_string(key, value)
    settings = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration)
    return TableEnvironment.create(settings.build())


def _files(path: Path) -> str:
    return f"'connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv'"


def _columns(folder: Path, names: tuple[str, ...]) -> Columns:
    files = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size]
    rows = np.concatenate([np.loadtxt(path, np.int64, delimiter=",", ndmin=2) for path in files])
    found = dict(zip(names, rows.T, strict=True))
    units = {"window_start": SECOND, "window_end": SECOND, "start_ms": 1000, "end_ms": 1000}
    of = {name: column * units.get(name, 1) for name, column in found.items()}
    return {{"start_ms": "window_start", "end_ms": "window_end"}.get(name, name): c for name, c in of.items()}


def windows(function: str, value: str, by: str = "") -> str:
    """Return a query over a window table function; starts are seconds."""
    return f"""
        select {START}, {by} {value} from table({function})
        group by {by} window_start, window_end"""


START = "timestampdiff(second, timestamp '1970-01-01 00:00:00', window_start)"
IN_MS = "1000 * unix_timestamp(cast({0} as string)) + extract(millisecond from {0})"
HOP = "hop(table tuples, descriptor(t), interval '{}' {}, interval '{}' {})"
SECONDS = "tumble(table tuples, descriptor(t), interval '1' second)"
QUERIES = {
    "W1": (windows(HOP.format(1, "minute", 5, "minute"), "count(*)"), ("window_start", "count")),
    "W2": (
        windows(HOP.format(1, "second", 10, "second"), "sum(len)", "src,"),
        ("window_start", "src", "total"),
    ),
    "W3": (windows(SECONDS, "count(*)", "src,"), ("window_start", "src", "count")),
    "Q5": (
        f"""
        select {START}, auction, bids from (
          select *, row_number() over (
            partition by window_start, window_end order by bids desc, auction desc) as place
          from (select window_start, window_end, auction, count(*) as bids
                from table(hop(table bids, descriptor(t), interval '2' second, interval '10' second))
                group by auction, window_start, window_end))
        where place = 1""",
        ("window_start", "auction", "bids"),
    ),
    "Q7": (
        f"""
        select {START}, auction, price from (
          select *, row_number() over (
            partition by window_start, window_end order by price desc, auction desc) as place
          from table(tumble(table bids, descriptor(t), interval '10' second)))
        where place = 1""",
        ("window_start", "auction", "price"),
    ),
    "Q11": (
        f"""
        select bidder, {IN_MS.format("window_start")}, {IN_MS.format("window_end")}, count(*)
        from table(session(table bids partition by bidder, descriptor(t), interval '10' second))
        group by bidder, window_start, window_end""",
        ("bidder", "start_ms", "end_ms", "bids"),
    ),
}
