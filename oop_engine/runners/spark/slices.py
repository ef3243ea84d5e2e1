"""Slices: a source as a row of pieces in order of arrival, which can be read again one by one.

A task that fails is run again, and a query that was killed goes on where it stopped; both must find
the same tuples as before.  So a source is read by number: slice 0, slice 1, ...  Slices that were written
never change; more may come until the source has ended.
"""

from __future__ import annotations

import heapq
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from oop_engine.errors import TraceError
from oop_engine.operator import Message
from oop_engine.page import Page
from oop_engine.punctuation import NEVER
from oop_engine.runners.door import admitted
from oop_engine.schema import Schema
from oop_engine.traces.trace import FORMATS, open_trace, write_trace

__all__ = ["Files", "Slices", "Spooled", "spool"]

SLICE_ROWS = 1 << 18
_PART_ROWS = 1 << 13  # feeds are merged in parts of this size
_SUFFIXES = {"." + suffix for suffix in [*FORMATS, "feather", "ipc", "ndjson", "pq"]}
_ENDED = "_SUCCESS"  # the mark that Spark too leaves in a folder it has finished
_INDEX = "moments.json"


@runtime_checkable
class Slices(Protocol):
    """A source in slices; it is pickled and read in other processes.

    ``clock(i)``: the moments between which the arrival clock ran during slice ``i``, of all sources
    together; None where only the arrivals of the slice itself are known.
    """

    @property
    def schema(self) -> Schema:
        """The schema of the source."""
        ...

    def count(self) -> int:
        """Return how many slices there are by now."""
        ...

    def ended(self) -> bool:
        """Tell whether no more can come."""
        ...

    def read(self, number: int) -> Iterator[Message]:
        """Yield the messages of a slice, in order of arrival."""
        ...

    def clock(self, number: int) -> tuple[int, int] | None:
        """Return the first arrival of all, and the last one up to the end of the slice."""
        ...


@dataclass(frozen=True)
class Files:
    """A trace in a file, or in the files of a folder: a slice each, in the order of their names.

    What was read keeps its number for good: ``known`` is a file that remembers the names.  One that comes
    later is read behind them, wherever it sorts.  A file has ended; a folder has when there is a file
    ``_SUCCESS`` in it, or if ``complete``.  Names that start with ``.`` or ``_`` are of others.  Columns are
    those of ``schema``, ``arrival`` as in ``open_trace``.  Raises ``TraceError`` if there is no such file, or
    none that is a trace.
    """

    path: str
    schema: Schema
    arrival: str | None = None
    complete: bool = False
    known: str = ""

    def __post_init__(self) -> None:
        if self.known:
            return
        if not Path(self.path).exists():
            msg = f"{self.path}: there is no such file or folder: give the path of a trace, or of a folder of traces"
            raise TraceError(msg)
        for path in self.paths()[:1]:
            open_trace(path, self.schema, arrival=self.arrival)  # tells what is wrong before anything starts

    def paths(self) -> list[Path]:
        """Return the files there are by now."""
        given = Path(self.path)
        if given.is_file():
            return [given]
        found = {p.name for p in given.iterdir() if p.name[0] not in "._" and p.suffix.lower() in _SUFFIXES}
        known = self._remembered()
        return [given / name for name in [*known, *sorted(found.difference(known))]]

    def remembering(self, known: Path) -> Files:
        """Return the same, with its names in the file ``known``; raises ``TraceError`` if one of those is gone."""
        found = replace(self, known=str(known))
        gone = [path.name for path in found.paths() if not path.exists()]
        if gone:
            msg = f"{self.path}: {gone[0]!r} was read before and is gone: leave files where they are"
            raise TraceError(msg)
        found.remember()
        return found

    def remember(self) -> None:
        """Take down the names of new files: from now on they keep their places.  Only the driver does."""
        names = [path.name for path in self.paths()]
        if not self.known or names == self._remembered():
            return
        known = Path(self.known)
        known.parent.mkdir(parents=True, exist_ok=True)
        unfinished = known.with_suffix(".part")
        unfinished.write_text(json.dumps(names))
        unfinished.replace(known)

    def _remembered(self) -> list[str]:
        if not self.known or not Path(self.known).exists():
            return []
        try:
            names = json.loads(Path(self.known).read_text())
        except ValueError as error:
            msg = f"{self.known}: cannot be read ({error}), and knows what was read: take another checkpoint"
            raise TraceError(msg) from error
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            msg = f"{self.known}: must be a list of names: take another checkpoint"
            raise TraceError(msg)
        return names

    def count(self) -> int:
        """Return how many files there are by now."""
        return len(self.paths())

    def ended(self) -> bool:
        """Tell whether no more can come."""
        given = Path(self.path)
        return self.complete or given.is_file() or (given / _ENDED).exists()

    def read(self, number: int) -> Iterator[Message]:
        """Yield the messages of a file."""
        return iter(open_trace(self.paths()[number], self.schema, arrival=self.arrival, page_rows=SLICE_ROWS))

    def clock(self, number: int) -> None:
        """Return None: of other sources nothing is known."""


