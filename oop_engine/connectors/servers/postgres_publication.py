"""Postgres publication: the tables whose changes a server sends, and operations that it leaves out.

A table that is dropped leaves its publication without a word, and one that is made under its name is not in it, unless
the publication is of all tables, or of a schema.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Container
from typing import Any

__all__ = ["Publication"]

_LOG = logging.getLogger("oop_engine")
_FOUND = "select puballtables, pubinsert, pubupdate, pubdelete from pg_publication where pubname = %s"
_TABLES = "select schemaname, tablename from pg_publication_tables where pubname = %s"
_OPERATIONS = ("insert", "update", "delete")


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
        found = await (await connection.execute(_FOUND, [self._name])).fetchone()
        if found is None:
            return None
        every, *sent = found
        rows = await (await connection.execute(_TABLES, [self._name])).fetchall()
        there = {table if space == "public" else f"{space}.{table}" for space, table in rows}
        wanted = [name for name in _OPERATIONS if name in self._wanted]
        if missing := [
            name for name, is_sent in zip(_OPERATIONS, sent, strict=True) if name in wanted and not is_sent
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
