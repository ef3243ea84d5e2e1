"""Prints, as JSON, the files that connectors of servers open on the thread of the event loop once rows have come.

``python -m tests.parts.connectors.loop_files_of_servers FOLDER KIND...``.  Each server goes away once, and comes back:
what a client does to connect again is watched, too.  A process of its own, since an audit hook stays for good.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from oop_engine import serve
from oop_engine.connectors import link
from oop_engine.connectors.sources import server_events
from oop_engine.lab import warm
from oop_engine.service.inlet import Inlet
from oop_engine.sinks import Gathered, PartFiles
from oop_engine.sources import Generated
from tests.parts.connectors.test_outages import KINDS, KafkaServer, Server, graph, outage
from tests.parts.connectors.test_outages_web import EventsOfIds, EventsServer, SocketServer
from tests.parts.service.loop_files import Watch
from tests.parts.service.store_server import served_store

OF_THE_TEST = tuple(f"test_outages.py:{name}" for name in ("send", "asked", "found", "begin", "lag", "end"))
WEB: dict[str, Callable[[Path], Server]] = {
    "web socket": lambda folder: SocketServer(folder, cuts=True),
    "events": lambda folder: EventsServer(folder, cuts=True),
    "events with ids": lambda folder: EventsOfIds(folder, cuts=False),
}
PLANTED = "a sink that writes a file"
STORES = ("an object store",)
SERVERS: dict[str, Callable[[Path], Server]] = {kind: made for kind, (made, _) in KINDS.items()} | WEB


class Writes(Gathered):
    """Shows that a file on the loop's thread is noticed."""

    async def write(self, epoch: int, page: Any) -> None:
        Path(os.devnull).read_bytes()
        await super().write(epoch, page)


class Planted(EventsServer):
    def sink(self) -> Any:
        return Writes()


async def of_server(server: Server, folder: Path, watch: Watch) -> None:
    await warm(graph())
    await outage(server, folder, dead_letters=PartFiles(folder / "dead", "jsonl"), page=0)
    watch.on = False
    if isinstance(server, KafkaServer):
        await server.stack.aclose()


async def of_store(folder: Path) -> None:
    """Take checkpoints in a store that answers as S3 does."""
    objects, stop = dict[str, bytes](), asyncio.Event()
    os.environ |= {"AWS_ALLOW_HTTP": "true"}
    os.environ |= dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"), "x")
    await warm(graph())

    async def rows() -> AsyncIterator[Any]:
        for ts in range(1 << 30):
            yield {"ts": ts}
            await asyncio.sleep(0.005)
            if sum(key.startswith("state/epochs") for key in objects) > 3 or len(objects) > 20:
                stop.set()

    with served_store(objects) as port:
        os.environ["AWS_ENDPOINT"] = f"http://127.0.0.1:{port}"
        await serve(
            graph(), {"in": Generated(rows())}, {"out": PartFiles(folder / "out", "jsonl")}, stop=stop,
            checkpoint="s3://bucket/state", every_s=0.02, signals=False,
        )  # fmt: skip


def main(folder: Path, kinds: list[str]) -> None:
    watch, found, put = Watch(), dict[str, list[str]](), Inlet.put
    watch.leave = OF_THE_TEST
    link.ANSWER_S, server_events._AGAIN_S = 10.0, 0.05

    async def first_put(inlet: Inlet) -> None:
        await put(inlet)
        watch.on = True

    Inlet.put = first_put  # type: ignore[assignment,method-assign]
    for number, kind in enumerate(kinds):
        (here := folder / str(number)).mkdir()
        with tempfile.TemporaryDirectory() as of_the_server:  # one that a server without rights reaches
            at = Path(of_the_server)
            work: Awaitable[None]
            if kind in STORES:
                work = of_store(here)
            else:
                made = Planted(at, cuts=True) if kind == PLANTED else SERVERS[kind](at)
                work = of_server(made, here, watch)
            asyncio.run(work)  # type: ignore[arg-type]
            watch.on, watch.found, found[kind] = False, [], watch.found
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
