"""Inlet: one source of a service, read into the graph.

One task reads, another hands over: data that come while the graph is busy, or while the source has more at once, wait,
and go in together.  So a source that gives a row a message costs some microseconds a row, not a page's hundreds.  A
source that gathers its data by itself needs one task, and its data are answered a turn of the event loop sooner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any

import numpy as np

from oop_engine.connectors.link import ServerLink
from oop_engine.connectors.pace import read_on
from oop_engine.connectors.parts.calls import check_apart, part_in_words
from oop_engine.connectors.parts.checked_source import behind_data, check_data, check_source, rest_of
from oop_engine.connectors.parts.json_value import FIXED
from oop_engine.connectors.source import LiveSource, Position
from oop_engine.connectors.sources.generated import Generated, is_feed
from oop_engine.core.close_names import renamed
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Plan, Stream
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.schema import Schema
from oop_engine.runners.feeds.forms import RING
from oop_engine.runners.feeds.of_now import of_now, parts_of_now
from oop_engine.runners.local import Local
from oop_engine.service.dead_letters import DeadLetters
from oop_engine.service.gate import Gate
from oop_engine.service.letters.letter_folder import Retry
from oop_engine.service.letters.parts import Parts, records_in
from oop_engine.service.letters.record_reader import Piece, RecordReader
from oop_engine.system.on_thread import on_thread

__all__ = ["Inlet", "inlets_of", "noted", "places_of"]


class Inlet:
    """Source ``name`` of a graph; ``given``: a ``LiveSource``, or a feed (``Generated``).

    ``position``: behind the last data that went in; ``ended``: nothing more comes; ``tuples``: how many came;
    ``nulls``: by column, how many of them had no value in it; ``unknown``: by name, how many rows had a column that the
    schema does not have.
    ``took`` is awaited each time that data went in.  ``headers``: the lines of names there (``RecordReader``).
    Raises ``UsageError`` if it is none, or its format is not known.
    """

    def __init__(
        self, name: str, given: Any, schema: Schema, dead: DeadLetters, local: Local, took: Callable[[], Awaitable[Any]]
    ) -> None:  # fmt: skip
        if not isinstance(given, LiveSource):
            if not is_feed(given):
                got = f"the class {given.__name__}: give an object of it" if isinstance(given, type) else ""
                got = got or type(given).__name__
                msg = f"source {name!r}: must be a LiveSource or an iterable of rows; got {got}"
                raise UsageError(msg)
            given = Generated(given)
        self.name, self.source, self.place = name, given, part_in_words("source", name, given)
        check_source(self.place, given)
        self.position: Position = None
        self.headers: list[str] = []
        self.ended = False
        self.tuples = 0
        self.nulls: dict[str, int] = {}
        self._local, self._took = local, took
        self._reader = RecordReader(name, given, schema, dead)
        self._parts = Parts(self._reader)
        self._alone = asyncio.Lock()  # who reads aside, or once more
        given.link = ServerLink(f"source {name!r}")
        self._last = NEVER
        self._waiting: list[Piece] = []
        self._rows = 0  # that wait, about
        self._over = False
        self._filled, self._emptied = asyncio.Event(), asyncio.Event()
        self._clock: Callable[[], int] | None = None

    @property
    def unknown(self) -> dict[str, int]:
        """Columns that the schema does not have, and how many rows had them."""
        return self._reader.unknown

    async def read(self, gate: Gate, clock: Callable[[], int] | None) -> None:
        """Push all that comes; data go in as a whole, with their position, or not at all.

        ``clock`` shows arrivals (None: nobody needs them).
        """
        self._clock = clock
        if self.position is not None:
            self._reader.begin(self.headers)
        if self.source.gathers:
            await self._read(gate)
            return
        async with asyncio.TaskGroup() as both:
            both.create_task(self._hand_over(gate), name=f"source {self.name}, handed over")
            await self._read(None)

    async def _read(self, gate: Gate | None) -> None:
        """Read to the end; ``gate``: hand over, too, and read on behind that."""
        before, filled, waits = self.position, self._filled, self._reader.waits
        replayable, kind = self.source.replayable, None
        async with aclosing(read_on(self.source, before)) as pieces:  # type: ignore[type-var]
            async for data, given in pieces:
                if waits:
                    await self._reader.ready(data)
                if data.__class__ is not kind:
                    check_data(self.place, self.source, data, given)
                    kind = data.__class__
                cancelled = None
                if data.__class__ is list and self.source.lends:
                    data, cancelled = await _copied(data)
                plain = given.__class__ in FIXED and (given is not None or not replayable)
                after = given if plain else behind_data(self.place, self.source, given)
                self._waiting.append((data, before, after))
                before = after
                if cancelled is not None:
                    raise cancelled
                if gate is not None:
                    async with gate.inside():
                        await self.put()
                    continue
                self._rows += 1 if data.__class__ is dict else records_in(data)
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

    async def finish(self, *, drain: bool) -> None:
        """Push all that came before the source was closed; ``drain``: the stream ends here, which ends a last line."""
        before = self._waiting[-1][2] if self._waiting else self.position
        left = rest_of(self.place, "rest", self.source.rest())
        left += rest_of(self.place, "last_data", self.source.last_data()) if drain else []
        for data, after in left:
            if self._reader.waits and not await self._reader.is_ready(data):
                break  # its position stays, so it comes with the next start
            self._waiting.append((data, before, checked := behind_data(self.place, self.source, after)))
            before = checked
        await self.put()

    async def put(self) -> None:
        """Push all that waits; nobody else does so meanwhile."""
        pieces, self._waiting, self._rows = self._waiting, [], 0
        self._emptied.set()
        if not pieces:
            return
        first, aside = True, self._parts.is_long(pieces)
        parts = self._parts.messages(pieces)
        while (messages := await self._read_aside(parts) if aside else next(parts, None)) is not None:
            if not first:
                await asyncio.sleep(0)  # other tasks of the loop have their turn
            first = False
            for message in messages:  # one alone is answered at once; several go through the graph together
                await self._local.push(self.name, self._arrived(message), at_once=len(messages) == 1)
        _, _, self.position = pieces[-1]
        self.headers = self._reader.headers
        await self._took()

    async def _read_aside(self, parts: Iterator[list[Message]]) -> list[Message] | None:
        """Return the next part, read on a thread: a message of 100,000 rows would hold up the loop."""
        async with self._alone:
            return await on_thread(next, parts, None)

    async def retry(self, letter: Retry) -> None:
        """Push a dead letter once more."""
        await self._reader.ready_again(letter)
        async with self._alone:
            messages = list(self._reader.again(letter))
        for message in messages:
            await self._local.push(self.name, self._arrived(message))
        await self._took()

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


async def _copied(rows: list[Any]) -> tuple[Any, asyncio.CancelledError | None]:
    """Return a long list as it is now, copied some rows a turn; a task that is cancelled copies the rest at once."""
    cancelled, parts = None, parts_of_now(rows, RING)
    if parts is None:  # one row of many values
        return of_now(rows), None
    copied = list[Any]()
    for part in parts:
        copied += part
        try:
            await asyncio.sleep(0) if cancelled is None else None
        except asyncio.CancelledError as error:
            cancelled = error
    return copied, cancelled


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
        msg = f"graph {plan.name!r}: has the sources {', '.join(names)}; got {got}{renamed(sources, names)}"
        raise UsageError(msg)
    check_apart({f"source {name!r}": sources[name] for name in names})
    return {name: Inlet(name, sources[name], plan.schema(Stream(name)), dead, local, took) for name in names}


def places_of(inlets: Mapping[str, Inlet]) -> dict[str, LiveSource]:
    """Return the sources, by their names in messages."""
    return {f"source {name!r}": inlet.source for name, inlet in inlets.items()}


def noted(error: BaseException | None, inlets: Mapping[str, Inlet]) -> BaseException | None:
    """Return the error that ends a service, with a note of how far each source had been read into the graph."""
    known = {name: inlet.position for name, inlet in inlets.items() if inlet.position is not None}
    if error is not None and known:
        error.add_note(
            "read until then: " + ", ".join(f"source {n!r} to {at!r:.200}" for n, at in known.items())
        )
    return error
