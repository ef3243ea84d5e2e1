"""Who asks a server on a thread, and is cancelled, comes back when the thread has done its work: nothing works on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from oop_engine.connectors.registry.schemas import Schemas
from oop_engine.connectors.sources import kafka
from oop_engine.connectors.sources.kafka import Kafka
from oop_engine.core.errors import EngineError
from tests.sources import FILES, text_of


class Consumer:
    """A consumer whose methods take long; ``done`` has those that are over, in their order."""

    def __init__(self, slow: str) -> None:
        self._slow, self.inside, self.going, self.done = (
            slow,
            threading.Event(),
            threading.Event(),
            list[str](),
        )

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def work(*given: Any, **more: Any) -> None:
            if name == self._slow:
                self.inside.set()
                self.going.wait(5)
            self.done.append(name)

        return work


async def cancelled(work: Awaitable[Any], server: Consumer, times: int) -> None:
    """Cancel ``work`` while the server is asked, so many ``times``; the answer comes behind that."""
    task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
    await loop.run_in_executor(None, server.inside.wait, 5)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    loop.call_soon(server.going.set)
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("slow", ["poll", "close"])
def test_a_consumer_is_closed_when_nobody_polls_it(
    slow: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Consumer(slow)
    monkeypatch.setattr(kafka, "_library", lambda: SimpleNamespace(Consumer=None, KafkaException=EngineError))
    monkeypatch.setattr(kafka, "kafka_client", lambda *given: server)
    monkeypatch.setattr(Kafka, "_start", lambda *given: {"0": 0})

    async def main() -> None:
        source = Kafka("127.0.0.1:1", "topic")

        async def read() -> None:
            async for _ in source.read(None):
                break

        if slow == "close":
            monkeypatch.setattr(Kafka, "_start", lambda *given: 1 / 0)
        await cancelled(read(), server, times)

    asyncio.run(main())
    assert server.done == (["poll", "close"] if slow == "poll" else ["close"])


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("method", ["get_schema", "register_schema"])
def test_a_registry_is_asked_no_longer(method: str, times: int) -> None:
    server = Consumer(method)

    async def main() -> None:
        schemas = Schemas(server, "avro", "place")
        asking = (
            schemas.fetch_one(1) if method == "get_schema" else schemas.register("log-value", "{}", "JSON")
        )
        await cancelled(asking, server, times)

    asyncio.run(main())
    assert server.done == [method]


def test_all_work_on_threads_is_waited_for() -> None:
    """``asyncio.to_thread`` and executors come back while their thread is at work: ``system/on_thread`` does not."""
    words = ("asyncio.to_thread(self", "asyncio.to_thread(_", "await asyncio.to_thread", ".run_in_executor(")
    found = [str(path) for path in FILES if any(each in text_of(path) for each in words)]
    assert found == ["oop_engine/system/on_thread.py"]
