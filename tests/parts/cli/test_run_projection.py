"""`oop-engine run` reads from Parquet the columns that the graph uses; counts and results are as if it read all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from oop_engine.cli.app import app
from oop_engine.traces.format import Record
from oop_engine.traces.formats.parquet import ParquetReader

COUNTS = """
CREATE TABLE log (ts TIMESTAMP, host VARCHAR, size BIGINT, agent VARCHAR, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
INSERT INTO counts SELECT host, window_end, count(*) AS n
FROM TUMBLE(log, ts, INTERVAL '10' SECOND) GROUP BY host, window_end;
"""
ALL = COUNTS.replace("count(*) AS n", "count(*) AS n, count(size) AS s, count(agent) AS a")
GRAPH = """
import pyarrow as pa
from oop_engine import Graph, Schema
from oop_engine.operators import BoundedDisorder, Count, Meld, Punctuate, Tumbling, WindowAggregate


def graph():
    graph = Graph("both")
    schema = Schema({"ts": pa.int64(), "host": pa.string(), "size": pa.int64(), "agent": pa.string()}, "ts", "us")
    sides = [graph.add(f"edge-{name}", Punctuate(BoundedDisorder("2 s")), graph.source(name, schema)) for name in "ab"]
    windows = WindowAggregate(Tumbling("10 s"), {"n": Count()}, by=("host",))
    graph.sink("counts", graph.add("windows", windows, graph.add("both", Meld(2), *sides)))
    return graph
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the columns of each reading of Parquet."""
    found: list[list[str]] = []
    original = ParquetReader.read

    def read(reader: ParquetReader, columns: pa.Schema, page_rows: int) -> Iterator[Record]:
        found.append(columns.names)
        return original(reader, columns, page_rows)

    monkeypatch.setattr(ParquetReader, "read", read)
    return found


def log() -> pa.Table:
    rows = 300
    return pa.table(
        {
            "ts": [n * 1_000_000 for n in range(rows)],
            "host": [f"host-{n % 7}" for n in range(rows)],
            "size": list(range(rows)),
            "agent": [f"agent {n}" for n in range(rows)],
            "other": list(range(rows)),
        }
    )


def with_times(table: pa.Table) -> pa.Table:
    return table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us")))


def counts(folder: Path, table: pa.Table, query: str = COUNTS) -> tuple[list[tuple[str, Any, int]], str]:
    """Run a query over a file of several row groups; return its results, and the line about its rows."""
    (folder / "query.sql").write_text(query)
    table = with_times(table)
    pq.write_table(table, folder / "log.parquet", row_group_size=100)
    return found(
        CliRunner().invoke(app, ["run", f"{folder}/query.sql", f"log={folder}/log.parquet", "--json"])
    )


def found(done: Result) -> tuple[list[tuple[str, Any, int]], str]:
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    found = [(row["host"], row.get("window_end", row.get("window_start")), row["n"]) for row in rows]
    told = [line for line in done.stderr.splitlines() if "compil" not in line]  # kernels, on a fresh machine
    return sorted(found), "\n".join(told)


def test_columns_that_nothing_uses_stay_in_the_file(tmp_path: Path, asked: list[list[str]]) -> None:
    few = counts(tmp_path, log())
    every = counts(tmp_path, log(), ALL)
    assert asked == [["ts", "host"], ["ts", "host", "size", "agent"]]
    assert few == every  # the other column is counted alike, and those that are declared are not
    assert "300 rows of log, 300 with 'other' (not in the schema, left out)" in few[1]


@pytest.mark.parametrize("group", [0, 150, 299])
def test_a_column_with_missing_values_is_read_and_counted(
    tmp_path: Path, asked: list[list[str]], group: int
) -> None:
    missing = log()
    missing = missing.set_column(
        2, "size", pa.array([None if n == group else n for n in range(300)], pa.int64())
    )
    few, every = counts(tmp_path, missing), counts(tmp_path, missing, ALL)
    assert asked == [["ts", "host", "size"], ["ts", "host", "size", "agent"]]
    assert few == every
    assert "1 without 'size'" in few[1]


def test_values_that_the_schema_cannot_have_are_refused_as_before(
    tmp_path: Path, asked: list[list[str]]
) -> None:
    texts = log()
    texts = texts.set_column(2, "size", pa.array(["x" if n % 50 == 0 else str(n) for n in range(300)]))
    few, every = counts(tmp_path, texts), counts(tmp_path, texts, ALL)
    assert asked[0] == ["ts", "host", "size"]
    assert few == every
    assert "6 not readable" in few[1]


def test_a_column_that_is_missing_is_an_error_as_before(tmp_path: Path) -> None:
    (tmp_path / "query.sql").write_text(COUNTS)
    pq.write_table(with_times(log()).drop(["agent"]), tmp_path / "log.parquet")
    done = CliRunner().invoke(app, ["run", f"{tmp_path}/query.sql", f"log={tmp_path}/log.parquet"])
    assert done.exit_code
    assert "no column 'agent'" in done.stderr


def test_a_file_without_statistics_is_read_whole(tmp_path: Path, asked: list[list[str]]) -> None:
    (tmp_path / "query.sql").write_text(COUNTS)
    pq.write_table(with_times(log()), tmp_path / "log.parquet", write_statistics=False)
    found(CliRunner().invoke(app, ["run", f"{tmp_path}/query.sql", f"log={tmp_path}/log.parquet", "--json"]))
    assert asked == [["ts", "host", "size", "agent"]]


@pytest.mark.parametrize("second", ["parquet", "csv"])
def test_inputs_that_must_be_alike_stay_alike(tmp_path: Path, asked: list[list[str]], second: str) -> None:
    (tmp_path / "graph.py").write_text(GRAPH)
    pq.write_table(log(), tmp_path / "a.parquet")
    if second == "parquet":
        pq.write_table(log(), tmp_path / "b.parquet")
    else:
        log().to_pandas().to_csv(tmp_path / "b.csv", index=False)
    paths = [f"a={tmp_path}/a.parquet", f"b={tmp_path}/b.{second}"]
    rows, _ = found(CliRunner().invoke(app, ["run", f"{tmp_path}/graph.py", *paths, "--json"]))
    assert sum(n for _, _, n in rows) == 600
    some = ["ts", "host"] if second == "parquet" else ["ts", "host", "size", "agent"]
    assert set(map(tuple, asked)) == {tuple(some)}
