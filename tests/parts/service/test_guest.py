"""A service inside an application: signals, sinks, threads and positions stay those of the application."""

from __future__ import annotations

import asyncio
import datetime
import logging
import os
import signal
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import ContractError, Graph, Local, Operator, Page, Schema, UsageError, serve
from oop_engine.connectors.parts.json_value import json_value
from oop_engine.core.operator import Emission
from oop_engine.core.saved import Saved
from oop_engine.errors import OperatorError, SnapshotError
from oop_engine.extend import LiveSink, State
from oop_engine.operators import Ordered, Punctuate
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered
from oop_engine.system.on_thread import on_thread

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")


def copies(*sinks: str, operator: Operator | None = None) -> Graph:
    graph = Graph("copies")
    stream = graph.add("edge", Punctuate(Ordered()), graph.source("in", SCHEMA))
    stream = stream if operator is None else graph.add("mine", operator, stream)
    for sink in sinks or ("out",):
        graph.sink(sink, stream)
    return graph


async def one_row() -> AsyncIterator[Any]:
    yield {"ts": 1}
    await asyncio.Event().wait()


async def feed(silent: asyncio.Event | None = None) -> AsyncIterator[Any]:
    yield {"ts": 1}
    if silent is not None:
        silent.set()
        await asyncio.Event().wait()


# signals


@pytest.mark.parametrize("asked", [False, True])
def test_the_application_keeps_its_handlers(asked: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> bool:
        heard, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, heard.set)
        await serve(copies(), {"in": feed()}, {"out": Gathered()}, signals=asked)
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(60):
            await heard.wait()
        loop.remove_signal_handler(signal.SIGTERM)
        return heard.is_set()

    assert asyncio.run(main())
    assert ("SIGTERM has a handler of the application" in caplog.text) == asked


def test_one_signal_stops_all_services_of_a_loop() -> None:
    async def main() -> list[bool]:
        silent = [asyncio.Event(), asyncio.Event()]
        services = [serve(copies(), {"in": feed(each)}, {"out": Gathered()}, signals=True) for each in silent]
        tasks = [asyncio.create_task(one) for one in services]
        for each in silent:
            await each.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(60):
            return [(await task).over for task in tasks]

    before = signal.getsignal(signal.SIGTERM)
    assert asyncio.run(main()) == [False, False]
    assert signal.getsignal(signal.SIGTERM) is before


# sinks


class Noting(LiveSink):
    def __init__(self, write: Exception | None = None, close: Exception | None = None) -> None:
        self.fails_to_write, self.fails_to_close, self.closed = write, close, False

    async def write(self, epoch: int, page: Page) -> None:
        if self.fails_to_write is not None:
            raise self.fails_to_write

    async def close(self) -> None:
        self.closed = True
        if self.fails_to_close is not None:
            raise self.fails_to_close


def raised(a: Noting, b: Noting) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011  (which one is the question)
        run_async(serve(copies("a", "b"), {"in": feed()}, {"a": a, "b": b}))
    return caught.value


def test_all_sinks_are_closed_and_the_first_error_is_raised() -> None:
    a, b = Noting(close=RuntimeError("close of a")), Noting(close=RuntimeError("close of b"))
    error = raised(a, b)
    assert b.closed
    assert str(error) == "close of a"
    assert error.__notes__ == [
        "sink 'a': raised by close",
        "sink 'b': raised by close: RuntimeError: close of b",
    ]


def test_the_error_of_the_graph_is_raised_before_that_of_close() -> None:
    a, b = Noting(write=ValueError("write of a"), close=RuntimeError("close of a")), Noting()
    error = raised(a, b)
    assert "write of a" in str(error)
    assert b.closed
    assert error.__notes__[-1] == "sink 'a': raised by close: RuntimeError: close of a"


# threads


