"""A service whose sinks have lost their servers ends all the same, with its first error, and nothing of it goes on."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from oop_engine import serve
from oop_engine.connectors.link import LeftError, ServerLink, UnreachableError, again
from oop_engine.errors import SetupError
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered, KafkaTopic
from oop_engine.system.on_thread import on_thread
from tests.children import MOST_S
from tests.parts.connectors.servers import IN_A_ROW
from tests.parts.connectors.test_outages import KINDS, KafkaServer, graph
from tests.simulation.cancelled import nothing_left

pytestmark = IN_A_ROW


class FirstError(Exception):
    """Of the source."""


def at_work(sink: KafkaTopic) -> Event:
    """Return an event of the next time that it sends: the client of Kafka waits long before it is sure of a loss."""
    inside, send = Event(), sink._send

    def noted(*given: Any) -> None:
        inside.set()
        send(*given)

    sink._send = noted  # type: ignore[method-assign,assignment]
    return inside


async def _ended(kind: str, how: str, folder: Path, *, durable: bool) -> BaseException | None:
    """Serve into a server that goes away; return how the service ended, where nothing else is left."""
    server, stop, going = KINDS[kind][0](folder), asyncio.Event(), asyncio.Event()

    async def feed() -> AsyncIterator[Any]:
        n = 0
        while not going.is_set():
            yield {"ts": (n := n + 1)}
            await asyncio.sleep(0.01)
        if how == "it fails":
            raise FirstError
        await asyncio.Event().wait()

    sink = server.sink()
    async with server.up():
        await server.begin()
        more: dict[str, Any] = {"checkpoint": folder / "state"} if durable else {}
        serving = asyncio.ensure_future(
            serve(graph(), {"in": feed()}, {"out": sink}, every_s=0.05, stop=stop, signals=False, **more)
        )
        while not sink.link._known:  # it is open
            assert not serving.done(), serving.result()
            await asyncio.sleep(0.02)
    if isinstance(sink, KafkaTopic):
        await on_thread(at_work(sink).wait, MOST_S)
    while not (sink.link.away or isinstance(sink, KafkaTopic)):
        await asyncio.sleep(0.02)
    going.set()
    if how == "it is stopped":
        stop.set()
    elif how == "it is cancelled":
        serving.cancel()
    await asyncio.wait({serving}, timeout=MOST_S / 2)
    assert serving.done(), "it does not end"
    if isinstance(server, KafkaServer):
        await server.stack.aclose()
    await nothing_left()
    return asyncio.CancelledError() if serving.cancelled() else serving.exception()


CASES = [
    (kind, how, durable)
    for kind in ("redis", "nats", "postgres", "kafka")
    for how, durable in (
        ("it fails", True), ("it is cancelled", True), ("it is stopped", True), ("it is stopped", False),
    )
    if (kind, how) != ("kafka", "it is stopped")  # which waits for the first answer that is late
]  # fmt: skip


@pytest.mark.slow(keep=3)
@pytest.mark.parametrize(("kind", "how", "durable"), CASES)
def test_a_service_ends_though_the_server_of_its_sink_is_gone(kind: str, how: str, durable: bool) -> None:
    """Clients wait for an answer for as long as they may, which is longer than the limit of this test."""
    pytest.importorskip(KINDS[kind][1], reason=f"the package of {kind} is not installed")
    with tempfile.TemporaryDirectory() as folder:
        error = run_async(_ended(kind, how, Path(folder), durable=durable))
    if how == "it fails":
        assert isinstance(error, FirstError)
    elif how == "it is cancelled":
        assert isinstance(error, asyncio.CancelledError)
    elif durable:
        assert error is None
    else:
        assert isinstance(error, SetupError)
        assert "stopped while its server is away, so without a checkpoint results are lost" in str(error)


async def _silent(folder: Path) -> None:
    """Stop a service whose broker has fallen silent while offsets of its source are committed."""
    server, stop, sink = KafkaServer(folder), asyncio.Event(), Gathered()
    source, commits = server.source(), list[Any]()
    acknowledge = source.acknowledge

    async def noted(position: Any) -> None:
        await acknowledge(position)
        commits.append(position)

    source.acknowledge = noted  # type: ignore[method-assign]
    async with server.up():
        await server.begin()
        await server.send(1)
        serving = asyncio.ensure_future(
            serve(
                graph(), {"in": source}, {"out": sink}, every_s=0.05, stop=stop, signals=False,
                checkpoint=folder / "state",
            )
        )  # fmt: skip
        while not sink.rows:
            assert not serving.done(), serving.result()
            await asyncio.sleep(0.02)
        server.wire.still = True
        before = len(commits)
        while len(commits) < before + 5:
            await asyncio.sleep(0.02)
        stop.set()
        await asyncio.wait({serving}, timeout=MOST_S / 2)
        assert serving.done(), "it does not end"
        serving.result()
        assert sink.rows == [{"ts": 1}]
    await server.stack.aclose()
    await nothing_left()


def test_a_service_ends_though_the_broker_of_its_source_is_silent() -> None:
    """A consumer that has a commit under way cannot be closed; so it has none."""
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed (the extra kafka)")
    with tempfile.TemporaryDirectory() as folder:
        run_async(_silent(Path(folder)))


def test_a_try_that_gets_no_answer_is_given_up_once_the_service_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("oop_engine.connectors.link._LEFT_S", 0.01)
    link, stop, tries, ended = ServerLink("sink 'out'"), asyncio.Event(), [0], list[bool]()
    link.here()

    async def work() -> None:
        tries[0] += 1
        if tries[0] < 3:
            raise UnreachableError("it is gone")
        asyncio.get_running_loop().call_soon(stop.set)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    class Held:
        def __enter__(self) -> None:
            """It has nothing."""

        def __exit__(self, *error: object) -> None:
            """It has nothing."""

    with pytest.raises(LeftError):
        run_async(again(link, work, stop, Held))
    assert ended == [True]
