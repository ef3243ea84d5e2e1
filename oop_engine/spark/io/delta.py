"""Delta: results as Delta tables, through the package ``deltalake``; Spark needs no connector for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from oop_engine.connectors.change_feed import feed_fields, no_revisions
from oop_engine.connectors.delta_log import add_action, add_files, first_line, stored, version_of
from oop_engine.connectors.delta_merge import merge
from oop_engine.connectors.library import library
from oop_engine.connectors.sink import key_columns
from oop_engine.core.schema import Schema
from oop_engine.spark.io.parquet import ResultTable, WriteFiles, by_table, folder_of, sizes_of
from oop_engine.spark.io.result_folder import ResultFolder, Written, batch_of
from oop_engine.spark.io.sink import BatchResults

__all__ = ["Delta"]

_PUT_BACK = "restore the file, or start with empty folders"


@dataclass
class Delta:
    """Writes the results of sink ``s`` to the Delta table ``folder/s``.

    Tasks write Parquet files; the commit of a batch is one transaction of the table, which carries the
    number of the batch: a batch that the table has already is left out.  So a reader of the table
    sees each batch whole or not at all.  Timestamps become microseconds, in UTC if they have a zone.

    ``key``: columns that tell rows apart; a batch is then merged into the table, so that a row replaces the one of its
    key.  Of a revision stream the table is the net content after each batch: rows that are retracted are removed,
    unless others have replaced them.  Without a key files are added and never rewritten, so such a stream is refused.
    """

    folder: str | Path
    key: str | Sequence[str] = ()
    exactly_once: str = "exactly once, a batch at a time"
    _query: str = field(default="", init=False)
    _tables: dict[str, ResultTable] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.key = tuple(key_columns(self.key))

    def start(self, schemas: Mapping[str, Schema], query: str) -> None:
        """Check the package, folders and types; remove unfinished files of killed runs.

        Raises ``SetupError`` if the package is missing, ``GraphError`` for a revision stream, ``UsageError`` for the
        rest.
        """
        for name, schema in schemas.items():
            if not self.key:
                no_revisions(schema, f"sink {name!r}: Delta", "without key=(...) no row is retracted")
            schema.plain().require(self.key, f"sink {name!r}: Delta: key")
        library("deltalake", "delta", "sink Delta")
        self._query = query
        self._tables = {
            name: ResultTable(
                folder_of("Delta", self.folder, name), schema, stored(f"sink {name!r}", _written(schema))
            )
            for name, schema in schemas.items()
        }
        for table in self._tables.values():
            table.folder.prepare(query)

    def worker(self) -> WriteFiles:
        """Return the part in tasks: it writes files, which nobody sees yet."""
        return WriteFiles(self._tables)

    def check(self, made: Mapping[str, int]) -> None:
        """Raise ``UsageError`` if a table lacks micro-batches, or one of its files is not as it was written.

        Files that are of the table no more, after a rewrite of it, are left out of account.
        """
        for name, files in by_table(made).items():
            if name in self._tables:
                self._check(self._tables[name].folder, files)

    def commit(self, batch: int, results: BatchResults) -> Mapping[str, int]:
        """Add the files of a batch to the tables, or merge them into these, one transaction each."""
        made: dict[str, int] = {}
        for name, table in self._tables.items():
            files = [Written.of(receipt) for receipt in results.of(name)]
            table.folder.claim(self._query)
            if self.key:
                self._merge(batch, table, files)
            elif self._add(batch, table, files):
                made |= sizes_of(name, table.folder, files)
        return made

    def _check(self, folder: ResultFolder, files: Mapping[str, int]) -> None:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        newest = max(batch_of(place) for place in files)
        try:
            table = DeltaTable(str(folder.path))
            done = table.transaction_version(self._query)
            there = set(table.get_add_actions(flatten=True).column("path").to_pylist())
        except DeltaError as error:
            msg = f"its log cannot be read ({first_line(error)}): {_PUT_BACK}"
            raise folder.error(msg) from error
        if done is None or done < newest:
            msg = f"its log lacks the files of micro-batch {newest}: {_PUT_BACK}"
            raise folder.error(msg)
        folder.check({place: size for place, size in files.items() if place in there})

    def _merge(self, batch: int, table: ResultTable, files: list[Written]) -> None:
        where = table.folder.path
        columns = pa.schema([table.fields.field(name) for name in table.schema.plain().names])
        merge(where, columns, self.key, [where / file.unfinished for file in files], self._query, batch)
        table.folder.drop(files)

    def _add(self, batch: int, table: ResultTable, files: list[Written]) -> bool:
        """Add files to a table; tell if they were not there already."""
        where = table.folder.path
        if version_of(where, self._query) >= batch:
            table.folder.drop(files)
            return False
        table.folder.put(files)
        added = [add_action(where, file.place, file.rows) for file in files]
        add_files(where, table.fields, added, self._query, batch)
        return True


def _written(schema: Schema) -> pa.Schema:
    """Return the columns of files: of a revision stream they are a change feed, to be merged."""
    return schema.fields if schema.change is None else feed_fields(schema)
