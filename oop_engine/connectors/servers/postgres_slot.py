"""Replication slot of Postgres: where it begins, whether a reader can go on from a position in it, its tables.

A table that is dropped leaves its publication without a word, and one that is made under its name is not in it, unless
the publication is of all tables, or of a schema.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Container
from typing import Any

from oop_engine.connectors import link
from oop_engine.connectors.servers.postgres_log import LogPlace, lsn_of
from oop_engine.connectors.servers.postgres_login import connected
from oop_engine.core.errors import SetupError

__all__ = ["Publication", "slot_start"]

_LOG = logging.getLogger("oop_engine")
_PUBLISHED = "select puballtables, pubinsert, pubupdate, pubdelete from pg_publication where pubname = %s"
_TABLES = "select schemaname, tablename from pg_publication_tables where pubname = %s"
_KINDS = ("insert", "update", "delete")
_FOUND = (
    "select confirmed_flush_lsn::text, wal_status, plugin, case when pg_is_in_recovery() then "
    "pg_last_wal_receive_lsn() else pg_current_wal_lsn() end::text, coalesce(database, ''), current_database() "
    "from pg_replication_slots where slot_name = %s"
)
_MADE = "select lsn::text from pg_create_logical_replication_slot(%s, 'pgoutput')"


class Publication:
    """The publication ``name``; ``place`` names the source in lines of the log, each of which comes once.

    ``wanted``: the operations that are read.
    """

    def __init__(self, place: str, name: str, wanted: Container[str]) -> None:
        self._place, self._name, self._wanted = place, name, wanted
        self._told = set[str]()

    async def look(self, connection: Any, tables: Collection[str]) -> set[str] | None:
        """Return which of ``tables``, those of which rows came, are not in it any more; None: there is no publication.

        Logs whether it is empty, and operations that it leaves out.  Raises errors of psycopg.
        """
        published = await (await connection.execute(_PUBLISHED, [self._name])).fetchone()
        if published is None:
            return None
        every, *sent = published
        rows = await (await connection.execute(_TABLES, [self._name])).fetchall()
        there = {table if space == "public" else f"{space}.{table}" for space, table in rows}
        wanted = [name for name in _KINDS if name in self._wanted]
        if missing := [
            name for name, is_sent in zip(_KINDS, sent, strict=True) if name in wanted and not is_sent
        ]:
            self._tell(f"leaves out each {', '.join(missing)} (its option publish), so none of them comes")
        if not there and not every:
            self._tell(f"has no table, so no row comes: ALTER PUBLICATION {self._name} ADD TABLE ...")
        return {*tables} - there

    def reason(self, table: str) -> str:
        """Return the line about a table that is not in it any more, with the way out."""
        return (
            f"table {table} is not in the publication any more: it was dropped, renamed or taken out; changes of its "
            "rows do not come, nor do rows that are written before it is back: "
            f"ALTER PUBLICATION {self._name} ADD TABLE {table}"
        )

    def _tell(self, words: str) -> None:
        if words not in self._told:
            self._told.add(words)
            _LOG.warning("%s: %s", self._place, words)


async def slot_start(
    place: str, dsn: str, publication: Publication, slot: str, position: LogPlace | None
) -> int:
    """Return the place in the log from which a slot sends changes.

    Without a ``position`` a slot that is not there is made, which waits for transactions of others.  Raises
    ``SetupError`` in the name of ``place`` if there is no such publication or the slot is of another kind,
    ``TraceError`` if it cannot go on from the position, and errors of psycopg.
    """
    async with await connected(dsn) as about, asyncio.timeout(link.ANSWER_S) as limit:
        if await publication.look(about, ()) is None:
            msg = f"{place}: there is no such publication: CREATE PUBLICATION ... FOR TABLE ..."
            raise SetupError(msg)
        slot_row = await (await about.execute(_FOUND, [slot])).fetchone()
        if slot_row is None and position is None:
            limit.reschedule(None)
            (made,) = await (await about.execute(_MADE, [slot])).fetchone()
            return lsn_of(made)
        _check(place, slot_row, position)
        return lsn_of(slot_row[0])


def _check(place: str, slot_row: Any, position: LogPlace | None) -> None:
    """Raise an error if the slot is of another kind, or cannot go on from a position."""
    if slot_row is not None and (slot_row[2] != "pgoutput" or slot_row[4] != slot_row[5]):
        plugin = slot_row[2] != "pgoutput"
        owner = f"the plugin {slot_row[2]!r}, not pgoutput" if plugin else f"the database {slot_row[4]!r}"
        msg = f"{place}: is a slot of {owner}: give another name of a slot"
        raise SetupError(msg)
    at = position or LogPlace(0 if slot_row is None else lsn_of(slot_row[0]))
    if slot_row is None:
        raise at.gone(place, "there is no such slot any more")
    if slot_row[1] == "lost":
        raise at.gone(place, "the server has removed the log of the slot")
    if lsn_of(slot_row[0]) > at.lsn:
        raise at.gone(place, f"the slot has gone on to {slot_row[0]}, or was made again there")
    if at.lsn > lsn_of(slot_row[3]):
        raise at.gone(place, f"the log ends at {slot_row[3]}: is it another server?")
