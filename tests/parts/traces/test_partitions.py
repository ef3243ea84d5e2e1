"""Columns in the names of folders (``year=2026/month=11``), in files of all formats and in folders that grow."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from oop_engine import Graph, Page, Schema, open_trace, serve, write_trace
from oop_engine.errors import TraceError
from oop_engine.operators import Count
from oop_engine.query.sources import scan
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered
from oop_engine.sources import GrowingFolder
from oop_engine.traces.format_registry import FORMATS

SCHEMA = Schema({"ts": pa.int64(), "host": pa.string(), "year": pa.int16(), "month": pa.int8()}, "ts", "s")
IN_FILE = Schema({"ts": pa.int64(), "host": pa.string()}, "ts", "s")


def write(folder: Path, month: int, ts: int, format: str = "csv", year: int = 2026) -> Path:
    path = folder / f"year={year}" / f"month={month}" / f"part-{ts}.{format}"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_trace(path, IN_FILE, [Page.of(IN_FILE, {"ts": [ts, ts + 1], "host": ["a", "b"]})])
    return path


def rows_of(trace: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for page in trace.pages() for row in page.to_pylist()]


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_has_the_columns_of_its_folders(tmp_path: Path, format: str) -> None:
    path = write(tmp_path, 11, 5, format)
    assert rows_of(open_trace(path, SCHEMA)) == [(5, "a", 2026, 11), (6, "b", 2026, 11)]
    guessed = open_trace(path, time="ts", unit="s")
    assert [str(kind) for kind in guessed.schema.fields.types[-2:]] == ["string", "string"]
    assert rows_of(guessed)[0] == (5, "a", "2026", "11")
    typed = open_trace(path, time="ts", unit="s", types={"month": pa.int8()})
    assert rows_of(typed)[1] == (6, "b", "2026", 11)
    assert rows_of(open_trace(path, IN_FILE)) == [(5, "a"), (6, "b")]


def test_the_column_of_a_file_goes_before_that_of_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "host=folder" / "a.csv"
    path.parent.mkdir()
    path.write_text("ts,host\n1,file\n")
    assert rows_of(open_trace(path, IN_FILE)) == [(1, "file")]


def test_the_time_and_all_columns_may_be_of_folders(tmp_path: Path) -> None:
    path = tmp_path / "day=2026-03-01" / "host=a%2Fb" / "a.csv"
    path.parent.mkdir(parents=True)
    path.write_text("v\n1\n2\n")
    schema = Schema({"day": pa.timestamp("s"), "host": pa.string()}, "day")
    assert [row["host"] for page in open_trace(path, schema).pages() for row in page.to_pylist()] == [
        "a/b"
    ] * 2
    null = tmp_path / "host=__HIVE_DEFAULT_PARTITION__" / "a.csv"
    null.parent.mkdir()
    null.write_text("ts\n1\n")
    assert rows_of(open_trace(null, IN_FILE)) == [(1, None)]


def test_a_value_that_a_column_has_not_is_refused_with_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "month=november" / "a.csv"
    path.parent.mkdir()
    path.write_text("ts,host,year\n1,a,2026\n")
    with pytest.raises(
        TraceError, match=r"column 'month' of the folder month=november must be int8; got 'november'"
    ):
        open_trace(path, SCHEMA)


def test_a_folder_that_another_program_wrote_is_read_in_the_order_of_numbers(tmp_path: Path) -> None:
    table = pa.table({"ts": [10, 20, 30], "host": ["a"] * 3, "month": [10, 9, 2]})
    ds.write_dataset(table, tmp_path, format="parquet", partitioning=["month"], partitioning_flavor="hive")
    schema = Schema({"ts": pa.int64(), "host": pa.string(), "month": pa.int8()}, "ts", "s")
    graph, sink = Graph("g"), Gathered()
    graph.sink("out", graph.source("in", schema))
    run_async(serve(graph, {"in": GrowingFolder(tmp_path, schema, follow=False)}, {"out": sink}))
    assert [(row["ts"], row["month"]) for row in sink.rows] == [(30, 2), (20, 9), (10, 10)]
    counted = (
        scan(tmp_path).event_time("ts", "100 s", unit="s").group_by("month").window("100 s").agg(n=Count())
    )
    assert sorted(row["month"] for row in counted.run().table.to_pylist()) == ["10", "2", "9"]


def test_partitions_that_come_later_are_read_once(tmp_path: Path) -> None:
    graph, sink = Graph("g"), Gathered()
    graph.sink("out", graph.source("in", SCHEMA))

    async def life(most: int) -> None:
        stop = asyncio.Event()

        class Watched(GrowingFolder):
            async def read(self, position: Any) -> Any:
                async for piece in super().read(position):
                    yield piece
                    if (piece[1] or [""])[0].endswith(f"part-{most}.csv"):
                        stop.set()

        source = Watched(tmp_path / "in", SCHEMA, every_s=0.001)
        await serve(graph, {"in": source}, {"out": sink}, checkpoint=tmp_path / "state", stop=stop)

    write(tmp_path / "in", 9, 1)
    run_async(life(1))
    write(tmp_path / "in", 9, 3)
    write(tmp_path / "in", 10, 5)
    run_async(life(5))
    write(tmp_path / "in", 1, 7, year=2027)
    run_async(life(7))
    months = [(2026, 9)] * 4 + [(2026, 10)] * 2 + [(2027, 1)] * 2
    found = [(row["ts"], row["year"], row["month"]) for row in sink.rows]
    assert found == [(at, *month) for at, month in enumerate(months, 1)]
