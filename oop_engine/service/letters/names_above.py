"""Names above: which line of column names holds for each file of a source, which may go back to an earlier file."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["NamesAbove"]

_MOST = 8
"""Files that are remembered."""


class NamesAbove:
    """The first line of the file that is read, the file, and the line of names that holds in this and earlier files.

    Files have keys that are texts; "" is that of a source that has none.
    """

    def __init__(self) -> None:
        self._first, self._file = b"", ""
        self._held: dict[str, bytes] = {}

    def turn_to(self, file: str, first: bytes, data: bytes) -> bytes:
        """Return the line to read before some data of a file whose first line is ``first``; b"": none."""
        was, before = self._file, self._first
        self._file, self._first = file, first or before
        if file == was or (first and data.startswith(first)):
            return b""
        if file in self._held:
            return self._held[file]
        return b"" if first == before else first  # a copy of the file is read on

    def note(self, line: bytes) -> None:
        """Remember the line of names that holds in the file that is read."""
        self._held.pop(self._file, None)
        self._held[self._file] = line
        if len(self._held) > _MOST:
            del self._held[next(iter(self._held))]

    def saved(self, holds: bytes) -> list[str]:
        """Return all as texts, for a checkpoint, with the line that holds now."""
        earlier = [
            text for file, line in self._held.items() for text in (file, _text(line)) if file != self._file
        ]
        return [_text(self._first), _text(holds), self._file, *earlier]

    def restore(self, saved: Sequence[str]) -> bytes:
        """Take all that was ``saved``; return the line that holds, or b""."""
        first, holds, file, *earlier = [*saved, *["", "", ""][len(saved) :]]
        self._first, self._file = first.encode(errors="surrogateescape"), file
        lines = [line.encode(errors="surrogateescape") for line in earlier[1::2]]
        self._held = dict(zip(earlier[::2], lines, strict=True))
        line = holds.encode(errors="surrogateescape")
        if line:
            self.note(line)
        return line


def _text(line: bytes) -> str:
    return line.decode(errors="surrogateescape")
