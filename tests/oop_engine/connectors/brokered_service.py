"""A service over a broker that is killed: ``python -m tests.oop_engine.connectors.brokered_service KIND PORT FOLDER``.

After each acknowledgement it prints the source, and how many of its messages are in a checkpoint.  It ends when it gets
SIGTERM; with a fourth argument, ``drain``, it ends its streams then.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from oop_engine import LiveSource, Mqtt, PartFiles, RedisStream, serve
from oop_engine.connectors.sources import mqtt, redis_stream
from oop_engine.runners.event_loop import run_async
from tests.oop_engine.service.killed_service import LOGS, counts


def telling(source: LiveSource, name: str, count: str | int) -> LiveSource:
    """Let a source print how far a checkpoint has it."""
    acknowledge = source.acknowledge

    async def told(position: Any) -> None:
        await acknowledge(position)
        print(name, position[count], flush=True)

    source.acknowledge = told  # type: ignore[method-assign]
    return source


def source_of(kind: str, port: int, name: str) -> LiveSource:
    if kind == "mqtt":
        return telling(Mqtt("127.0.0.1", f"logs/{name}", f"service-{name}", port=port), name, "count")
    return telling(RedisStream(f"redis://127.0.0.1:{port}/0", name), name, 1)


def main(kind: str, port: int, folder: Path, *, drain: bool) -> None:
    mqtt._MOST = redis_stream._MOST = 20  # small pieces, so that there are many moments to die at
    served = serve(
        counts(),
        {name: source_of(kind, port, name) for name in LOGS},
        {"out": PartFiles(folder / "out")},
        checkpoint=folder / "state",
        every_s=0.01,
        drain=drain,
    )
    assert run_async(served).over == drain


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), drain="drain" in sys.argv[4:])
