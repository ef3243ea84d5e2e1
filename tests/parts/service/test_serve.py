"""A service over files, generators and sockets, in real event loops but without waiting for the clock."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oop_engine import Graph, Operator, Page, Schema, Stream, UsageError, serve
from oop_engine.connectors import pace
from oop_engine.core.saved import Saved
from oop_engine.errors import SetupError
from oop_engine.extend import Emission, LiveSink, LiveSource
from oop_engine.operators import (
    BoundedDisorder,
    Count,
    Meld,
    Ordered,
    Punctuate,
    Sum,
    Tumbling,
    Upstream,
    WindowAggregate,
)
from oop_engine.policies import Heartbeat
from oop_engine.runners.event_loop import run_async
from oop_engine.runners.local import Local
from oop_engine.service.arrival_clock import ArrivalClock
from oop_engine.service.checkpoint_folder import CheckpointFolder, OwnerGone
from oop_engine.service.checkpoint_manifest import CheckpointManifest, read_manifest, write_manifest
from oop_engine.service.gate import Gate
from oop_engine.service.service import Service
from oop_engine.sinks import Callback, Gathered, PartFiles
from oop_engine.sources import FileTail, Generated, Journal, Replayed
from oop_engine.system.disk import Disk
from oop_engine.system.turn import Turn
from tests.children import MOST_S

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")


async def test_messages_of_a_row_go_in_together_and_a_dead_letter_has_its_own_position(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Turn, "is_long", lambda turn: False)  # also on a slow machine
    monkeypatch.setattr(pace, "_SLICE_S", 1e9)

    def make(format: str) -> Callable[[int], AsyncIterator[Any]]:
        async def feed(start: int) -> AsyncIterator[Any]:
            for number in range(start, 3_000):
                row = {"ts": "noon" if number == 1_234 else number, "key": "a"}
                yield row if format == "rows" else [json.dumps(row).encode()]

        return feed

    for format in ("rows", "jsonl"):
        found, dead = Gathered(), Gathered()
        sources = {"in": Replayed(make(format), format)}
        served = await serve(counts(), sources, {"out": found}, dead_letters=dead, signals=False)
        assert served.tuples == {"in": 2_999}
        assert [row["position"] for row in dead.rows] == ["1234"]
        assert sum(row["n"] for row in found.rows) == 2_999
        assert served.statistics.edges["in -> edge"].pages < 40


async def test_a_service_that_is_stopped_tells_its_late_tuples() -> None:
    stop = asyncio.Event()

    async def feed() -> AsyncIterator[Any]:
        for ts in (100, 1):
            yield {"ts": ts, "key": "a"}
        stop.set()
        await asyncio.Event().wait()

    served = await serve(counts(), {"in": feed()}, {"out": Gathered()}, stop=stop, signals=False)
    assert served.tuples == {"in": 2}
    assert served.statistics.late.total == 1


async def test_a_service_that_goes_on_counts_its_own_late_tuples_as_it_does_its_rows(tmp_path: Path) -> None:
    stop = asyncio.Event()

    async def feed(start: int) -> AsyncIterator[Any]:
        for ts in (100, 1)[start:]:
            yield {"ts": ts, "key": "a"}
        stop.set()
        await asyncio.Event().wait()

    told = []
    for _ in range(2):
        stop.clear()
        sources = {"in": Replayed(feed)}
        served = await serve(
            counts(), sources, {"out": Gathered()}, checkpoint=tmp_path, stop=stop, signals=False
        )
        told.append((served.tuples["in"], str(served.statistics.late)))
    assert told == [(2, "1 of 2 tuples were late at 'edge' (50 %)"), (0, "no tuples were late")]


async def test_what_waits_when_a_service_is_stopped_is_in_its_last_checkpoint(tmp_path: Path) -> None:
    stop, found = asyncio.Event(), Gathered()

    async def feed() -> AsyncIterator[Any]:
        for number in range(25):
            yield {"ts": number, "key": "a"}
        stop.set()
        await asyncio.Event().wait()

    ran = await serve(counts(), {"in": feed()}, {"out": found}, checkpoint=tmp_path, stop=stop, signals=False)
    assert (ran.tuples, ran.over) == ({"in": 25}, False)

    async def rest() -> AsyncIterator[Any]:
        yield {"ts": 40, "key": "a"}

    ran = await serve(counts(), {"in": rest()}, {"out": found}, checkpoint=tmp_path, signals=False)
    assert ran.over
    assert [row["n"] for row in found.rows] == [10, 10, 5, 1]


def counts(*, policy: Any = None, aggregates: Any = None) -> Graph:
    graph = Graph("counts")
    edge = graph.add("edge", Punctuate(policy or BoundedDisorder(5)), graph.source("in", SCHEMA))
    count = WindowAggregate(Tumbling(10), aggregates or {"n": Count()}, by=("key",))
    graph.sink("out", graph.add("count", count, edge))
    return graph


def rows(first: int, last: int) -> list[dict[str, Any]]:
    return [{"ts": ts, "key": "ab"[ts % 2]} for ts in range(first, last)]


def counted(found: list[dict[str, Any]]) -> list[tuple[int, str, int]]:
    return sorted((row["window_end"], row["key"], row["n"]) for row in found)


def full(*ends: int) -> list[tuple[int, str, int]]:
    return [(end, key, 5) for end in ends for key in "ab"]


def endless(items: list[Any], done: asyncio.Event) -> Replayed:
    """Items that can be read again, and then silence."""

    async def make(start: int) -> AsyncIterator[Any]:
        for item in items[start:]:
            yield item
        done.set()
        await asyncio.Event().wait()

    return Replayed(make)


async def until_silent(graph: Graph, items: list[Any], sink: Any, folder: Path | None, **options: Any) -> Any:
    """Serve until all items are in, then stop."""
    stop = asyncio.Event()
    source = endless(items, stop)
    return await serve(
        graph, {"in": source}, {"out": sink}, checkpoint=folder, stop=stop, signals=False, **options
    )


def test_a_stream_that_ends_lets_all_out() -> None:
    sink = Gathered()

    async def feed() -> AsyncIterator[Any]:
        for row in rows(0, 30):
            yield row

    served = run_async(serve(counts(), {"in": feed()}, {"out": sink}, signals=False))
    assert served.over
    assert served.tuples == {"in": 30}
    assert counted(sink.rows) == full(10, 20, 30)


def test_a_stop_keeps_what_is_not_complete_and_the_next_process_goes_on(tmp_path: Path) -> None:
    sink = Gathered()
    assert not run_async(until_silent(counts(), rows(0, 33), sink, tmp_path)).over
    assert counted(sink.rows) == full(10, 20)  # 33 - 5 is below 30
    assert not run_async(until_silent(counts(), rows(0, 47), sink, tmp_path)).over
    assert counted(sink.rows) == full(10, 20, 30, 40)
    assert run_async(until_silent(counts(), rows(0, 50), sink, tmp_path, drain=True)).over
    assert counted(sink.rows) == full(10, 20, 30, 40, 50)
    with pytest.raises(UsageError, match="streams have ended"):
        run_async(until_silent(counts(), rows(0, 50), sink, tmp_path))


def test_a_source_that_does_not_let_itself_be_cancelled_ends_all_the_same(tmp_path: Path) -> None:
    """A library may swallow a cancellation that comes as its answer does; then that is in the checkpoint."""
    stop, sink = asyncio.Event(), Gathered()

    class Stubborn(LiveSource):
        replayable = True

        async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
            for number, row in enumerate(rows(position or 0, 23), position or 0):
                yield row, number + 1
            stop.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                yield {"ts": 99, "key": "a"}, 24
            await asyncio.Event().wait()

    options: dict[str, Any] = {"checkpoint": tmp_path, "stop": stop, "signals": False}
    served = run_async(serve(counts(), {"in": Stubborn()}, {"out": sink}, **options))
    assert (served.over, served.tuples) == (False, {"in": 24})
    assert counted(sink.rows)[:4] == full(10, 20)


def test_files_to_files_with_rows_that_cannot_be_read(tmp_path: Path) -> None:
    log, out, dead = tmp_path / "log.jsonl", tmp_path / "out", Gathered()
    lines = [json.dumps(row) for row in rows(0, 20)]
    lines[7:7] = ["{", '{"ts": "noon", "key": "a"}', '{"punctuation": 3}']
    log.write_text("\n".join(lines) + "\n")
    served = run_async(
        serve(
            counts(),
            {"in": FileTail(log, follow=False)},
            {"out": PartFiles(out)},
            checkpoint=tmp_path / "checkpoint",
            dead_letters=dead,
            signals=False,
        )
    )
    assert counted(pq.ParquetDataset(out).read().to_pylist()) == full(10, 20)
    assert sum(served.unreadable["in"].values()) == 3
    assert not [row for row in dead.rows if "source" in row["reason"]]  # it has a column
    assert [row["record"] for row in dead.rows] == lines[7:10]
    for row in dead.rows:
        place = json.loads(row["position"])
        assert log.read_bytes()[place["byte"] :].startswith(row["record"].encode() + b"\n")


def test_punctuation_in_the_stream_for_single_keys_closes_their_windows() -> None:
    lines = [json.dumps(row) for row in rows(0, 12)]
    lines.append('{"punctuation": {"groups": {"key": ["a"]}, "below": [10]}}')
    lines.append('{"punctuation": {"below": "soon"}}')
    sink = Gathered()

    async def main() -> Any:
        stop = asyncio.Event()
        source = endless([("\n".join(lines) + "\n").encode()], stop)
        source.format = "jsonl"
        return await serve(counts(policy=Upstream()), {"in": source}, {"out": sink}, stop=stop, signals=False)

    served = run_async(main())
    assert counted(sink.rows) == [(10, "a", 5)]
    assert sum(served.unreadable["in"].values()) == 1


def test_an_operator_that_has_changed_is_refused_unless_it_may_begin_anew(tmp_path: Path) -> None:
    sink = Gathered()
    with pytest.raises(
        UsageError, match="no node 'nix' to restart without its state; there are in, edge, count"
    ):
        run_async(until_silent(counts(), rows(0, 33), sink, tmp_path, without_state_of=["nix"]))
    run_async(until_silent(counts(), rows(0, 33), sink, tmp_path))
    changed = counts(aggregates={"n": Count(), "sum": Sum("ts")})
    log = sorted(tmp_path.glob("**/epochs/*"))
    with pytest.raises(UsageError, match=r"graph has changed: node 'count'.*--without-state-of count"):
        run_async(until_silent(changed, rows(0, 47), sink, tmp_path))
    assert sorted(tmp_path.glob("**/epochs/*")) == log != []  # the process that has the checkpoint goes on
    run_async(until_silent(changed, rows(0, 47), sink, tmp_path, without_state_of=["count"]))
    assert [(row["window_end"], row["n"]) for row in sink.rows[4:]] == [(40, 4), (40, 3)]  # 33 on


class Numbers(Operator):
    """Puts a number beside each tuple: the first version of an operator."""

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (Schema({"ts": pa.int64(), "number": pa.int64()}, "ts", "s"),)

    def open(self) -> None:
        self._next = 0

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        numbers = [*range(self._next, self._next + len(page))]
        self._next += len(page)
        yield 0, Page.of(self.schemas_out[0], {"ts": page.times, "number": numbers})

    def save(self) -> dict[str, Any]:
        return {"next": self._next}

    def load(self, state: Saved) -> None:
        self._next = state.integer("next")


def counting_from(first: int) -> type[Numbers]:
    """Return the second version of the class: it has a parameter, and keeps what it counts from beside the count."""

    class Later(Numbers):
        state_version = 2
        migrations: ClassVar = {1: lambda state: {"count": state["next"], "first": 0}}

        def __init__(self) -> None:
            self.first = first

        def open(self) -> None:
            self._next = self.first

        def save(self) -> dict[str, Any]:
            return {"count": self._next, "first": self.first}

        def load(self, state: Saved) -> None:
            self._next = state.integer("count")

    Later.__name__ = Later.__qualname__ = "Numbers"
    return Later


def test_a_service_goes_on_from_a_checkpoint_of_an_older_version_of_an_operator(tmp_path: Path) -> None:
    def graph(operator: Operator) -> Graph:
        made = Graph("numbers")
        made.sink("out", made.add("number", operator, made.source("in", SCHEMA)))
        return made

    sink, later = Gathered(), counting_from(100)
    run_async(until_silent(graph(Numbers()), rows(0, 3), sink, tmp_path))
    run_async(until_silent(graph(later()), rows(0, 5), sink, tmp_path))
    assert [row["number"] for row in sink.rows] == [0, 1, 2, 3, 4]
    with pytest.raises(
        UsageError, match=r"state of 'number' is of version 2, a newer one; this program's is 1"
    ):
        run_async(until_silent(graph(Numbers()), rows(0, 6), sink, tmp_path))
    later.state_version = 4
    with pytest.raises(UsageError, match=r"is of version 2, from which there is no migration.* is 4"):
        run_async(until_silent(graph(later()), rows(0, 6), sink, tmp_path))
    run_async(until_silent(graph(later()), rows(0, 6), sink, tmp_path, without_state_of=["number"]))
    assert sink.rows[-1]["number"] == 100


def test_a_heartbeat_goes_by_the_clock_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last tuple is as old as the epoch, so one tick closes its window."""
    sink, stop = Gathered(), asyncio.Event()
    policy = Heartbeat(Ordered(), threshold=1, slack=0, every=1)
    monkeypatch.setattr(ArrivalClock, "tick_on", quick_ticks)

    async def main() -> None:
        service = Service(
            counts(policy=policy), {"in": endless([rows(0, 3)], asyncio.Event())}, {"out": sink}, folder=None
        )
        seen = service.outlets.take

        async def take(result: Any) -> None:
            await seen(result)
            if isinstance(result.message, Page):
                stop.set()

        service.local.way.on_result = take
        await service.run(stop)

    run_async(main())
    assert counted(sink.rows) == [(10, "a", 2), (10, "b", 1)]