@dataclass(frozen=True)
class Spooled:
    """What ``spool`` wrote: slices of all sources cut at the same moments."""

    folder: str
    schema: Schema
    arrives: bool
    clocks: tuple[tuple[int, int] | None, ...]

    def count(self) -> int:
        """Return the number of slices; all are there."""
        return len(self.clocks)

    def ended(self) -> bool:
        """Return True: a feed that was spooled has ended."""
        return True

    def read(self, number: int) -> Iterator[Message]:
        """Yield the messages of a slice."""
        path = Path(self.folder) / _slice_name(number)
        if not path.exists():
            self._check_shared()  # else the source had nothing to say then
            return
        for message in open_trace(path, self.schema, page_rows=SLICE_ROWS):
            yield message.without_arrival() if isinstance(message, Page) and not self.arrives else message

    def clock(self, number: int) -> tuple[int, int] | None:
        """Return the first arrival of all, and the last one up to the end of the slice."""
        return self.clocks[number]

    def _check_shared(self) -> None:
        index = Path(self.folder).parent / _INDEX
        if not index.exists():
            msg = (
                f"{index.parent}: what was written here is not here: driver and tasks must share the folder of the "
                f"checkpoint; give one that all machines have under the same path"
            )
            raise TraceError(msg)


def spool(
    feeds: Mapping[str, Iterable[Message]],
    schemas: Mapping[str, Schema],
    folder: Path,
    rows: int = SLICE_ROWS,
) -> dict[str, Spooled]:
    """Write ``feeds`` to ``folder`` in slices of about ``rows`` tuples, all cut at the same arrivals.

    So a slice of a slow source goes with a slice of a fast one.  What is in ``folder`` already, from
    an earlier run, is taken as it is.  Memory is bounded by a slice.
    """
    index = folder / _INDEX
    if not index.exists():
        known = _Spool(folder, schemas, rows).write(feeds)
        unfinished = index.with_suffix(".part")
        unfinished.write_text(json.dumps(known))
        unfinished.replace(index)
    found = json.loads(index.read_text())
    clocks = tuple(tuple(clock) if clock else None for clock in found["clocks"])
    return {
        name: Spooled(str(folder / name), schemas[name], found["arrives"][name], clocks) for name in feeds
    }


class _Part(NamedTuple):
    """Some of a feed; ``now``: when it came (``NEVER`` before the first arrival)."""

    now: int
    until: int
    source: str
    message: Message


class _Spool:
    """Writes slices while it reads feeds."""

    def __init__(self, folder: Path, schemas: Mapping[str, Schema], rows: int) -> None:
        self._folder, self._schemas, self._rows = folder, schemas, rows
        self._clocks: list[list[int] | None] = []
        self._arrives = dict.fromkeys(schemas, False)
        self._first: int | None = None
        self._last = NEVER

    def write(self, feeds: Mapping[str, Iterable[Message]]) -> dict[str, Any]:
        """Write all slices; return their clocks, and which sources have arrivals."""
        for name in feeds:
            shutil.rmtree(self._folder / name, ignore_errors=True)
            (self._folder / name).mkdir(parents=True)
        merged = heapq.merge(
            *(_parts(name, self._schemas[name], feed) for name, feed in feeds.items()),
            key=lambda part: part.now,
        )
        waiting: list[_Part] = []
        rows = 0
        for part in merged:
            if rows >= self._rows and part.now != waiting[-1].now:
                self._slice(waiting, part.now)
                waiting, rows = [], 0
            waiting.append(part)
            rows += len(part.message) if isinstance(part.message, Page) else 0
        self._slice(waiting, None)
        return {"clocks": self._clocks, "arrives": self._arrives}

    def _slice(self, parts: list[_Part], following: int | None) -> None:
        """Write what came before the moment ``following``; None: it is the last slice."""
        for part in parts:
            if isinstance(part.message, Page) and part.message.arrival is not None:
                self._arrives[part.source] = True
                self._first = part.now if self._first is None else self._first
                self._last = max(self._last, part.until)
        for name in self._schemas:
            own = [part.message for part in parts if part.source == name]
            if own:
                write_trace(self._folder / name / _slice_name(len(self._clocks)), self._schemas[name], own)
        until = self._last if following is None else following
        self._clocks.append(None if self._first is None else [self._first, until])


def _parts(name: str, schema: Schema, feed: Iterable[Message]) -> Iterator[_Part]:
    now = NEVER
    for given in feed:
        message = admitted(f"feed {name!r}", schema, given)
        if not isinstance(message, Page):
            yield _Part(now, now, name, message)
            continue
        for start in range(0, len(message), _PART_ROWS):
            page = message.slice(start, min(start + _PART_ROWS, len(message)))
            first, last = (
                (now, now) if page.arrival is None else (int(page.arrival[0]), int(page.arrival[-1]))
            )
            now = max(now, last)
            yield _Part(first, now, name, page)


def _slice_name(number: int) -> str:
    return f"{number:06d}.msgpack"
