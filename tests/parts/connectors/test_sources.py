"""Sources: what they give from each position on, and what is told when a position is gone."""

from __future__ import annotations

import asyncio
import errno
import gzip
import os
import re
import socket
import struct
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Linear, Page, Schema, UsageError, write_trace
from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.sources.tcp_lines import _Client, _Waiting
from oop_engine.connectors.tailing import bytes_at
from oop_engine.errors import SetupError, TraceError
from oop_engine.extend import LiveSource
from oop_engine.runners.event_loop import run_async
from oop_engine.sources import FileTail, GrowingFolder, Replayed, TcpLines
from oop_engine.traces import compressed

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")


async def some(source: LiveSource, position: Any = None, most: int | None = None) -> list[tuple[Any, Any]]:
    """Return what a source gives, to its end or ``most`` pieces."""
    found: list[tuple[Any, Any]] = []
    pieces = source.read(position)
    async for piece in pieces:
        found.append(piece)
        if len(found) == most:
            break
    await pieces.aclose()  # type: ignore[attr-defined]
    return found


def read(source: LiveSource, position: Any = None, most: int | None = None) -> list[tuple[Any, Any]]:
    return run_async(some(source, position, most))


def test_a_file_is_read_from_any_position_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\ntwo\n")
    [(lines, position)] = read(FileTail(log, follow=False))
    assert lines == b"one\ntwo\n"
    with log.open("ab") as file:
        file.write(b"three\nfo")
    [(lines, later)] = read(FileTail(log), position, most=1)
    assert lines == b"three\n"
    with log.open("ab") as file:
        file.write(b"ur")
    assert [lines for lines, _ in read(FileTail(log, follow=False), later)] == [b"four\n"]