async def quick_ticks(clock: ArrivalClock, local: Local, gate: Gate) -> None:
    for ahead in range(0, 40, 10):
        await asyncio.sleep(0)
        async with gate.inside():
            await local.settle()
            await local.clock(clock() + ahead)


def test_a_source_that_gathers_is_read_when_all_before_has_gone_in() -> None:
    seen: list[Any] = []

    class Gathers(Replayed):
        gathers = True

    async def feed(start: int) -> AsyncIterator[Any]:
        for ts in range(start, 50):
            seen.append(ts)
            yield {"ts": 10 * ts, "key": "a"}

    def answered(page: Page) -> None:
        seen.append(page.column("window_end").to_pylist())

    served = run_async(serve(counts(), {"in": Gathers(feed)}, {"out": answered}, signals=False))
    assert served.over
    assert served.tuples == {"in": 50}
    assert [end for each in seen if isinstance(each, list) for end in each] == list(range(10, 510, 10))
    for row in range(3, 50):  # the row before has completed a window
        assert seen[seen.index(row) - 1] == [10 * (row - 2)]


def test_a_sink_that_waits_makes_the_source_wait() -> None:
    """No more is read than the queues hold."""
    read: list[int] = []

    async def feed() -> AsyncIterator[Any]:
        for ts in range(100_000):
            read.append(ts)
            yield Page.of(SCHEMA, {"ts": [10 * ts] * 1000, "key": ["x" * 200] * 1000})

    async def main() -> None:
        stop = asyncio.Event()

        async def slow(page: Page) -> None:
            for _ in range(2000):
                await asyncio.sleep(0)
            stop.set()

        graph = Graph("all")
        graph.sink("out", graph.add("edge", Punctuate(Ordered()), graph.source("in", SCHEMA)))
        await serve(graph, {"in": feed()}, {"out": slow}, stop=stop, signals=False)

    run_async(main())
    assert len(read) < 200


