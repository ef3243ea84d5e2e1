"""Prints, as JSON, the files that each way to run a graph opens on the thread of its event loop once rows have come.

``python -m tests.parts.service.loop_files FOLDER``.  A process of its own, since an audit hook stays for good.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine import Graph, Local, Schema, arun, serve
from oop_engine.lab import warm
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Tumbling, WindowAggregate
from oop_engine.service.dashboard.dashboard import Dashboard
from oop_engine.service.inlet import Inlet
from oop_engine.service.letters import retries
from oop_engine.sinks import DeltaFolder, Gathered, OneFile, PartFiles
from oop_engine.sources import FileTail, Generated, GrowingFolder, Journal, Pushed, Replayed, TcpLines

SCHEMA = Schema({"ts": pa.int64(), "host": pa.string()}, "ts", "s")
ROWS = [{"ts": n, "host": "ab"[n % 2]} for n in range(600)]
LINES = b"".join(b'{"ts": %d, "host": "a"}\n' % n for n in range(600)) + b'{"ts": "x", "host": "a"}\n'
EVENTS = ("open", "import", "os.", "shutil.", "glob.", "tempfile.", "subprocess.", "ctypes.dlopen")
HARMLESS = {"os.putenv", "os.unsetenv"}


class Watch:
    """Notes the audit events of files on the thread that made it, in a running event loop, while ``on``.

    ``leave``: functions whose calls are of the test itself, as ``file.py:name``.
    """

    def __init__(self) -> None:
        self.on, self.found, self.inside = False, list[str](), threading.local()
        self.thread, self.leave = threading.get_ident(), tuple[str, ...]()
        sys.addaudithook(self._hook)
        for name in ("stat", "fsync", "read", "write", "lstat"):  # of which no event tells
            setattr(os, name, self._noted(name, getattr(os, name)))

    def _noted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*given: Any, **more: Any) -> Any:
            self._hook(f"os.{name}", given)
            return call(*given, **more)

        return noted

    def _hook(self, event: str, given: Any) -> None:
        if (
            not self.on
            or not event.startswith(EVENTS)
            or event in HARMLESS
            or getattr(self.inside, "now", False)
        ):
            return
        if threading.get_ident() != self.thread or asyncio._get_running_loop() is None:
            return
        self.inside.now = True
        try:
            stack = traceback.extract_stack()
            if any(f"{Path(frame.filename).name}:{frame.name}" in self.leave for frame in stack):
                return
            frames = [frame for frame in stack if "oop_engine" in frame.filename]
            place = " < ".join(f"{Path(f.filename).name}:{f.lineno}:{f.name}" for f in reversed(frames[-4:]))
            self.found.append(f"{event} {str(given[0])[-60:] if given else ''} in {place}")
        finally:
            self.inside.now = False


def counts() -> Graph:
    graph = Graph("counts")
    edge = graph.add("edge", Punctuate(BoundedDisorder(5)), graph.source("log", SCHEMA))
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(60), {"n": Count()}, by=("host",)), edge))
    return graph


def log(folder: Path) -> Path:
    path = folder / "log.jsonl"
    path.write_bytes(LINES)
    return path


def rows_folder(folder: Path) -> Path:
    (made := folder / "rows").mkdir()
    for name in "ab":
        (made / f"{name}.jsonl").write_bytes(LINES)
    return made


async def coming(count: int = 0) -> AsyncIterator[Any]:
    for number, row in enumerate(ROWS[count:], count):
        yield row
        await asyncio.sleep(0.02 if number % 50 == 49 else 0)


async def reads_a_file(path: Path) -> AsyncIterator[Any]:
    """Shows that a file on the loop's thread is noticed."""
    async for row in coming():
        path.read_bytes()
        yield row


class Calls(Pushed):
    """Is pushed all rows by a task beside the service."""

    async def feed(self) -> None:
        await self.push(ROWS)
        for row in ROWS:
            await self.push(row)
        self.end()


async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(LINES)
    await writer.drain()
    writer.close()


