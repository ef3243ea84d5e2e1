"""Forms: all that a caller may give for a source becomes messages of its schema, here and nowhere else.

    Page, punctuation, Change                       a message; {"punctuation": {...}}, as in JSON lines, too
    Arrow data: table, batch, reader, data frame    rows; columns are found by their names, others are left out
    mapping whose time is a list or an array        columns
    other mapping, dataclass, named tuple           a row (see ``rows``)
    tuple or list of plain values                   a row, in the order of the columns
    list, tuple or iterator of these                all of them, in their order
    trace, other iterable                           the same, read as it is needed

Where a runner reads feeds inside asyncio, an iterable may be an asynchronous one.
Rows go in together, ``RING`` of them in a page, but they never pass another message.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from reprlib import repr as _short
from typing import Any

import pyarrow as pa

from oop_engine.core.errors import ContractError
from oop_engine.core.groups.in_python import rows_of
from oop_engine.core.late.late_page import FEW, packed_rows
from oop_engine.core.operator import Message
from oop_engine.core.page import Page, concat
from oop_engine.core.schema import Schema
from oop_engine.core.values.arrow_data import is_arrow
from oop_engine.core.values.kinds import misread
from oop_engine.core.values.python_values import is_missing
from oop_engine.runners.feeds.bad_rows import Refuse, refuse
from oop_engine.runners.feeds.in_turn import InTurn
from oop_engine.runners.feeds.kinds import READY, is_of_service, is_values, is_whole
from oop_engine.runners.feeds.rows import BadRowError, RowReader, is_row
from oop_engine.runners.feeds.tables import columns_in, is_column, part, value_at
from oop_engine.system.knobs import knob
from oop_engine.traces.punctuation_records import is_punctuation, punctuation_of_body
from oop_engine.traces.trace import Trace

__all__ = ["RING", "Intake"]

RING = knob(__name__, "RING", 1024)
"""The most rows that wait: a page of so many costs a third of a microsecond a row, and some milliseconds at most."""

_TAKEN = (
    "a Page, punctuation, Arrow data, a data frame, columns ({'ts': [...]}), or rows: dictionaries, dataclasses, named "
    "tuples, tuples of values"
)
_MARK = "punctuation"
_NONE: tuple[Message, ...] = ()


class Intake:
    """Makes messages of all that comes at one source; ``place`` names it in errors.

    ``call``: the function or method of the caller, for errors.  ``refused`` is called with bad rows, ``refused_trace``
    with those of traces (None: they are counted in the trace alone).  Without ``refused`` a bad row is a
    ``ContractError``.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear
    >>> intake = Intake("here", Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s"))
    >>> [message for message in intake.messages([{"ts": 1, "k": "a"}, (2, "b"), Linear(2), {"k": ["c"], "ts": [3]}])]
    [Page(2 rows of ts, k), Linear(below=2), Page(1 rows of ts, k)]
    """

    def __init__(
        self,
        place: str,
        schema: Schema,
        call: str = "a feed",
        refused: Refuse | None = None,
        refused_trace: Refuse | None = None,
        reader: RowReader | None = None,
    ) -> None:
        self._place, self._schema, self._call = place, schema, call
        self._refused, self._refused_trace = refused or refuse(place), refused_trace
        self._reader = reader or RowReader(schema)
        self._width, self._of = len(schema.names), self._reader.in_columns
        self._of_class = self._reader.of_class
        self._time = schema.names.index(schema.progressing)
        self._scalars: set[type] = {int}  # classes of times, and of the first values of rows
        self._waiting: list[Sequence[Any]] = []
        self._skipped: list[int] = []  # how many rows waited when a bad one came
        self._row = 0  # rows before those that wait
        self._in_turn = InTurn()

    @property
    def waiting(self) -> int:
        """How many rows wait for ``flush``."""
        return len(self._waiting)

    def messages(self, feed: Any) -> Iterator[Message]:
        """Yield the messages of a whole feed, of any form.

        Raises ``ContractError`` for anything that has no form of these, and as ``refused`` does.
        """
        if isinstance(feed, Mapping) and not feed:  # no columns; among others it is a row without its time
            return
        if is_whole(feed) or isinstance(feed, Trace) or is_row(feed):
            yield from self.add(feed)
        elif isinstance(feed, str | bytes) or not isinstance(feed, Iterable):
            msg = f"{self._place}: {self._call} takes {_TAKEN}, or an iterable of these; got {_shown(feed)}"
            msg += ": a source of a service, which serve reads" if is_of_service(feed) else ""
            raise ContractError(msg)
        else:
            for given in feed:
                if (ready := self.add(given)) is not _NONE:
                    yield from ready
        yield from self.flush()

    def add(self, given: Any) -> Iterable[Message]:
        """Return the messages that are ready now that one more thing has come; they are read before the next comes.

        A row waits for others until there are ``RING``, until another message comes, or until ``flush``.
        """
        kind, values = given.__class__, None
        if kind is dict:
            if len(given) == self._width:
                try:
                    values = self._of(given)
                except KeyError:
                    values = None
        elif kind is tuple:
            if len(given) == self._width and given[0].__class__ in self._scalars:
                values = self._reader.values(given) if self._reader.changes else given
        elif kind in self._of_class:
            values = self._of_class[kind](given)
        if values is not None and values[self._time].__class__ in self._scalars:  # a row like some before
            self._waiting.append(values)
            return self.flush() if len(self._waiting) >= RING else _NONE
        if isinstance(given, READY):
            ready = [*self.flush(), given]
            self._row += len(given) if isinstance(given, Page) else 0
            return ready
        return self._row_or_more(given)

    def flush(self) -> Sequence[Message]:
        """Return the rows that wait, as a page; none if no row waits, or all are bad."""
        rows, skipped, before = self._waiting, self._skipped, self._row
        self._waiting, self._skipped, self._row = [], [], before + len(rows) + len(skipped)
        if not rows:
            return _NONE

        def made(start: int, stop: int) -> Page:
            part = rows[start:stop]
            few = packed_rows(self._schema, part) if stop - start <= FEW else None
            if few is not None:
                return few
            columns = zip(*part, strict=True)
            return Page.of(self._schema, dict(zip(self._schema.names, columns, strict=True)))

        def row(at: int) -> tuple[int, dict[str, Any]]:
            number = before + at + bisect_right(skipped, at) + 1
            return number, dict(zip(self._schema.names, rows[at], strict=True))

        return self._good(made, row, len(rows))

    def _row_or_more(self, given: Any) -> Iterable[Message]:
        try:
            if self._is_row(given):
                values = self._reader.values(given)
                self._scalars |= {values[self._time].__class__, values[0].__class__} - {list, tuple, dict}
                self._waiting.append(values)
                return self.flush() if len(self._waiting) >= RING else _NONE
            if self._is_punctuation(given):
                punctuation = self._punctuation(given[_MARK])
                return [*self.flush(), punctuation]
            if not (is_whole(given) or isinstance(given, Trace | list | tuple | Iterator)):
                msg = f"{self._call} takes {_TAKEN}; got {_shown(given)}"
                raise BadRowError(msg)
        except BadRowError as error:
            self._refused(
                self._row + len(self._waiting) + len(self._skipped) + 1, str(error), given, str(error)
            )
            self._skipped.append(len(self._waiting))
            return _NONE
        if isinstance(given, list | tuple) or (isinstance(given, Iterator) and not is_arrow(given)):
            return chain.from_iterable(map(self.add, given))
        return chain(self.flush(), self._pages(given))

    def _is_row(self, given: Any) -> bool:
        if isinstance(given, Mapping):
            return not (self._is_columns(given) or self._is_punctuation(given))
        if is_row(given):
            return not is_arrow(given)
        return is_values(given)

    def _is_columns(self, given: Mapping[Any, Any]) -> bool:
        """Return whether a mapping has columns: its progressing attribute is a list or an array."""
        columns = [given[time]] if (time := self._schema.progressing) in given else list(given.values())
        return bool(columns) and all(map(is_column, columns))

    def _is_punctuation(self, given: Any) -> bool:
        """Return whether a mapping is punctuation, as in JSON lines."""
        return isinstance(given, Mapping) and is_punctuation(given, self._schema.names)

    def _punctuation(self, body: Any) -> Message:
        try:
            return punctuation_of_body(body, self._schema.fields)
        except ValueError as error:
            raise BadRowError(str(error)) from error

    def _pages(self, given: Any) -> Iterator[Message]:
        """Yield the pages of rows that are given together: a trace, columns, Arrow data."""
        if isinstance(given, Trace):
            yield from self._in_turn.behind(self._of_trace(given))
            return
        for columns in columns_in(given, self._schema, self._place):
            yield from self._slice(columns)

    def _of_trace(self, trace: Trace) -> Iterator[Message]:
        refused = self._refused_trace

        def on_refused(number: int, rows: pa.RecordBatch, reason: str) -> None:
            assert refused is not None
            for at, record in enumerate(rows_of(rows)):
                refused(None if at else number, reason, record, reason)

        return iter(trace) if refused is None else trace.read(on_refused)

    def _slice(self, columns: Mapping[str, Any]) -> Sequence[Message]:
        """Return the page of some columns of a page's length, without its bad rows."""
        before, count = self._row, len(columns[self._schema.progressing])

        def made(start: int, stop: int) -> Page:
            return Page.of(
                self._schema, {name: part(column, start, stop) for name, column in columns.items()}
            )

        def row(at: int) -> tuple[int, dict[str, Any]]:
            return before + at + 1, {name: value_at(column, at) for name, column in columns.items()}

        self._row += count
        try:
            return [made(0, count)]
        except ContractError:
            self._check_types(made)
        return self._good(made, row, count)

    def _check_types(self, made: Callable[[int, int], Page]) -> None:
        """Raise ``ContractError`` if a column is of a wrong type, whatever values are in it."""
        try:
            made(0, 0)
        except ContractError as error:
            msg = f"{self._place}: {str(error).removeprefix('page: ')}"
            raise ContractError(msg) from error

    def _good(
        self, made: Callable[[int, int], Page], row: Callable[[int], tuple[int, dict[str, Any]]], count: int
    ) -> Sequence[Message]:
        """Return the page of rows that are good, of ``count``; ``row`` gives the number and the values of one."""

        def pages(start: int, stop: int) -> list[Page]:
            try:
                return [made(start, stop)]
            except ContractError as error:
                if stop - start == 1:
                    number, values = row(start)
                    text = str(error).removeprefix("page: ")
                    reason = self._reason(values, text)
                    self._refused(number, reason, values, reason if reason.endswith(" is null") else text)
                    return []
                middle = (start + stop) // 2
                return pages(start, middle) + pages(middle, stop)

        good = pages(0, count)
        return good if len(good) == 1 else [concat(self._schema, good)] if good else _NONE

    def _reason(self, values: Mapping[str, Any], text: str) -> str:
        """Return the reason to refuse a row, in the words of a trace."""
        for field in self._schema.fields:
            if is_missing(values[field.name]) and (
                field.name == self._schema.progressing or not field.nullable
            ):
                return f"{field.name} is null"
            if text.startswith(f"{field.name!r} must be {field.type};"):
                return misread(field.name, values[field.name], field.type)
        return text


def _shown(given: Any) -> str:
    way_out = ": call its collect()" if hasattr(given, "collect") else ""
    return f"{' '.join(_short(given).split())} ({type(given).__name__}){way_out}"
