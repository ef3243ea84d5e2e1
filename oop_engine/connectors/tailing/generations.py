"""Generations: the files of one log that was rotated, in the order in which they were written.

Names that count as rotated, for ``app.log``: ``app.log.1``, ``app.log.2.gz``, ``app.log-20260131``,
``app.log.2026-01-31_12``, ``app.log.old``, ``app.1.log``, ``app-20260131.log.zst``; where ``app.log`` is a symbolic
link, also the files beside its target whose names differ from that of the target in digits alone.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from oop_engine.connectors.tailing.bytes_at import codec_of

__all__ = ["Generation", "generations", "start_of", "with_inode"]

_MARK = re.compile(r"[.\-_](?:\d[\d.\-_:TZ]*|old)")
_DIGITS = re.compile(r"\d+")
_START = 256
_LARGEST_INDEX = 99_999
"""A single number up to this counts rotations (1 is the newest); a larger one is a date or a time."""


@dataclass(frozen=True)
class Generation:
    """A file of the log: where it is, its inode, and when it was written last, in nanoseconds."""

    path: Path
    inode: int
    written_ns: int


def generations(path: Path) -> list[Generation]:
    """Return the rotated files of the log at ``path``, from the oldest on; the file at ``path`` is not one of them.

    They are in the order in which they were written last: numbers fall in one program (2 is older than 1) and rise in
    another.  Those of one moment are in the order of their dates, or of falling numbers.
    """
    target = Path(os.path.realpath(path))
    linked = path.is_symlink()
    ranks: dict[tuple[int, ...], str] = {}
    try:
        names = sorted(os.listdir(target.parent), key=lambda name: (codec_of(name) != "", name))
    except OSError:
        return []
    for name in names:  # those that are not compressed first: a file that is being compressed has two names
        if name != target.name and (rank := _rank(target.name, name, linked=linked)) is not None:
            ranks.setdefault(rank, name)
    listed = []
    for rank in sorted(ranks):
        at = target.parent / ranks[rank]
        try:
            known = at.stat()
        except OSError:  # renamed meanwhile: the caller compares two lists
            continue
        if at.is_file():
            listed.append(Generation(at, known.st_ino, known.st_mtime_ns))
    return sorted(listed, key=lambda each: each.written_ns)


def start_of(generation: Generation, most: int = _START) -> tuple[int, int] | None:
    """Return the length and a sum of the first bytes of a file, by which it is known again; None: it is gone."""
    try:
        with generation.path.open("rb", buffering=0) as file:
            start = file.read(most)
    except OSError:
        return None
    return len(start), crc32(start)


def with_inode(path: Path, inode: int) -> Path | None:
    """Return the file with an inode in the folder of the log at ``path``, whatever its name is; None: there is none."""
    if not inode:
        return None
    for folder in dict.fromkeys((path.parent, Path(os.path.realpath(path)).parent)):
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.inode() == inode and entry.is_file(follow_symlinks=False):
                        return folder / entry.name
        except OSError:
            continue
    return None


def _rank(log: str, name: str, *, linked: bool) -> tuple[int, ...] | None:
    """Return the rank of a name, a kind (0: numbers that count, 1: dates) and numbers; None: no file of the log."""
    name = name.removesuffix(name[len(name) - len(codec_of(name)) :]) if codec_of(name) else name
    stem, suffix = os.path.splitext(log)
    if name.startswith(log):
        mark = name[len(log) :]
    elif name.startswith(stem) and name.endswith(suffix) and len(name) > len(log):
        mark = name[len(stem) : len(name) - len(suffix)]
    else:
        mark = ""
    if _MARK.fullmatch(mark):
        numbers = [int(digits) for digits in _DIGITS.findall(mark)]
        if len(numbers) <= 1 and (index := sum(numbers) or int(mark == ".old")) <= _LARGEST_INDEX:
            return (0, -index)
        return (1, *numbers)
    if linked and name != log and _DIGITS.sub("0", name) == _DIGITS.sub("0", log):
        numbers, last = ([int(digits) for digits in _DIGITS.findall(each)] for each in (name, log))
        return (2, *numbers) if numbers < last else None
    return None
