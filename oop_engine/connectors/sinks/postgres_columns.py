"""Columns of a table of Postgres, and those of the table beside it, which follow them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oop_engine.connectors.sinks.postgres_statements import (
    CHANGE,
    EPOCH,
    EPOCHS,
    ORDER,
    RUN,
    TableStatements,
)

__all__ = ["make_beside"]

_LOCK = 7_205_759_403
"""The number of the lock under which services make their tables, one after the other."""
_OWN = {RUN: "text", EPOCH: "bigint", ORDER: "bigint", CHANGE: "bigint"}
_EPOCHS_COLUMNS = "run text, place text, epoch bigint, primary key (run, place)"
_FOUND = (
    "select a.attname, format_type(a.atttypid, a.atttypmod), coalesce(b.typname, t.typname) from pg_attribute a "
    "join pg_type t on t.oid = a.atttypid left join pg_type b on b.oid = t.typbasetype and t.typtype = 'd' "
    "where a.attrelid = %s::regclass and a.attnum > 0 and not a.attisdropped"
)


@dataclass(frozen=True)
class ColumnType:
    """The type of a column, as a statement writes it, and the name of that below a domain."""

    written: str
    name: str


async def make_beside(
    connection: Any, statements: TableStatements, table: str, names: Sequence[str]
) -> dict[str, str]:
    """Make the tables beside ``table``, or let them follow its columns; return the types of all columns by name.

    Only missing things are made, so no right to do so is needed where they are there.  Raises errors of psycopg.
    """
    async with connection.transaction():
        await connection.execute("select pg_advisory_xact_lock(%s)", [_LOCK])
        await connection.execute(statements.composed("select {columns} from {table} limit 0"))
        if not await _columns(connection, statements.column(EPOCHS)):
            await connection.execute(statements.composed(f"create table {{epochs}} ({_EPOCHS_COLUMNS})"))
        wanted = await _columns(connection, statements.name(table))
        staged = statements.column(statements.staged)
        if not await _columns(connection, staged):
            made = "create table {staged} as select {columns} from {table} limit 0"
            await connection.execute(statements.composed(made))
        there = await _columns(connection, staged)
        for name in names:
            if name not in there:
                await _alter(connection, statements, "add column {name} {kind}", name, wanted[name].written)
            elif there[name] != wanted[name]:
                change = "alter column {name} type {kind} using {name}::{kind}"
                await _alter(connection, statements, change, name, wanted[name].written)
        for name, kind in _OWN.items():
            if name not in there:
                await _alter(connection, statements, "add column {name} {kind}", name, kind)
    return {name: kind.name for name, kind in wanted.items()}


async def _columns(connection: Any, table: Any) -> dict[str, ColumnType]:
    """Return the columns of a table; none of one that is not there."""
    named = table.as_string(connection)
    (there,) = await (await connection.execute("select to_regclass(%s) is not null", [named])).fetchone()
    rows = await (await connection.execute(_FOUND, [named])).fetchall() if there else []
    return {name: ColumnType(text, kind) for name, text, kind in rows}


async def _alter(connection: Any, statements: TableStatements, change: str, name: str, kind: str) -> None:
    parts = {"name": statements.column(name), "kind": statements.type(kind)}
    await connection.execute(statements.composed(f"alter table {{staged}} {change}", **parts))
