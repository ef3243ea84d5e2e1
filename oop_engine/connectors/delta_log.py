"""Delta log: files become rows of a Delta table in one transaction, which carries the number of an epoch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine.core.errors import UsageError

__all__ = ["add_action", "add_files", "first_line", "stored", "version_of"]


def version_of(table: Path, app: str) -> int:
    """Return the number of the last transaction of ``app`` in a table; -1: there is none, or no table."""
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(str(table)):
        return -1
    done = DeltaTable(str(table)).transaction_version(app)
    return -1 if done is None else int(done)


def add_files(table: Path, fields: pa.Schema, actions: Sequence[Any], app: str, number: int) -> None:
    """Add files (``add_action``) to a table, as transaction ``number`` of ``app``; the table is made with the first.

    Raises errors of the package ``deltalake``, also where a transaction of the same app came in between.
    """
    from deltalake import CommitProperties, DeltaTable, Schema, Transaction
    from deltalake.transaction import create_table_with_add_actions

    where, tagged = str(table), CommitProperties(app_transactions=[Transaction(app, number)])
    if not DeltaTable.is_deltatable(where):
        columns = Schema.from_arrow(fields)
        create_table_with_add_actions(where, columns, list(actions), mode="error", commit_properties=tagged)
    elif actions:
        known = DeltaTable(where)
        known.create_write_transaction(list(actions), "append", known.schema(), commit_properties=tagged)


def add_action(table: Path, file: str, rows: int) -> Any:
    """Return the action that adds a file of a table, whose place in it is ``file``."""
    from deltalake.transaction import AddAction

    status = (table / file).stat()
    statistics = json.dumps({"numRecords": rows})
    return AddAction(file, status.st_size, {}, int(status.st_mtime * 1000), True, statistics)


def stored(place: str, fields: pa.Schema) -> pa.Schema:
    """Return the columns as a Delta table has them; raises ``UsageError`` in the name of ``place`` if it cannot."""
    return pa.schema([_stored_column(place, column) for column in fields])


def first_line(error: Exception) -> str:
    """Return the first line of the text of an error."""
    return str(error).partition("\n")[0]


def _stored_column(place: str, column: pa.Field) -> pa.Field:
    from deltalake import Schema

    wanted = column.with_type(_plain(column.type))
    try:
        stored_type = pa.schema(Schema.from_arrow(pa.schema([wanted])).to_arrow()).field(0).type
    except Exception as error:  # the package raises no class of its own for it
        raise _refusal(place, column) from error
    nanoseconds = "timestamp[ns" in str(stored_type)  # in structs and lists, too: written, and not to be read
    if stored_type != wanted.type or pa.types.is_null(stored_type) or nanoseconds:
        raise _refusal(place, column)
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


def _refusal(place: str, column: pa.Field) -> UsageError:
    msg = f"{place}: Delta cannot hold column {column.name!r} of type {column.type}: leave it out or cast it"
    return UsageError(msg)
