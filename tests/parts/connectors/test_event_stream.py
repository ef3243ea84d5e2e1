"""Server-sent events as WHATWG HTML parses them, and answers that are none."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from typing import Any

import pytest

from oop_engine.connectors.servers.event_stream import EventStream
from oop_engine.connectors.servers.inflating import inflating
from oop_engine.connectors.sources import server_events
from oop_engine.errors import SetupError
from oop_engine.runners.event_loop import run_async
from oop_engine.sources import ServerEvents

CASES = {
    "line feeds": (b"data: a\ndata: b\n\n", [("message", b"a\nb")]),
    "carriage returns": (b"data: a\rdata: b\r\r", [("message", b"a\nb")]),
    "both": (b"data: a\r\ndata: b\r\n\r\n", [("message", b"a\nb")]),
    "all in one": (b"data: a\rdata: b\ndata: c\r\n\n", [("message", b"a\nb\nc")]),
    "other signs are no line ends": (
        "data: a\u2028b\u0085c\u000bd\u000ce\n\n".encode(),
        [("message", "a\u2028b\u0085c\u000bd\u000ce".encode())],
    ),
    "a byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [("message", b"a")]),
    "one mark only": (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", [("message", b"b")]),
    "one space": (b"data:  a\ndata:b\n\n", [("message", b" a\nb")]),
    "an empty field": (
        b"data\n\ndata\ndata\n\ndata:\n\n",
        [("message", b""), ("message", b"\n"), ("message", b"")],
    ),
    "an end without a blank line": (b"data: a\n\ndata: b\n", [("message", b"a")]),
    "comments": (b":\n: x\ndata: a\n:data: b\n\n", [("message", b"a")]),
    "unknown fields": (b" data: a\nDATA: b\ndata : c\ndata: d\n\n", [("message", b"d")]),
    "names": (
        b"event: x\ndata: a\n\ndata: b\n\nevent:\ndata: c\n\n",
        [("x", b"a"), ("message", b"b"), ("message", b"c")],
    ),
    "a name without data": (b"event: x\n\ndata: a\n\n", [("message", b"a")]),
    "no UTF-8": (b"data: a\xff\n\n", [("message", b"a\xff")]),
    "no signs": (b"data: a\0b\n\n", [("message", b"a\0b")]),
}


@pytest.mark.parametrize("name", CASES)
def test_events_are_the_same_wherever_their_bytes_are_cut(name: str) -> None:
    data, events = CASES[name]
    for size in range(1, len(data) + 1):
        stream = EventStream(1000, lambda reason, record: None)
        assert [
            each for at in range(0, len(data), size) for each in stream.feed(data[at : at + size])
        ] == events


@pytest.mark.parametrize(
    ("data", "last"),
    [
        (b"id: 1\ndata: a\n\ndata: b\n\n", "1"),
        (b"id: 1\n\n", "1"),
        (b"id: 1\n", None),
        (b"id: 1\n\nid\n\n", None),
        (b"id: 1\n\nid: 2\0\n\n", "1"),
        ("id: \u00fc1\n\n".encode(), "\u00fc1"),
        (b"id: 1\n\nid: a\x01b\n\n", "1"),
    ],
)
def test_the_last_id(data: bytes, last: str | None) -> None:
    stream = EventStream(1000, lambda reason, record: None)
    for _ in stream.feed(data):
        pass
    assert stream.last == last


def test_the_time_of_the_next_request() -> None:
    stream = EventStream(1000, lambda reason, record: None)
    assert [*stream.feed(b"retry: 1500\n\n")] == []
    assert stream.pause_s == 1.5
    assert [*stream.feed(b"retry: 1x\n\n")] == []
    assert stream.pause_s == 1.5


def test_a_large_event_is_refused_and_the_next_one_comes() -> None:
    refused = list[tuple[str, int]]()
    stream = EventStream(100, lambda reason, record: refused.append((reason, len(record))))
    long = b"data: " + b"x" * 5000 + b"\nid: 1\n\n"
    found = [each for at in range(0, len(long), 7) for each in stream.feed(long[at : at + 7])]
    assert [*found, *stream.feed(b"data: a\n\n")] == [("message", b"a")]
    assert [reason for reason, _ in refused] == ["an event must have at most 100 bytes"]
    assert refused[0][1] <= 1000
    several = EventStream(100, lambda reason, record: refused.append((reason, len(record))))
    assert [*several.feed(b"data: 12345678\n" * 20 + b"\n")] == []
    assert len(refused) == 2
    comments = EventStream(100, lambda reason, record: refused.append((reason, len(record))))
    assert [*comments.feed(b": 12345678\n" * 200 + b"data: a\n\n")] == [("message", b"a")]
    assert len(refused) == 2


def test_content_is_unpacked_a_piece_at_a_time() -> None:
    data = bytes(10_000_000)
    for encoding, packed in (("gzip", gzip.compress(data)), ("deflate", zlib.compress(data))):
        unpack = inflating(encoding)
        assert unpack is not None
        pieces = [
            len(piece) for at in range(0, len(packed), 1000) for piece in unpack(packed[at : at + 1000])
        ]
        assert sum(pieces) == len(data)
        assert max(pieces) <= 1 << 16
    assert inflating("br") is None


def answer(body: bytes, kind: str = "text/event-stream", more: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n{more}\r\n".encode() + body


async def read(answers: list[bytes], **options: Any) -> tuple[list[Any], list[str]]:
    """Return the rows of a server that gives these answers, one a request, and the heads of the requests."""
    heads = list[str]()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(answers.pop(0))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        source = ServerEvents(url, options={"trust_env": False}, **options)
        return [json.loads(each) async for data, _ in source.read(None) for each in data], heads
    finally:
        server.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("httpx", reason="httpx is not installed (the extra web)")
    monkeypatch.setattr(server_events, "_AGAIN_S", 0.0)


OVER = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"


def test_an_id_beyond_ascii_is_sent_and_the_stream_ends_with_204(caplog: pytest.LogCaptureFixture) -> None:
    rows, heads = run_async(read([answer('id: \u00fc1\ndata: {"ts": 1}\n\n'.encode()), OVER]))
    assert rows == [{"ts": 1}]
    assert "last-event-id: \u00fc1\r\n" in heads[1].lower()
    assert "the server has ended the stream (code 204)" in caplog.text


def test_a_packed_answer_is_read() -> None:
    packed = gzip.compress(b'data: {"ts": 1}\n\n')
    assert run_async(read([answer(packed, more="Content-Encoding: gzip\r\n"), OVER]))[0] == [{"ts": 1}]
    with pytest.raises(SetupError, match="its content is packed with 'br'"):
        run_async(read([answer(packed, more="Content-Encoding: br\r\n")]))
    with pytest.raises(SetupError, match="the compressed content is damaged"):
        run_async(read([answer(b"no gzip", more="Content-Encoding: gzip\r\n")]))


def test_a_page_of_html_is_no_stream_at_the_start_or_later() -> None:
    page = answer(b"<html>Please log in</html>", "text/html; charset=utf-8")
    for answers in ([page], [answer(b'data: {"ts": 1}\n\n'), page]):
        with pytest.raises(
            SetupError, match="its content is text/html, and must be text/event-stream: check the path"
        ):
            run_async(read(answers))


def test_a_redirection_is_followed() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    rows, heads = run_async(read([moved, answer(b'data: {"ts": 1}\n\n'), OVER]))
    assert rows == [{"ts": 1}]
    assert heads[1].startswith("GET /other ")
