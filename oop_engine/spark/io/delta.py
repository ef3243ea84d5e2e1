"""Delta: results as Delta tables, through the package ``deltalake``; Spark needs no connector for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine.connectors.change_feed import no_revisions
from oop_engine.core.errors import SetupError, UsageError
from oop_engine.core.schema import Schema
from oop_engine.spark.io.parquet import ResultTable, WriteFiles, by_table, folder_of, sizes_of
from oop_engine.spark.io.result_folder import ResultFolder, Written, batch_of
from oop_engine.spark.io.sink import BatchResults

__all__ = ["Delta"]

_PUT_BACK = "put it back as it was, or begin anew with empty folders"


@dataclass
class Delta:
    """Writes the results of sink ``s`` to the Delta table ``folder/s``.

    Tasks write Parquet files; the commit of a batch is one transaction of the table, which carries the
    number of the batch: a batch that the table has already is left out.  So a reader of the table
    sees each batch whole or not at all.  Timestamps become microseconds, in UTC if they have a zone.
    Files are added to a table and never rewritten, so a revision stream is refused.
    """

    folder: str | Path
    exactly_once: str = "exactly once, a batch at a time"
    _query: str = field(default="", init=False)
    _tables: dict[str, ResultTable] = field(default_factory=dict, init=False)

    def start(self, schemas: Mapping[str, Schema], query: str) -> None:
        """Check the package, folders and types; remove unfinished files of killed runs.

        Raises ``SetupError`` if the package is missing, ``GraphError`` for a revision stream, ``UsageError`` for the
        rest.
        """
        for name, schema in schemas.items():
            no_revisions(schema, f"sink {name!r}: Delta", "a table gets rows, and none is taken back")
        if find_spec("deltalake") is None:
            msg = "sink Delta needs deltalake, not installed here: pip install 'oop-engine[delta]'"
            raise SetupError(msg)
        self._query = query
        self._tables = {
            name: ResultTable(folder_of("Delta", self.folder, name), schema, _stored(name, schema.fields))
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
        """Add the files of a batch to the tables, one transaction each."""
        made: dict[str, int] = {}
        for name, table in self._tables.items():
            files = [Written.of(receipt) for receipt in results.of(name)]
            table.folder.claim(self._query)
            if self._add(batch, table, files):
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
            msg = f"its log cannot be read ({_line(error)}): {_PUT_BACK}"
            raise folder.error(msg) from error
        if done is None or done < newest:
            msg = f"its log lacks the files of micro-batch {newest}: {_PUT_BACK}"
            raise folder.error(msg)
        folder.check({place: size for place, size in files.items() if place in there})

    def _add(self, batch: int, table: ResultTable, files: list[Written]) -> bool:
        """Add files to a table; tell if they were not there already."""
        from deltalake import CommitProperties, DeltaTable, Schema, Transaction
        from deltalake.transaction import create_table_with_add_actions

        where = str(table.folder.path)
        known = DeltaTable(where) if DeltaTable.is_deltatable(where) else None
        done = None if known is None else known.transaction_version(self._query)
        if done is not None and done >= batch:
            table.folder.drop(files)
            return False
        table.folder.put(files)
        actions = [_action(table.folder.path, file) for file in files]
        tagged = CommitProperties(app_transactions=[Transaction(self._query, batch)])
        if known is None:
            columns = Schema.from_arrow(table.fields)
            create_table_with_add_actions(where, columns, actions, mode="error", commit_properties=tagged)
        elif actions:
            known.create_write_transaction(actions, "append", known.schema(), commit_properties=tagged)
        return True


def _action(folder: Path, file: Written) -> Any:
    from deltalake.transaction import AddAction

    found = (folder / file.place).stat()
    statistics = json.dumps({"numRecords": file.rows})
    return AddAction(file.place, found.st_size, {}, int(found.st_mtime * 1000), True, statistics)


def _stored(name: str, fields: pa.Schema) -> pa.Schema:
    """Return the columns as a Delta table has them."""
    return pa.schema([_stored_column(name, column) for column in fields])


def _stored_column(name: str, column: pa.Field) -> pa.Field:
    from deltalake import Schema

    wanted = column.with_type(_plain(column.type))
    try:
        held = pa.schema(Schema.from_arrow(pa.schema([wanted])).to_arrow()).field(0).type
    except Exception as error:  # the package raises no class of its own for it
        raise _refusal(name, column) from error
    if held != wanted.type or pa.types.is_null(held) or held == pa.timestamp("ns"):
        raise _refusal(name, column)
    return wanted


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type in which Delta can hold all values of ``kind``, if there is one."""
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind


def _refusal(name: str, column: pa.Field) -> UsageError:
    msg = f"sink {name!r}: Delta cannot hold column {column.name!r} of type {column.type}: leave it out or cast it"
    return UsageError(msg)
