"""Serve: a graph over live sources, into sinks, for as long as it is wanted."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Callable, Collection, Coroutine, Generator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from oop_engine.connectors.paths import check_paths
from oop_engine.connectors.sink import LiveSink
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Graph
from oop_engine.runners.event_loop import in_loop, run_async
from oop_engine.service.arrival_clock import steady
from oop_engine.service.checkpoint_folder import CheckpointFolder
from oop_engine.service.dashboard.dashboard import Dashboard
from oop_engine.service.dashboard.progress import start_line
from oop_engine.service.dashboard.watched import watched
from oop_engine.service.served import Served
from oop_engine.service.service import Service
from oop_engine.service.stopping import stopped_by_signals

__all__ = ["serve", "serve_forever"]

_LOG = logging.getLogger("oop_engine")


def serve(
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
    start_from: Mapping[str, Any] | None = None,
    stop: asyncio.Event | None = None,
    signals: bool = False,
    check: bool = False,
    page: int | Dashboard | None = None,
    watch: Callable[[dict[str, Any]], None] | None = None,
    progress_every_s: float | None = 60.0,
) -> Coroutine[Any, Any, Served]:
    """Run ``graph`` over live ``sources`` into ``sinks``, until the sources end or it is stopped; to be awaited.

    A script calls ``serve_forever``, which has the same parameters.

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
    ``start_from``: for some sources where this start reads on, in place of the position in the checkpoint:
    ``"earliest"`` (all that there is), ``"latest"`` (rows that come from now on), or a position, as JSON.  A log line
    shows it.  Rows may be missing or come twice then, so it is for one start: of a log that was made again, or was
    trimmed.

    ``page``: a port of loopback (0: any that is free), where a browser finds how far each edge is and why a window is
    still open, and Prometheus its figures at ``/metrics``; None: no page.  ``watch`` is called with the same, as plain
    values, twice a second.  ``progress_every_s``: seconds between lines of the log with rows, bound and late rows
    (``oop_engine.progress``, level INFO); None: no lines.

    Setting ``stop``, or with ``signals`` SIGTERM and Ctrl-C, ends the reading; a last checkpoint is taken, and windows
    that are not complete stay in it.  With ``drain`` the streams are ended instead, so all that is there comes out.
    Raises ``UsageError`` if the sources or sinks are not the graph's, or the checkpoint is of another graph, or was
    taken over by another process; ``SnapshotError`` if it is damaged; and all that operators, sources and sinks raise.
    """
    return _Serving(
        _serve(
            graph, sources, sinks,
            checkpoint=checkpoint, every_s=every_s, drain=drain, dead_letters=dead_letters,
            without_state_of=without_state_of, after_drain=after_drain, start_from=start_from, stop=stop,
            signals=signals, check=check, page=page, watch=watch, progress_every_s=progress_every_s,
        )
    )  # fmt: skip


def serve_forever(
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
    start_from: Mapping[str, Any] | None = None,
    signals: bool = True,
    check: bool = False,
    page: int | Dashboard | None = None,
    watch: Callable[[dict[str, Any]], None] | None = None,
    progress_every_s: float | None = 60.0,
) -> Served:
    """Run ``serve`` from a plain script, in an event loop of its own, until the sources end or Ctrl-C or SIGTERM.

    The parameters are those of ``serve``.  Raises ``UsageError`` inside a running event loop, and all that it raises.

    >>> import pyarrow as pa
    >>> from oop_engine import Graph, Schema
    >>> from oop_engine.sinks import Gathered
    >>> graph, found = Graph("copy"), Gathered()
    >>> graph.sink("out", graph.source("in", Schema({"ts": pa.int64()}, "ts", "s")))
    >>> serve_forever(graph, {"in": [{"ts": 1}, {"ts": 2}]}, {"out": found}).tuples, found.rows
    ({'in': 2}, [{'ts': 1}, {'ts': 2}])
    """
    if in_loop():
        msg = "serve_forever: an event loop runs here, as in a notebook: await serve(...) instead"
        raise UsageError(msg)
    return run_async(
        _serve(
            graph, sources, sinks,
            checkpoint=checkpoint, every_s=every_s, drain=drain, dead_letters=dead_letters,
            without_state_of=without_state_of, after_drain=after_drain, start_from=start_from, stop=None,
            signals=signals, check=check, page=page, watch=watch, progress_every_s=progress_every_s,
        )
    )  # fmt: skip


class _Serving(Coroutine[Any, Any, Served]):
    """The coroutine of ``serve``; dropped without ``await`` it warns with the way out."""

    def __init__(self, work: Coroutine[Any, Any, Served]) -> None:
        self._work, self._begun = work, False

    def __await__(self) -> Generator[Any, Any, Served]:
        self._begun = True
        return self._work.__await__()

    def send(self, value: Any) -> Any:
        """Go on."""
        self._begun = True
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        """Go on with an error."""
        self._begun = True
        return self._work.throw(*error)

    def close(self) -> None:
        """End it."""
        self._begun = True
        self._work.close()

    def __del__(self) -> None:
        if not self._begun:
            self._work.close()
            words = "serve(...) was not awaited, so nothing runs: await it, or call serve_forever(...) in a script"
            warnings.warn(words, RuntimeWarning, stacklevel=2)


async def _serve(
    graph: Graph,
    sources: Mapping[str, Any],
    sinks: Mapping[str, Any],
    *,
    checkpoint: str | Path | CheckpointFolder | None,
    stop: asyncio.Event | None,
    signals: bool,
    page: int | Dashboard | None,
    watch: Callable[[dict[str, Any]], None] | None,
    progress_every_s: float | None,
    drain: bool,
    **options: Any,
) -> Served:
    """Run a service; ``options`` are those of ``Service``."""
    check_paths(sources, {**sinks, "dead letters": options["dead_letters"]}, checkpoint)
    folder = CheckpointFolder(checkpoint) if isinstance(checkpoint, str | Path) else checkpoint
    stop = stop or asyncio.Event()
    if folder is not None:
        options["aside"] = partial(folder.aside, stop)
    service = Service(graph, sources, sinks, folder=folder, steady=steady, **options)
    shown = Dashboard(page) if isinstance(page, int) else page
    with stopped_by_signals(stop, signals, service.place) as stopped:
        async with watched(service, shown, watch, progress_every_s):
            address = None if shown is None else shown.address
            _LOG.info("%s", start_line(service, address, signals=signals))
            return await service.run(stopped, drain=drain)
