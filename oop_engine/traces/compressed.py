"""Compressed files: gzip and zstandard, by the suffix behind that of the format (``a.csv.gz``, ``b.jsonl.zst``)."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from oop_engine.system.knobs import knob

__all__ = ["CODECS", "compressing", "is_compressed", "opened", "seekable", "share_read", "without_codec"]

CODECS = {".gz": "gzip", ".zst": "zstd"}
"""Names of Arrow's codecs, by suffix."""
_BUFFER = knob(__name__, "_BUFFER", 1 << 20)


def is_compressed(path: str | Path) -> bool:
    """Return whether the suffix is that of a codec."""
    return Path(path).suffix.lower() in CODECS


def without_codec(path: str | Path) -> Path:
    """Return the path without the suffix of a codec."""
    path = Path(path)
    return path.with_suffix("") if is_compressed(path) else path


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to be read once from the start, decompressed.  Raises ``OSError`` where it is damaged or cut off."""
    if not is_compressed(path):
        with path.open("rb") as file:
            yield file
        return
    with (
        pa.OSFile(str(path)) as file,
        pa.CompressedInputStream(file, CODECS[path.suffix.lower()]) as stream,
        io.BufferedReader(_Raw(stream), _BUFFER) as buffered,
    ):
        yield buffered


def share_read(path: Path, file: IO[bytes]) -> float | None:
    """Return the part of an ``opened`` file that was read, 0 to 1; None: it is compressed."""
    return None if is_compressed(path) else file.tell() / max(path.stat().st_size, file.tell(), 1)


@contextmanager
def seekable(path: Path) -> Iterator[Any]:
    """Open a file for Arrow to read anywhere in it; a compressed one is unpacked into a temporary file."""
    if not is_compressed(path):
        with pa.OSFile(str(path)) as file:
            yield file
        return
    with opened(path) as packed, tempfile.TemporaryFile() as whole:
        while block := packed.read(_BUFFER):
            whole.write(block)
        whole.seek(0)
        with pa.PythonFile(whole, mode="r") as file:
            yield file


@contextmanager
def compressing(path: str | Path, sink: pa.NativeFile) -> Iterator[pa.NativeFile]:
    """Give a sink whose bytes go to ``sink`` as the suffix of ``path`` tells."""
    if not is_compressed(path):
        yield sink
        return
    with pa.CompressedOutputStream(sink, CODECS[Path(path).suffix.lower()]) as packed:
        yield packed


class _Raw(io.RawIOBase):
    """A stream of Arrow as one of Python."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes; 0 at the end."""
        return int(self._stream.readinto(buffer))
