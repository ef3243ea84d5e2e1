"""The spool: feeds of messages written to segments, of all sources cut at the same moments."""

from __future__ import annotations

import hashlib
import heapq
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from oop_engine.core.change import Change
from oop_engine.core.errors import ContractError, SnapshotError, TraceError, UsageError
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.schema import Schema
from oop_engine.runners.changes import Changes
from oop_engine.runners.door import admitted
from oop_engine.runners.feeds.bad_rows import Refusals
from oop_engine.runners.feeds.forms import Intake
from oop_engine.runners.schedule import moment
from oop_engine.spark.io.feed_digest import FeedDigest
from oop_engine.spark.io.segments import SEGMENT_ROWS
from oop_engine.system.knobs import knob
from oop_engine.traces.trace import open_trace
from oop_engine.traces.trace_writing import write_trace

__all__ = ["SPOOLED", "Spooled", "spool"]

_PART_ROWS = knob(__name__, "_PART_ROWS", 1 << 13)  # feeds are merged in parts of this size
_INDEX = "moments.json"

SPOOLED = f"feeds/{_INDEX}"
"""The file of a checkpoint that lists the spooled segments."""


@dataclass(frozen=True)
class Spooled:
    """Spooled feeds: segments of all sources cut at the same moments; ``changes`` come before their segment."""

    folder: str
    schema: Schema
    arrives: bool
    clocks: tuple[tuple[int, int] | None, ...]
    hashes: tuple[str, ...]
    changes: Mapping[int, Sequence[Change]] = field(default_factory=dict)

    def count(self) -> int:
        """Return the number of segments; all are there."""
        return len(self.clocks)

    def ended(self) -> bool:
        """Return True: a feed that was spooled has ended."""
        return True

    def read(self, number: int) -> Iterator[Message]:
        """Yield the messages of a segment."""
        self._check_shared()
        yield from self.changes.get(number, ())
        if not self.hashes[number]:
            return  # the source had nothing to say then
        path = Path(self.folder) / _segment_name(number)
        if not path.exists() or _hash_of(path) != self.hashes[number]:
            state = "damaged" if path.exists() else "missing"
            msg = f"{path}: this spooled feed is {state}: restore the file, or start with an empty folder"
            raise SnapshotError(msg)
        for message in open_trace(path, self.schema, page_rows=SEGMENT_ROWS):
            yield message.without_arrival() if isinstance(message, Page) and not self.arrives else message

    def clock(self, number: int) -> tuple[int, int] | None:
        """Return the first arrival of all, and the last one up to the end of the segment."""
        return self.clocks[number]

    def _check_shared(self) -> None:
        index = Path(self.folder).parent / _INDEX
        if not index.exists():
            msg = (
                f"{index.parent}: segments written here are not here: driver and tasks must share the folder of the "
                f"checkpoint; give one that all machines have under the same path"
            )
            raise TraceError(msg)


def spool(
    feeds: Mapping[str, Any],
    schemas: Mapping[str, Schema],
    folder: Path,
    rows: int = SEGMENT_ROWS,
    changes: Changes | None = None,
    refusals: Refusals | None = None,
) -> dict[str, Spooled]:
    """Write ``feeds`` to ``folder`` in segments of about ``rows`` tuples, all cut at the same arrivals.

    So a segment of a slow source goes with a segment of a fast one; many tuples of one arrival, or of none, are several
    segments.  A change in a feed is for all of them, before all
    that comes later; ``changes`` admits it or raises the error.  Without ``changes`` it is a ``ContractError``.
    ``refusals`` gets bad rows; None: they are errors.

    Segments that ``folder`` has from an earlier run are taken as they are, if ``feeds`` are those of then; else it
    raises ``UsageError``.  Memory is bounded by a segment.
    """
    index = folder / _INDEX
    if not index.exists():
        known = _Spool(folder, schemas, rows, changes, refusals or Refusals("spool", None)).write(feeds)
        unfinished = index.with_suffix(".part")
        unfinished.write_text(json.dumps(known))
        unfinished.replace(index)
    else:
        _check_same(feeds, schemas, index)
    try:
        content = json.loads(index.read_text())
        clocks = tuple(tuple(clock) if clock else None for clock in content["clocks"])
        changes_at = {
            int(segment): [*map(Change.of_frame, frames)]
            for segment, frames in content.get("changes", {}).items()
        }
        return {
            name: Spooled(
                str(folder / name),
                schemas[name],
                content["arrives"][name],
                clocks,
                tuple(content["hashes"][name]),
                changes_at,
            )
            for name in feeds
        }
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(index) from error


