"""Bytes at an offset: of a file as it is now, or of the content of a compressed one.

A plain file is never buffered, so its bytes are those that it has now.  Of a compressed file a window of the content
stays in memory: it is read forward, and an offset before the window decompresses the file again from its start.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from oop_engine.system.knobs import knob

__all__ = ["BytesAt", "PackedBytes", "begins_with", "codec_of", "open_bytes"]

_CHUNK = knob(__name__, "_CHUNK", 1 << 20)
_BEHIND = 1 << 10


def _zstd(file: IO[bytes]) -> Any:
    return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")


_CODECS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": gzip.open,
    ".zst": _zstd,
    ".zstd": _zstd,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


def codec_of(name: str) -> str:
    """Return the suffix of a compressed file, or "" for others."""
    suffix = os.path.splitext(name)[1].lower()
    return suffix if suffix in _CODECS else ""


def open_bytes(path: Path) -> BytesAt:
    """Open a file by its suffix.  Raises ``OSError`` if it cannot be opened."""
    return PackedBytes(path) if codec_of(path.name) else BytesAt(path)


class BytesAt:
    """The bytes of the file at ``path``, as they are now."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self.inode = self.stat().st_ino

    def stat(self) -> os.stat_result:
        """Return the status of the file, whatever its name is now."""
        return os.fstat(self._file.fileno())

    def read(self, at: int, most: int) -> bytes:
        """Return up to ``most`` bytes from offset ``at`` on; fewer only at the end.  Raises ``OSError``."""
        self._file.seek(at)
        data = self._file.read(most)
        while 0 < len(data) < most and (more := self._file.read(most - len(data))):
            data += more
        return data

    def holds(self, size: int) -> bool:
        """Return whether there are at least ``size`` bytes."""
        return self.stat().st_size >= size

    def size(self) -> int:
        """Return how many bytes there are."""
        return self.stat().st_size

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class PackedBytes(BytesAt):
    """The content of the compressed file at ``path``, which does not change."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._codec = _CODECS[codec_of(path.name)]
        self._window, self._start = b"", 0
        self._rewind()

    def read(self, at: int, most: int) -> bytes:
        """Return up to ``most`` bytes of the content.  Raises ``OSError`` if the file is damaged or cut off."""
        if at < self._start:
            self._content.close()
            self._packed.close()
            self._rewind()
        while self._start + len(self._window) < at + most:
            if (distance := at - _BEHIND - self._start) > 0:
                cut = min(distance, len(self._window))
                self._window, self._start = self._window[cut:], self._start + cut
            try:
                chunk = self._content.read(_CHUNK)
            except (EOFError, lzma.LZMAError, pa.ArrowException) as error:
                msg = f"the compressed content ends or is damaged: {error}"
                raise OSError(msg) from error
            if not chunk:
                break
            self._window += chunk
        data: bytes = self._window[max(at - self._start, 0) :][:most]
        return data

    def _rewind(self) -> None:
        packed = os.fdopen(os.dup(self._file.fileno()), "rb")  # the name may be another file's by now
        packed.seek(0)
        self._packed, self._content = packed, self._codec(packed)
        self._window, self._start = b"", 0

    def holds(self, size: int) -> bool:
        """Return whether the content has at least ``size`` bytes."""
        return size == 0 or len(self.read(size - 1, 1)) == 1

    def size(self) -> int:
        """Return the bytes of the content.  Raises ``OSError`` if it is damaged."""
        at = self._start
        while part := self.read(at, _CHUNK):
            at += len(part)
        return at

    def close(self) -> None:
        """Close the file."""
        self._content.close()
        self._packed.close()
        super().close()


def begins_with(content: BytesAt, other: BytesAt) -> bool:
    """Return whether some content begins with all bytes of another."""
    at = 0
    while part := other.read(at, _CHUNK):
        if content.read(at, len(part)) != part:
            return False
        at += len(part)
    return True
