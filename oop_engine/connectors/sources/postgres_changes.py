"""Postgres changes: rows that are inserted, updated or deleted, by logical replication."""

from __future__ import annotations

import asyncio
import json
import logging
import struct
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from oop_engine.connectors import link
from oop_engine.connectors.library import library, loaded
from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.servers.postgres_errors import failure_of_postgres, postgres_address
from oop_engine.connectors.servers.postgres_log import LogPlace, lsn_of, text_of_lsn
from oop_engine.connectors.servers.postgres_login import connected
from oop_engine.connectors.servers.postgres_slot import Publication, slot_start
from oop_engine.connectors.source import LiveSource, Position
from oop_engine.connectors.sources.pgoutput import Decoder, OtherTransactionError
from oop_engine.connectors.sources.pgoutput_values import TYPES, PostgresTypes
from oop_engine.core.errors import TraceError, UsageError
from oop_engine.system.knobs import knob
from oop_engine.system.stopwatch import wall

__all__ = ["PostgresChanges"]

_LOG = logging.getLogger("oop_engine")
_STATUS_S, _SILENT_S = 10.0, 60.0
"""Seconds from a sign of life to the next, each of which asks for one of the server; and until it is away without."""
_AGAIN_S, _LOOK_S = 0.1, 30.0
"""Seconds between two looks at a slot that is in use, and at the tables of the publication."""
_IN_USE = "55006"
"""The code of Postgres for a slot that another process reads."""
_LOST = ("55000", "58P01")
"""Codes of a slot, and of a file of the log, that the server has given up."""
_MOST = knob(__name__, "_MOST", 1000)
"""Rows that are handed on together."""
_MESSAGES = knob(__name__, "_MESSAGES", 64)
"""Messages of the server after which the event loop runs."""
_WAY_OUT = "give the address of a server that runs with wal_level=logical"
_OPERATIONS = {"jsonl": ("insert", "update"), "debezium": ("insert", "update", "delete")}
_FORMS = (
    b"select set_config('datestyle', 'ISO, YMD', false), set_config('intervalstyle', 'postgres', false), "
    b"set_config('extra_float_digits', '3', false), set_config('timezone', 'UTC', false), "
    b"set_config('bytea_output', 'hex', false)"
)
"""Values in one form, whatever the database and the role have: floats in full, moments of a zone in UTC."""


