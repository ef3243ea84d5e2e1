"""Sink: where the results of a service go, an epoch at a time, each of them once.

An *epoch* is the time between two checkpoints.  A sink takes the pages of an epoch (``write``), makes them durable
where nobody sees them (``prepare``), and makes them visible (``commit``) after the checkpoint has been recorded.
A process that dies in between has its ``commit`` repeated by the next one, so it may be called twice, by two processes,
and does the same once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from oop_engine.connectors.link import ServerLink
from oop_engine.connectors.source import Unreadable
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema

__all__ = ["LiveSink", "Prepared", "key_columns"]

Prepared: TypeAlias = Any
"""All that ``commit`` needs, as JSON: it is kept in the checkpoint.  None: there is nothing to commit."""


def key_columns(key: str | Sequence[str]) -> list[str]:
    """Return the columns of a key; a text is one column.

    >>> key_columns("host"), key_columns(("day", "host"))
    (['host'], ['day', 'host'])
    """
    return [key] if isinstance(key, str) else [*key]


class LiveSink:
    """Base of all sinks of a service.  A sink is opened once, and used from one event loop.

    ``prepare`` and ``commit`` may raise ``UnreachableError`` if the server is away: they are called again, after a
    while, until it is back; meanwhile no source is read.  The work may have been done before the connection broke.
    ``failures``: other errors of the place that it writes to, such as a full disk.  A service stops on one with a line,
    and its checkpoint has all that the next one needs; errors that are none of these keep their traceback.
    ``refused`` is set by the service: a sink calls it with a row that its server refuses, as ``Unreadable``, and leaves
    the row out; None: such a row is an error.  ``keeps_refused``: whether the service has a sink of dead letters, which
    keeps the row.
    ``writes``: the folder of this machine that it writes to: no other sink of the service may, and no source read it.
    """

    failures: tuple[type[Exception], ...] = ()
    writes: Path | None = None
    refused: Unreadable | None = None
    keeps_refused: bool = True

    @cached_property
    def link(self) -> ServerLink:
        """The way to its server."""
        return ServerLink("sink")

    async def open(self, schema: Schema, run: str, prepared: Collection[Prepared]) -> None:
        """Get ready for pages of ``schema``; ``run``: the name of this checkpoint, and of no other.

        A service without a checkpoint has a new name each time that it starts.
        ``prepared`` are those that may still be committed; anything else that an earlier process of the same ``run``
        has prepared belongs to no checkpoint, and can be thrown away.
        """

    async def write(self, epoch: int, page: Page) -> None:
        """Take results of an epoch.  While this waits, the operator before the sink waits."""
        raise NotImplementedError

    async def prepare(self, epoch: int) -> Prepared:
        """Make the results of an epoch durable; pages of the next one may come meanwhile."""
        return None

    async def commit(self, prepared: Prepared) -> None:
        """Make the results of a prepared epoch visible; do nothing if that was done before."""

    async def forget(self) -> None:
        """Remove the marks of this ``run``: it had no checkpoint and has ended, so no process repeats its commits."""

    async def close(self) -> None:
        """Close connections; called at the end, also after an error."""
