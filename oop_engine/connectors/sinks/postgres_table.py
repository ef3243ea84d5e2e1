"""Postgres table: rows of an epoch, and its number, in one transaction."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from oop_engine.connectors import link
from oop_engine.connectors.library import library
from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.refusals import refused_by_postgres
from oop_engine.connectors.sink import LiveSink, Prepared
from oop_engine.core.errors import SetupError, SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema

__all__ = ["PostgresTable"]

_ORDER, _EPOCH, _RUN, _CHANGE = "oop_order", "oop_epoch", "oop_run", "oop_change"
_EPOCHS = "oop_epochs"
_STAGED = "oop_staged_{}"
_COLUMNS = "run text, place text, epoch bigint, primary key (run, place)"
_OF_EPOCH = "from {staged} where oop_run = %s and oop_epoch = %s"
_DELETION = f"delete {_OF_EPOCH}"
_NET = (
    f"select {{columns}}, max(oop_order) as oop_order {_OF_EPOCH} group by {{columns}} having sum(oop_change)"
)
_TAKING_BACK = f"delete from {{table}} as kept using ({_NET} < 0) as gone where {{same}}"
_ALIVE = "set tcp_keepalives_idle = 30; set tcp_keepalives_interval = 10; set tcp_keepalives_count = 3"
"""A server notices within a minute that nobody is there any more, and gives back all locks of a transaction."""


class PostgresTable(LiveSink):
    """Adds rows to ``table`` of the database ``dsn`` (``"postgresql://127.0.0.1/db"``); needs psycopg.

    ``key``: columns with a unique constraint; a row of the same key is then replaced, and of an epoch the last one
    stays.  The table must have the columns of the results.  Rows of an epoch wait in ``oop_staged_<table>``, and get
    into the table together with the number of the epoch, in ``oop_epochs``: so each is there once, whenever a process
    dies.  Raises ``SetupError`` if no server answers, or the table does not fit.

    Of a revision stream each change is a row, with the column of changes, which the table then has.  With a ``key``
    the table is the net content of the stream after each epoch, without that column: the changes of an epoch that
    cancel each other are left out, a row that is put out replaces the one of its key, and one that is taken back is
    removed, unless another has replaced it.  The key must tell rows apart that are there at one time, and have no null.
    """

    def __init__(self, dsn: str, table: str, key: Sequence[str] = ()) -> None:
        self._dsn, self._table, self._key = dsn, table, list(key)
        self._pages: dict[int, list[Page]] = {}
        self._connection: Any = None

    async def open(self, schema: Schema, run: str, prepared: Collection[Prepared]) -> None:
        """Connect, make the tables beside this one, and remove rows that belong to no checkpoint."""
        psycopg = library("psycopg", "postgres", "PostgresTable")
        self.failures = (psycopg.Error,)
        self._sql, self._run = library("psycopg.sql", "postgres", "PostgresTable"), run
        self._net = schema.change is not None and bool(self._key)
        self._names = schema.plain().names if self._net else schema.names
        self._read = [*self._names, *(name for name in schema.names if name not in self._names)]
        try:
            self._connection = await self._connected()
            await self._answered(self._make(schema))
        except psycopg.Error as error:
            await self.close()
            reason = str(error).strip().splitlines()[0]
            msg = f"{self._place}: {reason}: give the address of a server that runs, and a table with these columns"
            raise SetupError(msg) from error
        kept = [epoch for of, epoch in prepared if of == run]
        await self._do("delete from {staged} where oop_run = %s and oop_epoch <> all(%s)", [run, kept])

    async def write(self, epoch: int, page: Page) -> None:
        """Keep a page."""
        self._pages.setdefault(epoch, []).append(page)

    async def prepare(self, epoch: int) -> Prepared:
        """Write the rows of an epoch beside the table."""
        if epoch not in self._pages:
            return None
        await self._reached(partial(self._stage, epoch, self._pages[epoch]))
        del self._pages[epoch]
        return [self._run, epoch]

    async def _stage(self, epoch: int, pages: list[Page]) -> None:
        columns = self._listed([*self._names, *([_CHANGE] if self._net else []), _RUN, _EPOCH, _ORDER])
        statement = self._written("copy {staged} ({columns}) from stdin", columns=columns)
        order = 0
        async with self._connection.transaction(), self._connection.cursor() as cursor:
            await cursor.execute(self._written(_DELETION), [self._run, epoch])
            async with cursor.copy(statement) as copy:
                for page in pages:
                    values = (page.column(name).to_pylist() for name in self._read)
                    for row in zip(*values, strict=True):
                        await copy.write_row([*row, self._run, epoch, order])
                        order += 1

    async def commit(self, prepared: Prepared) -> None:
        """Move the rows of an epoch into the table, unless that was done."""
        await self._reached(partial(self._move, *prepared))

    async def _move(self, run: str, epoch: int) -> None:
        async with self._connection.transaction():
            done = await self._do(
                "insert into {epochs} (run, place, epoch) values (%s, %s, %s) "
                "on conflict (run, place) do update set epoch = excluded.epoch where {epochs}.epoch < excluded.epoch",
                [run, self._table, epoch],
            )
            for statement in self._statements() if done == 1 else ():
                await self._do(statement, [run, epoch])
            if not await self._do(_DELETION, [run, epoch]) and done == 1:
                msg = f"{self._place}: results of epoch {epoch} that a checkpoint has recorded are gone"
                raise SnapshotError(msg)

    async def forget(self) -> None:
        """Remove the number of the last epoch."""
        await self._do("delete from {epochs} where run = %s and place = %s", [self._run, self._table])

    async def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            await self._connection.close()

    async def _connected(self) -> Any:
        psycopg = library("psycopg", "postgres", "PostgresTable")
        limit = max(int(link.ANSWER_S), 1)
        found = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True, connect_timeout=limit)
        with suppress(psycopg.Error):  # of a server that only speaks like Postgres
            await found.execute(_ALIVE)
        return found

    async def _reached(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do some work, which can be repeated, on a new connection if the last one broke."""
        psycopg = library("psycopg", "postgres", "PostgresTable")
        try:
            if self._connection.closed:
                self._connection = await self._connected()
            await self._answered(work())
        except psycopg.OperationalError as error:
            if not self._connection.closed or refused_by_postgres(error):  # such as a full disk
                raise
            msg = f"{self._place}: {error}"
            raise UnreachableError(msg) from error

    async def _answered(self, work: Awaitable[None]) -> None:
        """Wait for some work, which may take its time, as long as the server lets others in."""
        doing = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({doing}, timeout=link.ANSWER_S))[0]:
                await (await self._connected()).close()
        finally:
            if not doing.done():
                _cut(self._connection)
                await asyncio.gather(doing, return_exceptions=True)
        await doing

    def _statements(self) -> list[str]:
        """Return how the rows of an epoch get into the table, one statement after the other."""
        insertion = "insert into {table} ({columns}) select "
        if not self._key:
            return [f"{insertion} {{columns}} {_OF_EPOCH} order by oop_order"]
        rows = f"from ({_NET} > 0) as net" if self._net else _OF_EPOCH
        upsert = "order by {key}, oop_order desc on conflict ({key}) do {replace}"
        insertion = f"{insertion} distinct on ({{key}}) {{columns}} {rows} {upsert}"
        return [_TAKING_BACK, insertion] if self._net else [insertion]

    async def _make(self, schema: Schema) -> None:
        await self._do(f"create table if not exists {{epochs}} ({_COLUMNS})")
        await self._do("create table if not exists {staged} as select {columns} from {table} limit 0")
        for name, kind in ((_RUN, "text"), (_EPOCH, "bigint"), (_ORDER, "bigint"), (_CHANGE, "bigint")):
            await self._do(f"alter table {{staged}} add column if not exists {name} {kind}")
        await self._do("select {columns}, oop_run, oop_epoch, oop_order from {staged} limit 0")
        for statement in self._statements() if self._key else ():
            await self._do(f"explain {statement}", [self._run, 0])

    async def _do(self, text: str, values: Sequence[Any] = ()) -> int:
        """Execute a statement; return how many rows it has changed."""
        cursor = await self._connection.execute(self._written(text), values or None)
        return int(cursor.rowcount)

    def _written(self, text: str, **more: Any) -> Any:
        places = {
            "table": self._table,
            "staged": _STAGED.format(self._table.rpartition(".")[2]),
            "epochs": _EPOCHS,
        }
        others = [name for name in self._names if name not in self._key]
        sets = self._sql.SQL(", ").join(
            self._sql.SQL("{0} = excluded.{0}").format(self._sql.Identifier(name)) for name in others
        )
        replace = self._sql.SQL("update set {}").format(sets) if others else self._sql.SQL("nothing")
        equal = [("kept.{0} = gone.{0}", self._key), ("kept.{0} is not distinct from gone.{0}", others)]
        terms = [
            self._sql.SQL(term).format(self._sql.Identifier(name)) for term, names in equal for name in names
        ]
        same = self._sql.SQL(" and ").join(terms)
        found = {name: self._sql.Identifier(*value.split(".")) for name, value in places.items()}
        found |= {
            "columns": self._listed(self._names),
            "key": self._listed(self._key),
            "replace": replace,
            "same": same,
        }
        return self._sql.SQL(text).format(**{**found, **more})

    def _listed(self, names: Sequence[str]) -> Any:
        return self._sql.SQL(", ").join(map(self._sql.Identifier, names))

    @property
    def _place(self) -> str:
        return f"Postgres table {self._table!r}"


def _cut(connection: Any) -> None:
    """End a connection, so that who waits for it has an error at once."""
    with suppress(OSError), socket.socket(fileno=os.dup(connection.pgconn.socket)) as way:
        way.shutdown(socket.SHUT_RDWR)
