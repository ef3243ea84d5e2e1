"""Whole files: a file appears under its name when it is whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["whole_file"]

_ANEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to; at the end it is ``path``, and on any error the earlier file stays.

    Until then it is hidden beside ``path``, made anew: never a file, or a link, that was there before.
    Raises ``OSError`` where it cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    descriptor = os.open(unfinished, _ANEW, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
