"""Delta folder with a key: the table is the net content after each epoch, also where processes die."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import Graph, GraphError, Page, Schema, serve
from oop_engine.connectors import delta_merge
from oop_engine.connectors.sinks import delta_folder
from oop_engine.errors import SetupError, SnapshotError
from oop_engine.operators import BoundedDisorder, Count, Emit, Punctuate, Tumbling, WindowAggregate
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import DeltaFolder
from oop_engine.sources import Generated
from oop_engine.testing.case import typed
from oop_engine.triggers import AfterCount

deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed (the extra delta)")

COLUMNS = {"end": pa.timestamp("ms"), "k": pa.dictionary(pa.int32(), pa.string()), "n": pa.int64()}
SCHEMA = Schema(COLUMNS | {"change": pa.int8()}, "end", change="change")
KEY = ("end", "k")
PLAIN = Schema(COLUMNS, "end")


def page(*rows: tuple[int, str | None, int, int]) -> Page:
    columns = zip(SCHEMA.names, map(list, zip(*rows, strict=True)), strict=True)
    return Page.of(SCHEMA, {name: typed(values, COLUMNS.get(name, pa.int8())) for name, values in columns})


def there(folder: Path) -> list[tuple[Any, ...]]:
    if not deltalake.DeltaTable.is_deltatable(str(folder)):
        return []
    table = deltalake.DeltaTable(str(folder)).to_pyarrow_table()
    return sorted(
        zip(
            table["end"].cast(pa.int64()).to_pylist(),
            table["k"].to_pylist(),
            table["n"].to_pylist(),
            strict=True,
        ),
        key=repr,
    )


async def opened(folder: Path, prepared: list[Any]) -> DeltaFolder:
    sink = DeltaFolder(folder, key=KEY)
    await sink.open(SCHEMA, "run", prepared)
    return sink


async def epoch_of(sink: DeltaFolder, number: int, *pages: Page) -> Any:
    for each in pages:
        await sink.write(number, each)
    return await sink.prepare(number)


def waiting_files(folder: Path) -> int:
    return len([path for path in folder.iterdir() if path.name[0] == "." and path.suffix == ".parquet"])


def test_the_table_is_the_net_content_after_each_epoch(tmp_path: Path) -> None:
    async def main() -> None:
        sink = await opened(tmp_path, [])
        await sink.commit(await epoch_of(sink, 1, page((10, "a", 1, 1), (10, None, 5, 1))))
        assert there(tmp_path) == [(10_000, "a", 1), (10_000, None, 5)]
        await sink.commit(
            await epoch_of(sink, 2, page((10, "a", 1, -1), (10, "a", 2, 1)), page((10, None, 5, -1)))
        )
        assert there(tmp_path) == [(10_000, "a", 2)]
        nothing = await epoch_of(sink, 3, page((20, "b", 1, 1)), page((20, "b", 1, -1)))
        await sink.commit(nothing)
        await sink.commit(nothing)  # its file has gone, and the table knows that it was merged
        assert there(tmp_path) == [(10_000, "a", 2)]
        assert not waiting_files(tmp_path)
        assert await sink.prepare(4) is None

    run_async(main())


@pytest.mark.parametrize("key", [KEY, ()])
def test_epochs_of_two_runs_that_meet_are_both_in_the_table(
    tmp_path: Path, key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta refuses a transaction that others overtook; it is tried again, and an error that stays is told."""
    name = "merge" if key else "add_files"
    real, refusals = (
        getattr(delta_folder, name),
        [deltalake.exceptions.DeltaError("a concurrent transaction added new data")] * 3,
    )

    def overtaken(*given: Any) -> None:
        if refusals:
            raise refusals.pop()
        real(*given)

    async def main() -> None:
        for run in ("one", "other"):
            sink = DeltaFolder(tmp_path, key=key)
            await sink.open(PLAIN, run, [])
            await sink.write(1, Page.of(PLAIN, {"end": [datetime(2026, 1, 1)], "k": [run], "n": [1]}))
            await sink.commit(await sink.prepare(1))
        assert [k for _, k, _ in there(tmp_path)] == ["one", "other"]
        await sink.write(2, Page.of(PLAIN, {"end": [datetime(2026, 1, 1)], "k": ["a"], "n": [1]}))
        refusals.extend([deltalake.exceptions.DeltaError("no space left")] * 100)
        with pytest.raises(
            SetupError, match=r"epoch 2 cannot be added \(no space left\): start the service again"
        ):
            await sink.commit(await sink.prepare(2))

    monkeypatch.setattr(delta_folder, name, overtaken)
    monkeypatch.setattr(delta_folder, "_LONGEST_S", 0.0)
    run_async(main())


