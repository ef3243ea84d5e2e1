"""Part files: a folder to which each epoch adds a file, in any format of traces."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine.connectors.change_feed import change_feed, feed_fields
from oop_engine.connectors.paths import local_path
from oop_engine.connectors.sink import LiveSink, Prepared, key_columns
from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.system.disk import Disk
from oop_engine.system.knobs import knob
from oop_engine.system.on_thread import on_thread
from oop_engine.traces.compressed import compressing, is_compressed
from oop_engine.traces.format import Marks, plain
from oop_engine.traces.format_registry import FORMATS, format_of

__all__ = ["PartFiles", "gone", "hidden"]

_LOG = logging.getLogger("oop_engine")
_MOST_BYTES = knob(__name__, "_MOST_BYTES", 1 << 26)
"""Results of an epoch that are held in memory; more of them go to a further file."""


class PartFiles(LiveSink):
    """Files ``<epoch>-<number>-<run>-<process>.<format>`` in ``folder``.

    ``format``: a name of ``FORMATS`` (parquet, jsonl, csv...), or compressed with the suffix behind it (``jsonl.gz``,
    ``csv.zst``; ``jsonl:DIR?compressed=gz``).  A file appears whole, when its epoch is committed, and never changes:
    readers need no lock.  Until then it is hidden (its name begins with a dot), so programs that read a folder of
    Parquet do not see it.  Of a revision stream it is a change feed: columns ``_change_type``, ``_commit_version``
    (the epoch) and ``_commit_timestamp`` instead of ``change``; two changes of one ``key`` in a
    page are the images of an update.  Raises ``UsageError`` for an unknown format, ``TraceError`` where it cannot hold
    the columns, ``GraphError`` for a key that is none.
    """

    def __init__(
        self,
        folder: str | Path,
        format: str = "parquet",
        *,
        key: str | Sequence[str] = (),
        clock: Callable[[], float] = time.time,
        disk: Disk | None = None,
        aside: Callable[..., Awaitable[Any]] = on_thread,
    ) -> None:
        self.folder = self.writes = local_path("PartFiles", folder)
        named = Path(f"part.{format}")
        self._format = FORMATS[format_of(named)]
        self._suffix = f"{self._format.name}{named.suffix.lower() if is_compressed(named) else ''}"
        self._key, self._clock = tuple(key_columns(key)), clock
        self._disk, self._aside = disk or Disk(), aside
        self._pages: dict[int, list[Page]] = {}
        self._bytes: dict[int, int] = {}
        self._files: dict[int, list[str]] = {}
        self._run = ""
        self._own = os.urandom(4).hex()  # an earlier process that is still there writes to files of its own

    async def open(self, schema: Schema, run: str, prepared: Collection[Prepared]) -> None:
        """Make the folder, and remove hidden files of this run that belong to no checkpoint."""
        self._schema, self._run = schema, run
        self._marks = Marks(schema.progressing, schema.unit, "")
        schema.require(self._key, "PartFiles: key")
        self._bytes_of([], 0)  # raises for columns that do not fit, now
        self._disk.make(self.folder)
        committed = {hidden(name) for names in prepared for name in names}
        for name in self._disk.names(self.folder):
            if name.startswith(".") and f"-{run}-" in name and name not in committed:
                self._disk.remove(self.folder / name)

    async def write(self, epoch: int, page: Page) -> None:
        """Keep a page; write a file if there are many."""
        self._pages.setdefault(epoch, []).append(page)
        self._bytes[epoch] = self._bytes.get(epoch, 0) + page.nbytes
        if self._bytes[epoch] >= _MOST_BYTES:
            await self._aside(self._flush, epoch)

    async def prepare(self, epoch: int) -> Prepared:
        """Write the hidden file of an epoch, if it has results."""
        return await self._aside(self._finish, epoch)

    def _finish(self, epoch: int) -> Prepared:
        self._flush(epoch)
        files = self._files.pop(epoch, None)
        if files is not None:
            self._disk.sync(self.folder)
        return files

    async def commit(self, prepared: Prepared) -> None:
        """Publish the files of an epoch."""
        await self._aside(self._show, prepared)

    def _show(self, prepared: Prepared) -> None:
        for name in prepared:
            before, shown = self.folder / hidden(name), self.folder / name
            try:
                self._disk.replace(before, shown)
            except FileNotFoundError:
                if not self._disk.exists(shown):
                    raise gone(shown) from None

    def _flush(self, epoch: int) -> None:
        pages = self._pages.pop(epoch, [])
        self._bytes.pop(epoch, None)
        if pages:
            files = self._files.setdefault(epoch, [])
            files.append(f"{epoch:07d}-{len(files)}-{self._run}-{self._own}.{self._suffix}")
            self._write(self.folder / hidden(files[-1]), self._bytes_of(pages, epoch))

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file; make the folder again if a reader has removed it with the files."""
        try:
            self._disk.write(path, data)
        except FileNotFoundError:
            _LOG.warning(
                "sink %s: the folder was removed while the service runs: it is made again", self.folder
            )
            self._disk.make(self.folder)
            self._disk.write(path, data)

    def _stored(self, fields: pa.Schema) -> pa.Schema:
        """Return the columns as they are in a file."""
        return plain(fields)

    def _bytes_of(self, pages: list[Page], epoch: int) -> bytes:
        sink, at_s = pa.BufferOutputStream(), self._clock()
        given = self._schema.fields if self._schema.change is None else feed_fields(self._schema)
        fields = self._stored(given)
        with compressing(f"part.{self._suffix}", sink) as packed:
            writer = self._format.writer(packed, fields, self._marks)
            for page in pages:
                batch = (
                    page.batch if self._schema.change is None else change_feed(page, self._key, epoch, at_s)
                )
                writer.write(batch if fields.equals(given) else batch.cast(fields))
            writer.close()
        return bytes(sink.getvalue().to_pybytes())


def hidden(name: str) -> str:
    """Return the name of a file before its epoch is committed."""
    return f".{name}"


def gone(path: str | Path) -> SnapshotError:
    """Return the error of a prepared file that nobody has committed and that is not there."""
    msg = f"{path}: results that a checkpoint has recorded are gone: restore the file, or start with new folders"
    return SnapshotError(msg)
