"""Record reader: data of a source become messages of its format; a record that is refused becomes a dead letter.

Data are read together.  Where rows are refused, and dead letters are kept, their numbers tell the records that they are
in, if each record is a row.  Else they are read again by halves down to these.  So a dead letter has the record as it
came, and its place.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.connectors.formats import made_format
from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.payload import Payload
from oop_engine.connectors.source import LiveSource, Position
from oop_engine.core.operator import Message
from oop_engine.core.schema import Schema
from oop_engine.service.dead_letters import DeadLetters
from oop_engine.service.letters.known_format import check_format
from oop_engine.service.letters.letter_context import bytes_of, context_of, names_in, of_bytes, with_message
from oop_engine.service.letters.letter_folder import Retry
from oop_engine.service.letters.names_above import NamesAbove

__all__ = ["Piece", "Record", "RecordReader"]

Piece = tuple[Any, Position, Position]
"""Data of a source, and the positions before and behind them; a plain tuple, for each message makes one."""

Record = tuple[int, Any, Piece]
"""A record as it came, behind its start in the data of its piece."""

_LOG = logging.getLogger("oop_engine")
_NAMED = 5
_OBJECTS = "rows"
"""The format of objects of Python: their records are JSON."""


class _RefusedError(Exception):
    """A row of several records cannot be read."""


class RecordReader:
    """Reads data of ``source``, called ``name``, as messages of ``schema``.

    ``unknown``: by name, how many rows had a column that the schema does not have; ``refused``: how often a row was
    refused, also of those that are read again.  Raises ``UsageError`` if the format
    is not known, or has no lines where the source is read by lines.
    """

    def __init__(self, name: str, source: LiveSource, schema: Schema, dead: DeadLetters) -> None:
        check_format(name, source)
        self._name, self._source, self._dead = name, source, dead
        source.unreadable = self._unreadable = dead.of(name)
        source.columns = {field.name: field.type for field in schema.fields}
        self._format = made_format(source, schema, f"source {name!r}", self._refused)
        self._format.unknown.allow(source.adds)
        self.waits, self.refused = self._format.waits, 0
        self._probes = self._logged = False  # whether a refusal ends the reading; unknown columns are logged
        self._names = NamesAbove()
        self._letters: list[tuple[str, str, int]] | None = None  # of one record: reason, text, rows
        self._spotted: list[tuple[str, NDArray[np.int64]]] | None = (
            None  # reasons, with the numbers of their rows
        )

    @property
    def unknown(self) -> dict[str, int]:
        """Columns that the schema does not have, and how many rows had them."""
        return self._format.unknown.counts

    @property
    def headers(self) -> list[str]:
        """The first line of the file that is read, the line of names that holds, and those of earlier files."""
        return self._names.saved(self._format.header) if self._format.header else []

    def begin(self, headers: Sequence[str] = ()) -> None:
        """Read the line of names that holds where a source resumes: of ``headers``, or else the first of its data."""
        holds = self._names.restore(headers)
        if self._format.headed:
            self._read_header(holds or self._source.headed())

    async def ready(self, data: Any) -> None:
        """Wait until some data can be read, where the reader ``waits`` for a server (a schema registry)."""
        await self._format.ready(data)

    async def is_ready(self, data: Any) -> bool:
        """Return whether some data can be read now."""
        try:
            await self._format.ready(data, once=True)
        except UnreachableError:
            return False
        return True

    def listed(self, piece: Piece) -> list[Any]:
        """Return the records of a list of a source, which ``messages_of`` reads in parts; of other data none."""
        data = piece[0]
        return self._format.records(data) if isinstance(data, list) and not self._format.headed else []

    def messages_of(self, records: list[Any], at: int, piece: Piece) -> list[Message]:
        """Return the messages in some records of a piece, the first of which is its ``at``-th."""
        if self._dead.kept:
            return self._of_records([(at + n, record, piece) for n, record in enumerate(records)], piece)
        return list(self._format.read(records))

    def messages(self, pieces: list[Piece]) -> list[Message]:
        """Return the messages in some pieces, read together; by halves where a row is refused, to find its position."""
        messages = self._of_pieces(pieces)
        if self.unknown and not self._logged:
            self._log_unknown()
        return messages

    async def ready_again(self, letter: Retry) -> None:
        """Look whether a dead letter can be read now; one that cannot is refused again."""
        if self.waits:
            await self.is_ready([bytes_of(letter)])

    def again(self, letter: Retry) -> list[Message]:
        """Return the messages in a dead letter; a record that is refused again becomes a new one.

        It is read below the line of names, and with the columns of its message, that it had.
        """
        context = json.loads(letter.context) if letter.context else None
        names = names_in(context) if self._format.headed else b""
        if not names or names == self._format.header:
            return self._again(letter, context)
        known = {name: getattr(self._format, name) for name in self._format.remembers}
        self._read_header(names)
        try:
            return self._again(letter, context)
        finally:
            vars(self._format).update(known)

    def _again(self, letter: Retry, context: dict[str, Any] | None) -> list[Message]:
        record, place = letter.record, {"letter": letter.letter}
        raw: Any = with_message(bytes_of(letter), context)
        if self._source.format == _OBJECTS:
            try:
                raw = json.loads(record)
            except ValueError as error:
                self._unreadable(
                    f"the mended record is no JSON: {error}", record, 1, place=place, coding="json"
                )
                return []
        data = of_bytes(raw, raw + b"\n") if self._format.by_lines and isinstance(raw, bytes) else [raw]
        return self._of_record(raw, data, place)

    def _of_pieces(self, pieces: list[Piece]) -> list[Message]:
        joined = self._format.together([data for data, _, _ in pieces]) if len(pieces) > 1 else None
        if joined is not None and not self._dead.kept:
            return list(self._format.read(joined))
        if joined is not None:
            if (together := self._all_of(joined, lambda: self._records(*pieces))) is not None:
                return together
            half = len(pieces) // 2
            return self._of_pieces(pieces[:half]) + self._of_pieces(pieces[half:])
        return [message for piece in pieces for message in self._of_piece(piece)]

    def _read_header(self, line: bytes) -> None:
        """Read a line of names that stands above data which are read; another line has no effect."""
        counts = dict(self.unknown)
        self._probes = True
        try:
            list(self._format.messages(line))
        except _RefusedError:  # refused where the file begins
            pass
        finally:
            self._probes = False
            self._format.unknown.counts = counts

    def _of_piece(self, piece: Piece) -> list[Message]:
        data, before, after = piece
        if self._format.headed:
            file, first = self._source.file_above(before, after)
            if line := self._names.turn_to(file, first, data):
                self._read_header(line)
            messages = self._of_data(piece)
            self._names.note(self._format.header)
            return messages
        return self._of_data(piece)

    def _of_data(self, piece: Piece) -> list[Message]:
        data = piece[0]
        if not self._dead.kept:
            return list(self._format.read(data))
        if (together := self._all_of(data, lambda: self._records(piece))) is not None:
            return together
        return self._of_records(self._records(piece), piece)

    def _records(self, *pieces: Piece) -> list[Record]:
        """Return the records of some pieces."""
        numbered: list[Record] = []
        for piece in pieces:
            records = self._format.records(data := piece[0])
            sizes = map(len, records) if isinstance(data, bytes) else [1] * len(records)
            starts = accumulate(sizes, initial=0)
            numbered += [(start, record, piece) for start, record in zip(starts, records, strict=False)]
        return numbered

    def _of_records(self, records: list[Record], piece: Piece) -> list[Message]:
        """Return the messages in records of a piece; by halves down to those refused."""
        data: Any = [record for _, record, _ in records]
        if isinstance(piece[0], bytes):
            data = b"".join(data)
            data = of_bytes(piece[0], data)
        elif not isinstance(piece[0], list | tuple):
            data = piece[0]
        if len(records) == 1:
            return self._of_record(self._raw(records[0]), data, self._place(records[0]))
        if (together := self._all_of(data, lambda: records)) is not None:
            return together
        half = len(records) // 2
        return self._of_records(records[:half], piece) + self._of_records(records[half:], piece)

    def _raw(self, record: Record) -> Any:
        """Return a record as it came, without the end of its line."""
        _, raw, piece = record
        if not isinstance(raw, bytes):
            return raw
        line = raw.removesuffix(b"\n") if self._format.by_lines else bytes(raw)
        return of_bytes(raw if isinstance(raw, Payload) else piece[0], line)

    def _place(self, record: Record) -> Any:
        start, _, (_, before, after) = record
        return self._source.place(before, after, start)

    def _of_record(self, raw: Any, data: Any, place: Any) -> list[Message]:
        """Return the messages in one record, which is ``raw`` as it came; bury it, or those of its rows refused."""
        self._letters = []
        messages = list(self._format.read(data))
        letters, self._letters = self._letters, None
        coding = "part" if messages else None
        if not messages and self._source.format == _OBJECTS and not isinstance(raw, bytes):
            raw, coding = json.dumps(raw, default=str), "json"
        context = context_of(raw, self._format.header if self._format.headed else b"") if letters else None
        for reason, text, rows in letters:
            self._unreadable(
                reason, text if messages else raw, rows, place=place, coding=coding, context=context
            )
        return messages

    def _all_of(self, data: Any, records: Callable[[], list[Record]]) -> list[Message] | None:
        """Return the messages in some data, and bury the ``records`` refused; None: which these are is not known."""
        unknown, remembered = dict(self.unknown), self._format.remembers
        known = {name: getattr(self._format, name) for name in remembered}
        first, self._spotted = self._format.next_row, []
        try:
            messages = list(self._format.read(data))
            if self._spotted and not self._bury(self._spotted, records(), first):
                raise _RefusedError
        except _RefusedError:  # the rows are read again
            self._format.unknown.counts = unknown
            vars(self._format).update(known)
            return None
        finally:
            self._spotted = None
        return messages

    def _bury(self, spotted: list[tuple[str, NDArray[np.int64]]], records: list[Record], first: int) -> bool:
        """Bury the records of some rows, which are numbered from ``first``; False: not each record is one row."""
        if self._format.next_row - first != len(records) or not all(map(self._is_row, records)):
            return False
        names = self._format.header if self._format.headed else b""
        for row, reason in sorted((int(row), reason) for reason, rows in spotted for row in rows):
            raw, place = self._raw(record := records[row - first]), self._place(record)
            self._unreadable(reason, raw, 1, place=place, context=context_of(raw, names))
        return True

    def _is_row(self, record: Record) -> bool:
        """Return whether a record is one row where as many rows as records were read."""
        _, raw, (data, _, _) = record
        if isinstance(data, bytes) and self._format.by_lines:
            return self._format.row_a_line
        return isinstance(raw, bytes) and self._format.is_row(raw)

    def _refused(self, reason: str, record: str, rows: int) -> None:
        self.refused += 1
        if self._spotted is not None and self._format.refusing is not None:
            self._spotted.append((reason, self._format.refusing))
        elif self._probes or self._spotted is not None:
            raise _RefusedError
        elif self._letters is not None:
            self._letters.append((reason, record, rows))
        else:
            self._unreadable(reason, record, rows)

    def _log_unknown(self) -> None:
        """Log the columns that were left out, once, as soon as the first row has one."""
        self._logged = True
        names, known = ", ".join(map(repr, [*self.unknown][:_NAMED])), ", ".join(self._format.schema.names)
        words = "source %r: rows have %s, which the schema has not (left out, and counted); it has %s"
        _LOG.warning(words, self._name, names, known)
