"""Serve: a graph over live sources, into sinks, for as long as it is wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from oop_engine.connectors.sink import LiveSink
from oop_engine.core.graphs.graph import Graph
from oop_engine.service.checkpoint_folder import CheckpointFolder
from oop_engine.service.service import Served, Service
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
    stop: asyncio.Event | None = None,
    signals: bool = True,
    check: bool = False,
) -> Served:
    """Run ``graph`` over live ``sources`` into ``sinks``, until the sources end or it is stopped.

    ``sources``: for each source of the graph a ``LiveSource``, or an asynchronous iterable of pages, punctuation,
    Arrow data or dictionaries.  ``sinks``: for each sink a ``LiveSink``, or a function that is called with each
    page. ``checkpoint``: a folder; a service that finds a checkpoint there goes on from it, and then results are
    neither lost nor repeated where sources can be read again, whenever the process dies.  Without one, a restart
    begins anew. ``every_s``: seconds between checkpoints, and so between the moments when results of a
    ``PartFiles`` become visible. ``dead_letters``: a sink of rows that cannot be read (``DEAD_LETTERS``).
    ``without_state_of``: operators that may have changed since the checkpoint, and begin anew.

    SIGTERM and Ctrl-C (``signals``), or setting ``stop``, end the reading; a last checkpoint is taken, and windows
    that are not complete stay in it.  With ``drain`` the streams are ended instead, so all that is there comes out.
    Raises ``UsageError`` if the sources or sinks are not the graph's, or the checkpoint is of another graph, or was
    taken over by another process; ``SnapshotError`` if it is damaged; and all that operators, sources and sinks raise.
    """
    service = Service(
        graph,
        sources,
        sinks,
        folder=CheckpointFolder(checkpoint) if isinstance(checkpoint, str | Path) else checkpoint,
        every_s=every_s,
        dead_letters=dead_letters,
        without_state_of=without_state_of,
        check=check,
    )
    with stopped_by_signals(stop or asyncio.Event(), signals) as stopped:
        return await service.run(stopped, drain=drain)
