"""Breaks: a sink is led through all of them, and does its work again after each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pyarrow as pa

from oop_engine import Page, Schema
from oop_engine.connectors.link import UnreachableError
from oop_engine.extend import LiveSink
from tests.parts.connectors.wire import Wire, wired

__all__ = ["SCHEMA", "through_breaks"]

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")


def page(*times: int) -> Page:
    return Page.of(SCHEMA, {"ts": [*times], "key": ["a"] * len(times)})


async def through_breaks(
    port: int,
    sink_at: Callable[[int], LiveSink],
    last: Callable[[bytes], bool],
    at: int = 0,
    away_s: float = 0.0,
) -> None:
    """Send the times 1 to 6, two an epoch, to the server at ``port``.

    In the first epoch the wire is cut before each of its two parts.  In the second it is cut behind the data that are
    the ``last`` of some work: it is done then, and the sink does not know.  ``at``: the port of the wire; ``away_s``:
    how long it stays cut.
    """
    async with wired(port, at) as wire:
        sink = sink_at(wire.here)
        await sink.open(SCHEMA, "run", [])
        for epoch in range(3):
            await sink.write(epoch, page(2 * epoch + 1, 2 * epoch + 2))
            given = epoch
            for work in (sink.prepare, sink.commit):
                if epoch == 0:
                    await wire.cut()
                elif epoch == 1:
                    wire.last = last
                given = json.loads(json.dumps(await done(partial(work, given), wire, away_s)))
                wire.last = None
        await sink.close()
        assert wire.cuts


async def done(work: Callable[[], Awaitable[Any]], wire: Wire, away_s: float) -> Any:
    """Return the result of work, which is done again once the wire is mended."""
    reasons = list[str]()
    while True:
        try:
            found = await work()
        except UnreachableError as error:
            reasons.append(str(error.__cause__))
            await asyncio.sleep(away_s)
            await wire.mend()
        else:
            assert "Error{" not in " ".join(reasons), "a line of the log has them"
            return found
