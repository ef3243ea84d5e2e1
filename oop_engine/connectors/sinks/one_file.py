"""One file: each epoch is appended to it; after a crash it is cut back to its length in the checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from oop_engine.connectors.formats.payloads import check_payloads, payloads_of
from oop_engine.connectors.paths import local_path
from oop_engine.connectors.sink import LiveSink, Prepared
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import SetupError, UsageError
from oop_engine.core.groups.in_python import as_json
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.system.disk import Disk
from oop_engine.system.on_thread import on_thread

__all__ = ["OneFile"]

_FORMATS = ("jsonl", "csv")


class OneFile(LiveSink):
    """Appends rows to the file ``path``, a line each, in ``format`` (jsonl or csv, which begins with a line of names).

    Rows of an epoch are in the checkpoint until they are in the file, with the length that it has before them: at a
    start the file is cut back to that, and they are appended once more.  So each is there once, for who reads behind a
    restart; a reader that follows the file (``tail -F``) may see a torn line, and then it whole.  Results are for
    this, raw streams are not.  A file that is there is appended to.  One service at a time has it (a lock).

    Raises ``UsageError`` for another format, ``SetupError`` if the file is another service's, or was cut or removed.
    """

    failures = (OSError,)

    def __init__(self, path: str | Path, format: str | None = None) -> None:
        self.path = self.writes = local_path("OneFile", path)
        self._format = format or self.path.suffix.removeprefix(".")
        if self._format not in _FORMATS:
            msg = f"{self._place}: format must be one of {', '.join(_FORMATS)}; got {self._format!r}"
            msg += did_you_mean(self._format, _FORMATS)
            raise UsageError(msg)
        self._rows: dict[int, list[str]] = {}
        self._end = 0  # behind all epochs that are prepared
        self._file: Any = None
        self._release: Callable[[], None] = lambda: None

    async def open(self, schema: Schema, run: str, prepared: Collection[Prepared]) -> None:
        """Lock the file, and cut it back to its length in the checkpoint."""
        check_payloads(self._place, self._format, schema.plain().fields)
        self._names = schema.names
        await on_thread(self._open, [*prepared])

    def _open(self, prepared: list[Prepared]) -> None:
        if not self.path.parent.is_dir():
            msg = f"{self._place}: there is no folder {str(self.path.parent)!r}: make it first"
            raise SetupError(msg)
        if (release := Disk().lock(self.path)) is None:
            msg = f"{self._place}: another service writes to it: give each a file of its own"
            raise SetupError(msg)
        self._release = release
        self._file = self.path.open("r+b", buffering=0)
        self._end = size = self._file.seek(0, os.SEEK_END)
        for at, lines in prepared:
            if size < at:
                self._close()
                msg = f"{self._place}: has {size:,} bytes, and a checkpoint {at:,}: restore the file"
                raise SetupError(msg)
            self._file.truncate(at)
            self._end = at + len(lines.encode())
        if (
            not prepared and size and _last_byte(self._file) != b"\n"
        ):  # torn by a process without a checkpoint
            self._end += self._file.write(b"\n")

    async def write(self, epoch: int, page: Page) -> None:
        """Keep the lines of a page."""
        lines = [payload.decode().rstrip("\n") for payload in payloads_of(page, self._format)]
        self._rows.setdefault(epoch, []).extend(lines)

    async def prepare(self, epoch: int) -> Prepared:
        """Hand the lines to the checkpoint, with the length of the file before them; also if there are none."""
        rows = self._rows.pop(epoch, [])
        if rows and not self._end and self._format == "csv":
            rows.insert(0, ",".join(map(_cell, self._names)))
        at, lines = self._end, "".join(f"{row}\n" for row in rows)
        self._end += len(lines.encode())
        return [at, lines]

    async def commit(self, prepared: Prepared) -> None:
        """Append the lines of an epoch; written where they belong, so a second time changes nothing."""
        at, lines = prepared
        if lines:
            await on_thread(self._append, at, lines.encode())

    def _append(self, at: int, data: bytes) -> None:
        self._check_there(at)
        left = memoryview(data)
        self._file.seek(at)
        while left:
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())

    def _check_there(self, at: int) -> None:
        """Raise ``SetupError`` if the file has another name by now, or is shorter: readers would miss results."""
        known = os.fstat(self._file.fileno())
        there = os.stat(self.path) if self.path.exists() else None
        if there is None or (there.st_dev, there.st_ino) != (known.st_dev, known.st_ino):
            msg = f"{self._place}: was removed, renamed or replaced: put it back, and restart the service"
            raise SetupError(msg)
        if known.st_size < at:
            msg = f"{self._place}: was cut to {known.st_size:,} bytes, and a checkpoint has {at:,}: restore the file"
            raise SetupError(msg)

    async def close(self) -> None:
        """Close the file."""
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._release()
        self._file, self._release = None, lambda: None

    @property
    def _place(self) -> str:
        return f"file {str(self.path)!r}"


def _cell(name: str) -> str:
    return as_json(name) if any(sign in name for sign in ',"\n') else name


def _last_byte(file: Any) -> bytes:
    file.seek(-1, os.SEEK_END)
    byte: bytes = file.read(1)
    return byte