def _check_same(feeds: Mapping[str, Any], schemas: Mapping[str, Schema], index: Path) -> None:
    """Raise ``UsageError`` for a feed with other messages than the one that was spooled: nobody would read them."""
    try:
        digests = dict[str, str](json.loads(index.read_text())["digests"])
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(index) from error
    for name, feed in feeds.items():
        digest = FeedDigest(schemas[name])
        for part in _parts(name, schemas[name], feed, Refusals("spool", "count")):
            digest.add(part.message)
        if digest.hexdigest() != digests.get(name):
            msg = (
                f"feed {name!r}: its messages are others than those at the first start, which {index.parent} has as a "
                f"feed that has ended: give the same ones, or an empty folder as the checkpoint"
            )
            raise UsageError(msg)


def _damaged(index: Path) -> SnapshotError:
    return SnapshotError(f"{index} is damaged: restore the file, or start with an empty folder")


class _Part(NamedTuple):
    """Some of a feed; ``now``: when it came (``NEVER`` before the first arrival); ``turn``: its place in the feed."""

    now: int
    turn: int
    until: int
    source: str
    message: Message


class _Spool:
    """Writes segments while it reads feeds."""

    def __init__(
        self,
        folder: Path,
        schemas: Mapping[str, Schema],
        rows: int,
        changes: Changes | None,
        refusals: Refusals,
    ) -> None:
        self._refusals = refusals
        self._folder, self._schemas, self._rows, self._door = folder, schemas, rows, changes
        self._changes = dict[int, list[Any]]()  # by the segment that they come before
        self._clocks: list[list[int] | None] = []
        self._arrives = dict.fromkeys(schemas, False)
        self._hashes: dict[str, list[str]] = {name: [] for name in schemas}
        self._digests = {name: FeedDigest(schema) for name, schema in schemas.items()}
        self._first: int | None = None
        self._last = NEVER

    def write(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Write all segments; return their clocks, and which sources have arrivals."""
        for name in feeds:
            shutil.rmtree(self._folder / name, ignore_errors=True)
            (self._folder / name).mkdir(parents=True)
        merged = heapq.merge(
            *(_parts(name, self._schemas[name], feed, self._refusals) for name, feed in feeds.items()),
            key=lambda part: part[:2],
        )
        waiting: list[_Part] = []
        rows = 0
        for part in merged:
            self._digests[part.source].add(part.message)
            if isinstance(part.message, Change):
                if waiting:
                    self._segment(waiting, part.now)
                    waiting, rows = [], 0
                self._change(part)
                continue
            if self._door is not None:
                self._door.note(part.source, part.message)
            if rows >= self._rows:
                self._segment(waiting, part.now)
                waiting, rows = [], 0
            waiting.append(part)
            rows += len(part.message) if isinstance(part.message, Page) else 1
        self._segment(waiting, None)
        digests = {name: digest.hexdigest() for name, digest in self._digests.items()}
        known = {"clocks": self._clocks, "arrives": self._arrives, "hashes": self._hashes, "digests": digests}
        return known | ({"changes": self._changes} if self._changes else {})

    def _change(self, part: _Part) -> None:
        assert isinstance(part.message, Change)
        if self._door is None:
            msg = f"feed {part.source!r}: no operator takes changes; got version {part.message.version}"
            raise ContractError(msg)
        change = self._door.admitted(part.message)[0]
        plain_change = self._door.written(change)
        self._changes.setdefault(len(self._clocks), []).append(plain_change.frame())

    def _segment(self, parts: list[_Part], following: int | None) -> None:
        """Write the messages before the moment ``following``; None: it is the last segment."""
        for part in parts:
            if isinstance(part.message, Page) and part.message.arrival is not None:
                self._arrives[part.source] = True
                self._first = part.now if self._first is None else self._first
                self._last = max(self._last, part.until)
        for name in self._schemas:
            own = [part.message for part in parts if part.source == name]
            path = self._folder / name / _segment_name(len(self._clocks))
            if own:
                write_trace(path, self._schemas[name], own)
            self._hashes[name].append(_hash_of(path) if own else "")
        until = self._last if following is None else following
        self._clocks.append(None if self._first is None else [self._first, until])


def _parts(name: str, schema: Schema, feed: Any, refusals: Refusals) -> Iterator[_Part]:
    now, place = NEVER, f"feed {name!r}"
    intake = Intake(
        place, schema, f"a feed of {refusals.call}", refusals.of(name, place), refusals.of_trace(name, place)
    )
    for turn, given in enumerate(intake.messages(feed)):
        message = given if isinstance(given, Change) else admitted(place, schema, given)
        if not isinstance(message, Page):
            now = moment(name, given, now)
            yield _Part(now, turn, now, name, message)
            continue
        for start in range(0, len(message), _PART_ROWS):
            page = message.slice(start, min(start + _PART_ROWS, len(message)))
            first, last = (
                (now, now) if page.arrival is None else (int(page.arrival[0]), int(page.arrival[-1]))
            )
            now = max(now, last)
            yield _Part(first, turn, now, name, page)


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _segment_name(number: int) -> str:
    return f"{number:06d}.msgpack"
