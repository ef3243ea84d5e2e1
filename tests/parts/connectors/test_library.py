"""Packages of connectors are loaded on a thread: one takes up to .3 s, for which other tasks of an application wait."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Schema
from oop_engine.connectors import library, link
from oop_engine.connectors.sources import server_events
from oop_engine.errors import SetupError
from oop_engine.extend import LiveSource
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import JetStreamSubject, PostgresTable, RedisEntries
from oop_engine.sources import JetStream, PostgresChanges, RedisStream, ServerEvents, WebSocket
from tests.parts.connectors.servers import IN_A_ROW, free_port

pytestmark = IN_A_ROW
SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
MADE: dict[str, tuple[str, Callable[[str], Any]]] = {
    "redis": ("redis.asyncio", lambda at: RedisStream(f"redis://{at}/0", "s")),
    "into redis": ("redis.asyncio", lambda at: RedisEntries(f"redis://{at}/0", "s")),
    "nats": ("nats", lambda at: JetStream(f"nats://{at}", "s")),
    "into nats": ("nats", lambda at: JetStreamSubject(f"nats://{at}", "s")),
    "web socket": ("websockets.asyncio.client", lambda at: WebSocket(f"ws://{at}/", again=False)),
    "events": ("httpx", lambda at: ServerEvents(f"http://{at}/", again=False)),
    "postgres": ("psycopg", lambda at: PostgresChanges(f"postgresql://me@{at}/db", "p", "s")),
    "into postgres": ("psycopg", lambda at: PostgresTable(f"postgresql://me@{at}/db", "t")),
}


async def begin(made: Any) -> None:
    if isinstance(made, LiveSource):
        await anext(aiter(made.read(None)))
    else:
        await made.open(SCHEMA, "run", [])


@pytest.mark.parametrize("name", MADE)
def test_a_package_is_loaded_on_a_thread(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, make = MADE[name]
    pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.setattr(link, "ANSWER_S", 0.3)
    threads = dict[str, int]()

    def noted(module: str) -> Any:
        threads.setdefault(module, threading.get_ident())
        return there.get(module) or import_module(module)

    there = {**sys.modules}
    monkeypatch.setattr(library, "import_module", noted)
    monkeypatch.delitem(sys.modules, package)
    with pytest.raises(SetupError):
        run_async(begin(make(f"127.0.0.1:{free_port()}")))
    assert threads[package] != threading.get_ident()


def test_certificates_of_a_client_are_read_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    httpx = pytest.importorskip("httpx", reason="httpx is not installed (the extra web)")
    threads, make = list[int](), httpx.AsyncClient

    def noted(**options: Any) -> Any:
        threads.append(threading.get_ident())
        return make(**options)

    monkeypatch.setattr(httpx, "AsyncClient", noted)
    monkeypatch.setattr(server_events, "_AGAIN_S", 0.01)
    with pytest.raises(SetupError):
        run_async(begin(ServerEvents(f"http://127.0.0.1:{free_port()}/")))
    assert threads
    assert threading.get_ident() not in threads