class PostgresChanges(LiveSource):
    """The changes of the tables of ``publication``, at the database ``dsn``; needs psycopg, and ``wal_level=logical``.

    ``slot``: the name of the replication slot, which is made if it is not there; it keeps the log until a checkpoint
    has it, so drop it when the service is over.  The position is a place in the log, a number of changes of the
    transaction behind it, and the identity of the cluster.  Rows come in the order of their commits, at most 1,000 at a
    time, as JSON, with ``_table`` and ``_operation``.  Those that were there before the slot do not come.  A line tells
    of a table that is not in the publication any more, as one that was dropped, and of one that was made again.
    ``operations``: of which rows come, by default inserts and updates.  ``format="debezium"``: they come as a revision
    stream, and deletions too: of a table with REPLICA IDENTITY FULL an update takes the row before back.  The REPLICA
    IDENTITY of a table sets the values that the server sends: by default of a deleted row the key, and of an update no
    long value (TOAST) that it leaves alone.  An update without a value that the schema has is a dead letter, and so is
    a TRUNCATE where deleted rows come.  Raises
    ``SetupError`` if no server answers or there is no such publication, ``TraceError`` if the slot no longer has the
    position, or the log is another one: nothing is skipped.
    """

    replayable = True
    adds = ("_table", "_operation")

    def __init__(
        self,
        dsn: str,
        publication: str,
        slot: str = "oop_engine",
        *,
        format: str = "jsonl",
        operations: Sequence[str] | None = None,
    ) -> None:
        if format not in _OPERATIONS:
            msg = f"PostgresChanges: format must be {' or '.join(_OPERATIONS)}; got {format!r}"
            raise UsageError(msg)
        self.format = format
        self._dsn, self._publication, self._slot = dsn, publication, slot
        self._operations = {*(_OPERATIONS[format] if operations is None else operations)}
        self._published = Publication(self._place, publication, self._operations)
        self._reached, self._at = 0, LogPlace(0)
        self._told_s = 0.0
        self._lost = set[str]()  # tables that have left the publication
        self._lacking = set[str]()  # tables without some columns of the schema, which are logged once
        self._pgconn: Any = None
        self._types = PostgresTypes()
        self._sending = asyncio.Lock()

    async def read(self, position: Position) -> AsyncIterator[tuple[list[bytes], Position]]:
        """Yield rows of a transaction, with the place behind them."""
        await loaded("psycopg")
        psycopg = library("psycopg", "postgres", "PostgresChanges")
        address = postgres_address(self._dsn)
        known = None if position is None else LogPlace.of(self._place, position)
        connection, tasks = None, list[asyncio.Task[None]]()
        try:
            connection = await connected(self._dsn, replication="database")
            self._pgconn = connection.pgconn
            self._at = await self._start(known)
            for work in (self._tell_on(), self._look_on()):
                tasks.append(asyncio.create_task(work, name=f"slot {self._slot}"))
            await self._begin()
            self.link.here()
            async for rows in self._parts():
                self._told_s = wall()
                yield rows, self._at.position
        except OtherTransactionError:
            reason = "the server sends another transaction there"
            raise self._at.gone(self._place, reason) from None
        except psycopg.Error as error:
            raise failure_of_postgres(self._place, address, error, _WAY_OUT) from address.cause(error)
        except TimeoutError as error:
            raise self._silent() from error
        finally:
            self._pgconn = None
            for task in tasks:
                task.cancel()
            if connection is not None:
                await connection.close()

    async def latest(self) -> Position:
        """Return the end of the log; a slot that is not there yet is made."""
        await loaded("psycopg")
        psycopg = library("psycopg", "postgres", "PostgresChanges")
        address = postgres_address(self._dsn)
        try:
            start = await self._slot_at(None)
            async with await connected(self._dsn) as about:
                now = await (await about.execute("select pg_current_wal_lsn()::text")).fetchone()
        except psycopg.Error as error:
            raise failure_of_postgres(self._place, address, error, _WAY_OUT) from address.cause(error)
        except TimeoutError as error:
            raise self._silent() from error
        return LogPlace(max(start, lsn_of(now[0]))).position

    async def acknowledge(self, position: Position) -> None:
        """Confirm the log up to a checkpoint, so that the server may discard it."""
        self._reached = max(self._reached, LogPlace.of(self._place, position).lsn)
        await self._tell()

    async def _parts(self) -> AsyncIterator[list[bytes]]:
        """Yield rows, also none, whenever the place behind them is one to go on from."""
        decoder = Decoder(
            self._operations,
            self.columns,
            self._refuse,
            skipped=(self._at.commit, self._at.rows),
            envelopes=self.format == "debezium",
            named=sorted(self.columns)
            if isinstance(self.columns, Mapping) and self.format == "jsonl"
            else (),
            types=self._types,
            lacking=self._lacking,
            tables=self._at.tables,
        )
        count = 0
        while True:
            data = await self._data()
            if self._lost:
                self._lose(decoder)
                yield []
            if (count := count + 1) % _MESSAGES == 0:  # a message that has come already is not awaited
                await asyncio.sleep(0)
            if data[:1] == b"k":
                if await self._sign(data, decoder):
                    yield []
                continue
            decoder.take(data[25:])
            if decoder.tables is not self._at.tables:
                self._at = replace(self._at, tables=decoder.tables)
            if decoder.end:
                self._at, decoder.end = self._at.behind(decoder.end), 0
                yield decoder.taken()
            elif len(decoder.rows) >= _MOST:
                self._at = self._at.within(decoder.commit, decoder.changes)
                yield decoder.taken()

    async def _sign(self, data: bytes, decoder: Decoder) -> bool:
        """Take a sign of life; return whether the place has gone on by it.

        Without a change for a while it goes on with the log, which other tables fill: it would be kept for ever.
        """
        end, _, asks = struct.unpack(">qqb", data[1:18])
        if asks:
            await self._tell()
        still = not decoder.commit and end > self._at.lsn and wall() - self._told_s >= _STATUS_S
        if still:
            self._at = self._at.behind(end)
        return still

    def _refuse(self, reason: str, row: bytes) -> None:
        if self.unreadable is None:
            msg = f"{self._place}: {reason}"
            raise TraceError(msg)
        self.unreadable(reason, row, 1, place=self._at.position)

    async def _start(self, known: LogPlace | None) -> LogPlace:
        """Return where to begin; raise ``TraceError`` if that is not there, or of another log."""
        system, timeline, *_ = await self._row(b"IDENTIFY_SYSTEM")
        history = b""
        if known is not None and known.timeline is not None and known.timeline < int(timeline):
            _, history = await self._row(b"TIMELINE_HISTORY " + timeline)
        if known is not None:
            known = known.of_server(self._place, system.decode(), int(timeline), history)
        start = await self._slot_at(known)
        return known or LogPlace(start, system=system.decode(), timeline=int(timeline))

    async def _slot_at(self, position: LogPlace | None) -> int:
        return await slot_start(self._place, self._dsn, self._published, self._slot, position)

    async def _begin(self) -> None:
        psycopg = library("psycopg", "postgres", "PostgresChanges")
        errors = library("psycopg.errors", "postgres", "PostgresChanges")
        await self._row(_FORMS)
        columns = self.columns if isinstance(self.columns, Mapping) else {}
        self._types = PostgresTypes(columns, envelopes=self.format == "debezium")
        self._types.learn((await self._row(TYPES))[0])
        if self._pgconn.parameter_status(b"server_encoding") == b"SQL_ASCII":
            await self._row(b"select set_config('client_encoding', 'SQL_ASCII', false)")  # bytes as they are
        names = _text(_quoted(self._publication))
        command = f"START_REPLICATION SLOT {_quoted(self._slot)} LOGICAL {text_of_lsn(self._at.lsn)} "
        command += f"(proto_version '1', publication_names {names})"
        until = wall() + link.ANSWER_S
        while (result := await self._asked(command.encode())).status != psycopg.pq.ExecStatus.COPY_BOTH:
            error = errors.error_from_result(result, encoding="utf-8")
            if error.sqlstate in _LOST:
                raise self._at.gone(self._place, str(error).split("\n")[0])
            if error.sqlstate != _IN_USE:
                raise error
            if wall() >= until:
                msg = f"{self._place}: {str(error).split(chr(10))[0]}: does another service read this slot?"
                raise UnreachableError(msg)  # a connection that was lost may have it for longer
            self._pgconn.get_result()  # there is no other: the next command may be sent
            await asyncio.sleep(_AGAIN_S)  # a process that has just ended may have it for a moment

    async def _row(self, command: bytes) -> list[bytes]:
        """Return the row that a command of one statement has."""
        errors = library("psycopg.errors", "postgres", "PostgresChanges")
        result = await self._asked(command)
        self._pgconn.get_result()  # there is no other: the next command may be sent
        if not result.ntuples:
            raise errors.error_from_result(result, encoding="utf-8")
        return [result.get_value(0, column) or b"" for column in range(result.nfields)]

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
                raise self._ended(self._pgconn.get_result())
            await self._readable()
            self._pgconn.consume_input()

    def _ended(self, result: Any) -> Exception:
        """Return why the server has ended the stream."""
        errors = library("psycopg.errors", "postgres", "PostgresChanges")
        if result is None or not result.error_message:
            return UnreachableError(f"{self._place}: the server has ended the stream")
        error: Exception = errors.error_from_result(result, encoding="utf-8")
        return error

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
        """Send a keep-alive to the server, and request an answer."""
        while True:
            await asyncio.sleep(_STATUS_S)
            await self._tell(asks=True)

    async def _look_on(self) -> None:
        """Log the tables that are not in the publication any more."""
        psycopg = library("psycopg", "postgres", "PostgresChanges")
        if not self._at.tables:  # the start has looked at the publication
            await asyncio.sleep(_LOOK_S)
        while True:
            with suppress(psycopg.Error, TimeoutError):  # read() tells of a server that is gone
                async with await connected(self._dsn) as about, asyncio.timeout(link.ANSWER_S):
                    self._lost = await self._published.look(about, self._at.tables) or set()
            await asyncio.sleep(_LOOK_S)

    def _lose(self, decoder: Decoder) -> None:
        """Log the tables that are not in the publication any more, once each."""
        lost, self._lost = self._lost & decoder.tables.keys(), set()
        decoder.tables = {name: number for name, number in decoder.tables.items() if name not in lost}
        self._at = replace(self._at, tables=decoder.tables)
        for table in sorted(lost):
            reason = self._published.reason(table)
            _LOG.warning("%s: %s", self._place, reason)
            if "delete" in self._operations:
                self._refuse(reason, json.dumps({"_table": table}).encode())

    async def _tell(self, *, asks: bool = False) -> None:
        async with self._sending:
            if (pgconn := self._pgconn) is not None:
                at = self._reached
                psycopg = library("psycopg", "postgres", "PostgresChanges")
                with suppress(psycopg.OperationalError, UnreachableError):  # read() tells of it
                    pgconn.put_copy_data(b"r" + struct.pack(">qqqqb", at, at, at, 0, asks))
                    await self._flushed(pgconn)

    def _silent(self) -> UnreachableError:
        return UnreachableError(
            f"{self._place}: the server does not answer: give the address of one that runs"
        )

    @property
    def _place(self) -> str:
        return f"Postgres publication {self._publication!r}, slot {self._slot!r}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
