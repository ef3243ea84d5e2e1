"""File tail: lines that a program appends to a file, across its rotation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import pyarrow as pa

from oop_engine.connectors.formats import format_by_suffix
from oop_engine.connectors.paths import local_path
from oop_engine.connectors.payload import Payload
from oop_engine.connectors.source import Format, LiveSource, Position, is_count
from oop_engine.connectors.tailing.bytes_at import open_bytes
from oop_engine.connectors.tailing.followed import LONGEST, Followed
from oop_engine.connectors.tailing.tail import LogTail
from oop_engine.system.on_thread import on_thread
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.formats.encodings import refuse_wide

__all__ = ["FileTail"]

T = TypeVar("T")
_LOG = logging.getLogger("oop_engine")


class FileTail(LiveSource):
    """The lines of ``path`` as they are written (``tail -F``), in ``format``: jsonl, csv, or one of your own.

    Without ``format`` it is the suffix of the path, or jsonl.

    Reads across rotation, also across several while nothing reads: renamed files (``.1``, dates), compressed ones
    (``.2.gz``, ``.zst``), ``copytruncate``, lines that are written to a file after its rotation.  ``docs/logs.md`` has
    a table of all cases.  A line of 4 MB or more is a dead letter.  The file need not be there yet.

    The position is the file's inode, the offset behind a whole line, sums over bytes before it, and when the file was
    written last; the same of two rotated files that are read on.  ``every_s``: seconds between two looks;
    ``follow=False``: end at the end of the file, which then counts as a whole line.  ``skip_lost``: where the file of
    the position is gone, go on with one warning.  Raises ``TraceError`` if it is gone without ``skip_lost``.
    A schema may have the column ``_file``: the path of the log.
    """

    replayable = True
    by_lines = True
    is_file = True
    metadata = MappingProxyType({"_file": pa.string()})

    def __init__(
        self,
        path: str | Path,
        format: Format | None = None,
        *,
        every_s: float = 0.1,
        follow: bool = True,
        skip_lost: bool = False,
    ) -> None:
        self._path = local_path("FileTail", path)
        self.format = format_by_suffix(self._path.name) if format is None else format
        self.reads = self._path
        self._every_s, self._follow, self._skip_lost = every_s, follow, skip_lost
        self._ended: Position = None
        self._pending: list[Callable[[], object]] = []

    def headed(self) -> bytes:
        """Return the first line of the file."""
        if not self._path.is_file():
            return b""
        with self._path.open("rb") as file:
            return file.readline(LONGEST)

    def file_above(self, before: Position, behind: Position) -> tuple[str, bytes]:
        """Return the inode and the first line of the file that has the data between two positions."""
        return (str(behind.inode), behind.header) if isinstance(behind, _Behind) else ("", b"")

    def place(self, before: Position, behind: Position, skipped: int) -> Any:
        """Return the log, the inode of its file, and the byte at which a line begins."""
        offsets = _offsets(before)
        for inode, end in _offsets(behind).items():
            if (start := offsets.get(inode, 0)) < end:
                return {"file": str(self._path), "inode": inode, "byte": start + skipped}
        return {"file": str(self._path), "inode": behind[0], "byte": behind[1]}

    def is_position(self, position: Position) -> bool:
        """Return whether a value can be a position: the numbers of a file, and earlier files."""
        return isinstance(position, list) and len(position) > 3 and all(map(is_count, position[:4]))

    async def read(self, position: Position) -> AsyncIterator[tuple[bytes, Position]]:
        """Yield whole lines, up to 1 MB of them at a time, as soon as they are there."""
        tail = self._tail(position, follow=self._follow)
        self._ended = position
        try:
            piece = await self._aside(tail.step)
            if piece is None and position is None and self._follow:
                piece = (
                    b"",
                    tail.position,
                )  # so that a rotation before the first line is found after a restart
            while True:
                if piece is None and not self._follow:
                    piece = await self._aside(tail.last)
                    if piece is None:
                        return
                if piece is not None:
                    self._check_encoding(tail.header)
                    yield self._told(_headed(tail, piece))
                    self._ended = piece[1]
                await asyncio.sleep(self._every_s if piece is None else 0)
                piece = await self._aside(tail.step)
        finally:
            tail.close()

    def _told(self, piece: tuple[bytes, Position]) -> tuple[bytes, Position]:
        """Return a piece, with the name of the log if it is wanted."""
        return (Payload(piece[0], {"_file": str(self._path)}), piece[1]) if self.wanted else piece

    async def _aside(self, step: Callable[[], T]) -> T:
        """Return the value of a step on a thread, for it may unpack a file; warnings and dead letters follow here."""
        try:
            return await on_thread(step)
        finally:
            self._flush()

    def _flush(self) -> None:
        """Log the warnings of steps, and pass on lines that cannot be read."""
        pending, self._pending = self._pending, []
        for call in pending:
            call()

    def _check_encoding(self, first_line: bytes) -> None:
        """Raise ``TraceError`` if the lines of the file do not end at a byte."""
        if isinstance(self.format, CsvFormat) or self.format in ("csv", "jsonl"):
            refuse_wide(self._path, first_line)

    def last_data(self) -> list[tuple[bytes, Position]]:
        """Return last lines without a line break; one line of the log names the file if more was there to read."""
        if self._ended is None:
            return []
        tail = self._tail(self._ended, follow=True)
        try:
            if (more := tail.step()) is not None and more[0]:
                _LOG.warning(
                    "%s: has lines that were not read when the stream was ended: %s", self._path, self._ended
                )
                return []
            data = []
            while (piece := tail.last()) is not None:
                data.append(self._told(_headed(tail, piece)))
            return data
        finally:
            tail.close()
            self._flush()

    async def latest(self) -> Position:
        """Return the position behind the last whole line of the file; None if it is not there yet."""
        if not self._path.is_file():
            return None
        with closing(open_bytes(self._path)) as content:
            size = content.size()
            before = max(size - LONGEST, 0)
            end = content.read(before, size - before).rfind(b"\n") + 1
            return Followed(content, before + end, lambda reason, record: None).position

    def _tail(self, position: Position, *, follow: bool) -> LogTail:
        def refuse(reason: str, record: str) -> None:
            if self.unreadable is None:
                words = "%s: %s; got %s", self._path, reason, record[:200]
                self._pending.append(partial(_LOG.warning, *words))
            else:
                self._pending.append(partial(self.unreadable, reason, record, 1))

        warned = set[str]()

        def warn(line: str) -> None:
            if line not in warned:
                self._pending.append(partial(_LOG.warning, "%s", line))
            warned.add(line)

        return LogTail(
            self._path, position, follow=follow, skip_lost=self._skip_lost, warn=warn, refuse=refuse
        )


class _Behind(list[Any]):
    """A position behind data of a file, with its inode and first line, which a checkpoint leaves out."""

    def __init__(self, position: Iterable[Any], inode: int = 0, header: bytes = b"") -> None:
        super().__init__(position)
        self.inode, self.header = inode, header


def _headed(tail: LogTail, piece: tuple[bytes, list[Any]]) -> tuple[bytes, Position]:
    return piece[0], _Behind(piece[1], tail.inode, tail.header)


def _offsets(position: Position) -> dict[int, int]:
    """Return the offset of each file of a position by its inode."""
    if position is None:
        return {}
    places = [*(position[-1] if isinstance(position[-1], list) else []), position]
    return {place[0]: place[1] for place in places}
