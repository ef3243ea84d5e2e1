"""A journal: all that was handed on is there again, whenever the process dies and the power fails."""

from __future__ import annotations

import asyncio
import datetime
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from oop_engine import Graph, GroupWise, Linear, Page, Schema, UsageError, open_trace, serve
from oop_engine.connectors.paths import check_paths
from oop_engine.connectors.sinks.one_file import OneFile
from oop_engine.errors import TraceError
from oop_engine.extend import LiveSource
from oop_engine.operators import Count, Punctuate, Tumbling, Upstream, WindowAggregate
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered
from oop_engine.sources import FileTail, Journal
from oop_engine.system.disk import Disk

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")


class Once(LiveSource):
    """Gives each item once, whoever asks: nobody can have it again."""

    def __init__(self, items: Any, format: str = "rows") -> None:
        self._items, self.format = iter(items), format
        self.asked: list[Any] = []
        self.forgotten: Any = None

    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        self.asked.append(position)
        for number, item in enumerate(self._items, (position or 0) + 1):
            yield item, number

    async def acknowledge(self, position: Any) -> None:
        self.forgotten = position


class Paced(Once):
    """Gives an item when the one before is in the journal, so each is a group of its own."""

    def __init__(self, items: Any) -> None:
        super().__init__(items)
        self._kept = asyncio.Event()

    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        async for piece in super().read(position):
            yield piece
            await self._kept.wait()
            self._kept.clear()

    async def acknowledge(self, position: Any) -> None:
        self._kept.set()


async def some(source: LiveSource, position: Any = None, most: int | None = None) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    async with aclosing(source.read(position)) as pieces:  # type: ignore[type-var]
        async for piece in pieces:
            found.append(piece)
            if len(found) == most:
                break
    return found


def read(source: LiveSource, position: Any = None, most: int | None = None) -> list[tuple[Any, Any]]:
    return run_async(some(source, position, most))


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.rows"))


def test_data_are_there_again_from_any_position_on_and_then_the_source(tmp_path: Path) -> None:
    source = Once(f"{n}\n".encode() for n in range(9))
    first = read(Journal(source, tmp_path, segment_bytes=30), most=5)
    again = read(Journal(source, tmp_path, segment_bytes=30), first[2][1])
    assert [int(data) for data, _ in first + again[2:]] == [*range(9)]
    assert again[:2] == first[3:]
    assert source.asked[0] is None
    assert 5 <= source.asked[1] <= 9  # how far it was read ahead goes by the time that it took
    assert source.forgotten == 9
    everything = read(Journal(source, tmp_path))
    assert everything == first + again[2:]
    for data, position in everything:
        assert [int(each) for each, _ in read(Journal(source, tmp_path), position)] == [
            *range(int(data) + 1, 9)
        ]


def test_segments_that_a_checkpoint_has_are_removed_but_for_the_last_two(tmp_path: Path) -> None:
    journal = Journal(Paced([b"x" * 40] * 20), tmp_path, segment_bytes=100)
    found = read(journal)
    assert len(segments(tmp_path)) > 6
    behind = found[9][1]
    run_async(journal.acknowledge(behind))
    assert read(Journal(Once([]), tmp_path), behind) == found[10:]
    with pytest.raises(
        TraceError, match=r"the data behind byte 51, .* are not there; it has pieces of 520 to 1,040: "
    ):
        read(Journal(Once([]), tmp_path), 51)
    with pytest.raises(TraceError, match="the data behind byte 0, the next to read, are not there"):
        read(Journal(Once([]), tmp_path))
    run_async(journal.acknowledge(found[-1][1]))
    assert len(segments(tmp_path)) == 2
    assert read(Journal(Once([b"new"]), tmp_path), found[-1][1])[0][0] == b"new"


def test_all_kinds_of_data_are_kept(tmp_path: Path) -> None:
    batch = pa.record_batch({"ts": [1, 2], "key": ["a", None]})
    row = {
        "ts": 3,
        "key": None,
        "at": datetime.datetime(2026, 1, 2, 3, 4, 5, 6),
        "price": Decimal("1.50"),
        "l": [1.5],
    }
    items = [
        b"line\n", [b"one", b"\xff"], row, [{"ts": 4}, Linear(7)], GroupWise.of({"key": ["a"]}, [9]),
        Page.of(SCHEMA, {"ts": [1], "key": ["a"]}), batch, pa.table(batch),
        pa.RecordBatchReader.from_batches(batch.schema, [batch, batch]),
    ]  # fmt: skip
    live = [data for data, _ in read(Journal(Once(items), tmp_path))]
    kept = [data for data, _ in read(Journal(Once([]), tmp_path))]
    assert kept[:4] == live[:4] == items[:4]
    assert str(kept[4]) == str(items[4])
    assert kept[5].to_pylist() == [{"ts": 1, "key": "a"}]
    assert kept[6:] == live[6:] == [[batch], [batch], [batch, batch]]


