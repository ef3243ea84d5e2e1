"""Source: where a live stream comes from, as a service sees it.

A source is read from a position on, and gives data together with the position behind them.  The meaning of a position
is known to the source alone: a service keeps it in its checkpoints, as JSON, and hands it back after a restart.

    replayable      it can be read again from a position (a file, a log): the position in the checkpoint is enough
    acknowledging   it keeps data until they are acknowledged (a queue): a service does so after the checkpoint
    neither         data since the last checkpoint are lost with the process (a socket)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Container
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

from oop_engine.connectors.link import ServerLink
from oop_engine.connectors.payload import Metadata
from oop_engine.connectors.registry.declared_format import DeclaredFormat
from oop_engine.core.errors import UsageError
from oop_engine.traces.csv_format import CsvFormat

__all__ = ["BEGIN_AGAIN", "Format", "LiveSource", "Position", "Unreadable"]

Format: TypeAlias = str | CsvFormat | DeclaredFormat
"""How data are read: the name of a ``MessageFormat``, how CSV is written, or a format with parameters (``Avro``)."""
Position: TypeAlias = Any
"""Where a source goes on: None (the beginning), or any value of JSON."""
Unreadable: TypeAlias = Callable[..., None]
"""Called with a reason, the record (or the first of several) as it came, text or bytes, and how many there are; and,
where the source knows more than its last position, ``place``, a value of JSON that finds the record."""


BEGIN_AGAIN = (
    "resume with --from earliest, latest or a position (start_from=), or from another folder of checkpoints"
)
"""The way out of a position that its server does not have any more."""


def is_count(value: object) -> bool:
    """Return whether a value is a whole number from 0 on.

    >>> is_count(3), is_count(True), is_count("3")
    (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class LiveSource:
    """Base of all sources of a service.

    ``replayable``: data after a position are there again after a restart; of a source that is not, and does not
    acknowledge, a service with a checkpoint tells at its start that a crash loses data.  ``format``: how its data
    are read, the name of a ``MessageFormat``; of the format ``rows`` they are pages, punctuation, Arrow data or
    dictionaries.
    ``is_file``: its data begin with the first line of a file.
    ``by_lines``: its data are cut at the ends of lines, so its format must have lines.
    ``gathers``: it is read when all before has gone in, and gives all that has come meanwhile together; from others
    the service reads on while the graph is busy, and gathers their data itself.
    ``moves``: it goes on on a thread once ``blocks`` is set, as its data hold up the event loop.
    ``lends``: the list that it has just given may be another one once it is asked for more: who reads it copies it.
    ``adds``: columns that it adds to rows by itself, which a schema need not have.
    ``metadata``: columns that a schema may ask of its messages (an offset, a key), by name, with the types of their
    values; ``wanted`` is set by the service: those that the schema has.  Where there are some, data are ``Payload``s.
    ``reads``: the file or folder of this machine that it reads, which no sink of the service may write to.
    ``unreadable`` is set by the service: a source calls it with rows that it cannot read itself.
    ``columns`` is set by the service: the types of its schema, by name; None: all that there are.
    ``link``: a source tells it whether its server is there (``here``, ``gone``).
    """

    replayable: ClassVar[bool] = False
    by_lines: ClassVar[bool] = False
    gathers: ClassVar[bool] = False
    moves: ClassVar[bool] = False
    blocks: bool = False
    lends: bool = False
    adds: tuple[str, ...] = ()
    metadata: Metadata = MappingProxyType({})
    wanted: Container[str] = ()
    reads: Path | None = None
    is_file: ClassVar[bool] = False
    format: Format = "rows"
    unreadable: Unreadable | None = None
    columns: Container[str] | None = None

    @cached_property
    def link(self) -> ServerLink:
        """The way to its server."""
        return ServerLink()

    def read(self, position: Position) -> AsyncIterator[tuple[Any, Position]]:
        """Yield data from ``position`` on, each with the position behind them; end where the stream ends.

        Data are in the source's format.  Raises ``TraceError`` if the position is no longer there: data are never
        skipped in silence; ``UnreachableError`` if its server is away: once ``link.here()`` was called, it is read
        again from the last position, after a while.
        """
        raise NotImplementedError

    def is_position(self, position: Position) -> bool:
        """Return whether a value of JSON can be a position of this source; a service asks before it reads.

        It may be of another kind of source, which had this name, or typed by a user (``--from``).
        """
        return True

    async def latest(self) -> Position:
        """Return the position behind all data that there are now; ``read`` goes on from it.

        None, if the source cannot be read again anyway.  Raises ``UsageError`` if it has no such position,
        ``SetupError`` if its server is away.
        """
        if not self.replayable:
            return None
        msg = f"{type(self).__name__}: has no latest position: start it from earliest, or from a position"
        raise UsageError(msg)

    async def acknowledge(self, position: Position) -> None:
        """Acknowledge all up to ``position``: it is in a checkpoint, or else in the sinks.  May be repeated."""

    async def close(self) -> None:
        """Release resources; called once, after the last ``acknowledge``, also after an error."""

    def place(self, before: Position, behind: Position, skipped: int) -> Any:
        """Return where a record is, as a value of JSON.

        It is in data between two positions, behind the first ``skipped`` bytes of them, or items where they are a list.
        """
        return before if before is not None and not skipped else {"behind": before, "record": skipped}

    def rest(self) -> list[tuple[Any, Position]]:
        """Return data that came and that ``read`` had not yielded when it was closed, each with its position."""
        return []

    def last_data(self) -> list[tuple[Any, Position]]:
        """Return data that the end of the stream makes whole (a last line without a line break), with positions.

        Called behind ``rest``, where a service ends its streams when it is stopped (``drain``).
        """
        return []

    def headed(self) -> bytes:
        """Return the line of column names that stands before all data (CSV); by default none."""
        return b""

    def file_above(self, before: Position, behind: Position) -> tuple[str, bytes]:
        """Return a key and the first line of the file that has the data between two positions; by default neither.

        For a source that reads several files, whose columns may be in different orders.
        """
        return "", b""