def test_a_caller_that_is_cancelled_waits_for_its_thread() -> None:
    inside, going, done = threading.Event(), threading.Event(), []

    def work() -> None:
        inside.set()
        going.wait()
        done.append(True)

    async def main() -> None:
        task = asyncio.create_task(on_thread(work))
        await asyncio.to_thread(inside.wait)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        asyncio.get_running_loop().call_soon(going.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert done

    asyncio.run(main())


def test_work_on_a_thread_has_its_value_and_its_error() -> None:
    assert asyncio.run(on_thread(lambda a: a + 1, 1)) == 2
    with pytest.raises(ZeroDivisionError):
        asyncio.run(on_thread(lambda: 1 // 0))


# positions


def test_a_position_stays_as_it_was_given() -> None:
    given = {"0": [1, {"a": 2}], "1": (3,)}
    kept = json_value(given, "a position")
    given["0"][1]["a"] = 9  # type: ignore[index]
    assert kept == {"0": [1, {"a": 2}], "1": (3,)}


# operators with a state


class Total(Operator):
    """Counts rows, and shows it."""

    def open(self) -> None:
        self.count = 0

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        self.count += len(page)
        yield 0, page

    def state(self) -> State:
        return State(groups=1, nbytes=8)


class LoadsNothing(Total):
    def save(self) -> dict[str, Any]:
        return {"count": self.count}


class SavesNone(Total):
    def save(self) -> Any:
        return None

    def load(self, state: Saved) -> None: ...


class SavesASet(SavesNone):
    def save(self) -> dict[str, Any]:
        return {"counts": {self.count}}


class SavesAll(Total):
    def save(self) -> dict[str, Any]:
        return {"count": np.array([self.count])}

    def load(self, state: Saved) -> None:
        self.count = int(state.integers("count", (1,))[0])


class LoadsAnother(SavesAll):
    def load(self, state: Saved) -> None:
        self.counted = int(state.integers("count", (1,))[0])


class LoadsOneMore(SavesAll):
    def load(self, state: Saved) -> None:
        self.count = int(state.integers("count", (1,))[0]) + 1

    def save(self) -> dict[str, Any]:
        return {"count": self.count}


class LoadsAnotherName(SavesAll):
    def load(self, state: Saved) -> None:
        self.counted = state.integer("counts")


class LoadFails(SavesAll):
    def load(self, state: Saved) -> None:
        raise RuntimeError("no")


class SavesFloats(SavesAll):
    def save(self) -> dict[str, Any]:
        return {"count": float(self.count)}


class SavesKeysOfTwo(SavesAll):
    def save(self) -> dict[str, Any]:
        return {"count": {(1, "a"): 2}}


class SavesNothing(SavesAll):
    def save(self) -> dict[str, Any]:
        return {}


class SaveFails(SavesAll):
    def save(self) -> dict[str, Any]:
        raise RuntimeError("no")


class CountsNothing(SavesAll):
    def counts(self) -> Any:
        return None


class HalfABlock(SavesAll):
    def state(self) -> State:
        return State(nbytes=1.5)  # type: ignore[arg-type]


def saving(value: Any) -> type[Operator]:
    return type("Mine", (SavesAll,), {"save": lambda self: {"count": value}})


def holds_itself() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


SNAPSHOT = "its state cannot be saved: cannot put "


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Total, "operator 'mine' (Total): keeps a state, State(tuples=0, partials=0, groups=1, nbytes=8), and"),
        (LoadsNothing, "operator 'mine' (LoadsNothing): saves count, and loads nothing"),
        (SavesNone, "operator 'mine' (SavesNone): save must return a dictionary of the parts of its state; got None"),
        (SavesASet, "operator 'mine' (SavesASet): its state cannot be saved: "),
        (LoadsAnother, "load must take back all that save returned; 'count' was array([1]) when it was saved, and is"),
        (LoadsOneMore, "operator 'mine' (LoadsOneMore): load cannot read the state of save, so a restart would fail"),
        (LoadsAnotherName, "there must be 'counts'; got 'count'"),
        (LoadFails, "load cannot read the state of save, so a restart would fail: "),
        (SavesFloats, "operator 'mine' (SavesFloats): load cannot read the state of save"),
        (SavesKeysOfTwo, "operator 'mine' (SavesKeysOfTwo): "),
        (SavesNothing, "keeps a state, State(tuples=0, partials=0, groups=1, nbytes=8), and save returns nothing of i"),
        (SaveFails, "operator 'mine' (SaveFails): save failed: RuntimeError: no"),
        (CountsNothing, "operator 'mine' (CountsNothing): counts() must return whole numbers by their names"),
        (HalfABlock, "operator 'mine' (HalfABlock): state() must return a State of whole numbers from 0 on; got State"),
        (saving(object()), f"operator 'mine' (Mine): {SNAPSHOT}object into a snapshot: it takes None, bool, int"),
        (saving(deque([1])), f"{SNAPSHOT}deque into a snapshot: give list(...)"),
        (saving(datetime.date(2026, 1, 1)), f"{SNAPSHOT}date into a snapshot: give its integer, or isoformat()"),
        (saving(pa.array([1])), f"{SNAPSHOT}Int64Array into a snapshot: give an array of NumPy"),
        (saving(np.ma.array([1, 2], mask=[False, True])), f"{SNAPSHOT}MaskedArray into a snapshot: give its filled()"),
        (saving("\ud800"), "a text must be UTF-8; got '\\ud800': give text.encode(...)"),
        (saving(holds_itself()), f"'mine' (Mine): {SNAPSHOT}a dict into a snapshot that holds itself"),
        (saving(np.array([{}], object)), f"{SNAPSHOT}ndarray into a snapshot: give an array of numbers or texts"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)  # fmt: skip
def test_a_state_that_a_restart_would_lose_is_found_at_the_first_checkpoint(
    kind: type[Operator], words: str, tmp_path: Path
) -> None:
    async def main() -> None:
        stop = asyncio.Event()
        graph, sinks = copies(operator=kind()), {"out": lambda page: stop.set()}
        await serve(graph, {"in": one_row()}, sinks, checkpoint=tmp_path, stop=stop)

    with pytest.raises((SnapshotError, ContractError, OperatorError)) as caught:
        run_async(main())
    assert words in str(caught.value)


def test_without_a_checkpoint_no_state_has_to_be_saved() -> None:
    async def main() -> None:
        stop = asyncio.Event()
        graph, sinks = copies(operator=Total()), {"out": lambda page: stop.set()}
        assert not (await serve(graph, {"in": one_row()}, sinks, stop=stop)).over

    run_async(main())


class Remembers(Operator):
    """Keeps the last page, and shows no state."""

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        self.last = page.times.tolist()
        yield 0, page


def test_attributes_that_nobody_saves_are_named_in_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        stop = asyncio.Event()
        graph, sinks = copies(operator=Remembers()), {"out": lambda page: stop.set()}
        await serve(graph, {"in": one_row()}, sinks, checkpoint=tmp_path, stop=stop)

    run_async(main())
    assert "operator 'mine' (Remembers): last changed since open, and save stores nothing" in caplog.text


def test_a_state_that_is_saved_goes_into_the_checkpoint(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    run_async(serve(copies(operator=SavesAll()), {"in": feed()}, {"out": Gathered()}, checkpoint=tmp_path))


def test_a_push_from_another_thread_is_refused_and_has_a_way() -> None:
    graph, found = copies(), []

    async def main() -> str:
        async with Local(graph, found.append) as local:

            def elsewhere() -> str:
                with pytest.raises(UsageError) as caught:
                    asyncio.run(local.push("in", {"ts": [1]}))
                local.push_threadsafe("in", Page.of(SCHEMA, {"ts": [2]})).result(60)
                return str(caught.value)

            return await asyncio.to_thread(elsewhere)

    assert "from here call push_threadsafe(source, message).result()" in asyncio.run(main())
    assert [row for each in found if isinstance(each.message, Page) for row in each.message.to_pylist()] == [
        {"ts": 2}
    ]
    with pytest.raises(UsageError, match=r"its block \(`async with Local\(...\)`\) has not begun"):
        asyncio.run(_outside(graph))


async def _outside(graph: Graph) -> None:
    Local(graph, print).push_threadsafe("in", {"ts": [1]})