def test_a_file_is_followed_across_its_rotation(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\n")

    async def main() -> list[bytes]:
        found = []
        async for lines, _ in FileTail(log, every_s=0.001).read(None):
            found.append(lines)
            if len(found) == 1:
                with log.open("ab") as file:
                    file.write(b"two")  # the last line of a file that is rotated ends with it
                log.rename(tmp_path / "log.1")
                log.write_bytes(b"three\n")
            if len(found) == 3:
                return found
        return found

    assert run_async(main()) == [
        b"one\n",
        b"three\n",
        b"two\n",
    ]  # "two" ends once nothing more is written to it


def test_a_file_that_is_not_there_yet_is_waited_for_and_that_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "log"

    async def main() -> bytes:
        waiting = asyncio.ensure_future(anext(FileTail(log, every_s=0.001).read(None)))
        while not caplog.messages:
            await asyncio.sleep(0)
        log.write_bytes(b"one\n")
        lines, _ = await waiting
        return lines

    assert run_async(main()) == b""  # a position before the first line
    assert caplog.messages == [f"{log}: does not exist yet: waiting for it"]


@pytest.mark.parametrize("follow", [True, False])
def test_a_file_in_the_place_of_a_folder_is_told_and_the_other_way_round(
    tmp_path: Path, follow: bool
) -> None:
    (tmp_path / "log").touch()
    with pytest.raises(TraceError, match="log: is a file: give the path of a folder"):
        read(GrowingFolder(tmp_path / "log", SCHEMA, follow=follow), most=1)
    with pytest.raises(TraceError, match="is a folder: give the path of a file"):
        read(FileTail(tmp_path, follow=follow), most=1)


def test_a_folder_that_is_not_there_yet_is_told_and_awaited(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "in"
    with pytest.raises(TraceError, match="in: does not exist: give the path of a folder"):
        read(GrowingFolder(folder, SCHEMA, follow=False))

    async def main() -> Any:
        waiting = asyncio.ensure_future(anext(GrowingFolder(folder, SCHEMA, every_s=0.001).read(None)))
        while not caplog.messages:
            await asyncio.sleep(0)
        folder.mkdir()
        write_trace(folder / "1.arrow", SCHEMA, [page(5)])
        return await waiting

    message, _ = run_async(main())
    assert message.times.tolist() == [5]
    assert caplog.messages == [f"{folder}: does not exist yet: waiting for it"]


def test_a_file_that_was_rotated_while_nobody_read_is_found(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\n")
    [(_, position)] = read(FileTail(log, follow=False))
    with log.open("ab") as file:
        file.write(b"two\n")
    log.rename(tmp_path / "log.1")
    log.write_bytes(b"three\n")
    assert [lines for lines, _ in read(FileTail(log, every_s=0.001), position, most=2)] == [
        b"two\n",
        b"three\n",
    ]


def test_a_new_file_with_the_inode_of_one_that_was_removed_is_not_read_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\ntwo\n")
    [(_, position)] = read(FileTail(log, follow=False))
    log.write_bytes(b"six\nten\nnew\n")  # in place, as where the file system gives the inode again
    with pytest.raises(TraceError, match="was read to byte 8 and the bytes before are others now"):
        read(FileTail(log, follow=False), position)
    assert read(FileTail(log, follow=False), position[:2])[0][0] == b"new\n"  # as earlier versions wrote it
    with pytest.raises(TraceError, match="is a folder: give the path of a file"):
        read(FileTail(tmp_path, follow=False))


def test_a_file_is_read_without_a_call_that_windows_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pread", raising=False)
    log, long = tmp_path / "log", b"x" * (3 << 19) + b"\n"
    log.write_bytes(b"one\n" + long + b"two\n" + long)
    assert b"".join(lines for lines, _ in read(FileTail(log, follow=False))) == log.read_bytes()


def test_a_position_that_is_gone_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\ntwo\n")
    [(_, position)] = read(FileTail(log, follow=False))
    log.write_bytes(b"one\n")
    with pytest.raises(
        TraceError, match=r"was read to byte 8 and has 4: it was cut.*another folder of checkpoints"
    ):
        read(FileTail(log), position)
    log.rename(tmp_path / "kept")
    log.write_bytes(b"other\n")
    with pytest.raises(TraceError, match="the file that was read to byte 8 is gone"):
        read(FileTail(log), position)
    with pytest.raises(TraceError, match="does not exist"):
        read(FileTail(tmp_path / "none", follow=False))


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_that_is_too_long_costs_that_line(tmp_path: Path, end: bytes) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\n" + b"x" * (5 << 20) + b"\ntwo\n" + b"y" * (1 << 22) + end)
    told: list[tuple[str, str, int]] = []
    source = FileTail(log, follow=False)
    source.unreadable = lambda *args: told.append(args)
    assert b"".join(lines for lines, _ in read(source)) == b"one\ntwo\n"
    reason = "a line must be shorter than 4,194,304 bytes"
    assert told == [(reason, "x" * 1000, 1), (reason, "y" * 1000, 1)]


def page(*times: int) -> Page:
    return Page.of(SCHEMA, {"ts": list(times), "key": ["a"] * len(times)})


def test_a_folder_gives_its_files_and_those_that_come(tmp_path: Path) -> None:
    write_trace(tmp_path / "1.arrow", SCHEMA, [page(1, 2), Linear(2), page(3)])
    write_trace(tmp_path / "2.parquet", SCHEMA, [page(4)])
    (tmp_path / "readme.txt").write_text("no trace")
    whole = read(GrowingFolder(tmp_path, SCHEMA, follow=False))
    assert [m.times.tolist() if isinstance(m, Page) else m for m, _ in whole] == [[1, 2], Linear(2), [3], [4]]
    for number, (_, position) in enumerate(whole):
        assert [m for m, _ in read(GrowingFolder(tmp_path, SCHEMA, follow=False), position)] == [
            m for m, _ in whole[number + 1 :]
        ]

    async def main() -> list[Any]:
        found = []
        async for message, _ in GrowingFolder(tmp_path, SCHEMA, every_s=0.001).read(whole[-1][1]):
            found.append(message)
            if len(found) == 2:
                return found
        return found

    write_trace(tmp_path / "3.jsonl", SCHEMA, [page(5)], arrival_column=None)
    write_trace(tmp_path / "4.arrow", SCHEMA, [page(6)])
    assert [message.times.tolist() for message in run_async(main())] == [[5], [6]]


def test_a_file_that_is_gone_was_read_to_its_end_or_is_told(tmp_path: Path) -> None:
    for name, times in (("1.arrow", (1, 2)), ("2.arrow", (3,))):
        write_trace(tmp_path / name, SCHEMA, [page(ts) for ts in times])
    (_, begun), (_, read_whole), _ = read(GrowingFolder(tmp_path, SCHEMA, follow=False))
    (tmp_path / "1.arrow").unlink()
    [(message, _)] = read(GrowingFolder(tmp_path, SCHEMA, follow=False), read_whole)
    assert message.times.tolist() == [3]
    with pytest.raises(TraceError, match=r"1.arrow: was read to message 1 and is gone: restore it"):
        read(GrowingFolder(tmp_path, SCHEMA, follow=False), begun)
    assert (
        len(read(GrowingFolder(tmp_path, SCHEMA, follow=False), begun[:2])) == 1
    )  # as earlier versions wrote it


def test_a_file_that_comes_before_those_read_is_told(tmp_path: Path) -> None:
    write_trace(tmp_path / "2.arrow", SCHEMA, [page(1)])

    async def main() -> None:
        async for _ in GrowingFolder(tmp_path, SCHEMA, every_s=0.001).read(None):
            write_trace(tmp_path / "1.arrow", SCHEMA, [page(0)])

    with pytest.raises(TraceError, match=r"1.arrow: came after '2.arrow' was read"):
        run_async(main())


def test_rows_of_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text('{"ts": 1, "key": "a"}\n{"ts": "x", "key": "a"}\n')
    told: list[Any] = []
    source = GrowingFolder(tmp_path, SCHEMA, follow=False)
    source.unreadable = lambda *args, place: told.append((*args, place))
    assert [m.times.tolist() for m, _ in read(source)] == [[1]]
    place = {"file": str(tmp_path / "1.jsonl"), "row": 2}
    assert told == [("ts: cannot read 'x' as int64", {"ts": "x", "key": "a"}, 1, place)]


def test_lines_come_from_many_clients() -> None:
    async def main() -> list[bytes]:
        source = TcpLines("127.0.0.1", 0)
        found: list[bytes] = []
        reading = asyncio.create_task(some(source, most=3))
        while not source.port:
            await asyncio.sleep(0)
        for text in (b"one\ntw", b"three\n"):
            _, writer = await asyncio.open_connection("127.0.0.1", source.port)
            writer.write(text)
            writer.close()
            await writer.wait_closed()
        for lines, _ in await reading:
            found.append(lines)
        return found

    assert b"".join(sorted(b"".join(run_async(main())).splitlines(keepends=True))) == b"one\nthree\ntw\n"


def test_a_connection_ends_with_its_server(caplog: pytest.LogCaptureFixture) -> None:
    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"one\ntwo\n")
        await writer.drain()
        writer.close()

    async def main() -> list[tuple[Any, Any]]:
        server = await asyncio.start_server(send, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        found = await some(TcpLines("127.0.0.1", port, connect=True), 100)
        server.close()
        return found

    assert run_async(main()) == [(b"one\ntwo\n", 108)]
    [line] = caplog.messages
    assert (
        "has closed the connection, so the source ends; with again=True (?again=yes) it connects again"
        in line
    )


def test_lines_that_came_and_were_not_taken_are_the_rest() -> None:
    async def main() -> list[tuple[Any, Any]]:
        source = TcpLines("127.0.0.1", 0)
        pieces = source.read(100)
        waiting = asyncio.ensure_future(anext(pieces))
        while not source.port:
            await asyncio.sleep(0)
        _, writer = await asyncio.open_connection("127.0.0.1", source.port)
        writer.write(b"one\n")
        assert await waiting == (b"one\n", 104)
        assert source._waiting is not None
        writer.write(b"two\nthr")
        while not source._waiting._lines:
            await asyncio.sleep(0)
        await pieces.aclose()  # type: ignore[attr-defined]
        writer.close()
        return source.rest() + source.rest()

    assert run_async(main()) == [(b"two\n", 108)]


async def test_a_server_that_is_gone_without_a_word_ends_the_connection_too() -> None:
    """The system finds that out, and tells it by an error that is no ``ConnectionError``."""
    waiting = _Waiting(ends=True)
    client = _Client(waiting)
    with socket.socket() as found:
        transport: Any = SimpleNamespace(get_extra_info=lambda _: found)
        client.connection_made(transport)
        client.data_received(b"one\ntw")
        assert await waiting.take() == b"one\n"
        client.connection_lost(TimeoutError(errno.ETIMEDOUT, "Connection timed out"))
        assert await waiting.take() == b""
        assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0


async def test_a_line_that_is_too_long_or_cut_is_refused_and_never_a_shorter_row() -> None:
    waiting, refused = _Waiting(ends=False), list[tuple[str, int]]()
    waiting.refuse = lambda reason, line: refused.append((reason, len(line)))
    for data, error in ((b"1,a\n2," + b"x" * (1 << 22), None), (b"3,c\n4,", TimeoutError())):
        with socket.socket() as found:
            client = _Client(waiting)
            transport: Any = SimpleNamespace(get_extra_info=lambda _, found=found: found, close=lambda: None)
            client.connection_made(transport)
            client.data_received(data)
            client.connection_lost(error)
    assert await waiting.take() == b"1,a\n3,c\n"
    assert refused == [
        ("a line must be shorter than 4,194,304 bytes", (1 << 22) + 2),
        ("the connection was cut within a line", 2),
    ]


def test_lines_that_nobody_takes_make_their_senders_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oop_engine.connectors.sources.tcp_lines._MOST", 1 << 16)
    line = b"x" * 1023 + b"\n"

    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(20_000):
            writer.write(line)
            await writer.drain()
            sent[0] += 1
        writer.close()

    async def main() -> int:
        server = await asyncio.start_server(send, "127.0.0.1", 0)
        source = TcpLines("127.0.0.1", server.sockets[0].getsockname()[1], connect=True).read(None)
        found = [await anext(source)]
        before = -1
        while before < sent[0]:  # as much as fits in between
            before = sent[0]
            for _ in range(100):
                await asyncio.sleep(0)
        assert sent[0] < 20_000
        found += [piece async for piece in source]
        server.close()
        assert b"".join(lines for lines, _ in found) == 20_000 * line
        return max(len(lines) for lines, _ in found)

    sent = [0]
    assert run_async(main()) < 1 << 20


@pytest.mark.parametrize(("cut", "found"), [(False, b"one\ntw\n"), (True, b"one\n")])
def test_what_is_behind_the_last_line_counts_unless_the_connection_is_cut(cut: bool, found: bytes) -> None:
    async def main() -> bytes:
        taken = asyncio.Event()

        async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"one\ntw")
            await taken.wait()
            if cut:
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.close()

        server = await asyncio.start_server(send, "127.0.0.1", 0)
        source = TcpLines("127.0.0.1", server.sockets[0].getsockname()[1], connect=True).read(None)
        lines, _ = await anext(source)
        taken.set()
        rest = list[bytes]()
        with pytest.raises(UnreachableError) if cut else nullcontext():
            async for more, _ in source:
                rest.append(more)
        server.close()
        return b"".join([lines, *rest])

    assert run_async(main()) == found


def test_an_address_where_nobody_is_is_told() -> None:
    async def main() -> None:
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            with pytest.raises(SetupError, match="cannot be listened at"):
                await some(TcpLines("127.0.0.1", port))
        finally:
            server.close()
            await server.wait_closed()
        with pytest.raises(SetupError, match="cannot be connected to"):
            await some(TcpLines("127.0.0.1", port, connect=True))

    run_async(main())


def test_a_function_goes_on_from_a_number() -> None:
    async def make(start: int) -> AsyncIterator[Any]:
        for number in range(start, 4):
            yield number

    assert read(Replayed(make), 2) == [(2, 3), (3, 4)]
    with pytest.raises(UsageError, match="resumes from a number"):
        read(Replayed(make), [os.getpid()])


@pytest.mark.parametrize("length", [10, 40])
def test_a_file_that_is_cut_and_grows_past_the_offset_between_two_looks_is_told(
    tmp_path: Path, length: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"old\n" * length)
    source = FileTail(path, every_s=0.001)

    async def main() -> None:
        async with aclosing(source.read(None)) as feed:  # type: ignore[type-var]
            _, (_, offset, *_) = await anext(feed)
            path.write_bytes(b"another\n" * length)
            assert path.stat().st_size > offset
            while not (piece := await anext(feed))[0]:
                pass
            assert piece[0] == b"another\n" * length

    run_async(main())
    [told] = caplog.messages
    assert re.search(r"was read to byte .*, and was cut then .* are lost, if there were any", told)


@pytest.mark.parametrize("source", ["tail", "folder"])
def test_compressed_files_are_unpacked_on_a_thread(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = b"".join(b'{"ts": %d}\n' % ts for ts in range(5000))
    packed = gzip.compress(rows + b"no row\n")
    threads, refused = set[int](), list[str]()
    of: LiveSource
    watched: Any
    if source == "tail":
        (tmp_path / "in.jsonl").write_bytes(b'{"ts": 1}\n')
        tail = FileTail(tmp_path / "in.jsonl", follow=False)
        [(_, before)] = read(tail)
        (tmp_path / "in.jsonl").rename(tmp_path / "in.jsonl.1")
        (tmp_path / "in.jsonl.1").unlink()
        (tmp_path / "in.jsonl.1.gz").write_bytes(gzip.compress(b'{"ts": 1}\n' + rows))
        (tmp_path / "in.jsonl").write_bytes(b'{"ts": 5001}\n')
        watched, name, of = bytes_at.PackedBytes, "read", tail
    else:
        (tmp_path / "a.jsonl.gz").write_bytes(packed)
        folder = GrowingFolder(tmp_path, SCHEMA, follow=False)
        folder.unreadable = lambda reason, record, rows, place=None: refused.append(reason)
        watched, name, of, before = compressed._Raw, "readinto", folder, None
    original = getattr(watched, name)

    def noted(*given: Any) -> Any:
        threads.add(threading.get_ident())
        return original(*given)

    monkeypatch.setattr(watched, name, noted)
    found = read(of, before)
    assert threads
    assert threading.get_ident() not in threads
    if source == "tail":
        assert b"".join(data for data, _ in found) == rows + b'{"ts": 5001}\n'
    else:
        assert (sum(len(page) for page, _ in found), refused) == (5000, ["the line is no JSON object"])