def test_an_older_process_stops_and_its_results_are_not_seen(tmp_path: Path) -> None:
    old, new = Gathered(), Gathered()

    async def main() -> None:
        stop, silent = asyncio.Event(), asyncio.Event()
        first = asyncio.create_task(
            serve(
                counts(), {"in": endless(rows(0, 33), silent)}, {"out": old},
                checkpoint=tmp_path, every_s=3600, stop=stop, signals=False,
            )
        )  # fmt: skip
        await silent.wait()
        await until_silent(counts(), rows(0, 33), new, tmp_path)
        stop.set()
        with pytest.raises(OwnerGone, match="has taken it over"):
            await first

    run_async(main())
    assert counted(new.rows) == full(10, 20)
    assert old.rows == []


@dataclass
class FullDisk(Disk):
    """A disk that is full behind so many files."""

    room: int

    def write(self, path: Path, data: bytes) -> None:
        self.room -= 1
        if self.room < 0:
            path.write_bytes(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        super().write(path, data)


@pytest.mark.parametrize("room", range(9))
def test_a_full_disk_at_any_file_is_told_in_a_line_and_loses_nothing(tmp_path: Path, room: int) -> None:
    """Two checkpoints are of nine files: a claim, then states, manifest and record, twice."""
    out = tmp_path / "out"

    async def served(disk: Disk, last: int) -> None:
        folder = CheckpointFolder(tmp_path / "state", disk=disk)
        stop = asyncio.Event()
        source = endless([[row] for row in rows(0, last)], stop)
        sink = PartFiles(out, "jsonl")
        await serve(counts(), {"in": source}, {"out": sink}, checkpoint=folder, stop=stop, signals=False)

    async def main() -> None:
        async def both(disk: Disk) -> None:
            await served(disk, 25)
            await served(disk, 33)

        with pytest.raises(OSError, match=r"No space left on device: '.*state/") as told:
            await both(FullDisk(room))
        assert "\n" not in str(told.value)
        await served(Disk(), 33)

    run_async(main())
    found = [json.loads(line) for path in out.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert counted(found) == full(10, 20)


class Fails(LiveSink):
    async def write(self, epoch: int, page: Page) -> None:
        msg = "the disk is full"
        raise OSError(28, msg)


def test_the_error_of_a_sink_comes_out_as_it_was_raised(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="the disk is full"):
        run_async(until_silent(counts(), rows(0, 33), Fails(), tmp_path))
    sink = Gathered()
    run_async(until_silent(counts(), rows(0, 33), sink, tmp_path))
    assert counted(sink.rows) == full(10, 20)


def test_the_error_of_a_source_comes_out_as_it_was_raised() -> None:
    async def feed() -> AsyncIterator[Any]:
        yield rows(0, 3)
        msg = "the cable"
        raise ConnectionError(msg)

    with pytest.raises(ConnectionError, match="the cable"):
        run_async(serve(counts(), {"in": feed()}, {"out": Gathered()}, signals=False))


@pytest.mark.parametrize(
    ("sources", "sinks", "reason"),
    [
        ({}, {"out": print}, "has the sources in; got none"),
        ({"in": Generated([]), "more": 1}, {"out": print}, "has the sources in; got in, more"),
        ({"in": 1}, {"out": print}, "must be a LiveSource or an iterable of rows; got int"),
        ({"in": Generated([], "xml")}, {"out": print}, "unknown message format 'xml'"),
        ({"in": Generated([])}, {}, "has the sinks out; got none"),
        ({"in": Generated([])}, {"out": 1}, "must be a LiveSink or a function"),
    ],
)
def test_what_does_not_fit_the_graph_is_told_before_it_runs(sources: Any, sinks: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        run_async(serve(counts(), sources, sinks, signals=False))


def test_a_graph_whose_results_can_never_leave_is_told_so(caplog: pytest.LogCaptureFixture) -> None:
    graph = Graph("waits")
    count = WindowAggregate(Tumbling(10), {"n": Count()})
    edges = [graph.source("a", SCHEMA), graph.add("edge", Punctuate(Ordered()), graph.source("b", SCHEMA))]
    graph.sink("out", graph.add("count", count, graph.add("both", Meld(2), *edges)))

    async def nothing() -> AsyncIterator[Any]:
        for each in ():
            yield each

    with caplog.at_level(logging.WARNING):
        run_async(serve(graph, {"a": nothing(), "b": nothing()}, {"out": print}, signals=False))
    told = " ".join(caplog.messages)
    assert "no Punctuate follows source 'a'" in told
    assert "while source 'b' is silent, 'count' waits for it" in told


@pytest.mark.parametrize("format", ["rows", "jsonl"])
@pytest.mark.parametrize("nullable", [True, False])
def test_a_column_that_rows_do_not_have_is_counted_or_refused(nullable: bool, format: str) -> None:
    graph, given = Graph("named"), [{"ts": 1, "k": "a"}, {"ts": 2}, {"ts": 3, "k": None}]
    fields = [pa.field("ts", pa.int64()), pa.field("k", pa.string(), nullable=nullable)]
    graph.sink("out", graph.source("in", Schema(pa.schema(fields), "ts", "s")))

    async def feed() -> AsyncIterator[Any]:
        for row in given:
            yield row if format == "rows" else f"{json.dumps(row)}\n".encode()

    out, dead = Gathered(), Gathered()
    served = run_async(
        serve(graph, {"in": Generated(feed(), format)}, {"out": out}, dead_letters=dead, signals=False)
    )
    assert served.nulls == {"in": {"k": 2} if nullable else {}}
    assert sum(served.unreadable["in"].values()) == len(dead.rows) == (0 if nullable else 2)
    assert [row["ts"] for row in out.rows] == ([1, 2, 3] if nullable else [1])


@pytest.mark.parametrize("format", ["rows", "jsonl"])
def test_columns_that_the_schema_does_not_have_are_counted_once(format: str) -> None:
    graph = Graph("named")
    graph.sink("out", graph.source("in", Schema({"ts": pa.int64()}, "ts", "s")))
    given = [{"ts": 1, "x": 1}, {"ts": "no", "x": 1, "y": 2}, *({"ts": at, "y": 1} for at in range(2, 9))]

    async def feed() -> AsyncIterator[Any]:
        for row in given:  # they wait, and are read together; one that is refused has them read again
            yield row if format == "rows" else f"{json.dumps(row)}\n".encode()

    source = Generated(feed(), format)
    served = run_async(serve(graph, {"in": source}, {"out": Gathered()}, signals=False))
    assert served.unknown == {"in": {"x": 2, "y": 8}}
    assert served.unreadable["in"].popitem()[1] == 1


@pytest.mark.parametrize("kept", [True, False])
def test_a_source_of_which_a_crash_loses_data_is_told(
    kept: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def calls() -> AsyncIterator[Any]:
        yield rows(0, 33)

    source = Journal(Generated(calls()), tmp_path / "journal") if kept else Generated(calls())
    points = tmp_path / "points"
    with caplog.at_level(logging.WARNING):
        run_async(serve(counts(), {"in": source}, {"out": print}, checkpoint=points, signals=False))
    line = "source 'in': Generated cannot be read again, so a crash loses the data since the last checkpoint"
    assert [line in told for told in caplog.messages] == ([] if kept else [True])


def test_a_signal_stops_in_order(tmp_path: Path) -> None:
    sink = Gathered()

    async def main() -> Any:
        silent = asyncio.Event()
        source = endless(rows(0, 33), silent)
        task = asyncio.create_task(
            serve(counts(), {"in": source}, {"out": sink}, checkpoint=tmp_path, signals=True)
        )
        await silent.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        return await task

    before = signal.getsignal(signal.SIGTERM)
    assert not run_async(main()).over
    assert signal.getsignal(signal.SIGTERM) is before
    assert counted(sink.rows) == full(10, 20)


@pytest.mark.parametrize("at", [0, 2, 3, 4, 5, 8])
def test_a_service_that_is_stopped_within_a_checkpoint_loses_nothing(at: int, tmp_path: Path) -> None:
    """It is stopped as the ``at``-th work beside the loop begins: reading, packing, recording, collecting."""
    sink = Gathered()

    async def life(items: AsyncIterator[Any] | LiveSource, stop_at: int) -> Any:
        stop, works = asyncio.Event(), 0

        async def aside(work: Callable[[], Any]) -> Any:
            nonlocal works
            works += 1
            if works > stop_at:
                stop.set()
            for _ in range(20):  # others go on
                await asyncio.sleep(0)
            return work()

        service = Service(
            counts(),
            {"in": items},
            {"out": sink},
            folder=CheckpointFolder(tmp_path),
            every_s=0.001,
            aside=aside,
        )
        return await asyncio.wait_for(service.run(stop), MOST_S)

    def feed(start: int) -> AsyncIterator[Any]:
        async def rest() -> AsyncIterator[Any]:
            for row in rows(start, 300):
                await asyncio.sleep(0)
                yield row

        return rest()

    if not run_async(life(Replayed(feed), at)).over:
        assert run_async(life(Replayed(feed), 1 << 30)).over
    assert counted(sink.rows) == full(*range(10, 301, 10))


class Fixed(LiveSource):
    """A source of one's own."""

    replayable = True

    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        for at in range(position or 0, 3):
            yield rows(10 * at, 10 * at + 10), at + 1

    async def acknowledge(self, position: Any) -> None:
        self.acknowledged = position


def test_a_source_and_a_sink_of_ones_own(tmp_path: Path) -> None:
    pages: list[Page] = []
    source = Fixed()
    run_async(
        serve(counts(), {"in": source}, {"out": Callback(pages.append)}, checkpoint=tmp_path, signals=False)
    )
    assert source.acknowledged == 3
    assert counted([row for page in pages for row in page.to_pylist()]) == full(10, 20, 30)


def test_two_sinks_of_a_graph_may_write_to_one_folder(tmp_path: Path) -> None:
    """One must not take the files that the other one has prepared for those of nobody."""

    class Dies(PartFiles):
        async def commit(self, prepared: Any) -> None:
            raise ConnectionAbortedError

    def both() -> Graph:
        graph = counts()
        graph.sink("copy", Stream("count"))
        return graph

    for kind in (Dies, PartFiles):
        sinks = {name: kind(tmp_path / "out", "jsonl") for name in ("out", "copy")}
        sources = {"in": Replayed(lambda start: feed_of(rows(0, 25)[start:]))}
        served = serve(both(), sources, sinks, checkpoint=tmp_path / "state", signals=False)
        error = (
            ConnectionAbortedError if kind is Dies else UsageError
        )  # all results are out: nothing is left to do
        with pytest.raises(error):
            run_async(served)
    lines = [line for path in (tmp_path / "out").iterdir() for line in path.read_text().splitlines()]
    assert sorted(lines) == sorted(2 * [*dict.fromkeys(lines)])


async def feed_of(items: list[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


@pytest.mark.parametrize("moment", ["prepare", "commit"])
def test_a_sink_that_fails_once_is_told_in_a_line_and_loses_nothing(tmp_path: Path, moment: str) -> None:
    class Reset(Gathered):
        failures = (ConnectionResetError,)
        failed = False

        def fail(self, at: str) -> None:
            if at == moment and not self.failed:
                self.failed = True
                msg = "reset by peer"
                raise ConnectionResetError(msg)

        async def prepare(self, epoch: int) -> Any:
            self.fail("prepare")
            return await super().prepare(epoch)

        async def commit(self, prepared: Any) -> None:
            self.fail("commit")
            await super().commit(prepared)

    def feed(start: int) -> AsyncIterator[Any]:
        async def rest() -> AsyncIterator[Any]:
            for row in rows(start, 40):
                yield row

        return rest()

    sink = Reset()

    def run() -> Any:
        sources = {"in": Replayed(feed)}
        return run_async(serve(counts(), sources, {"out": sink}, checkpoint=tmp_path, signals=False))

    with pytest.raises(SetupError, match=r"^sink 'out': reset by peer: fix that, and restart the service"):
        run()
    if moment == "prepare":
        assert run().over
    else:  # the end of all streams had been recorded, so the next start commits, and has nothing to read
        with pytest.raises(UsageError, match="all results are out"):
            run()
    assert counted(sink.rows) == full(10, 20, 30, 40)


def test_names_that_change_within_csv_hold_after_a_restart(tmp_path: Path) -> None:
    """A writer of another version appends its own line of names; the next process resumes behind it."""
    schema = Schema({"ts": pa.int64(), "a": pa.int64(), "b": pa.int64()}, "ts", "s")
    graph, sink = Graph("columns"), Gathered()
    graph.sink("out", graph.source("in", schema))

    async def life(*pieces: bytes) -> None:
        stop = asyncio.Event()
        source = endless([*pieces], stop)
        source.format = "csv"
        await serve(graph, {"in": source}, {"out": sink}, checkpoint=tmp_path, stop=stop)

    lines = [b"ts,a,b\n1,10,20\n", b"b,ts,a\n21,2,11\n", b"22,3,12\n", b"ts,a,b\n4,13,23\n", b"5,14,24\n"]
    for count in range(1, len(lines) + 1):
        run_async(life(*lines[:count]))
    assert [tuple(row.values()) for row in sink.rows] == [(n, 9 + n, 19 + n) for n in range(1, 6)]


def test_a_manifest_of_an_earlier_version_has_no_lines_of_names() -> None:
    data = json.loads(write_manifest(CheckpointManifest("g", {}, {})))
    del data["headers"]
    assert read_manifest("here", json.dumps(data).encode()).headers == {}
