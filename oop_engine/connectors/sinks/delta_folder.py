"""Delta folder: each epoch is one transaction of a Delta table."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from oop_engine.connectors.change_feed import no_revisions
from oop_engine.connectors.delta_log import add_action, add_files, first_line, stored, version_of
from oop_engine.connectors.library import library
from oop_engine.connectors.sink import Prepared
from oop_engine.connectors.sinks.part_files import PartFiles
from oop_engine.core.errors import SetupError
from oop_engine.core.schema import Schema
from oop_engine.system.disk import Disk

__all__ = ["DeltaFolder"]


class DeltaFolder(PartFiles):
    """Adds rows to the Delta table in ``folder``, which is made with the first of them; needs deltalake.

    The files of an epoch are written beside those of the table, and become part of it in one transaction that carries
    the number of the epoch: so each row is there once, whenever a process dies.  Timestamps become microseconds, in UTC
    if they have a zone.  Files are added and never rewritten, so a revision stream is a ``GraphError``: put
    ``Finalize`` before the sink.  Raises ``UsageError`` for a column that Delta cannot hold, ``SetupError`` if the
    table has other columns.
    """

    def __init__(
        self, folder: str | Path, *, disk: Disk | None = None,
        aside: Callable[..., Awaitable[Any]] = asyncio.to_thread,
    ) -> None:  # fmt: skip
        super().__init__(folder, disk=disk, aside=aside)

    async def open(self, schema: Schema, run: str, prepared: Collection[Prepared]) -> None:
        """Check the package and the columns; remove files of this run that belong to no checkpoint."""
        no_revisions(schema, self._place, "a table gets rows, and none is taken back")
        library("deltalake", "delta", "DeltaFolder")
        self._columns = stored(self._place, schema.fields)
        await super().open(schema, run, [files for _, _, files in prepared])
        await self._aside(self._check)

    async def prepare(self, epoch: int) -> Prepared:
        """Write the files of an epoch, if it has results."""
        files = await super().prepare(epoch)
        return None if files is None else [self._run, epoch, files]

    async def commit(self, prepared: Prepared) -> None:
        """Add the files of an epoch to the table, unless that was done."""
        run, epoch, files = prepared
        if await self._aside(version_of, self.folder, _app(run)) < epoch:
            await super().commit(files)
            await self._aside(self._add, _app(run), epoch, files)

    def _add(self, app: str, epoch: int, files: list[str]) -> None:
        from deltalake.exceptions import DeltaError

        rows = [pa.parquet.read_metadata(self.folder / name).num_rows for name in files]
        actions = [add_action(self.folder, name, count) for name, count in zip(files, rows, strict=True)]
        try:
            add_files(self.folder, self._columns, actions, app, epoch)
        except DeltaError as error:
            if version_of(self.folder, app) < epoch:  # else an older process was quicker
                msg = f"{self._place}: epoch {epoch} cannot be added ({first_line(error)}): start the service again"
                raise SetupError(msg) from error

    def _check(self) -> None:
        from deltalake import DeltaTable

        if DeltaTable.is_deltatable(str(self.folder)):
            there = pa.schema(DeltaTable(str(self.folder)).schema().to_arrow())
            if {(f.name, f.type) for f in there} != {(f.name, f.type) for f in self._columns}:
                msg = f"{self._place}: must have the columns {_named(self._columns)}; got {_named(there)}: take another"
                raise SetupError(msg)

    def _stored(self, fields: pa.Schema) -> pa.Schema:
        return self._columns

    @property
    def _place(self) -> str:
        return f"Delta table {str(self.folder)!r}"


def _app(run: str) -> str:
    return f"oop-engine-{run}"


def _named(fields: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in fields)
