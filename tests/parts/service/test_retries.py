"""Dead letters that are mended and fed again: each of them once, whoever is killed in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from oop_engine import Graph, Page, Schema, UsageError, serve
from oop_engine.cli.app import app
from oop_engine.connectors.formats.payloads import row_as_json
from oop_engine.connectors.payload import Payload
from oop_engine.runners.event_loop import run_async
from oop_engine.service.letters.letter_context import context_of, with_message
from oop_engine.service.letters.letter_folder import LetterFolder
from oop_engine.sinks import Gathered, PartFiles
from oop_engine.sources import FileTail, Generated, Replayed
from oop_engine.system.disk import Disk

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")
LINES = ['{"ts": 1, "key": "a"}', '{"ts": "two", "key": "é"}', "{", '{"ts": 4, "key": "a"}']


def through() -> Graph:
    graph = Graph("g")
    graph.sink("out", graph.source("log", SCHEMA))
    return graph


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oop_engine.service.dashboard.sampler._OFTEN_S", 0.01)


class Told(Replayed):
    """Messages, or a block of lines, with columns of their message."""

    metadata = MappingProxyType(
        {"_key": pa.binary(), "_headers": pa.map_(pa.string(), pa.binary()), "_at": pa.int64()}
    )


ABOUT = {"_key": b"k\xff", "_headers": [("a", b"\xfe")], "_at": 7}
DATA: dict[str, tuple[list[Any], list[dict[str, Any]]]] = {
    "messages": ([[Payload(line.encode(), ABOUT)] for line in LINES[:2]], [{"key": "é"}]),
    "together": ([[Payload(line.encode(), ABOUT) for line in LINES[:2]]], [{"key": "é"}]),
    "a block": ([Payload("\n".join(LINES[:2]).encode() + b"\n", ABOUT)], [{"key": "é"}]),
}


@pytest.mark.parametrize("name", DATA)
def test_a_record_is_fed_again_with_the_columns_of_its_message(name: str, tmp_path: Path) -> None:
    """A key and the headers have bytes, which JSON has not."""
    given, wanted = DATA[name]
    schema = Schema({"ts": pa.int64(), "key": pa.string(), **Told.metadata}, "ts", "s")
    graph, out = Graph("g"), Gathered()
    graph.sink("out", graph.source("log", schema))

    async def feed(start: int) -> AsyncIterator[Any]:
        for each in given[start:]:
            yield each
        if start == 0:
            return
        await asyncio.sleep(60)

    async def life(until: int) -> None:
        stop = asyncio.Event()
        dead = PartFiles(tmp_path / "dead", "jsonl")
        options: dict[str, Any] = {
            "checkpoint": tmp_path / "state",
            "dead_letters": dead,
            "after_drain": True,
        }
        watch = lambda sample: stop.set() if sample["sources"][0]["tuples"] >= until else None
        await serve(
            graph,
            {"log": Told(feed, "jsonl")},
            {"out": out},
            signals=False,
            stop=stop,
            watch=watch,
            **options,
        )

    run_async(life(99))
    [letter] = LetterFolder(tmp_path / "dead").letters()
    mended = {letter.letter: {"record": letter.record.replace('"two"', "2")}}
    assert LetterFolder(tmp_path / "dead").retry("log", mended)[0] == 1
    run_async(life(1))
    rows = [row for row in out.rows if row["ts"] == 2]
    assert rows == [
        {"ts": 2, **each, "_key": b"k\xff", "_headers": [("a", b"\xfe")], "_at": 7} for each in wanted
    ]


def test_a_message_without_bytes_is_one_when_it_is_fed_again() -> None:
    context = context_of(Payload(None, {"_at": 7}), b"")
    again = with_message(b"", json.loads(json.dumps(context)))
    assert isinstance(again, Payload)
    assert (again.is_null, again.about) == (True, {"_at": 7})
    assert not with_message(b"{}", context).is_null  # type: ignore[attr-defined]


def test_a_row_of_csv_is_fed_again_below_its_own_line_of_names(tmp_path: Path) -> None:
    """Below another one its cells would be those of other columns."""
    place = Place(tmp_path)
    place.log.write_text("ts,key\n1,a\ntwo,3\nkey,ts\nb,4\n")
    out = Gathered()

    async def life(until: int) -> None:
        stop = asyncio.Event()
        watch = lambda sample: stop.set() if sample["sources"][0]["tuples"] >= until else None
        options: dict[str, Any] = {
            "checkpoint": place.state,
            "dead_letters": PartFiles(place.dead),
            "watch": watch,
        }
        source = FileTail(place.log, "csv", every_s=0.01)
        await serve(through(), {"log": source}, {"out": out}, signals=False, stop=stop, **options)

    run_async(life(2))
    [letter] = LetterFolder(place.dead).letters()
    assert LetterFolder(place.dead).retry("log", {letter.letter: {"record": "2,3"}})[0] == 1
    run_async(life(1))
    with place.log.open("a") as file:
        file.write("c,5\n")
    run_async(life(1))
    assert [(row["ts"], row["key"]) for row in out.rows] == [(1, "a"), (4, "b"), (2, "3"), (5, "c")]


class Dies(Gathered):
    async def commit(self, prepared: Any) -> None:
        raise ConnectionAbortedError


class Place:
    """A log, a checkpoint, dead letters and a sink that stay from one service to the next."""

    def __init__(self, folder: Path, format: str = "jsonl") -> None:
        self.log, self.state, self.dead = folder / "log.jsonl", folder / "state", folder / "dead"
        self.log.write_text("\n".join(LINES) + "\n")
        self.out, self.format = Gathered(), format

    def life(self, until: int, sink: Gathered | None = None) -> list[int]:
        """Serve until so many rows have come in this life; return the times of all results so far."""
        stop = asyncio.Event()

        def watch(sample: dict[str, Any]) -> None:
            if sum(source["tuples"] for source in sample["sources"]) >= until:
                stop.set()

        letters = PartFiles(self.dead, self.format)
        options: dict[str, Any] = {"checkpoint": self.state, "dead_letters": letters, "watch": watch}
        sources = {"log": FileTail(self.log, every_s=0.01)}
        run_async(serve(through(), sources, {"out": sink or self.out}, stop=stop, signals=False, **options))
        return [row["ts"] for row in self.out.rows]

    def command(self, *args: str) -> Any:
        return CliRunner().invoke(app, ["dead-letters", str(self.dead), *args])


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_letters_are_shown_mended_and_fed_again_once(format: str, tmp_path: Path) -> None:
    place = Place(tmp_path, format)
    assert place.life(2) == [1, 4]
    listed = place.command()
    assert "cannot read 'two' as int64" in listed.stdout
    shown = [json.loads(line) for line in place.command("--source", "log", "--show").stdout.splitlines()]
    assert [each["record"] for each in shown] == LINES[1:3]
    assert [json.loads(each["position"])["byte"] for each in shown] == [22, 48 + 1]
    mended = tmp_path / "mended.jsonl"
    mended.write_text(json.dumps({**shown[0], "record": shown[0]["record"].replace('"two"', "2")}) + "\n")
    done = place.command("--retry", "--mended", str(mended))
    assert done.stdout.startswith("1 letters are fed again: "), done.output
    assert "no letters to feed again" in place.command("--retry", "--mended", str(mended)).stdout
    assert place.life(1) == [1, 4, 2]
    assert place.command("--retry").stdout.startswith("1 letters")  # the other one, as it came
    with place.log.open("a") as log:
        log.write('{"ts": 5, "key": "a"}\n')
    assert place.life(1) == [1, 4, 2, 5]
    letters = LetterFolder(place.dead).letters()
    assert [letter.retried for letter in letters] == [True, True, False]  # refused again: a new letter
    assert json.loads(letters[2].position or "") == {"letter": letters[1].letter}
    assert letters[2].record == "{"


def test_a_service_that_dies_behind_a_retry_feeds_it_once(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.life(2)
    LetterFolder(place.dead).retry("log", {place_of(place, 0): {"record": '{"ts": 2, "key": "b"}'}})
    dies = Dies()
    with pytest.raises(ConnectionAbortedError):  # recorded, and not committed
        place.life(1, dies)
    dies.__class__ = Gathered  # type: ignore[assignment]
    place.out, before = dies, place.out
    assert place.life(0) == [2]
    assert [row["ts"] for row in before.rows] == [1, 4]


def place_of(place: Place, number: int) -> str:
    return LetterFolder(place.dead).letters()[number].letter


def test_two_retries_at_once_order_a_letter_once(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.life(2)

    class Slow(Disk):
        def create(self, path: Path, data: bytes) -> bool:
            LetterFolder(place.dead).retry("log")
            return super().create(path, data)

    assert LetterFolder(place.dead, Slow()).retry("log") == (0, None)
    orders = LetterFolder(place.dead).retries()
    assert [order.record for order in orders] == LINES[1:3]


def test_a_running_service_takes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oop_engine.service.letters.retries._EVERY_S", 0.01)
    place, stop = Place(tmp_path), asyncio.Event()

    def take(page: Any) -> None:
        times.extend(page.times.tolist())
        if 2 in times:
            stop.set()

    async def order() -> None:
        while not (place.dead.is_dir() and LetterFolder(place.dead).letters()):
            await asyncio.sleep(0.01)
        LetterFolder(place.dead).retry("log", {place_of(place, 0): {"record": '{"ts": 2, "key": "b"}'}})

    async def main() -> None:
        ordering = asyncio.create_task(order())
        sources = {"log": FileTail(place.log, every_s=0.01)}
        options: dict[str, Any] = {"dead_letters": PartFiles(place.dead, "jsonl"), "every_s": 0.05}
        await serve(through(), sources, {"out": take}, stop=stop, signals=False, **options)
        await ordering

    times: list[int] = []
    run_async(main())
    assert times == [1, 4, 2]


def test_objects_of_python_are_fed_again(tmp_path: Path) -> None:
    rows = [{"ts": 1, "key": "a"}, {"ts": "two", "key": "b"}, (3,), "text"]
    found, letters = Gathered(), PartFiles(tmp_path / "dead", "jsonl")
    run_async(serve(through(), {"log": rows}, {"out": found}, dead_letters=letters, signals=False))
    folder = LetterFolder(tmp_path / "dead")
    first, *others = folder.letters()
    assert [json.loads(each.record) for each in (first, *others)] == [rows[1], [3], "text"]
    folder.retry("log", {first.letter: {"record": '{"ts": 2, "key": "b"}'}})
    again = Gathered()
    feed = Generated([{"ts": 4, "key": "c"}])
    run_async(serve(through(), {"log": feed}, {"out": again}, dead_letters=letters, signals=False))
    assert [row["ts"] for row in again.rows] == [2, 4]


def test_letters_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no folder: give the one that"):
        LetterFolder(tmp_path / "none").letters()
    place = Place(tmp_path)
    place.life(2)
    with pytest.raises(UsageError, match="there is no letter 'x:1'"):
        LetterFolder(place.dead).retry(None, {"x:1": {"record": ""}})
    assert "--mended is for --retry" in place.command("--mended", str(place.log)).output


class Refuses(Gathered):
    """Its server takes no times below ``least``."""

    least = 3

    async def write(self, epoch: int, page: Page) -> None:
        assert self.refused is not None
        for number, row in enumerate(page.to_pylist()):
            if row["ts"] < self.least:
                self.refused("too small", row_as_json([page], number), 1, coding="json")
        await super().write(epoch, page.filter(page.times >= self.least))


KINDS: dict[str, Any] = {
    "texts": {"price": pa.decimal128(38, 2)},
    "lists": {"price": pa.decimal128(38, 2), "parts": pa.list_(pa.int64())},
    "bytes": {"data": pa.binary()},
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_a_sink_refused_are_written_again_once(kind: str, tmp_path: Path) -> None:
    schema = Schema({"ts": pa.int64(), **KINDS[kind]}, "ts", "s")
    values = {"price": Decimal("123456789012345678901234567890.12"), "parts": [1, None], "data": b"\xff"}
    rows = [{"ts": ts, **{name: values[name] for name in KINDS[kind]}} for ts in range(5)]
    graph, out, dead = Graph("g"), Refuses(), tmp_path / "dead"
    graph.sink("out", graph.source("log", schema))

    async def feed(start: int) -> AsyncIterator[Any]:
        for row in rows[start:]:
            yield row

    def life() -> list[str]:
        options: dict[str, Any] = {"dead_letters": PartFiles(dead, "jsonl"), "after_drain": True}
        sources = {"log": Replayed(feed)}
        run_async(
            serve(graph, sources, {"out": out}, checkpoint=tmp_path / "state", signals=False, **options)
        )
        return [letter.reason for letter in LetterFolder(dead).letters() if not letter.retried]

    def command(*args: str) -> str:
        return CliRunner().invoke(app, ["dead-letters", str(dead), *args]).output

    assert life() == ["too small"] * 3
    assert "sink out" in command()
    assert "--source or --sink" in command("--source", "log", "--sink", "out")
    mended = tmp_path / "mended.jsonl"
    mended.write_text(command("--sink", "out", "--show").replace('{\\"ts\\": 0,', '{\\"ts\\": 7,'))
    assert command("--sink", "out", "--retry", "--mended", str(mended)).startswith("3 letters are fed again")
    out.least = 1
    if kind == "bytes":
        assert all("JSON" in reason or "jsonl cannot hold" in reason for reason in life())
        return
    for _ in range(2):
        assert life() == []
        assert [row["ts"] for row in out.rows] == [3, 4, 7, 1, 2]
        assert all({**row, "ts": 0} == rows[0] for row in out.rows)
    assert LetterFolder(dead).retry("sink none") == (0, None)


def test_letters_of_a_sink_that_is_gone_wait(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = Place(tmp_path)
    place.life(2)
    [first, *_] = LetterFolder(place.dead).letters()
    (place.dead / "retry").mkdir()
    order = {"letter": first.letter, "source": "sink none", "record": "{}", "coding": "json"}
    (place.dead / "retry/0000001.jsonl").write_text(json.dumps(order) + "\n")
    place.life(0)
    assert "dead letters: order 1 waits, for sink 'none' has ended, or is not in the graph" in caplog.messages


def test_a_folder_without_letters_is_named_and_a_misspelt_source_too(tmp_path: Path) -> None:
    (tmp_path / "state" / "epochs").mkdir(parents=True)
    line = {"at": "2026-01-01T00:00:00Z", "source": "log", "position": "1", "reason": "r", "record": "x"}
    (tmp_path / "dead").mkdir()
    (tmp_path / "dead" / "a.jsonl").write_text(json.dumps(line | {"coding": "text", "rows": 1}) + "\n")

    def command(*args: str) -> str:
        return CliRunner().invoke(app, ["dead-letters", *args]).output

    shown = command(str(tmp_path / "state"))
    assert "state: no dead letters, but checkpoints: give the folder of --dead-letters" in shown
    assert "no dead letters of lgo; did you mean log?" in command(str(tmp_path / "dead"), "--source", "lgo")
