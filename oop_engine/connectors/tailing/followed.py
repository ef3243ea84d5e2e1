"""Followed: one file of a log, read by whole lines from an offset on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

from oop_engine.connectors.tailing.bytes_at import BytesAt, PackedBytes, codec_of
from oop_engine.connectors.tailing.generations import Generation
from oop_engine.system.knobs import knob

__all__ = ["LONGEST", "TOO_LONG", "CutError", "Followed", "is_copy", "knows", "short_from"]

LONGEST = 1 << 22
"""Bytes of the longest line, with its line feed."""
TOO_LONG = f"a line must be shorter than {LONGEST:,} bytes"
_BLOCK = knob(__name__, "_BLOCK", 1 << 20, least=1 << 10)
_SHOWN = 1000
_SEEN, _HEAD = 64, 256
_WEAK = 1 << 10
"""Bytes below which two files may begin alike by chance (a header of CSV, an empty file)."""


class CutError(Exception):
    """The bytes before the offset are gone: the file was cut, or written anew."""


class Followed:
    """Lines of the file ``content`` from ``at`` on; ``refuse`` is called with a reason and the first bytes of others.

    ``written_ns``: when the file had been written last, as the last lines were taken.  ``idle``: calls of ``take`` in
    a row that found nothing.  ``start``: how many bytes at its start are known, if nothing was read.  ``at``: behind
    the last line that was taken.  ``unended``: that one had no line break.  ``newer_ns``: files that were written after
    that are newer; it stands while ``at_path`` is false, since another file may have come by then.  ``first_inode``: of
    a copy, or a compressed form, that of the file whose lines it goes on with.
    """

    def __init__(
        self, content: BytesAt, at: int, refuse: Callable[[str, str], None], start: int = _HEAD
    ) -> None:
        self.content, self.at, self._refuse = content, at, refuse
        self.inode = self.first_inode = content.inode
        self.idle, self.unended = 0, False
        self.at_path = True
        self.written_ns = self.newer_ns = content.stat().st_mtime_ns
        self._first = content.read(0, min(at, _HEAD) or start)
        self._last = content.read(max(at - _SEEN, 0), min(at, _SEEN))
        self._scanned = self._zeros = at

    @property
    def position(self) -> list[int]:
        """The inode, the offset, sums over bytes before it and at the start, and when the file was written last.

        Of a file of which nothing was read: how many bytes at its start are known, and a sum over them.  ``newer_ns``
        and ``first_inode`` are there if one of them is another one.
        """
        seen = crc32(self._last) if self.at else len(self._first)
        others = [self.newer_ns, self.first_inode]
        more = [] if others == [self.written_ns, self.inode] else others
        return [self.inode, self.at, seen, crc32(self._first), self.written_ns, *more]

    def goes_on(self, place: list[Any]) -> Followed:
        """Take over the times and the first inode of a position; return the file."""
        self.written_ns = place[4] or self.written_ns
        self.newer_ns, self.first_inode = place[5:] or (self.written_ns, place[0])
        return self

    @property
    def weak(self) -> bool:
        """Whether another file may have the same bytes before the offset."""
        return self.at < _WEAK

    def first_line(self) -> bytes:
        """Return the first line of the file."""
        size = _BLOCK >> 8
        while (
            not (end := (block := self.content.read(0, size)).find(b"\n") + 1)
            and len(block) == size < LONGEST
        ):
            size *= 4
        return block[: end or len(block)]

    def same(self) -> bool:
        """Return whether the bytes before the offset are those that were read."""
        if isinstance(self.content, PackedBytes):
            return True
        first, last = len(self._first), len(self._last)
        return (
            self.content.holds(self.at)
            and self.content.read(self.at - last, last) == self._last
            and self.content.read(0, first) == self._first
        )

    def take(self, *, last: bool) -> bytes | None:
        """Return whole lines, up to 1 MB of them, b"" if others were passed over, None if there are none now.

        ``last``: the end of the file ends a line.  Raises ``CutError``, and ``OSError`` if the file cannot be read.
        """
        if not self.same():
            raise CutError
        piece = self._taken(last=last)
        self.idle = self.idle + 1 if piece is None else 0
        return piece

    def _taken(self, *, last: bool) -> bytes | None:
        if self._scanned > self.at:
            return self._pass_over(last=last)
        block = self.content.read(self.at, _BLOCK)
        if block[:1] == b"\0":
            return self._pass_zeros()
        end = block.rfind(b"\n") + 1
        if not end and len(block) == _BLOCK:
            block = self.content.read(self.at, LONGEST)
            if not (end := block.rfind(b"\n") + 1) and len(block) == LONGEST:
                self._scanned = self.at + LONGEST
                return b""
        lines = block[: end or len(block)]
        if not lines or not (end or last):
            return None
        if not self.same():  # asked last, too: a file that was cut is written from its beginning
            raise CutError
        self._advance(len(lines), lines)
        self.unended = not end
        return lines if end else lines + b"\n"

    def emptied(self, written_ns: int) -> bool:
        """Return whether the file, of which nothing was ever known, is empty and was written last at another time."""
        if self._first or self.content.size() or written_ns == self.written_ns:
            return False
        self.written_ns = self.newer_ns = written_ns
        return True

    def note_start(self) -> None:
        """Note the first bytes of a file of which nothing was read: a position with them finds its copy."""
        if self.at == 0 and len(self._first) < _HEAD:
            start = self.content.read(0, _HEAD)
            if start.startswith(self._first):
                self._first = start

    def _advance(self, by: int, passed: bytes) -> None:
        if self.at < _HEAD:
            self._first = (self._first[: self.at] + passed)[:_HEAD]
        self.at += by
        self._last = (self._last + passed)[-_SEEN:]
        self._scanned = self._zeros = self.at
        self._note_written()

    def _note_written(self) -> None:
        self.written_ns = self.content.stat().st_mtime_ns
        if self.at_path:
            self.newer_ns = self.written_ns

    def _skip_to(self, at: int) -> None:
        self._first = self.content.read(0, min(at, _HEAD))
        self._last = self.content.read(max(at - _SEEN, 0), min(at, _SEEN))
        self.at = self._scanned = self._zeros = at
        self._note_written()

    def _pass_over(self, *, last: bool) -> bytes | None:
        """Look for the end of a line that is too long, a block at a time."""
        block = self.content.read(self._scanned, _BLOCK)
        end = block.find(b"\n") + 1
        self._scanned += end or len(block)
        if not end and (block or not last):
            return b"" if block else None
        first = self.content.read(self.at, _SHOWN)
        self._skip_to(self._scanned)
        self._refuse(TOO_LONG, first.decode(errors="replace"))
        return b""

    def _pass_zeros(self) -> bytes | None:
        """Pass over a hole: a writer that does not append goes on at its old offset in a file that was cut."""
        while block := self.content.read(self._zeros, _BLOCK):
            if rest := block.lstrip(b"\0"):
                self._skip_to(self._zeros + len(block) - len(rest))
                return b""
            self._zeros += len(block)
        return None


def knows(content: BytesAt, at: int, seen: int | None, head: int | None) -> bool:
    """Return whether a file has the bytes that a position tells of before its offset, or at its start if that is 0."""
    if at == 0:
        return not seen or (content.holds(seen) and crc32(content.read(0, seen)) == head)
    return (
        content.holds(at)
        and (head is None or crc32(content.read(0, min(at, _HEAD))) == head)
        and (seen is None or crc32(content.read(max(at - _SEEN, 0), min(at, _SEEN))) == seen)
    )


def is_copy(generation: Generation, place: list[Any]) -> bool:
    """Return whether a file may be a copy of that of a position, by its time: it is no older."""
    _, at, seen, _, written_ns = place[:5]
    if at == 0 and not seen:
        return generation.written_ns > int(written_ns)
    step = _step_ns(generation)
    return generation.written_ns // step >= int(written_ns) // step


def short_from(generation: Generation, content: BytesAt, place: list[Any]) -> int | None:
    """Return where to go on in the compressed form of a part of the file of a position; None: it is another file.

    Lines that a program writes while its file is compressed are in the file alone, which is removed then.  The form has
    fewer bytes than were read, or the bytes before the offset (or the known ones at its start) beyond the first line,
    which other files may have too.
    """
    _, at, seen, head, written_ns = place[:5]
    step = _step_ns(generation)
    if not isinstance(content, PackedBytes) or generation.written_ns // step > int(written_ns) // step:
        return None
    if content.holds(at):
        start = content.read(0, min(at, _HEAD) or seen)
        return int(at) if b"\n" in start[:-1] and knows(content, at, seen, head) else None
    if not content.holds(_HEAD) or crc32(content.read(0, _HEAD)) == head:
        return content.size()
    return None


def _step_ns(generation: Generation) -> int:
    """Return the unit of the time of a file: programs that compress keep whole seconds, at least."""
    return 10**9 if codec_of(generation.path.name) else 1
