"""Sinks: an epoch becomes visible when it is committed, and once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oop_engine import ContractError, GraphError, Page, Schema, UsageError, open_trace
from oop_engine.connectors.change_feed import change_feed, net_changes
from oop_engine.connectors.sinks import part_files
from oop_engine.errors import SetupError, SnapshotError, TraceError
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import DeltaFolder, Gathered, PartFiles

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")


def page(ts: int) -> Page:
    return Page.of(SCHEMA, {"ts": [ts], "key": ["a"]})


def seen(sink: Any) -> list[int]:
    if isinstance(sink, Gathered):
        return [row["ts"] for row in sink.rows]
    files = sorted(path for path in sink.folder.iterdir() if path.name[0] != ".")
    return [ts for path in files for each in open_trace(path, SCHEMA).pages() for ts in each.times.tolist()]


def test_a_folder_that_a_reader_removes_is_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        sink = PartFiles(tmp_path / "out")
        await sink.open(SCHEMA, "run", [])
        for epoch in (1, 2):
            await sink.write(epoch, page(epoch))
            await sink.commit(await sink.prepare(epoch))
            if epoch == 1:
                shutil.rmtree(tmp_path / "out")
        assert seen(sink) == [2]

    run_async(main())
    assert [line for line in caplog.messages if "was removed while the service runs" in line] != []


@pytest.mark.parametrize(
    "kind", ["memory", "parquet", "jsonl", "csv", "arrow", "msgpack", "jsonl.gz", "csv.zst"]
)
def test_an_epoch_is_seen_once_it_is_committed(tmp_path: Path, kind: str) -> None:
    def made() -> Any:
        return memory if kind == "memory" else PartFiles(tmp_path, kind)

    memory = Gathered()

    async def main() -> None:
        sink = made()
        await sink.open(SCHEMA, "run", [])
        await sink.write(1, page(1))
        first = await sink.prepare(1)
        await sink.write(2, page(2))
        second = await sink.prepare(2)
        await sink.write(3, page(3))
        assert await sink.prepare(4) is None
        assert seen(sink) == []
        await sink.commit(first)
        await sink.commit(first)
        assert seen(sink) == [1]
        again = made()  # the process dies; the second epoch is in the checkpoint, the third is not
        await again.open(SCHEMA, "run", [second])
        await again.commit(second)
        await again.commit(second)
        assert seen(again) == [1, 2]
        assert kind == "memory" or all(path.name[0] != "." for path in tmp_path.iterdir())

    run_async(main())


def test_many_results_of_an_epoch_go_to_several_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_files, "_MOST_BYTES", 10)

    async def main() -> None:
        sink = PartFiles(tmp_path, "jsonl")
        await sink.open(SCHEMA, "run", [])
        for ts in range(3):
            await sink.write(1, page(ts))
        await sink.commit(await sink.prepare(1))
        assert seen(sink) == [0, 1, 2]

    run_async(main())
    assert len(list(tmp_path.iterdir())) == 3


def test_files_of_a_revision_stream_are_a_change_feed(tmp_path: Path) -> None:
    columns = {"end": pa.timestamp("ms"), "k": pa.string(), "n": pa.int64(), "change": pa.int8()}
    schema = Schema(columns, "end", change="change")
    end = pa.array([10, 10, 10, 20], pa.timestamp("ms"))
    rows = {"end": end, "k": ["a", "a", "b", "b"], "n": [1, 2, 5, 6], "change": [-1, 1, -1, 1]}

    async def main() -> None:
        sink = PartFiles(tmp_path, key=("k", "end"), clock=lambda: 7.5)
        await sink.open(schema, "run", [])
        await sink.write(3, Page.of(schema, rows))
        await sink.commit(await sink.prepare(3))

    run_async(main())
    [path] = tmp_path.iterdir()
    table = pq.read_table(path)
    assert table.column_names == ["end", "k", "n", "_change_type", "_commit_version", "_commit_timestamp"]
    assert table["_change_type"].to_pylist() == ["update_preimage", "update_postimage", "delete", "insert"]
    assert table["_commit_version"].to_pylist() == [3] * 4
    assert table["_commit_timestamp"].to_pylist()[0].timestamp() == 7.5
    whole = change_feed(Page.of(schema, rows), (), 0, 0)
    assert whole.column("_change_type").to_pylist() == ["delete", "insert", "delete", "insert"]


def test_a_change_that_is_none_and_a_key_that_is_no_column_are_told(tmp_path: Path) -> None:
    schema = Schema({"ts": pa.int64(), "change": pa.int8()}, "ts", "s", change="change")
    with pytest.raises(ContractError, match="must be"):
        change_feed(Page.of(schema, {"ts": [1], "change": [2]}), (), 0, 0)
    with pytest.raises(GraphError, match="key"):
        run_async(PartFiles(tmp_path, key=("k",)).open(schema, "run", []))


def test_net_changes_leave_one_row_of_a_key() -> None:
    rows = {"k": ["a", "a", "b", "b", "c", None, "d", "d"], "n": [1, 2, 3, 3, 4, 5, 6, 7]}
    batch = pa.RecordBatch.from_pydict(rows)
    gone, put = net_changes(batch, np.array([-1, 1, 1, -1, -1, 1, 1, 1]), ("k",))
    assert gone.to_pylist() == [{"k": "c", "n": 4}]
    assert put.to_pylist() == [{"k": "a", "n": 2}, {"k": None, "n": 5}, {"k": "d", "n": 7}]


def test_results_that_were_removed_are_told(tmp_path: Path) -> None:
    async def main() -> None:
        sink = PartFiles(tmp_path)
        await sink.open(SCHEMA, "run", [])
        with pytest.raises(SnapshotError, match="are gone"):
            await sink.commit(["0000001-0-run.parquet"])

    run_async(main())


def test_a_format_that_cannot_hold_the_columns_is_told_at_the_start(tmp_path: Path) -> None:
    nested = Schema({"ts": pa.int64(), "all": pa.list_(pa.int64())}, "ts", "s")
    with pytest.raises(TraceError, match="has no text form"):
        run_async(PartFiles(tmp_path, "csv").open(nested, "run", []))
    with pytest.raises(UsageError, match="unknown trace format 'xls'"):
        PartFiles(tmp_path, "xls")


def test_rows_of_an_epoch_are_in_a_delta_table_once(tmp_path: Path) -> None:
    def there() -> list[int]:
        return sorted(deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table()["ts"].to_pylist())

    async def opened(prepared: list[Any]) -> DeltaFolder:
        sink = DeltaFolder(tmp_path)
        await sink.open(SCHEMA, "run", prepared)
        return sink

    async def main() -> None:
        sink = await opened([])
        await sink.write(1, page(1))
        await sink.commit(await sink.prepare(1))
        assert there() == [1]
        await sink.write(2, page(2))
        second = await sink.prepare(2)
        await sink.write(3, page(3))
        await sink.prepare(3)
        assert there() == [1]
        again, other = (
            await opened([second]),
            await opened([second]),
        )  # killed: the third epoch is in no checkpoint
        for each in (again, other, sink, again):
            await each.commit(second)
        assert there() == [1, 2]
        assert await again.prepare(4) is None
        assert len(list(tmp_path.glob("*.parquet"))) + len(list(tmp_path.glob(".*.parquet"))) == 2

    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed (the extra delta)")
    run_async(main())
    assert deltalake.DeltaTable(str(tmp_path)).version() == 1


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.list_(pa.timestamp("ns", "UTC")), pa.uint64()]
)
def test_a_delta_table_of_columns_that_no_reader_has_is_refused(kind: pa.DataType, tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="deltalake is not installed (the extra delta)")
    schema = Schema({"at": pa.int64(), "what": kind}, "at", "m")
    with pytest.raises(
        UsageError, match=r"Delta cannot hold column 'what' of type .*: leave it out or cast it"
    ):
        run_async(DeltaFolder(tmp_path).open(schema, "run", []))


def test_a_delta_table_of_other_columns_is_told(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed (the extra delta)")
    deltalake.write_deltalake(str(tmp_path), pa.table({"ts": [1]}))
    with pytest.raises(
        SetupError, match="must have the columns ts int64, key string; got ts int64: take another"
    ):
        run_async(DeltaFolder(tmp_path).open(SCHEMA, "run", []))
    changes = Schema({"ts": pa.int64(), "change": pa.int8()}, "ts", "s", change="change")
    with pytest.raises(GraphError, match=r"without key=\(...\) no row is retracted"):
        run_async(DeltaFolder(tmp_path).open(changes, "run", []))
    with pytest.raises(GraphError, match="key"):
        run_async(DeltaFolder(tmp_path, key=("change",)).open(changes, "run", []))