SOURCES: dict[str, Callable[[Path], Any]] = {
    "rows": lambda folder: ROWS,
    "asynchronous rows": lambda folder: coming(),
    "a generator": lambda folder: iter(ROWS),
    "Generated": lambda folder: Generated(coming()),
    "Replayed": lambda folder: Replayed(coming),
    "FileTail": lambda folder: FileTail(log(folder), every_s=0.02),
    "GrowingFolder": lambda folder: GrowingFolder(rows_folder(folder), SCHEMA, every_s=0.02),
    "a source that reads a file": lambda folder: reads_a_file(log(folder)),
    "Pushed": lambda folder: Calls(),
    "Journal of Pushed": lambda folder: Journal(Calls(), folder / "journal"),
    "Journal of a feed": lambda folder: Journal(coming(), folder / "journal"),
    "TcpLines": lambda folder: TcpLines(
        "127.0.0.1", int((folder / "port").read_text()), "jsonl", connect=True
    ),
    "Journal of TcpLines": lambda folder: Journal(
        TcpLines("127.0.0.1", int((folder / "port").read_text()), "jsonl", connect=True), folder / "journal"
    ),
}
SINKS: dict[str, Callable[[Path], Any]] = {
    "a function": lambda folder: lambda page: None,
    "Gathered": lambda folder: Gathered(),
    "PartFiles of parquet": lambda folder: PartFiles(folder / "parts"),
    "PartFiles of jsonl": lambda folder: PartFiles(folder / "parts", "jsonl"),
    "PartFiles of csv.gz": lambda folder: PartFiles(folder / "parts", "csv.gz"),
    "PartFiles of arrow": lambda folder: PartFiles(folder / "parts", "arrow"),
    "OneFile": lambda folder: OneFile(folder / "out.jsonl"),
    "DeltaFolder": lambda folder: DeltaFolder(folder / "delta"),
}


async def served(watch: Watch, folder: Path, source: str, sink: str) -> None:
    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    (folder / "port").write_text(str(server.sockets[0].getsockname()[1]))
    given, page = SOURCES[source](folder), Dashboard()
    calls = given._source if isinstance(given, Journal) else given
    feeding = asyncio.create_task(calls.feed()) if isinstance(calls, Calls) else None
    visiting, stop = asyncio.create_task(visited(page)), asyncio.Event()
    if isinstance(given, FileTail | GrowingFolder):  # they follow until they are stopped
        asyncio.get_running_loop().call_later(0.3, stop.set)
    await serve(
        counts(), {"log": given}, {"out": SINKS[sink](folder)}, checkpoint=folder / "state", every_s=0.01,
        dead_letters=PartFiles(folder / "dead", "jsonl"), page=page, stop=stop,
    )  # fmt: skip
    watch.on = False
    await asyncio.gather(*filter(None, [feeding, visiting]))
    server.close()


async def visited(page: Dashboard) -> None:
    """Ask for all that the page of a service shows, as a browser does; it may be over meanwhile."""
    address = await page.opened()
    port = int(address.rpartition(":")[2])
    for path in ("/", "/page.css", "/page.js", "/metrics", "/state") * 3:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode()
            )
            await asyncio.wait_for(reader.read(), 5)
            writer.close()
        except (OSError, TimeoutError):
            return


async def pushed(watch: Watch) -> None:
    watch.on = False
    async with Local(counts(), lambda result: None) as local:
        for row in ROWS:
            await local.push_row("log", row)
            watch.on = True
        await local.push("log", ROWS)
        await local.snapshot()


async def ran(watch: Watch, feed: Any) -> None:
    await arun(counts(), {"log": feed})


async def after_one(watch: Watch, feed: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for row in feed:
        yield row
        watch.on = True


def each(watch: Watch) -> Iterator[Any]:
    for row in ROWS:
        yield row
        watch.on = True


def main(folder: Path) -> None:
    watch, found = Watch(), dict[str, list[str]]()
    put = Inlet.put

    async def first_put(inlet: Inlet) -> None:
        await put(inlet)
        watch.on = True

    Inlet.put = first_put  # type: ignore[assignment,method-assign]
    retries._EVERY_S = 0.02
    asyncio.run(warm(counts()))
    cases = {f"serve: {source}": (source, "a function") for source in SOURCES}
    cases |= {f"serve: {sink}": ("asynchronous rows", sink) for sink in SINKS}
    for number, (case, (source, sink)) in enumerate(cases.items()):
        (here := folder / str(number)).mkdir()
        asyncio.run(served(watch, here, source, sink))
        watch.on, watch.found, found[case] = False, [], watch.found
    for case, run in {
        "Local": lambda: pushed(watch), "arun over a generator": lambda: ran(watch, each(watch)),
        "arun over a live feed": lambda: ran(watch, after_one(watch, coming())),
    }.items():  # fmt: skip
        asyncio.run(run())
        watch.on, watch.found, found[case] = False, [], watch.found
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
