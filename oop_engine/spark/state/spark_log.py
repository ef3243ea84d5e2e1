"""The log of Spark in its own folder: which micro-batches it has begun, and which are done.

    metadata      the id of the query
    offsets/<n>   the offsets of micro-batch n; written before it runs
    commits/<n>   micro-batch n is done
    .<name>.crc   checksums of a file, where its file system makes them

Spark ends with a trace of many lines if one of them is damaged, and may begin anew if one is gone.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

from oop_engine.core.errors import SnapshotError

__all__ = ["METADATA", "next_batch", "offset_of"]

METADATA = "metadata"
_CHAIN = b"crc\0"
_HEADER = 2  # lines: the version of the format, and a JSON object; then the offset of each source
_WAY_OUT = "restore the file, or start with an empty folder"


def offset_of(batch: int) -> str:
    """Return the name of the file with the offsets of a micro-batch."""
    return f"offsets/{batch}"


def next_batch(folder: Path, done: int) -> int:
    """Return the micro-batch that Spark runs next, if its results are in place up to micro-batch ``done``.

    Raises ``SnapshotError`` if a file is damaged, or does not go with the others.
    """
    begun, ended = _newest(folder / "offsets"), _newest(folder / "commits")
    for pattern in (METADATA, "offsets/*", "commits/*", "sources/*/*"):
        for path in sorted(folder.glob(pattern)):
            if path.is_file() and not path.name.startswith("."):
                _check(path)
    if begun < done:
        msg = f"{folder / offset_of(done)} is missing: {_WAY_OUT}"
        raise SnapshotError(msg)
    if begun > done + 1 or ended > done:
        msg = (
            f"{folder} has gone on to micro-batch {max(begun, ended)}, and the manifest to {done}: {_WAY_OUT}"
        )
        raise SnapshotError(msg)
    return begun + 1 if ended == begun else begun


def _newest(folder: Path) -> int:
    return max((int(path.name) for path in folder.glob("*") if path.name.isdigit()), default=-1)


def _check(path: Path) -> None:
    """Make sure that a file can be read: it has its checksums, and begins as Spark begins one."""
    content = path.read_bytes()
    sums = path.with_name(f".{path.name}.crc")
    if sums.exists() and not _fits(content, sums.read_bytes()):
        msg = f"{path} is damaged, it does not fit {sums.name}: {_WAY_OUT}"
        raise SnapshotError(msg)
    if path.name.isdigit() and path.parent.name in ("offsets", "commits"):
        lines = content.split(b"\n")
        try:
            sound = lines[0][:1] == b"v" and lines[0][1:].isdigit() and isinstance(json.loads(lines[1]), dict)
        except (IndexError, ValueError):
            sound = False
        if not sound or (path.parent.name == "offsets" and len(lines) <= _HEADER):
            msg = f"{path} is damaged: {_WAY_OUT}"
            raise SnapshotError(msg)


def _fits(content: bytes, sums: bytes) -> bool:
    """Return whether ``sums`` are the checksums of ``content``: CRC-32 of each so many bytes, as Hadoop writes them."""
    width = int.from_bytes(sums[4:8], "big")
    if sums[:4] != _CHAIN or width <= 0:
        return False
    parts = [content[at : at + width] for at in range(0, len(content), width)]
    return sums[8:] == b"".join(zlib.crc32(part).to_bytes(4, "big") for part in parts)
