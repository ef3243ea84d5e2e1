"""Postgres table: rows of an epoch, and its number, in one transaction."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from oop_engine.connectors import link
from oop_engine.connectors.formats.payloads import row_as_json
from oop_engine.connectors.library import library, loaded
from oop_engine.connectors.link import NotReadyError
from oop_engine.connectors.servers.postgres_errors import (
    failure_of_postgres,
    is_of_a_row,
    postgres_address,
    reason_of_row,
)  # fmt: skip
from oop_engine.connectors.servers.postgres_login import connected, cut
from oop_engine.connectors.sink import LiveSink, Prepared, key_columns
from oop_engine.connectors.sinks.fitting import RefusedInARow, refused_rows
from oop_engine.connectors.sinks.postgres_cells import cells_of, register_cells
from oop_engine.connectors.sinks.postgres_columns import make_beside
from oop_engine.connectors.sinks.postgres_epochs import TableEpochs
from oop_engine.connectors.sinks.postgres_statements import CHANGE, DELETION, TableStatements
from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.system.knobs import knob

__all__ = ["PostgresTable"]

T = TypeVar("T")

_AT_START = "give the address of a server that runs, and a table with these columns"
_LATER = "fix that, and restart the service: it restores its checkpoint"
_ALIVE = "set tcp_keepalives_idle = 30; set tcp_keepalives_interval = 10; set tcp_keepalives_count = 3"
"""A server notices within a minute that nobody is there any more, and gives back all locks of a transaction."""
_STAGED = "from {staged} where oop_run = %s and oop_epoch = %s"
_TOGETHER = knob(__name__, "_TOGETHER", 1000)
"""Rows after which the event loop runs."""


class PostgresTable(LiveSink):
    """Adds rows to ``table`` of the database ``dsn`` (``"postgresql://127.0.0.1/db"``); needs psycopg.

    ``key``: columns with a unique constraint; a row of the same key is then replaced, and of an epoch the last one
    stays.  The table must have the columns of the results.  Rows of an epoch wait in ``oop_staged_<table>``, and get
    into the table together with the number of the epoch, in ``oop_epochs``: so each is there once, whenever a process
    dies.  A row that the server refuses (a value beyond its range, a constraint) is a dead letter; where it refuses
    all rows, the service ends (``RefusedInARow``).  Moments and durations are written exactly; one with nanoseconds
    is refused by a column of microseconds.  Structs and maps are written as JSON.  Raises ``SetupError`` if no server
    answers, or the table does not fit.

    Of a revision stream each change is a row, with the column of changes, which the table then has.  With a ``key``
    the table is the net content of the stream after each epoch, without that column: the changes of an epoch that
    cancel each other are left out, a row that is emitted replaces the one of its key, and one that is retracted is
    removed, unless another has replaced it.  The key must tell rows apart that are there at one time, and have no null.
    """

    def __init__(self, dsn: str, table: str, key: str | Sequence[str] = ()) -> None:
        self._dsn, self._table, self._key = dsn, table, key_columns(key)
        self._pages: dict[int, list[Page]] = {}
        self._kept = set[int]()
        self._connection: Any = None
        self._in_a_row = RefusedInARow()
        self._epochs = TableEpochs(table, self._do, self._fetched)

    async def open(self, schema: Schema, run: str, prepared: Collection[Prepared]) -> None:
        """Connect, make the tables beside this one, and remove rows that belong to no checkpoint."""
        await loaded("psycopg")
        psycopg = library("psycopg", "postgres", "PostgresTable")
        self.failures, self._run = (psycopg.Error,), run
        self._address = postgres_address(self._dsn)
        self._net = schema.change is not None and bool(self._key)
        self._names = schema.plain().names if self._net else schema.names
        self._read = [*self._names, *(name for name in schema.names if name not in self._names)]
        self._statements = TableStatements(self._table, self._key, self._names, net=self._net)
        self._kept = {epoch for run_of, epoch, *_ in prepared if run_of == run}
        try:
            self._connection = await self._connected()
            await self._answered(self._make())
        except psycopg.Error as error:
            await self.close()
            raise self._failure(error, _AT_START) from self._address.cause(error)

    async def write(self, epoch: int, page: Page) -> None:
        """Keep a page."""
        self._pages.setdefault(epoch, []).append(page)

    async def prepare(self, epoch: int) -> Prepared:
        """Write the rows of an epoch beside the table."""
        if epoch not in self._pages:
            return None
        staged = await self._reached(partial(self._stage, epoch, self._pages[epoch]))
        del self._pages[epoch]
        return [self._run, epoch, self._epochs.known] if staged else None

    async def commit(self, prepared: Prepared) -> None:
        """Move the rows of an epoch into the table, unless that was done."""
        run, epoch, *known = prepared
        if epoch in self._kept and known:
            self._epochs.check(known[0], epoch)
        await self._reached(partial(self._move, run, epoch))
        self._epochs.done(epoch)

    async def forget(self) -> None:
        """Remove the number of the last epoch."""
        await self._do("delete from {epochs} where run = %s and place = %s", [self._run, self._table])

    async def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            await self._connection.close()

    async def _make(self) -> None:
        self._kinds = await make_beside(self._connection, self._statements, self._table, self._names)
        for statement in self._statements.moving:  # which needs the rights, and a constraint for the key
            await self._do(f"explain {statement}", [self._run, 0])
        forgotten = "delete from {staged} where oop_run = %s and oop_epoch <> all(%s)"
        await self._do(forgotten, [self._run, [*self._kept]])
        self._epochs.quoted = self._statements.name(self._table).as_string(self._connection)
        await self._epochs.look()

    async def _stage(self, epoch: int, pages: list[Page]) -> int:
        """Write rows beside the table, and return how many.

        Those that do not fit, also after a look at its types, are left out.
        """
        try:
            rows = await self._rows(epoch, pages)
            async with self._connection.transaction():
                await self._do(DELETION, [self._run, epoch])
                await self._copy(rows)
        except Exception as error:
            if not is_of_a_row(error):
                raise
            self._kinds = await make_beside(self._connection, self._statements, self._table, self._names)
            rows = await self._rows(epoch, pages)  # by the types of now
            async with self._connection.transaction():
                await self._do(DELETION, [self._run, epoch])
                refused = await self._fitting(rows, self._copy, error)
            if len(refused) == len(rows):  # else the table tells whether it takes the others
                self._in_a_row.end_epoch([reason for _, reason in refused], 0)
            for row, reason in refused:
                self._bury(reason, row_as_json(pages, row[-1]))
            return len(rows) - len(refused)
        return len(rows)

    async def _rows(self, epoch: int, pages: list[Page]) -> list[list[Any]]:
        rows = list[list[Any]]()
        for page in pages:
            for start in range(0, len(page), _TOGETHER):
                columns = [(page.column(name).slice(start, _TOGETHER), name) for name in self._read]
                values = (cells_of(column, self._kinds.get(name, "")) for column, name in columns)
                rows += [[*row, self._run, epoch] for row in zip(*values, strict=True)]
                await asyncio.sleep(0)
        for order, row in enumerate(rows):
            row.append(order)
        return rows

    async def _copy(self, rows: Sequence[list[Any]]) -> None:
        connection = self._connection
        async with (
            connection.transaction(), connection.cursor() as cursor, cursor.copy(self._statements.staging) as copy
        ):  # fmt: skip
            for number, row in enumerate(rows):
                await copy.write_row(row)
                if number % _TOGETHER == 0:  # a write waits for the server alone
                    await asyncio.sleep(0)

    async def _move(self, run: str, epoch: int) -> None:
        try:
            taken = await self._moved(run, epoch, [])
        except Exception as error:
            if not is_of_a_row(error):
                raise
            refused, count = await self._not_fitting(run, epoch, error)
            if len(refused) == count:
                self._in_a_row.end_epoch([reason for reason, _ in refused.values()], 0)
            taken = await self._moved(run, epoch, [*refused])
            for reason, row in refused.values():
                self._bury(reason, row)
        if taken:
            self._in_a_row.end_epoch([], taken)

    async def _moved(self, run: str, epoch: int, left_out: list[int]) -> int:
        """Return how many rows get into the table now; none, if that was done."""
        async with self._connection.transaction():
            if not await self._epochs.mark(run, epoch):
                await self._do(DELETION, [run, epoch])
                return 0
            count = await self._do(f"{DELETION} and oop_order = any(%s)", [run, epoch, left_out])
            for statement in self._statements.moving:
                await self._do(statement, [run, epoch])
            taken = await self._do(DELETION, [run, epoch])
            if not count + taken and epoch not in self._kept:
                raise SnapshotError(self._gone(epoch))
        if not count + taken:  # the number of the epoch is written, so the next process goes on
            self._kept.discard(epoch)
            msg = f"{self._gone(epoch)}, as where the database was restored: restart the service to go on without them"
            raise SnapshotError(msg)
        return taken

    async def _not_fitting(
        self, run: str, epoch: int, error: Exception
    ) -> tuple[dict[int, tuple[Exception, str]], int]:
        """Return the rows of an epoch that the table refuses, by number, each with its reason; and how many it has.

        All that is tried is undone: rows are tried one part after the other, since one may refuse another.
        """
        misfits = dict[int, tuple[Exception, str]]()

        async def attempt(part: Sequence[int]) -> None:
            async with self._connection.transaction():
                await self._do(self._statements.trying, [run, epoch, part[0], part[-1]])
                await self._do("set constraints all immediate")

        async with self._connection.transaction(force_rollback=True):
            orders = await self._fetched(f"select oop_order {_STAGED} order by oop_order", [run, epoch])
            for order, reason in await self._fitting([order for (order,) in orders], attempt, error):
                columns = "{columns}, oop_change" if self._net else "{columns}"
                query = f"select to_json(one) from (select {columns} {_STAGED} and oop_order = %s) as one"
                ((row,),) = await self._fetched(query, [run, epoch, order])
                if self._net:
                    row[self._read[-1]] = row.pop(CHANGE)
                misfits[order] = reason, json.dumps(row, default=str)
        return misfits, len(orders)

    async def _fitting(
        self, rows: Sequence[Any], attempt: Callable[[Sequence[Any]], Awaitable[None]], error: Exception
    ) -> list[tuple[Any, Exception]]:
        """Return the rows that are refused; without a place for them the error is raised."""
        if self.refused is None:
            raise error
        return await refused_rows(rows, attempt, is_of_a_row, self._in_a_row.most)

    def _bury(self, error: Any, row: str) -> None:
        assert self.refused is not None
        self.refused(self._address.clean(reason_of_row(error)), row, 1, coding="json")

    async def _connected(self) -> Any:
        psycopg = library("psycopg", "postgres", "PostgresTable")
        connection = await connected(self._dsn)
        register_cells(connection)
        with suppress(psycopg.Error):  # of a server that only speaks like Postgres
            await connection.execute(_ALIVE)
        return connection

    async def _reached(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of some work, which can be repeated, on a new connection if the last one broke."""
        psycopg = library("psycopg", "postgres", "PostgresTable")
        try:
            if self._connection.closed:
                self._connection = await self._connected()
            return await self._answered(work())
        except psycopg.Error as error:
            raise self._failure(error, _LATER) from self._address.cause(error)

    def _failure(self, error: Exception, way_out: str) -> Exception:
        return failure_of_postgres(self._place, self._address, error, way_out)

    async def _answered(self, work: Awaitable[T]) -> T:
        """Wait for some work, which may take its time, as long as the server lets others in."""
        doing = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({doing}, timeout=link.ANSWER_S))[0]:
                await self._look()
        finally:
            if not doing.done():
                cut(self._connection)
                await asyncio.gather(doing, return_exceptions=True)
        return await doing

    async def _look(self) -> None:
        """Raise an error of psycopg unless the server lets others in, or has just no room for one more."""
        psycopg = library("psycopg", "postgres", "PostgresTable")
        try:
            await (await self._connected()).close()
        except psycopg.Error as error:
            if not isinstance(self._failure(error, _LATER), NotReadyError):
                raise

    async def _do(self, text: str, values: Sequence[Any] = ()) -> int:
        """Execute a statement; return how many rows it has changed."""
        return int((await self._executed(text, values)).rowcount)

    async def _fetched(self, text: str, values: Sequence[Any]) -> list[Any]:
        rows: list[Any] = await (await self._executed(text, values)).fetchall()
        return rows

    async def _executed(self, text: str, values: Sequence[Any]) -> Any:
        statement = self._statements.composed(text, with_values=bool(values))
        return await self._connection.execute(statement, values or None)

    def _gone(self, epoch: int) -> str:
        return f"{self._place}: results of epoch {epoch} that a checkpoint has recorded are gone"

    @property
    def _place(self) -> str:
        return f"Postgres table {self._table!r}"
