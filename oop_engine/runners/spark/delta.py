"""Delta: results as Delta tables, through the package ``deltalake``; Spark needs no connector for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine.errors import SetupError, UsageError
from oop_engine.runners.spark.letters import Letter
from oop_engine.runners.spark.parquet import Outlets, Table, WriteFiles, folder_of
from oop_engine.runners.spark.result_folder import Written
from oop_engine.schema import Schema

__all__ = ["Delta"]


@dataclass
class Delta:
    """Writes the results of sink ``s`` to the Delta table ``folder/s``.

    Tasks write Parquet files; the commit of a batch is one transaction of the table, which carries the
    number of the batch: a batch that the table has already is left out.  So a reader of the table
    sees each batch whole or not at all.  Timestamps become microseconds, in UTC if they have a zone.
    """

    folder: str | Path
    exactly_once: str = "exactly once, a batch at a time"
    _query: str = field(default="", init=False)
    _tables: dict[str, Table] = field(default_factory=dict, init=False)

    def start(self, schemas: Mapping[str, Schema], query: str) -> None:
        """Check the package, folders and types; remove what killed runs left unfinished.

        Raises ``SetupError`` if the package is missing, ``UsageError`` for the rest.
        """
        if find_spec("deltalake") is None:
            msg = "sink Delta needs deltalake, not installed here: pip install 'oop-engine[delta]'"
            raise SetupError(msg)
        self._query = query
        self._tables = {
            name: Table(folder_of("Delta", self.folder, name), _stored(name, schema.fields))
            for name, schema in schemas.items()
        }
        for table in self._tables.values():
            table.folder.prepare(query)

    def worker(self) -> WriteFiles:
        """Return what tasks do: write files, which nobody sees yet."""
        return WriteFiles(self._tables)

    def commit(self, batch: int, outlets: Outlets, letters: list[Letter]) -> None:
        """Add the files of a batch to the tables, one transaction each."""
        for edge, (name, _) in outlets.items():
            files = [Written.of(letter) for letter in letters if letter.edge == edge]
            self._tables[name].folder.claim(self._query)
            self._add(batch, self._tables[name], files)

    def _add(self, batch: int, table: Table, files: list[Written]) -> None:
        from deltalake import CommitProperties, DeltaTable, Schema, Transaction
        from deltalake.transaction import create_table_with_add_actions

        where = str(table.folder.path)
        known = DeltaTable(where) if DeltaTable.is_deltatable(where) else None
        done = None if known is None else known.transaction_version(self._query)
        if done is not None and done >= batch:
            table.folder.drop(files)
            return
        table.folder.put(files)
        actions = [_action(table.folder.path, file) for file in files]
        tagged = CommitProperties(app_transactions=[Transaction(self._query, batch)])
        if known is None:
            columns = Schema.from_arrow(table.fields)
            create_table_with_add_actions(where, columns, actions, mode="error", commit_properties=tagged)
        elif actions:
            known.create_write_transaction(actions, "append", known.schema(), commit_properties=tagged)


def _action(folder: Path, file: Written) -> Any:
    from deltalake.transaction import AddAction

    found = (folder / file.place).stat()
    told = json.dumps({"numRecords": file.rows})
    return AddAction(file.place, found.st_size, {}, int(found.st_mtime * 1000), True, told)


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
