"""Journal: a source that cannot be read again, kept in a folder until a checkpoint has its data.

    00000000000000000000.rows    a segment, named by its first byte in the journal; the next one begins where it ends
    head                         the first line that ever came (the names of columns of a CSV)
    lock                         held by the process that reads

A segment is a sequence of groups: the length and the CRC-32 of the rest, then pieces, each ``[data, position]`` in
msgpack, ``position`` being that of the source behind them.  All that comes while a group is being written is the next
group (group commit): it is on the disk before any of it is handed on.  A loss of power can tear the last group alone,
of which nothing was handed on.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

from oop_engine.connectors.pace import read_on
from oop_engine.connectors.packed import (
    UNPACKABLE,
    carried,
    lasting,
    lasting_parts,
    packer,
    packer_of_parts,
    unpacked,
)
from oop_engine.connectors.paths import local_path
from oop_engine.connectors.source import LiveSource, Position
from oop_engine.connectors.sources.generated import Feed, Generated
from oop_engine.core.errors import TraceError, UsageError
from oop_engine.system.disk import Disk
from oop_engine.system.knobs import knob
from oop_engine.system.on_thread import on_thread

__all__ = ["Journal"]

T = TypeVar("T")
_LOG = logging.getLogger("oop_engine")
_HEADER = struct.Struct("<II")
_SEGMENT, _MOST = 4 << 20, 1 << 20
_PART = knob(__name__, "_PART", 512)
"""The most rows of a list that are packed in one turn of the event loop: a row costs some microseconds, a moment 50."""


async def _on_thread(work: Callable[[], T]) -> T:
    return await on_thread(work)


class Journal(LiveSource):
    """The data of ``source``, which are written to ``folder`` before they are handed on.

    ``source``: one that cannot be read again (``TcpLines``, ``WebSocket``, ``Mqtt`` with QoS 0), or an iterable of
    either kind (``Generated``).  The position is an offset into the journal; segments of ``segment_bytes`` go, but for
    the last two, once a checkpoint is behind them.  After a restart the journal is read from the checkpoint on, to its
    end, then the source.  Nothing is lost that was handed on, whether the process is killed or the power fails; data
    that the process had received and not written yet are, less than come while the disk syncs.  ``source`` may forget
    data (``acknowledge``) as soon as they are in the journal.

    ``folder`` is of one source and on this machine; one process at a time has it.  Raises ``UsageError`` if another
    one has it, ``TraceError`` if the position is no longer there or a segment is damaged, ``OSError`` if the disk is
    full; nothing is skipped.
    """

    replayable = True

    def __init__(
        self,
        source: LiveSource | Feed,
        folder: str | Path,
        *,
        segment_bytes: int = _SEGMENT,
        disk: Disk | None = None,
        aside: Callable[[Callable[[], Any]], Awaitable[Any]] = _on_thread,
    ) -> None:
        if "://" in str(folder):
            msg = (
                f"journal {folder}: must be a folder of this machine: an object store cannot append to a file"
            )
            raise UsageError(msg)
        self._source = source if isinstance(source, LiveSource) else Generated(source)
        self.format, self.by_lines = self._source.format, self._source.by_lines  # type: ignore[misc]
        self.reads, self.metadata = self._source.reads, self._source.metadata
        self.adds, self.is_file = self._source.adds, self._source.is_file  # type: ignore[misc]
        self._folder, self._disk, self._aside = local_path("Journal", folder), disk or Disk(), aside
        self._segment_bytes = segment_bytes
        self._segment: int | None = None  # that is written to
        self._end = 0
        self._before: Position = None  # of the source, behind all that the journal has

    def headed(self) -> bytes:
        """Return the line of column names that stands before all data."""
        head = self._folder / "head"
        return self._source.headed() or (self._disk.read(head) if self._disk.exists(head) else b"")

    async def read(self, position: Position) -> AsyncIterator[tuple[Any, Position]]:
        """Yield data of the journal from ``position`` on, then those of the source, with the offset behind them."""
        if not isinstance(position, int | None):
            msg = f"{self._place}: resumes from an offset; got {position!r}: is the checkpoint another's?"
            raise UsageError(msg)
        self._source.unreadable, self._source.columns = self.unreadable, self.columns
        self._source.wanted = self.wanted
        locks: list[
            Callable[[], None]
        ] = []  # a caller that is cancelled has the lock, too, which a thread took
        try:
            await self._aside(lambda: locks.append(self._lock()))
            async for pieces in self._kept(position or 0):
                for piece in pieces:
                    yield piece
            async with aclosing(self._live()) as groups:  # type: ignore[type-var]
                async for pieces in groups:
                    for piece in pieces:
                        yield piece
        finally:
            for release in locks:
                release()

    def last_data(self) -> list[tuple[Any, int]]:
        """Return the last data of the source, once they are in the journal."""
        waiting, pack = _Waiting(), packer()
        for given, position in self._source.last_data():
            self._keep(pack, given, position, waiting)
        group = waiting.take()
        begin = self._append(group) if group.data else 0
        return [(data, begin + end) for data, end in zip(group.data, group.ends, strict=True)]

    async def acknowledge(self, position: Position) -> None:
        """Remove the segments that end before ``position``, but for the last two."""
        starts = await self._aside(self._starts)
        for start in [start for start, end in pairwise(starts[:-1]) if end <= position]:
            await self._aside(partial(self._disk.remove, self._path(start)))

    async def close(self) -> None:
        """Close the source."""
        await self._source.close()

    @property
    def _place(self) -> str:
        return f"journal {self._folder}"

    def _path(self, start: int) -> Path:
        return self._folder / f"{start:020d}.rows"

    def _starts(self) -> list[int]:
        return [int(name[:20]) for name in self._disk.names(self._folder) if name.endswith(".rows")]

    def _synced(self) -> list[int]:
        """Return the starts of all segments, which are on the disk then: a process may have died before its sync."""
        starts = self._starts()
        if starts:
            self._disk.sync(self._path(starts[-1]))
        self._disk.sync(self._folder)
        return starts

    def _lock(self) -> Callable[[], None]:
        self._disk.make(self._folder)
        if (release := self._disk.lock(self._folder / "lock")) is None:
            msg = (
                f"{self._place}: another process has it: run one at a time, or give each a folder of its own"
            )
            raise UsageError(msg)
        return release

    async def _kept(self, at: int) -> AsyncIterator[list[tuple[Any, int]]]:
        """Yield the pieces from a position on, each with the offset behind it; ``_before`` is the source's, then."""
        starts = await self._aside(self._synced)
        self._segment, self._end, self._before = None, (starts or [0])[-1], None
        known = at == 0 and not starts
        first = min(bisect_right(starts, at), len(starts) - 1) - 1  # the last one may have no whole group
        for start, end in pairwise([*starts[max(first, 0) :], None]):
            pieces = await self._aside(partial(self._segment_of, start, end))
            known = known or start == at or any(offset == at for _, _, offset in pieces)
            if not known and self._end > at:
                break
            if pieces:
                self._before = pieces[-1][1]
            yield [(data, offset) for data, _, offset in pieces if offset > at]
        if not known:
            # to know its end
            await self._aside(lambda: [self._segment_of(start, None) for start in starts[-1:]])
            raise self._gone(at, starts)

    def _gone(self, at: int, starts: list[int]) -> TraceError:
        there = f"it has pieces of {starts[0]:,} to {self._end:,}" if starts else "it is empty"
        return TraceError(
            f"{self._place}: the data behind byte {at:,}, the next to read, are not there; {there}: restore "
            "the folder, or start with other folders of checkpoints and of the journal"
        )

    def _segment_of(self, start: int, end: int | None) -> list[tuple[Any, Position, int]]:
        """Return the pieces of the segment that begins at ``start``; ``end``: where the next one begins."""
        path, self._end, records = self._path(start), start, list[tuple[Any, Position, int]]()
        content = self._disk.read(path)[: None if end is None else end - start]
        while (body := self._group(path, content, self._end - start, last=end is None)) is not None:
            self._end += _HEADER.size
            records += [(data, position, self._end + end) for (data, position), end in unpacked(body)]
            self._end += len(body)
        left = len(content) - (self._end - start)
        if end is not None and self._end != end:
            raise self._damaged(path, self._end - start)
        if left:
            _LOG.warning(
                "%s: cut at byte %s: the last %s bytes were not written in full, and nothing of them was handed on",
                path, f"{self._end - start:,}", f"{left:,}",
            )  # fmt: skip
        return records

    def _group(self, path: Path, content: bytes, at: int, *, last: bool) -> bytes | None:
        """Return the group at a byte of a segment; None: there is none, or the last one was torn."""
        if len(content) - at < _HEADER.size:
            return None
        length, checksum = _HEADER.unpack_from(content, at)
        body = content[at + _HEADER.size : at + _HEADER.size + length]
        if length and len(body) == length and crc32(body) == checksum:
            return body
        length_used = len(content.rstrip(b"\0"))  # a file may be as long as it was to be, and end in zeros
        if last and (not length or at + _HEADER.size + length >= length_used):
            return None
        raise self._damaged(path, at)

    def _damaged(self, path: Path, at: int) -> TraceError:
        return TraceError(
            f"{path}: is damaged at byte {at:,}: restore the file, or start with another folder of "
            "checkpoints and of the journal"
        )

    async def _live(self) -> AsyncIterator[list[tuple[Any, int]]]:
        """Yield the groups of the source, once they are in the journal."""
        self._source.unreadable, self._source.link = self.unreadable, self.link
        waiting = _Waiting()
        reading = asyncio.create_task(self._read(waiting), name=f"{self._place}, read")
        reading.add_done_callback(lambda _: waiting.filled.set())
        writing: asyncio.Future[Any] | None = None
        try:
            while not reading.done() or waiting.group.data:
                await waiting.filled.wait()
                if not (group := waiting.take()).data:
                    continue
                writing = asyncio.ensure_future(self._aside(partial(self._append, group)))
                begin = await asyncio.shield(writing)
                await self._source.acknowledge(group.position)
                yield [(data, begin + end) for data, end in zip(group.data, group.ends, strict=True)]
            await reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, *([writing] if writing else []), return_exceptions=True)
            if not (writing and writing.exception()):
                await self._keep_rest(waiting)

    async def _keep_rest(self, waiting: _Waiting) -> None:
        """Write all that the source still has, which comes with the next start."""
        for given, position in self._source.rest():
            self._keep(packer(), given, position, waiting)
        if (rest := waiting.take()).data:
            await self._aside(partial(self._append, rest))
        if self._before is not None:
            await self._source.acknowledge(self._before)

    async def _read(self, waiting: _Waiting) -> None:
        pack = packer()
        async with aclosing(read_on(self._source, self._before)) as pieces:  # type: ignore[type-var]
            async for given, position in pieces:
                if (parts := lasting_parts(given, _PART)) is None:
                    self._keep(pack, given, position, waiting)
                else:
                    await self._keep_parts(parts, given, position, waiting)
                if len(waiting.group.body) >= _MOST:
                    await waiting.emptied.wait()

    def _keep(self, pack: Callable[[Any], bytes], given: Any, position: Position, waiting: _Waiting) -> None:
        try:
            data = lasting(given)
            packed = pack([carried(data) if self.wanted else data, position])
        except UNPACKABLE as error:
            self._unkept(error, given)
        else:
            waiting.put(data, packed, position)

    async def _keep_parts(
        self, parts: Iterator[list[Any]], given: list[Any], position: Position, waiting: _Waiting
    ) -> None:
        """Keep a long list, some rows a turn of the event loop; one that is cancelled does the rest at once."""
        data, packed, cancelled = list[Any](), bytearray(), None

        def noted() -> Iterator[list[Any]]:
            for part in parts:
                data.extend(part)
                yield carried(part) if self.wanted else part

        try:
            for part in packer_of_parts()(noted(), len(given), position):
                packed += part
                if cancelled is None:
                    cancelled = await _turn()
        except UNPACKABLE as error:
            self._unkept(error, given)
        else:
            waiting.put(data, bytes(packed), position)
        if cancelled is not None:
            raise cancelled

    def _unkept(self, error: Exception, given: Any) -> None:
        """Refuse data that cannot be packed, whose error is being handled."""
        if self.unreadable is None:
            raise error
        few = (
            given[:100] if isinstance(given, list) else given
        )  # the text of them all would take as long again
        self.unreadable(f"cannot be kept: {error}", repr(few)[:1000], 1)

    def _append(self, group: _Group) -> int:
        """Write a group; return the offset at which its pieces begin."""
        content = _HEADER.pack(len(group.body), crc32(group.body)) + group.body
        start, self._segment = self._segment, None  # a segment that could not be written to is left as it is
        if start is None:
            start = self._end
            self._disk.create(self._folder / "head", _first_line(group.data[0]))
            self._disk.write(self._path(start), content)
            self._disk.sync(self._folder)
        else:
            self._disk.append(self._path(start), content)
        begin, self._end = self._end + _HEADER.size, self._end + len(content)
        self._before = group.position
        self._segment = start if self._end - start < self._segment_bytes else None
        return begin


class _Group:
    """Pieces that are written together: data, where each ends in ``body``, the position of the source behind them."""

    def __init__(self) -> None:
        self.data: list[Any] = []
        self.ends: list[int] = []
        self.body = bytearray()
        self.position: Position = None


class _Waiting:
    """The next group, as it fills."""

    def __init__(self) -> None:
        self.group = _Group()
        self.filled, self.emptied = asyncio.Event(), asyncio.Event()

    def put(self, data: Any, packed: bytes, position: Position) -> None:
        group = self.group
        group.body += packed
        group.data.append(data)
        group.ends.append(len(group.body))
        group.position = position
        if len(group.data) == 1:
            self.filled.set()
            self.emptied.clear()

    def take(self) -> _Group:
        group, self.group = self.group, _Group()
        self.filled.clear()
        self.emptied.set()
        return group


async def _turn() -> asyncio.CancelledError | None:
    """Yield to other tasks of the loop; return the error if this one was cancelled meanwhile."""
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError as error:
        return error
    return None


def _first_line(data: Any) -> bytes:
    first = data[0] if isinstance(data, list) and data else data
    return first.partition(b"\n")[0] + b"\n" if isinstance(first, bytes) else b""
