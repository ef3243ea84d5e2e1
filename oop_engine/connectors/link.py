"""Link: the way from a source or a sink to its server, which may be away for a while.

A source tells its link when its server answers, and when it is gone: one line each, however often is tried in between.
A client library that connects again by itself goes on alone; of the others the source raises ``UnreachableError``, and
is read again from the position behind the last data, as after a restart: nothing is lost, and nothing comes twice.

A sink raises ``UnreachableError`` too, and does the same again: to repeat it is harmless after a restart, so it is now.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TypeVar

from oop_engine.core.errors import SetupError
from oop_engine.system.stopwatch import wall

__all__ = ["ANSWER_S", "LeftError", "NotReadyError", "ServerLink", "UnreachableError", "again"]

T = TypeVar("T")

ANSWER_S = 10.0
"""Seconds after which a server that does not answer is away; sources and sinks read it when they ask."""

_LOG = logging.getLogger("oop_engine")
_FIRST_S, _MOST_S = 0.1, 10.0
_STEADY_S = 10.0
"""Seconds that a connection must last, so that the next pause is short again."""
_LEFT_S = 2.0
"""Seconds for which a service that is stopped waits for a server that is away."""
_TOLD_S = 60.0
"""Seconds between two lines of the log about losses of one connection."""


class UnreachableError(SetupError):
    """The server of a source or a sink does not answer, and may do so later."""


class NotReadyError(UnreachableError):
    """The server answers that it is not ready: it starts up, or has no room for one more client.

    So a service waits for it, also at its start.
    """


class LeftError(Exception):
    """A service was stopped while the server of a sink was away."""


class ServerLink:
    """Whether the server of a source, or of a sink, is there.

    ``name``: of either, in lines of the log.  ``away``: it was there, and is gone; ``losses``: how often it went.  A
    loss is a line of the log, and its end one, once a minute at most; the next line counts those in between.
    ``forgets``: data that it sends while nobody is connected cannot be had again, as the line at the end tells.
    """

    def __init__(self, name: str = "source") -> None:
        self.name = name
        self.away = self.forgets = False
        self.losses = 0
        self._known = False
        self._since = self._here_since = 0.0
        self._logged: float | None = None  # when the last line was written
        self._logs = False  # whether this loss has one
        self._untold = 0
        self._pause_s = _FIRST_S

    def here(self) -> None:
        """Record that the server answers."""
        if self.away or not self._known:
            self._here_since = wall()
        if self.away and self._logs:
            lost = "; data that it sent meanwhile are lost" if self.forgets else ""
            _LOG.warning("%s: is back after %.1f s%s", self.name, wall() - self._since, lost)
        self._known, self.away = True, False

    def gone(self, reason: object) -> None:
        """Record that the connection is lost, and why; a server that never answered does not count as lost."""
        if self._known and not self.away:
            self.away, self._since = True, wall()
            self.losses += 1
            if self._since - self._here_since >= _STEADY_S:
                self._pause_s = _FIRST_S
            self._log(reason)

    def waits(self, reason: object) -> None:
        """Log that the server is not ready yet, once a minute at most."""
        if not self.away and (self._logged is None or wall() - self._logged >= _TOLD_S):
            words = " ".join(str(reason).split())
            _LOG.warning("%s: the server is not ready (%s): trying again until it is", self.name, words)
            self._logged = wall()

    def _log(self, reason: object) -> None:
        self._logs = self._logged is None or self._since - self._logged >= _TOLD_S
        if not self._logs:
            self._untold += 1
            return
        words = " ".join(str(reason).split())
        more = f" ({self._untold:,} more losses since the last line)" if self._untold else ""
        _LOG.warning(
            "%s: the connection is lost (%s): trying again until it is back%s", self.name, words, more
        )
        self._logged, self._untold = self._since, 0

    async def pause(self) -> None:
        """Wait before the next try: 0.1 s, and twice as long each time, up to 10 s, until a connection lasts 10 s."""
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, _MOST_S)

    async def pause_until(self, stop: asyncio.Event) -> None:
        """Wait as ``pause`` does; no longer, once ``stop`` is set."""
        both = {asyncio.create_task(self.pause()), asyncio.create_task(stop.wait())}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in both:
                each.cancel()


async def _unless_stopped(work: Callable[[], Awaitable[T]], stop: asyncio.Event, link: ServerLink) -> T:
    """Return the result of one more try, which is given up ``_LEFT_S`` after ``stop``, as ``LeftError`` then."""
    trying, stopping = asyncio.ensure_future(work()), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({trying, stopping}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({trying}, timeout=_LEFT_S)
    finally:
        stopping.cancel()
        if not trying.done():
            trying.cancel()
            await asyncio.wait({trying})
    if trying.cancelled() and stop.is_set():
        raise LeftError(link.name) from UnreachableError(f"no answer within {_LEFT_S:g} s")
    return trying.result()


async def again(
    link: ServerLink,
    work: Callable[[], Awaitable[T]],
    stop: asyncio.Event,
    paused: Callable[[], AbstractContextManager[None]],
) -> T:
    """Return the result of some work of a sink, which is done again as long as its server is away.

    The block ``paused()`` lasts from the first failure on.  Raises ``LeftError`` if ``stop`` is set meanwhile; the
    work's own ``UnreachableError`` if its server never was there.
    """
    waiting = False
    with ExitStack() as away:
        while True:
            try:
                result = await (_unless_stopped(work, stop, link) if waiting else work())
            except UnreachableError as error:
                if not waiting:
                    away.enter_context(paused())
                waiting = True
                link.gone(error.__cause__ or error)
                if isinstance(error, NotReadyError):
                    link.waits(error.__cause__ or error)
                elif not link.away:
                    raise
                if stop.is_set():
                    raise LeftError(link.name) from error
            else:
                link.here()
                return result
            await link.pause_until(stop)
