"""Pace: notices a source that holds up the event loop between its data, and lets the loop run before it does so.

A source that awaits its data gives way to the event loop by itself.  One that sleeps or reads without asyncio does not:
its rows would wait, with all other sources, until it gives way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from oop_engine.connectors.link import NotReadyError, UnreachableError
from oop_engine.connectors.parts.checked_source import no_pair, pieces_of
from oop_engine.connectors.source import BEGIN_AGAIN, LiveSource, Position
from oop_engine.core.errors import UsageError
from oop_engine.runners.faults import blame_part
from oop_engine.system.knobs import knob
from oop_engine.system.stopwatch import wall

__all__ = ["Pace", "read_on"]

_LOG = logging.getLogger("oop_engine")
_FIRST = knob(__name__, "_FIRST", 16)
"""Data after each of which the event loop runs, until the source has shown that it does not block; twice as many each
time that it has."""
_TURNS = knob(__name__, "_TURNS", 10)
"""Turns of the event loop in which a row that came alone is answered."""
_SLICE_S, _BLOCK_S = 0.005, 0.05


class Pace:
    """The pace of ``source``: ``ask`` before it is asked for data, ``came`` when they came, then ``give_way``.

    ``turned``: the event loop has run since ``ask``.  While it has not, ``came`` need not be called before ``due``, in
    seconds of ``wall``, nor ``ask``: so many rows that come together cost next to nothing.
    """

    def __init__(self, source: LiveSource) -> None:
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._awaits, self._blocks = False, False
        self.turned, self._since, self.due = True, wall(), 0.0
        self._left, self._again = _FIRST, _FIRST

    def ask(self) -> None:
        """Note that the source is asked for more."""
        self._since = wall()
        self.due = 0.0 if self._left else self._since + _SLICE_S
        if self.turned:
            self.turned = False
            self._loop.call_soon(self._turn)

    def came(self) -> bool:
        """Note that data came; return whether ``give_way`` has to be awaited before the source is asked again."""
        if self.turned:
            self._awaits = True
        elif (passed := wall() - self._since) >= _BLOCK_S:
            self._blocked(passed)
        if self._left:
            self._left -= 1
            return True
        return not self.turned

    async def give_way(self) -> None:
        """Yield to the event loop, so that arrived rows are processed."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    def _turn(self) -> None:
        self.turned = True

    def _blocked(self, for_s: float) -> None:
        """Note that the source has held up the loop; one that never awaits can be read on a thread instead."""
        source, name = self._source, self._source.link.name
        self._again *= 2  # it may have been a pause of the machine, such as a collection of garbage
        self._left = self._again
        if source.moves and not self._awaits:
            if not source.blocks:
                words = "%s: blocks the event loop (%.2f s between its data): it is read on a thread from now on; a "
                _LOG.warning(words + "plain generator (def, not async def) is from its start", name, for_s)
            source.blocks, self._left = True, 0
        elif not self._blocks:
            self._blocks = True
            words = (
                "%s: blocks the event loop (%.2f s between its data), so nothing else runs meanwhile: await "
            )
            _LOG.warning(words + "asyncio.to_thread(...), or give a plain generator (def)", name, for_s)


async def read_on(source: LiveSource, position: Position) -> AsyncIterator[tuple[Any, Position]]:
    """Yield all of a source from ``position`` on, also behind a time in which its server was away.

    Its errors get a note with the source and the position behind its last data.
    """
    pace, place = Pace(source), f"{source.link.name} ({type(source).__name__})"
    if position is not None and not source.is_position(position):
        msg = f"{place}: position {position!r:.200} is none of this kind of source: {BEGIN_AGAIN}"
        raise UsageError(msg)
    while True:
        try:
            async with aclosing(pieces_of(place, source, position)) as pieces:  # type: ignore[type-var]
                pace.ask()
                async for piece in pieces:
                    if not isinstance(piece, tuple) or len(piece) != 2:
                        raise no_pair(place, piece)
                    data, after = piece
                    known = not pace.turned and wall() < pace.due
                    alone = not known and pace.came()
                    yield data, after
                    position = after
                    if alone:
                        await pace.give_way()
                    if not known or pace.turned:
                        pace.ask()
            return
        except UnreachableError as error:
            source.link.gone(error.__cause__ or error)
            if isinstance(error, NotReadyError):
                source.link.waits(error.__cause__ or error)
            elif not source.link.away:
                raise
        except asyncio.CancelledError as error:
            blame_part(f"{place}: read, behind position {position!r:.200}", error)
        except Exception as error:
            error.add_note(f"{place}: raised by read, behind position {position!r:.200}")
            raise
        await source.link.pause()
