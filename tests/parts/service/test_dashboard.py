"""The page of a service without a browser: samples, requests, and visitors that are none."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Page, Schema, UsageError, serve
from oop_engine.errors import SetupError
from oop_engine.operators import (
    BoundedDisorder,
    Count,
    Meld,
    Ordered,
    PerGroup,
    Punctuate,
    Tumbling,
    WindowAggregate,
)
from oop_engine.runners.event_loop import run_async
from oop_engine.service import Dashboard
from oop_engine.service.dashboard import dashboard, http
from oop_engine.service.dashboard.metrics import prometheus
from oop_engine.service.dashboard.sampler import Sampler
from oop_engine.service.service import Service
from oop_engine.sinks import Gathered
from oop_engine.sources import Replayed
from tests.children import MOST_S

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")
MINUTE = 28_576_050  # since 1970
NAMES = ("east", "west")


def counts(policy: Any = None) -> Graph:
    graph = Graph("counts")
    edges = [
        graph.add(f"{name}-edge", Punctuate(policy or BoundedDisorder(5)), graph.source(name, SCHEMA))
        for name in NAMES
    ]
    count = WindowAggregate(Tumbling(60), {"n": Count()}, by=("key",))
    graph.sink("out", graph.add("per-minute", count, graph.add("both", Meld(2), *edges)))
    return graph


async def nothing(start: int) -> AsyncIterator[Any]:
    await asyncio.Event().wait()
    yield {}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let visitors of a busy machine be slow."""
    monkeypatch.setattr(dashboard, "_STALLED_S", MOST_S)
    monkeypatch.setattr(http, "_ANSWER_S", MOST_S)


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


async def push(service: Service, source: str, *times: int) -> None:
    rows = {"ts": [*times], "key": ["ab"[ts % 2] for ts in times]}
    inlet = service.inlets[source]
    await service.local.push(source, inlet._arrived(Page.of(SCHEMA, rows)))
    await service.local.settle()


@asynccontextmanager
async def sampled(policy: Any = None) -> AsyncIterator[tuple[Service, Sampler, Clock]]:
    """A service whose sources are silent, so that the test pushes; it is ten seconds past a minute."""
    service = Service(
        counts(policy), {name: Replayed(nothing) for name in NAMES}, {"out": Gathered()}, folder=None
    )
    await service.outlets.open("none", {}, 0)
    clock = Clock(MINUTE * 60 + 10.0)
    async with service.local:
        yield service, Sampler(service, clock), clock


def test_a_sample_tells_who_holds_a_window_and_since_when() -> None:
    async def main() -> None:
        async with sampled() as (service, sampler, clock):
            start = MINUTE * 60
            await push(service, "west", start, start + 9)
            sampler.take()
            assert sampler.last["why"][0]["holder"] == "east"
            clock.now += 30
            await push(service, "east", start, start + 35, start + 12)
            service.inlets["east"].unknown["x"] = 3
            sampler.take()
            [reason] = sampler.last["why"]
            assert reason["node"] == "per-minute"
            assert reason["way"] == ["both -> per-minute", "west-edge -> both"]
            assert reason["text"].partition(": ")[2] == (
                "it waits for 'west', whose bound is 2024-05-01T11:30:04Z, 26 s behind 'east'; "
                "'west' has sent nothing for 30 s"
            )
            east, west = sampler.last["sources"]
            assert (east["tuples"], east["rate"], east["silent_s"], east["behind"]) == (3, 0.1, 0.0, "0 s")
            assert (west["clock_s"], west["gap_s"], west["lag"], west["lag_of"]) == (
                36.0,
                26.0,
                36.0,
                "clock",
            )
            edges = {edge["name"]: edge for edge in sampler.last["edges"]}
            assert edges["both -> per-minute"]["input"] == edges["west-edge -> both"]["input"] == "west"
            assert edges["west-edge -> both"]["still_s"] == 30.0
            nodes = {node["name"]: node for node in sampler.last["nodes"]}
            assert nodes["east-edge"]["counts"]["late"] == 1
            assert nodes["per-minute"]["state"]["partials"] == 2
            assert nodes["per-minute"]["holder"] == "west"
            minute = ["2024-05-01T11:30:00Z", "2024-05-01T11:31:00Z"]
            assert nodes["per-minute"]["windows"] == [
                {"window": "Tumbling(60)", "number": 1, "oldest": minute, "newest": minute}
            ]
            assert [point["lag"]["west"] for point in sampler.points] == [None, 6.0, 36.0]
            json.dumps(sampler.last, allow_nan=False)
            lines = prometheus(sampler.last).splitlines()
            assert 'oop_bound_lag_seconds{edge="both -> per-minute",input="west"} 36.0' in lines
            assert 'oop_operator_events_total{operator="east-edge",event="late"} 1' in lines
            assert 'oop_sink_away{sink="out"} 0' in lines
            assert 'oop_source_unknown_columns_total{source="east",column="x"} 3' in lines
            service.local.leave()

    run_async(main())


