"""Lines of a service: how it starts, how far it is, and a call that is forgotten."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Schema, UsageError, serve
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Tumbling, WindowAggregate
from oop_engine.runners.event_loop import run_async
from oop_engine.service import serve_forever
from oop_engine.sinks import Gathered
from oop_engine.sources import Replayed

SCHEMA = Schema({"ts": pa.timestamp("s", "UTC")}, "ts", "s")
START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def counts() -> Graph:
    graph = Graph("g")
    edge = graph.add("edge", Punctuate(BoundedDisorder("5 s")), graph.source("in", SCHEMA))
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling("10 s"), {"n": Count()}), edge))
    return graph


def test_a_service_logs_its_start_and_its_progress(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "oop_engine")

    async def feed(start: int) -> AsyncIterator[Any]:
        for ts in (0, 30, 3):
            yield {"ts": START + timedelta(seconds=ts)}
        while "1 late" not in caplog.text:
            await asyncio.sleep(0.001)

    options: dict[str, Any] = {"checkpoint": tmp_path, "progress_every_s": 0.02, "every_s": 99}
    run_async(serve(counts(), {"in": Replayed(feed)}, {"out": Gathered()}, signals=True, **options))
    lines = [record.getMessage() for record in caplog.records]
    start = "graph 'g': reads in (Replayed); writes out (Gathered); "
    assert start + f"a checkpoint every 99 s in {tmp_path}; Ctrl-C stops" in lines
    line = [line for line in lines if "rows/s" in line][-1]
    assert line.startswith("3 rows, ")
    assert line.endswith(" rows/s, bound 2026-03-01T09:00:25Z, 1 late, 0 checkpoints")


def test_a_script_needs_no_event_loop() -> None:
    found = Gathered()
    served = serve_forever(counts(), {"in": [{"ts": START}]}, {"out": found}, signals=False)
    assert served.over
    assert [row["n"] for row in found.rows] == [1]

    async def inside() -> None:
        serve_forever(counts(), {"in": []}, {"out": found})

    with pytest.raises(UsageError, match=r"await serve\(...\) instead"):
        run_async(inside())


def test_serve_that_is_not_awaited_warns_with_the_way_out() -> None:
    way_out = r"was not awaited.*await it, or call serve_forever\(...\) in a script"
    with pytest.warns(RuntimeWarning, match=way_out):
        (lambda: serve(counts(), {"in": []}, {"out": Gathered()}) and None)()


async def test_serve_may_be_a_task_or_be_awaited() -> None:
    for made in (asyncio.create_task, lambda serving: serving):
        assert (await made(serve(counts(), {"in": []}, {"out": Gathered()}, signals=False))).over  # type: ignore[operator]
