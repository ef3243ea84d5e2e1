"""Inflating: the content of a compressed answer, a bounded piece at a time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

from oop_engine.system.knobs import knob

__all__ = ["inflating"]

_PIECE = knob(__name__, "_PIECE", 1 << 16)
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


def inflating(encoding: str) -> Callable[[bytes], Iterator[bytes]] | None:
    """Return a function that yields the content of each chunk, 64 KiB at most at a time; None: no such encoding.

    So an answer that is a thousand times as long as its bytes fills no memory.  The function raises ``zlib.error``.

    >>> unpack = inflating("gzip")
    >>> [len(piece) for piece in unpack(zlib.compress(bytes(100_000), wbits=31))]
    [65536, 34464]
    """
    if encoding in ("", "identity"):
        return lambda chunk: iter([chunk])
    if encoding not in _WINDOWS:
        return None
    inflater = zlib.decompressobj(_WINDOWS[encoding])

    def unpack(chunk: bytes) -> Iterator[bytes]:
        left = chunk
        while True:
            piece = inflater.decompress(left, _PIECE)
            left = inflater.unconsumed_tail
            if piece:
                yield piece
            if not left and len(piece) < _PIECE:
                return

    return unpack