def test_groups_with_bounds_of_their_own_are_listed() -> None:
    async def main() -> None:
        async with sampled(PerGroup(Ordered(), by=("key",))) as (service, sampler, _):
            await push(service, "west", 100, 201)
            await push(service, "east", 300, 201)
            sampler.take()
            [found] = [node["groups"] for node in sampler.last["nodes"] if node["name"] == "per-minute"]
            assert found == [{"group": "key='a'", "bound": "120 s"}, {"group": "key='b'", "bound": "240 s"}]
            assert all(source["lag_of"] == "sources" for source in sampler.last["sources"])
            service.local.leave()

    run_async(main())


async def asked(port: int, head: str) -> tuple[int, str]:
    """Return the status and the body of an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.replace("\n", "\r\n").encode() + b"\r\n\r\n")
    data = (await reader.read()).decode()
    writer.close()
    head, _, body = data.partition("\r\n\r\n")
    assert "access-control" not in head.lower()
    return int(head.split()[1]), body


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[Service, Sampler, Dashboard, int]]:
    async with sampled() as (service, sampler, _):
        page = Dashboard(token="t0ken")
        await page.open(service, sampler)
        try:
            yield service, sampler, page, int(page.address.rpartition(":")[2])
        finally:
            await page.close()
            service.local.leave()


def test_requests_get_files_figures_and_refusals() -> None:
    async def main() -> None:
        async with opened() as (service, _, page, port):
            host = f"Host: 127.0.0.1:{port}"
            assert page.link == f"http://127.0.0.1:{port}/#t0ken"
            for path in ("/", "/page.css", "/page.js", "/graph.js", "/uplot.js", "/uplot.css"):
                assert (await asked(port, f"GET {path} HTTP/1.1\n{host}"))[0] == 200
            assert json.loads((await asked(port, f"GET /state HTTP/1.1\n{host}"))[1])["graph"] == "counts"
            assert (
                "oop_up_seconds" in (await asked(port, f"GET /metrics HTTP/1.1\nHost: localhost:{port}"))[1]
            )
            evil = f"POST /pause HTTP/1.1\n{host}\nAuthorization: Bearer t0ken\nOrigin: http://evil.example"
            for head, status in {
                f"GET / HTTP/1.1\nHost: evil.example:{port}": 421,
                "GET / HTTP/1.1": 421,
                f"GET / HTTP/1.1\n{host}\n{host}": 400,
                f"GET / HTTP/1.1\n{host}\nX: {'x' * 20_000}": 400,
                "nonsense": 400,
                evil: 403,
                f"POST /pause HTTP/1.1\n{host}": 401,
                f"POST /pause HTTP/1.1\n{host}\nAuthorization: Bearer other": 401,
                f"GET /pause HTTP/1.1\n{host}\nAuthorization: Bearer t0ken": 405,
                f"POST / HTTP/1.1\n{host}": 405,
                f"GET /../page.py HTTP/1.1\n{host}": 404,
            }.items():
                assert (await asked(port, head))[0] == status, head
            assert not service.gate.paused

    run_async(main())


def test_a_visitor_who_does_not_read_waits_alone() -> None:
    async def main() -> None:
        async with opened() as (_, sampler, page, port):
            visitors = [await asyncio.open_connection("127.0.0.1", port, limit=1024) for _ in range(2)]
            for reader, writer in visitors:
                writer.write(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
                await reader.readuntil(b"\r\n\r\n")
            while sampler.looking < 2:
                await asyncio.sleep(0)
            (lazy, lazy_writer), (reader, writer) = visitors
            for _ in range(300):  # some megabytes
                sampler.take()
                line = b""
                while not line.startswith(b"data: "):
                    line = await long_line(reader)
            assert json.loads(line[6:])["graph"] == "counts"
            assert len(page._visits) == 2
            for each in (writer, lazy_writer):
                each.transport.abort()
            while sampler.looking:  # they are gone: samples are seldom again
                sampler.take()
                await asyncio.sleep(0)
            assert not lazy.at_eof()

    run_async(main())


def test_a_visitor_who_leaves_writes_nothing_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with opened() as (_, sampler, page, port):
            host = f"Host: 127.0.0.1:{port}\r\n\r\n"
            requests = ["", "GET / HT", f"GET / HTTP/1.1\r\n{host}", f"GET /uplot.js HTTP/1.1\r\n{host}"]
            for sent in [*requests, f"GET /events HTTP/1.1\r\n{host}"] * 4:
                for reset in (False, True):
                    visitor = socket.create_connection(("127.0.0.1", port))
                    visitor.sendall(sent.encode())
                    while not page._visits:
                        await asyncio.sleep(0)
                    if reset:
                        visitor.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    visitor.close()
                    while page._visits:  # of "/events" the next sample finds that the visitor is gone
                        sampler.take()
                        await asyncio.sleep(0)

    with caplog.at_level("DEBUG"):
        for run in (asyncio.run, run_async):  # loops differ in what they raise for a socket that is closed
            run(main())
    told = [record.getMessage() for record in caplog.records]
    assert [line for line in told if not line.startswith(("page: http", "Using selector"))] == []


async def long_line(reader: asyncio.StreamReader) -> bytes:
    found = b""
    while not found.endswith(b"\n"):
        try:
            found += await reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            found += await reader.readexactly(error.consumed)
    return found


def test_a_service_is_paused_and_gives_a_checkpoint_when_it_is_asked() -> None:
    page, results, samples = Dashboard(token="t0ken"), Gathered(), []
    go_on = asyncio.Event()

    async def feed(start: int) -> AsyncIterator[Any]:
        yield {"ts": 5, "key": "a"}
        await go_on.wait()
        yield {"ts": 200, "key": "a"}
        await asyncio.Event().wait()

    async def main() -> None:
        stop = asyncio.Event()
        sources = {name: Replayed(feed) for name in NAMES}
        options: dict[str, Any] = {"page": page, "watch": samples.append, "every_s": 1e6}
        serving = asyncio.create_task(
            serve(counts(), sources, {"out": results}, stop=stop, signals=False, **options)
        )
        port = int((await page.opened()).rpartition(":")[2])

        async def post(path: str) -> None:
            head = f"POST {path} HTTP/1.1\nHost: 127.0.0.1:{port}\nAuthorization: Bearer t0ken"
            assert (await asked(port, head))[0] == 202

        while not samples or samples[-1]["sources"][0]["tuples"] < 1:
            await asyncio.sleep(0.01)
        await post("/pause")
        assert samples[-1]["paused"]
        go_on.set()
        await post("/checkpoint")
        while samples[-1]["checkpoints"]["count"] < 1:
            await post("/pause")
        assert samples[-1]["sources"][0]["tuples"] == 1
        assert results.rows == []
        await post("/resume")
        while not results.rows:
            await post("/checkpoint")
        stop.set()
        await serving
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", port)

    run_async(main())
    assert results.rows == [{"key": "a", "window_start": 0, "window_end": 60, "n": 2}]


def test_a_port_that_cannot_be_had_is_told() -> None:
    async def main() -> None:
        server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        sources = {name: Replayed(nothing) for name in NAMES}
        with pytest.raises(SetupError, match=f"page: port {port} cannot be listened at"):
            await serve(counts(), sources, {"out": Gathered()}, page=port, signals=False)
        server.close()

    run_async(main())
    with pytest.raises(UsageError, match="must be a port"):
        Dashboard(1 << 16)
