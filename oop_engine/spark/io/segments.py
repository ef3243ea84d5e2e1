"""Slices: a source as a row of pieces in order of arrival, which can be read again one by one.

A task that fails is run again, and a query that was killed goes on where it stopped; both must find
the same tuples as before.  So a source is read by number: slice 0, slice 1, ...  Slices that were written
never change; more may come until the source has ended.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from oop_engine.core.errors import SnapshotError, TraceError, UsageError
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.schema import Schema
from oop_engine.runners.door import admitted, messages
from oop_engine.spark.state.ledger import Ledger
from oop_engine.traces.format_registry import suffixes
from oop_engine.traces.trace import Trace, open_trace, write_trace

__all__ = ["SPOOLED", "Files", "Slices", "Spooled", "spool"]

SLICE_ROWS = 1 << 18
_PART_ROWS = 1 << 13  # feeds are merged in parts of this size
_ENDED = "_SUCCESS"  # the mark that Spark too leaves in a folder it has finished
_INDEX = "moments.json"

SPOOLED = f"feeds/{_INDEX}"
"""The file of a checkpoint that tells what was spooled."""


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

    def read(self, number: int) -> Iterable[Message]:
        """Return the messages of a slice, in order of arrival, and not earlier than those of the slice before."""
        ...

    def clock(self, number: int) -> tuple[int, int] | None:
        """Return the first arrival of all, and the last one up to the end of the slice."""
        ...


@dataclass(frozen=True)
class Files:
    """A trace in a file, or in the files of a folder in the order of their names: a slice each.

    A file has ended; a folder has when there is a file ``_SUCCESS`` in it, or if ``complete``.
    Names that start with ``.`` or ``_`` are of others.  Columns are those of ``schema``, ``arrival`` as in
    ``open_trace``.  Raises ``TraceError`` if there is no such file, or none that is a trace.

    ``known``: a file in which the names are written down as they are found, each with its bytes ("": none is).
    Then a slice keeps its number whatever comes later: a new file is read behind all that are known, whatever
    its name; new files that are found together are read in the order of their names.
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
        """Return the files there are by now, in the order of their names."""
        given = Path(self.path)
        if given.is_file():
            return [given]
        endings = {f".{suffix}" for suffix in suffixes()}
        return sorted(p for p in given.iterdir() if p.name[0] not in "._" and p.suffix.lower() in endings)

    def look(self) -> None:
        """Write down the names of new files, and that no more can come.

        Raises ``TraceError`` for a file that came after that: nobody would read it.
        """
        ended = self._has_ended()  # first: a file that comes before the mark is there when files are listed
        known = self._lines()
        names = {line[0] for line in known if line is not None}
        new = [path for path in self.paths() if path.name not in names]
        if known and known[-1] is None:
            if new:
                msg = f"{new[0]}: it came after the source had ended: begin anew with an empty checkpoint"
                raise TraceError(msg)
            return
        lines = [[path.name, path.stat().st_size] for path in new] + [None] * ended
        if lines:
            Ledger(Path(self.known)).append(*lines)

    def check(self, read: int) -> None:
        """Make sure that known files are there, and that of those the first ``read`` are as they were.

        Raises ``UsageError`` if not.
        """
        for number, line in enumerate(self._lines()):
            path = None if line is None else self._place(line[0])
            if path is None or (path.exists() and (number >= read or path.stat().st_size == line[1])):
                continue
            what = f"has {path.stat().st_size} bytes now, had {line[1]}" if path.exists() else "is gone"
            msg = f"{path}: the query has read it, and it {what}: leave files that were read where they are"
            raise UsageError(msg)

    def count(self) -> int:
        """Return how many files there are by now."""
        return sum(line is not None for line in self._lines()) if self.known else len(self.paths())

    def ended(self) -> bool:
        """Tell whether no more can come."""
        return self._lines()[-1:] == [None] if self.known else self._has_ended()

    def read(self, number: int) -> Trace:
        """Return the messages of a file."""
        path = self._place(self._lines()[number][0]) if self.known else self.paths()[number]
        return open_trace(path, self.schema, arrival=self.arrival, page_rows=SLICE_ROWS)

    def _has_ended(self) -> bool:
        given = Path(self.path)
        return self.complete or given.is_file() or (given / _ENDED).exists()

    def _place(self, name: str) -> Path:
        given = Path(self.path)
        return given if given.is_file() else given / name

    def _lines(self) -> list[Any]:
        """Return the name and the bytes of each known file; None behind them says that no more can come."""
        lines = Ledger(Path(self.known)).lines()
        for line in lines:
            match line:
                case None | [str(), int()]:
                    pass
                case _:
                    msg = (
                        f"{self.known} is damaged: put it back as it was, or begin anew with an empty folder"
                    )
                    raise SnapshotError(msg)
        return lines

    def clock(self, number: int) -> None:
        """Return None: of other sources nothing is known."""


@dataclass(frozen=True)
class Spooled:
    """What ``spool`` wrote: slices of all sources cut at the same moments."""

    folder: str
    schema: Schema
    arrives: bool
    clocks: tuple[tuple[int, int] | None, ...]
    hashes: tuple[str, ...]

    def count(self) -> int:
        """Return the number of slices; all are there."""
        return len(self.clocks)

    def ended(self) -> bool:
        """Return True: a feed that was spooled has ended."""
        return True

    def read(self, number: int) -> Iterator[Message]:
        """Yield the messages of a slice."""
        self._check_shared()
        if not self.hashes[number]:
            return  # the source had nothing to say then
        path = Path(self.folder) / _slice_name(number)
        if not path.exists() or _hash_of(path) != self.hashes[number]:
            what = "damaged" if path.exists() else "missing"
            msg = f"{path}: what was spooled is {what}: put it back as it was, or begin anew with an empty folder"
            raise SnapshotError(msg)
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
    try:
        found = json.loads(index.read_text())
        clocks = tuple(tuple(clock) if clock else None for clock in found["clocks"])
        return {
            name: Spooled(
                str(folder / name),
                schemas[name],
                found["arrives"][name],
                clocks,
                tuple(found["hashes"][name]),
            )
            for name in feeds
        }
    except (ValueError, TypeError, KeyError) as error:
        msg = f"{index} is damaged: put it back as it was, or begin anew with an empty folder"
        raise SnapshotError(msg) from error


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
        self._hashes: dict[str, list[str]] = {name: [] for name in schemas}
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
        return {"clocks": self._clocks, "arrives": self._arrives, "hashes": self._hashes}

    def _slice(self, parts: list[_Part], following: int | None) -> None:
        """Write what came before the moment ``following``; None: it is the last slice."""
        for part in parts:
            if isinstance(part.message, Page) and part.message.arrival is not None:
                self._arrives[part.source] = True
                self._first = part.now if self._first is None else self._first
                self._last = max(self._last, part.until)
        for name in self._schemas:
            own = [part.message for part in parts if part.source == name]
            path = self._folder / name / _slice_name(len(self._clocks))
            if own:
                write_trace(path, self._schemas[name], own)
            self._hashes[name].append(_hash_of(path) if own else "")
        until = self._last if following is None else following
        self._clocks.append(None if self._first is None else [self._first, until])


def _parts(name: str, schema: Schema, feed: Iterable[Message]) -> Iterator[_Part]:
    now = NEVER
    for given in messages(schema, feed):
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


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _slice_name(number: int) -> str:
    return f"{number:06d}.msgpack"