STRUCTURED = np.array([(1, b"a"), (2, b"b")], [("ts", "i4"), ("key", "S1")])


def a_trace(folder: Path) -> Any:
    path = folder / "trace.jsonl"
    path.write_text('{"ts": 1, "key": "a"}\n{"punctuation": {"below": 2}}\n{"ts": 2, "key": "b"}\n')
    return open_trace(path, SCHEMA)


@pytest.mark.parametrize(
    "form",
    [
        a_trace, lambda _: STRUCTURED.copy(), lambda _: [*STRUCTURED], lambda _: STRUCTURED.copy().view(np.recarray),
        lambda _: iter(STRUCTURED), lambda _: pd.DataFrame({"ts": [1, 2], "key": ["a", "b"]}),
        lambda _: {"ts": np.array([1, 2]), "key": ["a", "b"]},
    ],
    ids=["trace", "structured", "its rows", "records", "iterator", "frame", "columns"],
)  # fmt: skip
def test_a_journal_keeps_all_forms_that_a_service_takes(form: Callable[[Path], Any], tmp_path: Path) -> None:
    graph = Graph("g")
    graph.sink("out", graph.source("in", SCHEMA))

    async def feed() -> AsyncIterator[Any]:
        given = form(tmp_path)
        yield given
        if isinstance(given, np.ndarray):
            given["ts"] = 0  # may be used again

    for source in (feed(), Journal(feed(), tmp_path / "journal")):
        results = Gathered()
        served = run_async(serve(graph, {"in": source}, {"out": results}))
        assert [(row["ts"], row["key"]) for row in results.rows] == [(1, "a"), (2, "b")]
        assert served.unreadable == {"in": {}}


def test_data_that_cannot_be_kept_are_told(tmp_path: Path) -> None:
    journal, told = Journal(Once([{"ts": 1}, {"ts": object()}, {"ts": 2**70}, {"ts": 2}]), tmp_path), []
    journal.unreadable = lambda reason, record, rows: told.append((reason[:14], rows))
    assert [data["ts"] for data, _ in read(journal)] == [1, 2]
    assert told == [("cannot be kept", 1)] * 2


def test_the_names_of_the_columns_outlive_their_segment(tmp_path: Path) -> None:
    source = Once([b"key,ts\na,1\n", b"b,2\n"], "csv")
    read(Journal(source, tmp_path))
    assert Journal(source, tmp_path).headed() == b"key,ts\n"


@pytest.mark.parametrize("cut", [1, 5, 9, 20])
@pytest.mark.parametrize("zeros", [0, 3, 100])
def test_a_torn_tail_is_cut_at_the_last_whole_group_with_a_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, cut: int, zeros: int
) -> None:
    source = Once([b"one", b"two"])
    found = read(Journal(source, tmp_path), most=1) + read(Journal(source, tmp_path))[1:]
    last = segments(tmp_path)[-1]
    whole = last.read_bytes()
    torn = b"\x20\0\0\0crc_torn and torn"[:cut] + bytes(zeros)
    last.write_bytes(whole + torn)
    with caplog.at_level(logging.WARNING, "oop_engine"):
        again = read(Journal(Once([b"three"]), tmp_path))
    assert [data for data, _ in again] == [b"one", b"two", b"three"]
    assert f"cut at byte {len(whole)}: the last {len(torn)} bytes were not written in full" in caplog.text
    assert [data for data, _ in read(Journal(Once([]), tmp_path), found[0][1])] == [b"two", b"three"]


def test_damage_before_the_tail_is_told_and_nothing_is_skipped(tmp_path: Path) -> None:
    read(Journal(Paced([b"one", b"two", b"three"]), tmp_path, segment_bytes=1))
    for path in segments(tmp_path)[:-1]:
        whole = path.read_bytes()
        for damaged in (whole[:-1], whole[:10] + b"?" + whole[11:], whole[:3]):
            path.write_bytes(damaged)
            with pytest.raises(
                TraceError, match=f"{path.name}: is damaged at byte 0: restore the file, or start"
            ):
                read(Journal(Once([]), tmp_path))
        path.write_bytes(whole)
    path = segments(tmp_path)[-1]
    path.write_bytes(path.read_bytes() * 2)
    group = path.read_bytes()
    path.write_bytes(group[:9] + b"?" + group[10:])
    with pytest.raises(TraceError, match="is damaged at byte 0"):
        read(Journal(Once([]), tmp_path))


def test_wrong_positions_and_folders_are_told(tmp_path: Path) -> None:
    found = read(Journal(Once([b"one", b"two"]), tmp_path))
    for wrong in (found[0][1] + 1, found[-1][1] + 1, 3):
        with pytest.raises(
            TraceError, match=rf"journal .*: the data behind byte {wrong}, .*; it has pieces of 0 to "
        ):
            read(Journal(Once([]), tmp_path), wrong)
    with pytest.raises(
        TraceError, match="behind byte 7, the next to read, are not there; it is empty: restore the folder"
    ):
        read(Journal(Once([]), tmp_path / "empty"), 7)
    with pytest.raises(UsageError, match=r"resumes from an offset; got \[3\]"):
        read(Journal(Once([]), tmp_path), [3])
    with pytest.raises(UsageError, match="must be a folder of this machine"):
        Journal(Once([]), "s3://bucket/folder")