def test_a_merge_that_is_repeated_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        sink = await opened(tmp_path, [])
        await sink.commit(await epoch_of(sink, 1, page((10, "a", 1, 1))))
        second = await epoch_of(sink, 2, page((10, "a", 1, -1), (10, "b", 4, 1)))
        await epoch_of(sink, 3, page((10, "c", 9, 1)))
        with monkeypatch.context() as killed:
            killed.setattr(DeltaFolder, "_drop", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(
                KeyboardInterrupt
            ):  # merged, and nothing more: the third epoch is in no checkpoint
                await sink.commit(second)
        assert there(tmp_path) == [(10_000, "b", 4)]
        assert waiting_files(tmp_path) == 2
        again, other = await opened(tmp_path, [second]), await opened(tmp_path, [second])
        assert waiting_files(tmp_path) == 1
        await again.commit(await epoch_of(again, 3, page((10, "b", 4, -1))))
        for each in (again, other, sink):
            await each.commit(second)
        assert there(tmp_path) == []
        assert not waiting_files(tmp_path)

    run_async(main())


def test_two_processes_that_merge_one_epoch_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        sink = await opened(tmp_path, [])
        await sink.commit(await epoch_of(sink, 1, page((10, "a", 1, 1))))
        second = await epoch_of(sink, 2, page((10, "a", 1, -1), (10, "a", 2, 1), (20, "b", 3, 1)))
        other, asked = await opened(tmp_path, [second]), delta_merge.merge

        def late(*args: Any) -> None:
            monkeypatch.setattr(delta_folder, "merge", asked)
            asyncio.run(other.commit(second))
            asked(*args)

        monkeypatch.setattr(delta_folder, "merge", late)
        await sink.commit(second)
        assert there(tmp_path) == [(10_000, "a", 2), (20_000, "b", 3)]

    run_async(main())


def test_one_snapshot_takes_a_transaction_once(tmp_path: Path) -> None:
    """Both processes have looked at the table before either of them merges."""
    rows = pa.table({"k": ["a"]})
    deltalake.write_deltalake(str(tmp_path), rows.slice(0, 0))
    tables = [deltalake.DeltaTable(str(tmp_path)) for _ in range(2)]
    tagged = deltalake.CommitProperties(app_transactions=[deltalake.Transaction("app", 1)])

    def merged(table: Any) -> None:
        merger = table.merge(rows, "s.k = t.k", source_alias="s", target_alias="t", commit_properties=tagged)
        merger.when_not_matched_insert_all().execute()

    merged(tables[0])
    with pytest.raises(deltalake.exceptions.DeltaError):
        merged(tables[1])


def test_a_prepared_file_that_is_gone_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        sink = await opened(tmp_path, [])
        with pytest.raises(SnapshotError, match="are gone"):
            await sink.commit(["run", 1, ["0000001-0-run.parquet"]])

    run_async(main())


@settings(max_examples=8, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=4), max_size=4), st.data())
def test_versions_with_kills_are_the_net_content(
    epochs: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    """Each step is a new version of a key; version 0: none.  A process dies after some commits, or before."""
    live: dict[int, int] = {}

    async def main(folder: Path) -> None:
        sink = await opened(folder, [])
        for number, steps in enumerate(epochs, 1):
            rows = []
            for key, n in steps:
                if key in live:
                    rows.append((key, "k", live.pop(key), -1))
                if n:
                    rows.append((key, "k", n, 1))
                    live[key] = n
            prepared = await epoch_of(sink, number, *(page(row) for row in rows))
            if prepared is not None:
                if data.draw(st.booleans(), label="killed behind the record"):
                    sink = await opened(folder, [prepared])
                for _ in range(data.draw(st.integers(1, 2), label="commits")):
                    await sink.commit(prepared)
            wanted = Counter((1000 * key, "k", n) for key, n in live.items())
            assert Counter(there(folder)) == wanted

    with TemporaryDirectory() as folder:
        run_async(main(Path(folder)))


def versions() -> tuple[Graph, list[Page]]:
    schema = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
    graph = Graph("versions")
    policies = BoundedDisorder("20 s"), BoundedDisorder("2 s")
    edge = graph.add("edge", Punctuate(policies[0], watermark=policies[1]), graph.source("in", schema))
    count = WindowAggregate(
        Tumbling("10 s"), {"n": Count()}, by=("k",), emit=Emit(early=AfterCount(1), late=AfterCount(1))
    )
    graph.sink("out", graph.add("count", count, edge))
    times = [1, 13, 3, 25, 8, 14, 40, 31, 22]
    return graph, [Page.of(schema, {"ts": [ts], "k": ["ab"[ts % 2]]}) for ts in times]


def test_a_service_keeps_the_net_content_and_needs_a_key(tmp_path: Path) -> None:
    async def main(sink: DeltaFolder) -> None:
        graph, pages = versions()

        async def feed() -> Any:
            for each in pages:
                yield each

        await serve(
            graph, {"in": Generated(feed())}, {"out": sink}, checkpoint=tmp_path / "state", every_s=0.01
        )

    with pytest.raises(GraphError, match="without key"):
        run_async(main(DeltaFolder(tmp_path / "out")))
    run_async(main(DeltaFolder(tmp_path / "out", key=("window_end", "k"))))
    found = deltalake.DeltaTable(str(tmp_path / "out")).to_pyarrow_table().to_pylist()
    wanted = Counter((ts // 10 * 10 + 10, "ab"[ts % 2]) for ts in [1, 13, 3, 25, 8, 14, 40, 31, 22])
    assert {(row["window_end"], row["k"]): row["n"] for row in found} == wanted
    assert len(found) == len(wanted)
