"""Folder: which files of a folder are traces, and in which order; one rule for all that read folders.

Names that begin with ``.`` or ``_`` are of others.  Folders called ``name=value`` are partitions, and are read, too.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from oop_engine.core.errors import UsageError
from oop_engine.traces.format_registry import format_of
from oop_engine.traces.formats.partitions import is_partition, partition_order

__all__ = ["LeftOut", "files_of", "is_hidden", "is_trace", "names_in"]

_LOG = logging.getLogger("oop_engine")


def names_in(folder: str | Path) -> Iterator[str]:
    """Yield all names in a folder, and in the partitions in it; none if it is not there."""
    return _names(str(folder), "")


def is_hidden(name: str) -> bool:
    """Return whether a name is one of others."""
    return name.rpartition("/")[2].startswith((".", "_"))


def is_trace(name: str) -> bool:
    """Return whether a file has the suffix of a format of traces."""
    return not _why_none(name)


def files_of(folder: Path, left_out: LeftOut, is_one: Callable[[str], bool] = is_trace) -> list[str]:
    """Return the names of the files of a folder that are read, in their order; others are ``left_out``."""
    names = []
    for name in sorted(names_in(folder), key=partition_order):
        if is_hidden(name):
            continue
        if is_one(name) and (folder / name).is_file():
            names.append(name)
        else:
            left_out.tell(folder / name)
    return names


class LeftOut:
    """Logs files that are left out of a folder: the first of each suffix, and the first folder within it."""

    def __init__(self, why: str = "") -> None:
        self._why, self._kinds = why, set[str]()

    def tell(self, path: Path) -> None:
        """Log the path, unless one of its kind was logged."""
        if path.is_dir():
            kind, line = "/", "is a folder within the folder: its files are not read"
        else:
            kind = "".join(path.suffixes[-2:]).lower()
            line = f"is left out, as others of this suffix: {self._why or _why_none(path.name)}"
        if kind not in self._kinds:
            _LOG.warning("%s: %s", path, line)
        self._kinds.add(kind)


def _names(folder: str, above: str) -> Iterator[str]:
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        if is_partition(name) and not is_trace(name):
            yield from _names(f"{folder}/{name}", f"{above}{name}/")
        else:
            yield above + name


def _why_none(name: str) -> str:
    """Return why a file is no trace by its name; "" if it is one."""
    try:
        format_of(name)
    except UsageError as error:
        return str(error).removeprefix(f"{name}: ")
    return ""