def test_one_process_at_a_time_has_a_journal(tmp_path: Path) -> None:
    async def main() -> None:
        async with aclosing(Journal(Once([b"one", b"two"]), tmp_path).read(None)) as pieces:  # type: ignore[type-var]
            await anext(pieces)
            with pytest.raises(
                UsageError, match="another process has it: run one at a time, or give each a folder"
            ):
                await some(Journal(Once([]), tmp_path))
        assert len(await some(Journal(Once([]), tmp_path))) == 2

    run_async(main())


def test_data_that_wait_when_the_reading_stops_are_kept(tmp_path: Path) -> None:
    """Those that came while a group was being written are there at the next start."""

    async def main() -> None:
        go, writing = asyncio.Event(), asyncio.Event()

        async def aside(work: Any) -> Any:
            if getattr(getattr(work, "func", None), "__name__", "") == "_append":
                writing.set()
                await go.wait()
            return work()

        async def feed() -> AsyncIterator[Any]:
            yield b"one"
            await writing.wait()
            yield b"two"
            await asyncio.Event().wait()

        reading = asyncio.create_task(some(Journal(feed(), tmp_path, aside=aside)))
        await writing.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        reading.cancel()
        go.set()
        with suppress(asyncio.CancelledError):
            await reading
        assert [data for data, _ in await some(Journal(Once([]), tmp_path))] == [b"one", b"two"]

    run_async(main())


def test_the_error_of_a_source_comes_out_behind_its_data(tmp_path: Path) -> None:
    async def feed() -> AsyncIterator[Any]:
        yield b"one"
        msg = "gone"
        raise RuntimeError(msg)

    found = []

    async def main() -> None:
        async for data, _ in Journal(feed(), tmp_path).read(None):
            found.append(data)

    with pytest.raises(RuntimeError, match="gone"):
        run_async(main())
    assert found == [b"one"]


class Full(Disk):
    def append(self, path: Path, data: bytes) -> None:
        with path.open("ab") as file:
            file.write(data[: len(data) // 2])
        raise OSError(28, "No space left on device", str(path))


def test_a_full_disk_is_told_and_nothing_that_was_handed_on_is_lost(tmp_path: Path) -> None:
    async def main() -> list[Any]:
        handed = []
        go = asyncio.Event()

        async def feed() -> AsyncIterator[Any]:
            yield b"one"
            await go.wait()
            yield b"two"

        async def take() -> None:
            async for data, _ in Journal(feed(), tmp_path, disk=Full()).read(None):
                handed.append(data)
                go.set()

        with pytest.raises(OSError, match=r"No space left on device: '.*\.rows'"):
            await take()
        return handed

    assert run_async(main()) == [b"one"]
    assert [data for data, _ in read(Journal(Once([b"three"]), tmp_path))] == [b"one", b"three"]


def counts() -> Graph:
    graph = Graph("counts")
    edge = graph.add("edge", Punctuate(Upstream()), graph.source("in", SCHEMA))
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(10), {"n": Count()}), edge))
    return graph


@pytest.mark.parametrize("every_s", [0.001, 3600])
def test_a_service_goes_on_from_its_journal_though_its_source_cannot_be_read_again(
    tmp_path: Path, every_s: float
) -> None:
    found = Gathered()

    async def served(first: int, last: int, *, dies: bool) -> None:
        async def feed() -> AsyncIterator[Any]:
            for ts in range(first, last):
                yield {"ts": ts, "key": "a"}
                if ts % 10 == 9:
                    yield Linear(ts + 1)
                    await asyncio.sleep(0.002)
            if dies:
                msg = "killed"
                raise RuntimeError(msg)

        journal = Journal(feed(), tmp_path / "journal", segment_bytes=300)
        folder = tmp_path / "state"
        await serve(
            counts(), {"in": journal}, {"out": found}, checkpoint=folder, every_s=every_s, signals=False
        )

    for first in (0, 25, 50):
        with pytest.raises(RuntimeError, match="killed"):
            run_async(served(first, first + 25, dies=True))
    run_async(served(75, 80, dies=False))
    assert [(row["window_end"], row["n"]) for row in found.rows] == [(end, 10) for end in range(10, 81, 10)]


def test_a_file_within_a_journal_is_no_place_for_results(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("{}\n")
    source = Journal(FileTail(log), tmp_path / "journal")
    with pytest.raises(UsageError, match="is read by source 'in'"):
        check_paths({"in": source}, {"out": OneFile(log)}, None)
