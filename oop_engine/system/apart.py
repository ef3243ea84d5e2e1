"""Apart: no output is an input, nor another output, by any spelling or link."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from oop_engine.core.errors import UsageError

__all__ = ["check_apart"]

Named = tuple[str, str | Path]
"""Whose path it is, in words, and the path."""


def check_apart(reads: Iterable[Named], writes: Iterable[Named]) -> None:
    """Raise ``UsageError`` where an output would replace an input, lies in a folder that is read, or is another output.

    Spellings, symbolic and hard links count as the file that they lead to.  Nothing is written.
    O(reads x writes).

    >>> check_apart([("log", "a.csv")], [("--out", "./a.csv")])
    Traceback (most recent call last):
    oop_engine.core.errors.UsageError: --out: a.csv is read by log: give another file
    """
    inputs = [(name, Path(path)) for name, path in reads]
    outputs: list[tuple[str, Path]] = []
    for writer, path in ((writer, Path(path)) for writer, path in writes):
        for reader, read in inputs:
            if _same(path, read):
                kind = "folder" if read.is_dir() else "file"
                msg = f"{writer}: {path} is read by {reader}{_other(path, read)}: give another {kind}"
                raise UsageError(msg)
            if read.is_dir() and _inside(path, read):
                msg = f"{writer}: {path} lies in {read}, a folder that {reader} reads: give a path outside of it"
                raise UsageError(msg)
        for other, output in outputs:
            if _same(path, output):
                where = f"{path} is where {other} writes{_other(path, output)}"
                msg = f"{writer}: {where}: give each output a path of its own"
                raise UsageError(msg)
        outputs.append((writer, path))


def _same(a: Path, b: Path) -> bool:
    try:
        if os.path.samefile(a, b):
            return True
    except OSError:
        pass  # one of them is not there yet
    return _real(a) == _real(b)


def _inside(path: Path, folder: Path) -> bool:
    return any(_same(parent, folder) for parent in _real(path).parents)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _other(path: Path, other: Path) -> str:
    """Return the other spelling of a path, where it is not the same one."""
    return "" if os.path.normpath(path) == os.path.normpath(other) else f" as {other}"
