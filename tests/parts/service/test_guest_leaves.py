"""How a service leaves its application: handlers are given back, and all is closed, whoever cancels or fails."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from oop_engine import Page, serve
from oop_engine.errors import OperatorError
from oop_engine.extend import LiveSink
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered
from tests.parts.service.test_guest import copies, feed

Run = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def _own_handlers() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    yield
    signal.signal(signal.SIGTERM, before)


def of_the_loop(heard: asyncio.Event) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, heard.set)


def of_the_process(heard: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    signal.signal(signal.SIGTERM, lambda *_: loop.call_soon_threadsafe(heard.set))


@pytest.mark.parametrize("run", [asyncio.run, run_async], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("install", [of_the_loop, of_the_process])
def test_a_handler_that_comes_while_a_service_runs_stays(
    install: Callable[[asyncio.Event], None], run: Run
) -> None:
    async def main() -> None:
        silent, stop, heard = asyncio.Event(), asyncio.Event(), asyncio.Event()
        service = serve(copies(), {"in": feed(silent)}, {"out": Gathered()}, signals=True, stop=stop)
        task = asyncio.create_task(service)
        await silent.wait()
        install(heard)
        stop.set()
        await task
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(60):
            await heard.wait()
        if install is of_the_loop:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)

    run(main())


async def fails() -> AsyncIterator[Any]:
    yield {"ts": 1}
    msg = "no more"
    raise LookupError(msg)


@pytest.mark.parametrize("run", [asyncio.run, run_async], ids=["asyncio", "uvloop"])
def test_handlers_come_back_behind_an_error(run: Run) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(LookupError):
        run(serve(copies(), {"in": fails()}, {"out": Gathered()}, signals=True))
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("run", [asyncio.run, run_async], ids=["asyncio", "uvloop"])
def test_a_service_that_begins_while_another_one_stops_hears_the_next_signal(run: Run) -> None:
    async def main() -> list[bool]:
        closing, going = asyncio.Event(), asyncio.Event()

        class Slow(Gathered):
            async def close(self) -> None:
                closing.set()
                await going.wait()

        silent = [asyncio.Event(), asyncio.Event()]
        first = asyncio.create_task(serve(copies(), {"in": feed(silent[0])}, {"out": Slow()}, signals=True))
        await silent[0].wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await closing.wait()
        second = asyncio.create_task(
            serve(copies(), {"in": feed(silent[1])}, {"out": Gathered()}, signals=True)
        )
        await silent[1].wait()
        going.set()
        await first
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(60):
            return [first.result().over, (await second).over]

    assert run(main()) == [False, False]


def test_a_handler_that_python_does_not_know_stays(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    asyncio.run(serve(copies(), {"in": feed()}, {"out": Gathered()}, signals=True))
    assert "SIGTERM has a handler of the application" in caplog.text


class Part(LiveSink):
    """Notes that it was closed; ``error`` is raised there, behind a wait for ``going``."""

    def __init__(self, error: BaseException | None = None, going: asyncio.Event | None = None) -> None:
        self.error, self.going, self.begun, self.closed = error, going, asyncio.Event(), False

    async def write(self, epoch: int, page: Page) -> None:
        pass

    async def close(self) -> None:
        self.begun.set()
        if self.going is not None:
            await self.going.wait()
        self.closed = True
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("error", [asyncio.CancelledError(), GeneratorExit(), ValueError()], ids=repr)
def test_all_are_closed_whatever_the_first_one_raises(error: BaseException) -> None:
    a, b = Part(error), Part()
    with pytest.raises((OperatorError, GeneratorExit, ValueError)) as caught:
        asyncio.run(serve(copies("a", "b"), {"in": feed()}, {"a": a, "b": b}))
    assert b.closed
    assert "sink 'a': raised by close" in caught.value.__notes__


@pytest.mark.parametrize("before", [False, True], ids=["when-closing", "before"])
def test_who_is_cancelled_waits_until_all_are_closed(before: bool) -> None:
    async def main() -> tuple[Part, Part]:
        going, silent = asyncio.Event(), asyncio.Event()
        a, b = Part(going=going), Part()
        source = feed(silent) if before else feed()
        task = asyncio.create_task(serve(copies("a", "b"), {"in": source}, {"a": a, "b": b}))
        if before:
            await silent.wait()
            task.cancel()
        await a.begun.wait()
        task.cancel()
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(going.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        return a, b

    assert [part.closed for part in asyncio.run(main())] == [True, True]


def test_a_close_that_hangs_is_left_when_its_caller_insists() -> None:
    async def main() -> tuple[Part, Part]:
        a, b = Part(going=asyncio.Event()), Part()
        task = asyncio.create_task(serve(copies("a", "b"), {"in": feed()}, {"a": a, "b": b}))
        await a.begun.wait()
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        return a, b

    assert [part.closed for part in asyncio.run(main())] == [False, True]


def test_an_error_of_close_of_a_cancelled_service_is_a_line(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        silent = asyncio.Event()
        task = asyncio.create_task(serve(copies(), {"in": feed(silent)}, {"out": Part(ValueError("no way"))}))
        await silent.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with caplog.at_level(logging.WARNING, "oop_engine"):
        asyncio.run(main())
    assert "sink 'out': raised by close: ValueError: no way" in caplog.text


def test_an_error_tells_how_far_each_source_was_read() -> None:
    class Full(Gathered):
        async def prepare(self, epoch: int) -> Any:
            msg = "no room"
            raise OSError(msg)

    with pytest.raises(OSError, match="no room") as caught:
        asyncio.run(serve(copies(), {"in": feed()}, {"out": Full()}))
    assert caught.value.__notes__ == [
        "sink 'out' (Full): raised by prepare",
        "read until then: source 'in' to 1",
    ]
