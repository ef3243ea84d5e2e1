"""Serve: a graph over live sources, into sinks, for as long as it is wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from oop_engine.connectors.paths import check_paths
from oop_engine.connectors.sink import LiveSink
from oop_engine.core.graphs.graph import Graph
from oop_engine.service.arrival_clock import steady
from oop_engine.service.checkpoint_folder import CheckpointFolder
from oop_engine.service.dashboard.dashboard import Dashboard
from oop_engine.service.dashboard.watched import watched
from oop_engine.service.served import Served
from oop_engine.service.service import Service
from oop_engine.service.stopping import stopped_by_signals

__all__ = ["serve"]


async def serve(
    graph: Graph,
    sources: Mapping[str, Any],
    sinks: Mapping[str, Any],
    *,
    checkpoint: str | Path | CheckpointFolder | None = None,
    every_s: float = 10.0,
    drain: bool = False,
    dead_letters: LiveSink | None = None,
    without_state_of: Collection[str] = (),
    after_drain: bool = False,
    stop: asyncio.Event | None = None,
    signals: bool = True,
    check: bool = False,
    page: int | Dashboard | None = None,
    watch: Callable[[dict[str, Any]], None] | None = None,
) -> Served:
    """Run ``graph`` over live ``sources`` into ``sinks``, until the sources end or it is stopped.

    ``sources``: for each source of the graph a ``LiveSource``, or an iterable of pages, punctuation, Arrow data or
    rows: asynchronous, or a plain one, such as a generator that may block, which is read on a thread (``Generated``).
    ``sinks``: for each sink a ``LiveSink``, or a function that is called with each page.
    ``checkpoint``: a folder; a service that finds a checkpoint there goes on from it, and then results are neither lost
    nor repeated where sources can be read again, whenever the process dies.  Without one, a restart begins anew.
    ``every_s``: seconds between checkpoints, and so between the moments when results of a ``PartFiles`` become visible.
    ``dead_letters``: a sink of rows that cannot be read (``DEAD_LETTERS``).
    ``without_state_of``: nodes that have changed since the checkpoint, or are gone: their state is discarded, and the
    log shows how much; nodes that are new begin empty anyway.  ``after_drain``: go on behind a drain, or the end of all
    streams, from the same positions, with operators that begin empty.

    ``page``: a port of loopback (0: any that is free), where a browser finds how far each edge is and why a window is
    still open, and Prometheus its figures at ``/metrics``; None: no page.  ``watch`` is called with the same, as plain
    values, twice a second.

    SIGTERM and Ctrl-C (``signals``), or setting ``stop``, end the reading; a last checkpoint is taken, and windows
    that are not complete stay in it.  With ``drain`` the streams are ended instead, so all that is there comes out.
    Raises ``UsageError`` if the sources or sinks are not the graph's, or the checkpoint is of another graph, or was
    taken over by another process; ``SnapshotError`` if it is damaged; and all that operators, sources and sinks raise.
    """
    check_paths(sources, {**sinks, "dead letters": dead_letters}, checkpoint)
    service = Service(
        graph,
        sources,
        sinks,
        folder=CheckpointFolder(checkpoint) if isinstance(checkpoint, str | Path) else checkpoint,
        every_s=every_s,
        dead_letters=dead_letters,
        without_state_of=without_state_of,
        after_drain=after_drain,
        check=check,
        steady=steady,
    )
    shown = Dashboard(page) if isinstance(page, int) else page
    with stopped_by_signals(stop or asyncio.Event(), signals) as stopped:
        async with watched(service, shown, watch):
            return await service.run(stopped, drain=drain)
