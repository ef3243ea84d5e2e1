"""Outlets: the sinks of a service, an epoch at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any
from zlib import crc32

from oop_engine.connectors.link import ServerLink, UnreachableError, again
from oop_engine.connectors.parts.calls import called, check_apart, part_in_words
from oop_engine.connectors.parts.checked_sink import check_function, check_sink, prepared_of
from oop_engine.connectors.sink import LiveSink, Prepared
from oop_engine.connectors.sinks.callback import Callback
from oop_engine.core.close_names import renamed
from oop_engine.core.errors import SetupError, UsageError
from oop_engine.core.graphs.graph import Plan
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.runners.dispatch import Result
from oop_engine.service.dead_letters import DEAD_LETTERS, DeadLetters
from oop_engine.service.letters.sink_rows import pages_of_letter

__all__ = ["DEAD", "Outlets"]

DEAD = ""
"""The name of the sink of dead letters: no sink of a graph has an empty one."""


class Outlets:
    """The sinks of ``plan``, by name; a function is one that is called with each page.

    ``epoch``: the number of the one that results belong to now.  ``stop``: it is set when the service is to stop;
    ``held``: a block in which no source is read.  ``clock``: of dead letters, seconds since 1970.
    ``refused``: rows that a server of theirs does not take.  Raises ``UsageError`` if the sinks are not the graph's.
    """

    def __init__(
        self, plan: Plan, sinks: Mapping[str, Any], dead_letters: LiveSink | None,
        paused: Callable[[], AbstractContextManager[None]], clock: Callable[[], float],
    ) -> None:  # fmt: skip
        names = [node.name for node in plan.of_kind("sink")]
        if {*names} != {*sinks}:
            msg = f"graph {plan.name!r}: has the sinks {', '.join(names)}; got {', '.join(sinks) or 'none'}"
            msg += renamed(sinks, names)
            raise UsageError(msg)
        self._sinks = {name: _sink(plan.name, name, sinks[name]) for name in names}
        check_apart({f"sink {name!r}": sinks[name] for name in names})
        self._schemas: dict[str, Schema] = {
            n.name: plan.schema(plan.input(n, 0)) for n in plan.of_kind("sink")
        }
        if dead_letters is not None:
            self._sinks[DEAD], self._schemas[DEAD] = dead_letters, DEAD_LETTERS
        self.refused = DeadLetters(clock, kept=dead_letters is not None)
        for name, sink in self._sinks.items():
            check_sink(_place(name, sink), sink)
            sink.link = ServerLink(_words(name))
            letters = self.refused if name != DEAD else DeadLetters(clock, kept=False)  # none about a letter
            sink.keeps_refused = letters.kept
            sink.refused = letters.of(name or "dead letters", "sink")
        self.epoch, self.stop, self._held = 0, asyncio.Event(), paused

    @property
    def names(self) -> list[str]:
        """The names of all sinks, that of dead letters too."""
        return [*self._sinks]

    @property
    def kinds(self) -> dict[str, str]:
        """The classes of the sinks of the graph, by name."""
        return {name: type(sink).__name__ for name, sink in self._sinks.items() if name != DEAD}

    @property
    def links(self) -> dict[str, ServerLink]:
        """The ways of all sinks to their servers."""
        return {name or "dead letters": sink.link for name, sink in self._sinks.items()}

    async def open(self, run: str, prepared: Mapping[str, Prepared], epoch: int) -> None:
        """Open all sinks, and repeat the commit of all that is still prepared; results are of ``epoch`` then."""
        self.epoch = epoch
        for name, sink in self._sinks.items():
            known = prepared.get(name)
            given = self._schemas[name], _run_of(run, name), [] if known is None else [known]
            opening = partial(called, _place(name, sink), sink, "open", *given)
            await again(sink.link, opening, self.stop, self._held)
        await self.commit(prepared)

    async def take(self, result: Result) -> None:
        """Write a result; punctuation goes no further."""
        if isinstance(result.message, Page):
            await self._write(result.sink, self.epoch, result.message)

    async def _write(self, name: str, epoch: int, page: Page) -> None:
        sink = self._sinks[name]
        await called(_place(name, sink), sink, "write", epoch, page)

    async def retry(self, sink: str, record: str, letter: str) -> None:
        """Write a row that a server has refused once more, from JSON; one that cannot be read is refused."""

        def refuse(reason: str, _: Any, rows: int) -> None:
            self.refused.of(sink, "sink")(reason, record, rows, place={"letter": letter}, coding="json")

        for page in pages_of_letter(record, self._schemas[sink], _words(sink), refuse):
            await self._write(sink, self.epoch, page)

    async def bury(self, letters: Page | None) -> None:
        """Write dead letters, if there are any and a sink for them."""
        if letters is not None and DEAD in self._sinks:
            await self._write(DEAD, self.epoch, letters)

    async def prepare(self, epoch: int) -> dict[str, Prepared]:
        """Prepare an epoch at all sinks, and return all that is to be committed."""
        prepared_by = dict[str, Prepared]()
        for name, sink in self._sinks.items():
            if name == DEAD and (letters := self.refused.take()) is not None:  # it is the last one
                await self._write(name, epoch, letters)
            with _told(name, sink):
                work = partial(called, _place(name, sink), sink, "prepare", epoch)
                made = await again(sink.link, work, self.stop, self._held)
            prepared_by[name] = prepared_of(_place(name, sink), sink, made)
        return {name: prepared for name, prepared in prepared_by.items() if prepared is not None}

    async def commit(self, prepared: Mapping[str, Prepared]) -> None:
        """Commit at the sinks."""
        for name, content in prepared.items():
            sink = self._sinks[name]
            with _told(name, sink):
                work = partial(called, _place(name, sink), sink, "commit", content)
                await again(sink.link, work, self.stop, self._held)

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """By sink and reason, how many rows its server did not take."""
        return self.refused.counts

    @property
    def buries(self) -> bool:
        """Whether rows that a commit refused wait for the sink of dead letters, which has them in the next epoch."""
        return self.refused.waits

    async def forget(self) -> None:
        """Remove the marks of a run that is not resumed from the sinks; a server that is away keeps them."""
        for name, sink in self._sinks.items():
            with suppress(UnreachableError, OSError, *sink.failures):
                await called(_place(name, sink), sink, "forget")

    @property
    def places(self) -> dict[str, LiveSink]:
        """The sinks, by their names in messages."""
        return {_words(name): sink for name, sink in self._sinks.items()}


@contextmanager
def _told(name: str, sink: LiveSink) -> Iterator[None]:
    """Raise ``SetupError`` with the name of a sink that fails: results not committed are in the checkpoint."""
    try:
        yield
    except sink.failures as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        msg = f"{_words(name)}: {reason}: fix that, and restart the service: it restores its checkpoint"
        raise SetupError(msg) from error


def _words(name: str) -> str:
    return f"sink {name!r}" if name != DEAD else "dead letters"


def _place(name: str, sink: LiveSink) -> str:
    return part_in_words("sink", name, sink) if name != DEAD else f"dead letters ({type(sink).__name__})"


def _run_of(run: str, sink: str) -> str:
    """Return the name under which a sink knows a run: it tells two sinks apart that write to one place."""
    return f"{run}{crc32(sink.encode()):08x}"


def _sink(graph: str, name: str, given: Any) -> LiveSink:
    if isinstance(given, LiveSink):
        return given
    if isinstance(given, Callable):  # type: ignore[arg-type]
        check_function(f"graph {graph!r}, sink {name!r}", given)
        return Callback(given)
    msg = f"graph {graph!r}, sink {name!r}: must be a LiveSink or a function of a page; got {type(given).__name__}"
    raise UsageError(msg)
