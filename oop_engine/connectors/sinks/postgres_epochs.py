"""Epochs of a table of Postgres: the number of the last one that is in it, written with its rows."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from oop_engine.core.errors import SnapshotError

__all__ = ["TableEpochs"]

_MARK = (
    "insert into {epochs} (run, place, epoch) values (%s, %s, %s) "
    "on conflict (run, place) do update set epoch = excluded.epoch where {epochs}.epoch < excluded.epoch"
)
_TABLE = "(select oid::bigint from pg_class where oid = to_regclass(%s) and relkind in ('r', 'p'))"
_LAST = f"select (select epoch from {{epochs}} where run = %s and place = %s), {_TABLE}"
_LOG = logging.getLogger("oop_engine")


class TableEpochs:
    """The epochs of ``table`` that this process has committed; ``fetched`` and ``do`` execute statements.

    A server that was restored to an earlier moment, or a standby that takes over without the last transactions, lacks
    some of them; a table that was dropped and made again lacks all.  ``known``: the number of the table (its OID);
    None: not known yet, or it is a view.  ``quoted``: its name as a statement has it.
    """

    quoted = ""

    def __init__(
        self,
        table: str,
        do: Callable[[str, Sequence[Any]], Awaitable[int]],
        fetched: Callable[[str, Sequence[Any]], Awaitable[list[Any]]],
    ) -> None:
        self._table, self._do, self._fetched = table, do, fetched
        self._last: int | None = None
        self.known: int | None = None

    async def look(self) -> None:
        """Look up the table's identity."""
        ((self.known,),) = await self._fetched(f"select {_TABLE}", [self.quoted])

    def check(self, known: int | None, epoch: int) -> None:
        """Log that an earlier process has prepared an epoch for another table of this name."""
        if None not in (known, self.known) and known != self.known:
            words = "Postgres table %r: was dropped and made again: results before epoch %d are not in it"
            _LOG.warning(words, self._table, epoch)

    async def mark(self, run: str, epoch: int) -> bool:
        """Write the number of an epoch, within a transaction; return False if that was done.

        Raises ``SnapshotError`` if an epoch that was committed is not in the table any more.
        """
        ((there, table),) = await self._fetched(_LAST, [run, self._table, self.quoted])
        before, self.known = self.known, table
        if self._last is not None and None not in (before, table) and before != table:
            last, self._last = self._last, None
            msg = (
                f"Postgres table {self._table!r}: was dropped and made again, or another one has its name now, since "
                f"epoch {last} was committed: the results up to it are not in it: restart the service to go on without "
                "them"
            )
            raise SnapshotError(msg)
        if self._last is not None and (there is None or there < self._last):
            has = "no results" if there is None else f"the results up to epoch {there} alone"
            last, self._last = self._last, None
            msg = (
                f"Postgres table {self._table!r}: has {has}, and epoch {last} was committed: it was restored, or a "
                "standby took over without the last transactions; the results in between are lost: restart the service "
                "to go on without them"
            )
            raise SnapshotError(msg)
        return await self._do(_MARK, [run, self._table, epoch]) == 1

    def done(self, epoch: int) -> None:
        """Record that an epoch is committed."""
        self._last = epoch
