"""Delta folder: each epoch is one transaction of a Delta table, which adds rows or merges them by a key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from random import uniform
from time import sleep
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from oop_engine.connectors.change_feed import no_revisions
from oop_engine.connectors.delta_log import add_action, add_files, first_line, stored, version_of
from oop_engine.connectors.delta_merge import merge
from oop_engine.connectors.library import library
from oop_engine.connectors.sink import Prepared
from oop_engine.connectors.sinks.part_files import PartFiles, gone, hidden
from oop_engine.core.errors import SetupError
from oop_engine.core.schema import Schema
from oop_engine.system.disk import Disk
from oop_engine.system.on_thread import on_thread

__all__ = ["DeltaFolder"]

_TRIES, _LONGEST_S = 20, 0.1


class DeltaFolder(PartFiles):
    """Adds rows to the Delta table in ``folder``, which is made with the first of them; needs deltalake.

    The files of an epoch are written beside those of the table, and become part of it in one transaction that carries
    the number of the epoch: so each row is there once, whenever a process dies.  Timestamps become microseconds, in UTC
    if they have a zone.

    ``key``: columns that tell rows apart; an epoch is then merged into the table, so that a row replaces the one of its
    key.  Of a revision stream the table is the net content after each epoch: rows that are retracted are removed,
    unless others have replaced them.  O(rows of the epoch + rows in files of the table that have one of their keys).
    Without a key files are added and never rewritten, so such a stream is a ``GraphError``.

    Raises ``GraphError`` for a key that is none, ``UsageError`` for a column that Delta cannot hold, ``SetupError`` if
    the table has other columns.
    """

    def __init__(
        self, folder: str | Path, *, key: str | Sequence[str] = (), disk: Disk | None = None,
        aside: Callable[..., Awaitable[Any]] = on_thread,
    ) -> None:  # fmt: skip
        super().__init__(folder, key=key, disk=disk, aside=aside)

    async def open(self, schema: Schema, run: str, prepared: Collection[Prepared]) -> None:
        """Check the package and the columns; remove files of this run that belong to no checkpoint."""
        if not self._key:
            no_revisions(schema, self._place, "without key=(...) no row is retracted")
        schema.plain().require(self._key, f"{self._place}: key")
        library("deltalake", "delta", "DeltaFolder")
        self._columns = stored(self._place, schema.plain().fields)
        await super().open(schema, run, [files for _, _, files in prepared])
        await self._aside(self._check)

    async def prepare(self, epoch: int) -> Prepared:
        """Write the files of an epoch, if it has results."""
        files = await super().prepare(epoch)
        return None if files is None else [self._run, epoch, files]

    async def commit(self, prepared: Prepared) -> None:
        """Add the files of an epoch to the table, or merge them into it, unless that was done."""
        run, epoch, files = prepared
        if await self._aside(version_of, self.folder, _app(run)) < epoch:
            if not self._key:
                await super().commit(files)
            await self._aside(self._transact, _app(run), epoch, files)
        if self._key:
            await self._aside(self._drop, files)

    def _transact(self, app: str, epoch: int, files: list[str]) -> None:
        from deltalake.exceptions import DeltaError

        for tries_left in reversed(range(_TRIES)):  # others write to the table, too
            try:
                (self._merge if self._key else self._add)(app, epoch, files)
            except DeltaError as error:
                if version_of(self.folder, app) >= epoch:  # an older process was quicker
                    return
                if not tries_left:
                    msg = f"{self._place}: epoch {epoch} cannot be added ({first_line(error)}): start the service again"
                    raise SetupError(msg) from error
                sleep(uniform(0, _LONGEST_S))
            else:
                return

    def _add(self, app: str, epoch: int, files: list[str]) -> None:
        rows = [pa.parquet.read_metadata(self.folder / name).num_rows for name in files]
        actions = [add_action(self.folder, name, count) for name, count in zip(files, rows, strict=True)]
        add_files(self.folder, self._columns, actions, app, epoch)

    def _merge(self, app: str, epoch: int, files: list[str]) -> None:
        paths = [self.folder / hidden(name) for name in files]
        try:
            merge(self.folder, self._columns, self._key, paths, app, epoch)
        except FileNotFoundError as error:
            if version_of(self.folder, app) < epoch:  # else an older process has merged and removed it
                raise gone(error.filename) from None

    def _drop(self, files: list[str]) -> None:
        for name in files:
            if self._disk.exists(path := self.folder / hidden(name)):
                self._disk.remove(path)

    def _check(self) -> None:
        from deltalake import DeltaTable

        if DeltaTable.is_deltatable(str(self.folder)):
            there = pa.schema(DeltaTable(str(self.folder)).schema().to_arrow())
            if {(f.name, f.type) for f in there} != {(f.name, f.type) for f in self._columns}:
                msg = f"{self._place}: must have the columns {_named(self._columns)}; got {_named(there)}: take another"
                raise SetupError(msg)

    def _stored(self, fields: pa.Schema) -> pa.Schema:
        return pa.schema([*self._columns, *list(fields)[len(self._columns) :]])

    @property
    def _place(self) -> str:
        return f"Delta table {str(self.folder)!r}"


def _app(run: str) -> str:
    return f"oop-engine-{run}"


def _named(fields: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in fields)
