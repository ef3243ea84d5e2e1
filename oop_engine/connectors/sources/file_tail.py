"""File tail: lines that a program appends to a file, across its rotation."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from io import FileIO
from pathlib import Path
from typing import Any
from zlib import crc32

from oop_engine.connectors.source import LiveSource, Position
from oop_engine.core.errors import TraceError

__all__ = ["FileTail"]

_BLOCK = 1 << 20
_LONGEST = 1 << 22
_SEEN = 64
"""Bytes before a position by which a file is known again: a new file may have the inode of one that was removed."""


class FileTail(LiveSource):
    """The lines of ``path`` as they are written (``tail -F``), in ``format`` (jsonl, csv, or one of your own).

    The position is the file's inode, an offset behind a whole line, and a sum over the bytes before it.  When another
    file takes its name, the rest of the first is read, and then that one from its beginning; a file that was rotated
    while nobody read is looked for in the same folder.  ``every_s``: how often one looks; ``follow=False``: end at the
    end of the file, which then counts as a whole line.  The file need not be there yet.  Raises ``TraceError`` if the
    position is gone (the file was cut or written anew, or its inode is nowhere), or a line has over 4 MB.
    """

    replayable = True
    by_lines = True

    def __init__(
        self, path: str | Path, format: str = "jsonl", *, every_s: float = 0.1, follow: bool = True
    ) -> None:
        self._path, self.format = Path(path), format
        self.reads = self._path
        self._every_s, self._follow = every_s, follow

    def headed(self) -> bytes:
        """Return the first line of the file."""
        if not self._path.is_file():
            return b""
        with self._path.open("rb") as file:
            return file.readline(_LONGEST)

    def place(self, before: Position, behind: Position, skipped: int) -> Any:
        """Return the file, its inode, and the byte at which a line begins."""
        inode, end = behind[:2]
        same = before is not None and before[0] == inode and before[1] <= end
        return {"file": str(self._path), "inode": inode, "byte": (before[1] if same else 0) + skipped}

    async def read(self, position: Position) -> AsyncIterator[tuple[bytes, Position]]:
        """Yield whole lines, up to 1 MB of them at a time, as soon as they are there."""
        file = await self._opened(position)
        at, seen = file.tell(), _seen(file, file.tell())
        try:
            while True:
                # Asked first: lines that were written before it are read before it.
                rotated = self._rotated(file)
                while lines := self._whole_lines(file, last=rotated or not self._follow):
                    # Asked last: a file that was cut is written from its beginning.
                    if _seen(file, at) != seen:
                        raise self._cut(at, "the bytes before are others now")
                    at = file.tell()
                    seen = _seen(file, at)
                    yield lines, [os.fstat(file.fileno()).st_ino, at, seen]
                    await asyncio.sleep(0)
                if not self._follow:
                    return
                if rotated:
                    file.close()
                    file = _unbuffered(self._path)
                    at, seen = 0, _seen(file, 0)
                else:
                    await asyncio.sleep(self._every_s)
        finally:
            file.close()

    async def _opened(self, position: Position) -> FileIO:
        if position is None:
            if not self._path.is_file():
                if (is_folder := self._path.is_dir()) or not self._follow:
                    problem = "is a folder" if is_folder else "does not exist"
                    msg = f"{self._path}: {problem}: give the path of a file"
                    raise TraceError(msg)
                logging.getLogger("oop_engine").warning("%s: does not exist yet: waiting for it", self._path)
            while not self._path.is_file():
                await asyncio.sleep(self._every_s)
            return _unbuffered(self._path)
        inode, offset, *seen = position  # earlier versions wrote no sum
        for path in [self._path, *sorted(self._path.parent.glob(f"{self._path.name}*"))]:
            if path.is_file() and path.stat().st_ino == inode:
                file = _unbuffered(path)
                file.seek(offset)
                if not seen or path.stat().st_size < offset or _seen(file, offset) == seen[0]:
                    return file
                file.close()
        msg = f"{self._path}: the file that was read to byte {offset:,} is gone (inode {inode}): put it back, or begin "
        msg += "anew with another folder of checkpoints"
        raise TraceError(msg)

    def _rotated(self, file: FileIO) -> bool:
        now, at = os.fstat(file.fileno()), file.tell()
        if now.st_size < at:
            raise self._cut(at, f"has {now.st_size:,}")
        return self._path.is_file() and self._path.stat().st_ino != now.st_ino

    def _cut(self, at: int, found: str) -> TraceError:
        msg = f"{self._path}: was read to byte {at:,} and {found}: it was cut; put it back, "
        return TraceError(msg + "or begin anew with another folder of checkpoints")

    def _whole_lines(self, file: FileIO, *, last: bool) -> bytes:
        """Return lines, behind which the file then stands; ``last``: the end of the file ends a line."""
        at = file.tell()
        block = file.read(_BLOCK)
        end = block.rfind(b"\n") + 1
        if block and not end:
            file.seek(at)
            block = file.read(_LONGEST)
            end = block.rfind(b"\n") + 1 or (len(block) if last else 0)
            if len(block) == _LONGEST and b"\n" not in block:
                msg = f"{self._path}: a line must be shorter than {_LONGEST:,} bytes; got {block[:60]!r}...: divide it"
                raise TraceError(msg)
        file.seek(at + end)
        return block[:end] if block[:end].endswith(b"\n") or not end else block[:end] + b"\n"


def _unbuffered(path: Path) -> FileIO:
    """Open a file whose bytes are always read as they are now."""
    return path.open("rb", buffering=0)


def _seen(file: FileIO, at: int) -> int:
    """Return a sum over the last bytes before an offset, as they are now."""
    stood, start = file.tell(), max(0, at - _SEEN)
    file.seek(start)
    found = crc32(file.read(at - start))
    file.seek(stood)
    return found
