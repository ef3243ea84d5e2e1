"""Paths: the files and folders of a service, which must not get in each other's way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oop_engine.core.errors import UsageError
from oop_engine.system.addresses import printable
from oop_engine.system.apart import check_apart

__all__ = ["check_paths", "local_path"]


def local_path(kind: str, path: object) -> Path:
    """Return the path of a file or folder of this machine; raise ``UsageError`` for the address of a server.

    As a path ``s3://bucket`` would be a folder ``s3:``, and nobody would look for results there.
    """
    if "://" in str(path):
        msg = (
            f"{kind}: must be a path of this machine; got {printable(path)}: mount the store there, or copy the files "
            "(only checkpoints may be in an object store)"
        )
        raise UsageError(msg)
    return Path(str(path))


def check_paths(sources: Mapping[str, Any], sinks: Mapping[str, Any], checkpoint: object) -> None:
    """Raise ``UsageError`` where a sink or the checkpoint would write into that of a source, or each other.

    Two sinks may write to one folder: their files have different names.
    """
    reads = _paths("source", sources, "reads")
    path = str(checkpoint) if isinstance(checkpoint, str | Path) else ""
    state = [("checkpoint", Path(path))] if path and "://" not in path else []
    check_apart(reads, state)
    for sink in _paths("sink", sinks, "writes"):
        check_apart(reads, [*state, sink])


def _paths(kind: str, given: Mapping[str, Any], which: str) -> list[tuple[str, Path]]:
    paths = {f"{kind} {name!r}": getattr(each, which, None) for name, each in given.items()}
    return [(name, path) for name, path in paths.items() if isinstance(path, Path)]
