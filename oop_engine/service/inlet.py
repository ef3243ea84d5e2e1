"""Inlet: one source of a service, read into the graph.

One task reads, another hands over: data that come while the graph is busy, or while the source has more at once, wait,
and go in together.  So a source that gives a row a message costs some microseconds a row, not a page's hundreds.  A
source that gathers its data by itself needs one task, and its data are answered a turn of the event loop sooner.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from itertools import accumulate
from typing import Any

import numpy as np

from oop_engine.connectors.formats import MESSAGE_FORMATS
from oop_engine.connectors.link import ServerLink, read_on
from oop_engine.connectors.source import LiveSource, Position
from oop_engine.connectors.sources.generated import Generated, is_feed
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Plan, Stream
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.schema import Schema
from oop_engine.runners.feeds.forms import RING
from oop_engine.runners.local import Local
from oop_engine.service.dead_letters import DeadLetters
from oop_engine.service.gate import Gate

__all__ = ["Inlet", "inlets_of"]

_LOG = logging.getLogger("oop_engine")
_NAMED = 5
_LINE = 64
"""Bytes of data that count as a row."""


_Piece = tuple[Any, Position, Position]
"""Data of a source, and the positions before and behind them; a plain tuple, for each message makes one."""


class _RefusedError(Exception):
    """A row of several pieces cannot be read."""


class Inlet:
    """Source ``name`` of a graph; ``given``: a ``LiveSource``, or a feed (``Generated``).

    ``position``: behind the last data that went in; ``ended``: nothing more comes; ``tuples``: how many came;
    ``nulls``: by column, how many of them had no value in it; ``unknown``: by name, how many rows had a column that the
    schema does not have.
    ``took`` is awaited each time that data went in.
    Raises ``UsageError`` if it is none, or its format is not known.
    """

    def __init__(
        self, name: str, given: Any, schema: Schema, dead: DeadLetters, local: Local, took: Callable[[], Awaitable[Any]]
    ) -> None:  # fmt: skip
        if not isinstance(given, LiveSource):
            if not is_feed(given):
                msg = f"source {name!r}: must be a LiveSource or an iterable of rows; got {type(given).__name__}"
                raise UsageError(msg)
            given = Generated(given)
        if given.format not in MESSAGE_FORMATS:
            msg = f"source {name!r}: unknown message format {given.format!r}: use one of {', '.join(MESSAGE_FORMATS)}"
            raise UsageError(msg)
        if given.by_lines and not MESSAGE_FORMATS[given.format].by_lines:
            known = ", ".join(each for each, found in MESSAGE_FORMATS.items() if found.by_lines)
            msg = f"source {name!r}: is read by lines; got format {given.format!r}, which has none: use one of {known}"
            raise UsageError(msg)
        self.name, self.source = name, given
        self.position: Position = None
        self.ended = False
        self.tuples = 0
        self.nulls: dict[str, int] = {}
        self._logged = False  # of columns that the schema does not have
        self._dead, self._local, self._took = dead, local, took
        given.unreadable = self._unreadable = dead.of(name)
        given.link = ServerLink(f"source {name!r}")
        self._format = MESSAGE_FORMATS[given.format](schema, f"source {name!r}", self._refused)
        self._format.unknown.allow(given.adds)
        self._probes = False  # whether a row that is refused ends the reading
        self._letters: list[tuple[str, str, int]] | None = None  # of one record: reason, text, rows
        self._last = NEVER
        self._waiting: list[_Piece] = []
        self._rows = 0  # that wait, about
        self._over = False
        self._filled, self._emptied = asyncio.Event(), asyncio.Event()
        self._clock: Callable[[], int] | None = None

    @property
    def unknown(self) -> dict[str, int]:
        """Columns that the schema does not have, and how many rows had them."""
        return self._format.unknown.counts

    async def read(self, gate: Gate, clock: Callable[[], int] | None) -> None:
        """Push all that comes; data go in as a whole, with their position, or not at all.

        ``clock`` shows arrivals (None: nobody needs them).
        """
        self._clock = clock
        if self._format.headed and self.position is not None:
            list(self._format.messages(self.source.headed()))
        if self.source.gathers:
            await self._read(gate)
            return
        async with asyncio.TaskGroup() as both:
            both.create_task(self._hand_over(gate), name=f"source {self.name}, handed over")
            await self._read(None)

    async def _read(self, gate: Gate | None) -> None:
        """Read to the end; ``gate``: hand over, too, and read on behind that."""
        before, filled = self.position, self._filled
        async with aclosing(read_on(self.source, before)) as pieces:  # type: ignore[type-var]
            async for data, behind in pieces:
                self._waiting.append((data, before, behind))
                before = behind
                if gate is not None:
                    async with gate.inside():
                        await self.put()
                    continue
                self._rows += 1 if data.__class__ is dict else _rows(data)
                if not filled.is_set():
                    filled.set()
                if self._rows >= RING:
                    self._emptied.clear()
                    await self._emptied.wait()
        self._over = True
        self._filled.set()
        if gate is not None:
            await self._hand_over(gate)

    async def _hand_over(self, gate: Gate) -> None:
        """Put in all that waits whenever the reading task waits for more, to the end."""
        while not self.ended:
            await self._filled.wait()
            self._filled.clear()
            async with gate.inside():
                await self.put()
                if self._over and not self._waiting:
                    await self._local.end(self.name)
                    self.ended = True

    async def finish(self) -> None:
        """Push all that came before the source was closed."""
        before = self._waiting[-1][2] if self._waiting else self.position
        for data, behind in self.source.rest():
            self._waiting.append((data, before, behind))
            before = behind
        await self.put()

    async def put(self) -> None:
        """Push all that waits; nobody else does so meanwhile."""
        pieces, self._waiting, self._rows = self._waiting, [], 0
        self._emptied.set()
        if not pieces:
            return
        messages = self._messages(pieces)
        for message in messages:  # one alone is answered at once; several go through the graph together
            await self._local.push(self.name, self._arrived(message), at_once=len(messages) == 1)
        _, _, self.position = pieces[-1]
        if self.unknown and not self._logged:
            self._log_unknown()
        await self._took()

    def _log_unknown(self) -> None:
        """Log the columns that were left out, once, as soon as the first row has one."""
        self._logged = True
        names, known = ", ".join(map(repr, [*self.unknown][:_NAMED])), ", ".join(self._format.schema.names)
        words = "source %r: rows have %s, which the schema has not (left out, and counted); it has %s"
        _LOG.warning(words, self.name, names, known)

    def _messages(self, pieces: list[_Piece]) -> list[Message]:
        """Return the messages in some pieces, read together; by halves where a row is refused, to tell its position."""
        joined = self._format.joined([data for data, _, _ in pieces]) if len(pieces) > 1 else None
        if joined is not None:
            if (together := self._all_of(joined)) is not None:
                return together
            half = len(pieces) // 2
            return self._messages(pieces[:half]) + self._messages(pieces[half:])
        return [message for piece in pieces for message in self._of_piece(piece)]

    def _of_piece(self, piece: _Piece) -> list[Message]:
        """Return the messages in a piece; refused records are buried one by one if there is a sink for them."""
        data = piece[0]
        if not self._dead.kept:
            return list(self._format.messages(data))
        if (together := self._all_of(data)) is not None:
            return together
        records = self._format.records(data)
        sizes = map(len, records) if isinstance(data, bytes) else [1] * len(records)
        starts = accumulate(sizes, initial=0)
        return self._of_records(list(zip(starts, records, strict=False)), piece)

    def _of_records(self, records: list[tuple[int, Any]], piece: _Piece) -> list[Message]:
        """Return the messages in records of a piece, each with its start there; by halves down to those refused."""
        data: Any = [record for _, record in records]
        if isinstance(piece[0], bytes):
            data = b"".join(data)
        elif not isinstance(piece[0], list | tuple):
            data = piece[0]
        if len(records) == 1:
            return self._of_record(records[0], data, piece)
        if (together := self._all_of(data)) is not None:
            return together
        half = len(records) // 2
        return self._of_records(records[:half], piece) + self._of_records(records[half:], piece)

    def _of_record(self, record: tuple[int, Any], data: Any, piece: _Piece) -> list[Message]:
        """Return the messages in one record, and bury it, or those of its rows that are refused."""
        self._letters = []
        found = list(self._format.messages(data))
        letters, self._letters = self._letters, None
        skipped, raw = record
        raw = raw.removesuffix(b"\n") if isinstance(raw, bytes) and self._format.by_lines else raw
        place = self.source.place(piece[1], piece[2], skipped)
        for reason, text, rows in letters:
            self._unreadable(reason, text if found else raw, rows, place=place, part=bool(found))
        return found

    def _all_of(self, data: Any) -> list[Message] | None:
        """Return the messages in some data; None: a row is refused."""
        unknown, known = (
            dict(self.unknown),
            {name: getattr(self._format, name) for name in self._format.remembers},
        )
        self._probes = True
        try:
            return list(self._format.messages(data))
        except _RefusedError:  # the rows are read again
            self._format.unknown.counts = unknown
            vars(self._format).update(known)
            return None
        finally:
            self._probes = False

    def _refused(self, reason: str, record: str, rows: int) -> None:
        if self._probes:
            raise _RefusedError
        if self._letters is not None:
            self._letters.append((reason, record, rows))
        else:
            self._unreadable(reason, record, rows)

    def _arrived(self, message: Message) -> Message:
        """Return a page with the moment of its arrival, which never goes back."""
        if not isinstance(message, Page):
            return message
        self.tuples += len(message)
        if not message.whole:
            self._count_nulls(message)
        if self._clock is None:
            return message.without_arrival()
        self._last = max(self._last, self._clock())
        return Page(message.schema, message.batch, np.full(len(message), self._last, np.int64))

    def _count_nulls(self, page: Page) -> None:
        for name, column in zip(page.schema.fields.names, page.batch.columns, strict=True):
            if column.null_count:
                self.nulls[name] = self.nulls.get(name, 0) + column.null_count


def inlets_of(
    plan: Plan,
    sources: Mapping[str, Any],
    dead: DeadLetters,
    local: Local,
    took: Callable[[], Awaitable[Any]],
) -> dict[str, Inlet]:
    """Return the inlets of a graph, by source.  Raises ``UsageError`` unless ``sources`` are the graph's."""
    names = [node.name for node in plan.of_kind("source")]
    if {*names} != {*sources}:
        got = ", ".join(sources) or "none"
        msg = f"graph {plan.name!r}: has the sources {', '.join(names)}; got {got}"
        raise UsageError(msg)
    return {name: Inlet(name, sources[name], plan.schema(Stream(name)), dead, local, took) for name in names}


def _rows(data: Any) -> int:
    """Return about how many rows there are in some data."""
    if isinstance(data, bytes):
        return len(data) // _LINE + 1
    return len(data) if isinstance(data, list | tuple | Page) else 1
