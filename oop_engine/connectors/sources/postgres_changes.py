"""Postgres changes: rows that are inserted, updated or deleted, by logical replication."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Any

from oop_engine.connectors import link
from oop_engine.connectors.library import library
from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.refusals import refused_by_postgres
from oop_engine.connectors.source import LiveSource, Position
from oop_engine.connectors.sources.pgoutput import Decoder, lsn_of, text_of_lsn
from oop_engine.core.errors import SetupError, TraceError
from oop_engine.system.stopwatch import wall

__all__ = ["PostgresChanges"]

_STATUS_S, _SILENT_S = 10.0, 60.0
"""Seconds from a sign of life to the next, each of which asks for one of the server; and until it is away without."""
_AGAIN_S = 0.1
_IN_USE = b"55006"
"""The code of Postgres for a slot that somebody reads."""


class PostgresChanges(LiveSource):
    """The changes of the tables of ``publication``, at the database ``dsn``; needs psycopg, and ``wal_level=logical``.

    ``slot``: the name of the replication slot, which is made if it is not there; it keeps the log until a checkpoint
    has it, so drop it when the service is over.  The position is a place in the log, behind a transaction; rows come
    by whole transactions, as JSON, with ``_table`` and ``_operation``.  Those that were there before the slot do not
    come.  ``operations``: of which rows come; of a deleted one the key.  Raises ``SetupError`` if no server
    answers or there is no such publication, ``TraceError`` if the slot no longer has the position: nothing is skipped.
    """

    replayable = True
    format = "jsonl"
    adds = ("_table", "_operation")

    def __init__(
        self,
        dsn: str,
        publication: str,
        slot: str = "oop_engine",
        *,
        operations: Sequence[str] = ("insert", "update"),
    ) -> None:
        self._dsn, self._publication, self._slot = dsn, publication, slot
        self._operations = {*operations}
        self._reached = self._behind = 0
        self._told_s = 0.0
        self._pgconn: Any = None
        self._sending = asyncio.Lock()

    async def read(self, position: Position) -> AsyncIterator[tuple[list[bytes], Position]]:
        """Yield the rows of each transaction, with the place behind it."""
        psycopg = library("psycopg", "postgres", "PostgresChanges")
        try:
            start = await self._slot_at(psycopg, position)
            connection = await self._connected(psycopg, replication="database")
        except TimeoutError as error:
            msg = f"{self._place}: the server does not answer: give the address of one that runs"
            raise UnreachableError(msg) from error
        except psycopg.Error as error:
            reason = str(error).strip().splitlines()[0]
            msg = f"{self._place}: {reason}: give the address of a server that runs with wal_level=logical"
            away = isinstance(error, psycopg.OperationalError) and not refused_by_postgres(error)
            raise (UnreachableError if away else SetupError)(msg) from error
        self._reached = self._behind = lsn_of(start)
        status = asyncio.create_task(self._tell_on(), name=f"slot {self._slot}")
        try:
            self._pgconn = connection.pgconn
            await self._begin(psycopg, start)
            self.link.here()
            decoder = Decoder(lambda table, operation: operation in self._operations)
            while True:
                if (found := await self._step(decoder, await self._data())) is not None:
                    rows, self._behind = found
                    self._told_s = wall()
                    yield [json.dumps(row).encode() for row in rows], text_of_lsn(self._behind)
        except psycopg.OperationalError as error:
            msg = f"{self._place}: {str(error).strip()}"
            raise UnreachableError(msg) from error
        finally:
            status.cancel()
            self._pgconn = None
            await connection.close()

    async def acknowledge(self, position: Position) -> None:
        """Let the server forget the log up to a checkpoint."""
        self._reached = max(self._reached, lsn_of(position))
        await self._tell()

    async def _step(self, decoder: Decoder, data: bytes) -> tuple[list[dict[str, Any]], int] | None:
        """Take a message of the stream: changes (``w``), or a sign of life (``k``).

        Without a change for a while the place goes on with the log, which other tables fill: it would be kept for ever.
        """
        if data[:1] == b"w":
            return decoder.take(data[25:])
        if data[:1] != b"k":
            return None
        end, _, asks = struct.unpack(">qqb", data[1:18])
        if asks:
            await self._tell()
        still = not decoder.within and end > self._behind and wall() - self._told_s >= _STATUS_S
        return ([], end) if still else None

    async def _connected(self, psycopg: Any, **options: Any) -> Any:
        limit = max(int(link.ANSWER_S), 1)
        return await psycopg.AsyncConnection.connect(
            self._dsn, autocommit=True, connect_timeout=limit, **options
        )

    async def _slot_at(self, psycopg: Any, position: Position) -> str:
        """Return where to begin; make the slot for the first time, which waits for transactions of others."""
        sql = (
            "select confirmed_flush_lsn, wal_status, plugin, case when pg_is_in_recovery() then "
            "pg_last_wal_receive_lsn() else pg_current_wal_lsn() end from pg_replication_slots where slot_name = %s"
        )
        async with await self._connected(psycopg) as about, asyncio.timeout(link.ANSWER_S) as limit:
            cursor = await about.execute(
                "select 1 from pg_publication where pubname = %s", [self._publication]
            )
            if await cursor.fetchone() is None:
                msg = f"{self._place}: there is no such publication: CREATE PUBLICATION ... FOR TABLE ..."
                raise SetupError(msg)
            found = await (await about.execute(sql, [self._slot])).fetchone()
            if found is None and position is None:
                limit.reschedule(None)
                make = "select lsn::text from pg_create_logical_replication_slot(%s, 'pgoutput')"
                return str((await (await about.execute(make, [self._slot])).fetchone())[0])
            if found is None:
                raise self._gone(position, "there is no such slot any more")
            if found[1] == "lost":
                raise self._gone(position, "the server has removed the log of the slot")
            if found[2] != "pgoutput":
                msg = f"{self._place}: is a slot of the plugin {found[2]!r}, not pgoutput: give another name of a slot"
                raise SetupError(msg)
            if position is not None and lsn_of(str(found[0])) > lsn_of(position):
                raise self._gone(position, f"the slot has gone on to {found[0]}")
            if position is not None and lsn_of(position) > lsn_of(str(found[3])):
                raise self._gone(position, f"the log ends at {found[3]}: is it another server?")
            return str(found[0]) if position is None else str(position)

    async def _begin(self, psycopg: Any, start: str) -> None:
        names = _text(_quoted(self._publication))
        command = f"START_REPLICATION SLOT {_quoted(self._slot)} LOGICAL {start} "
        command += f"(proto_version '1', publication_names {names})"
        until = wall() + link.ANSWER_S
        while (result := await self._asked(command.encode())).status != psycopg.pq.ExecStatus.COPY_BOTH:
            in_use = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == _IN_USE
            if not in_use or wall() >= until:
                reason = result.error_message.decode().strip().splitlines()[0]
                msg = f"{self._place}: {reason}: does another service read this slot?"
                raise UnreachableError(msg)  # a connection that was lost may have it for longer
            self._pgconn.get_result()  # there is no other: the next command may be sent
            await asyncio.sleep(_AGAIN_S)  # a process that has just ended may have it for a moment

    async def _asked(self, command: bytes) -> Any:
        """Return the result of a command."""
        self._pgconn.send_query(command)
        await self._flushed(self._pgconn)
        while self._pgconn.is_busy():
            await self._readable()
            self._pgconn.consume_input()
        return self._pgconn.get_result()

    async def _data(self) -> bytes:
        """Return the next message of the stream."""
        while True:
            size, data = self._pgconn.get_copy_data(1)
            if size > 0:
                return bytes(data)
            if size < 0:
                result = self._pgconn.get_result()
                words = result.error_message.decode().strip() if result is not None else ""
                msg = f"{self._place}: the server has ended the stream: {words}"
                raise UnreachableError(msg)
            await self._readable()
            self._pgconn.consume_input()

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        await self._ready(self._pgconn.socket, loop.add_reader, loop.remove_reader)

    async def _flushed(self, pgconn: Any) -> None:
        loop = asyncio.get_running_loop()
        while pgconn.flush():
            await self._ready(pgconn.socket, loop.add_writer, loop.remove_writer)

    async def _ready(self, socket: int, add: Callable[..., None], remove: Callable[[int], Any]) -> None:
        """Wait for the server, which sends a message at least each time that it is asked to."""
        ready = asyncio.Event()
        add(socket, ready.set)
        try:
            async with asyncio.timeout(_SILENT_S):
                await ready.wait()
        except TimeoutError:
            msg = f"{self._place}: the server has been silent for {_SILENT_S:g} s"
            raise UnreachableError(msg) from None
        finally:
            remove(socket)

    async def _tell_on(self) -> None:
        """Let the server know that somebody is there, and ask whether it is."""
        while True:
            await asyncio.sleep(_STATUS_S)
            await self._tell(asks=True)

    async def _tell(self, *, asks: bool = False) -> None:
        async with self._sending:
            if (pgconn := self._pgconn) is not None:
                at = self._reached
                psycopg = library("psycopg", "postgres", "PostgresChanges")
                with suppress(psycopg.OperationalError, UnreachableError):  # read() tells of it
                    pgconn.put_copy_data(b"r" + struct.pack(">qqqqb", at, at, at, 0, asks))
                    await self._flushed(pgconn)

    @property
    def _place(self) -> str:
        return f"Postgres publication {self._publication!r}, slot {self._slot!r}"

    def _gone(self, position: Position, reason: str) -> TraceError:
        return TraceError(
            f"{self._place}: changes behind {position}, the next to read, are no longer there ({reason}): "
            "start from another folder of checkpoints"
        )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
