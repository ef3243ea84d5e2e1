"""The door of a source: messages are validated in one place for every runner.

A message is a page of the source's schema or a punctuation, and nothing else.  A page in another unit or by another
attribute has the same columns and would be counted as if it were right; a record batch or a text would go
nowhere.  O(columns) a page, O(1) where its schema is the very object that the source has.

Rows that come one by one wait here to go in together.  A page costs an operator a hundred microseconds, whatever is in
it; a row that waits costs one.  So rows wait until their source has nothing more, until ``RING`` of them do, or until
the first has waited for ``max_delay_s``.
"""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import repr as _short
from typing import Any, NoReturn

from oop_engine.core.errors import ContractError
from oop_engine.core.fitted import check_bound, fitted, once_each
from oop_engine.core.late.late_page import packed_rows
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import GroupWise, Joint, Linear, Punctuation, Watermark
from oop_engine.core.schema import Schema
from oop_engine.runners.feeds.bad_rows import Refuse
from oop_engine.runners.feeds.forms import RING
from oop_engine.runners.feeds.kinds import MESSAGES
from oop_engine.runners.feeds.rows import BadRowError, RowReader
from oop_engine.system.stopwatch import wall

__all__ = ["RowLane", "admitted"]


def admitted(place: str, schema: Schema, message: object) -> Message:
    """Return a message that may enter by a source of ``schema``; ``place`` names it in errors.

    Raises ``ContractError`` for anything but a page of that very schema (columns, progressing attribute, unit), or a
    punctuation about its columns with bounds that are int64.  Group-wise ones get the types of the columns, and
    have each group once (``fitted``).
    """
    if not isinstance(message, MESSAGES):
        got = f"got a {type(message).__name__} ({' '.join(_short(message).split())})"
        _refuse(place, f"a message must be a Page or a punctuation; {got}: make a page of it")
    if isinstance(message, Page):
        if message.schema is not schema and message.schema != schema:
            _refuse(place, f"a page must be {_in_words(schema, message.schema)}")
        return message
    return _in_its_types(place, schema, message)


class RowLane:
    """Rows of ``schema`` that wait; ``place`` names their source in errors; ``bad`` takes bad rows, if given."""

    def __init__(
        self, place: str, schema: Schema, max_delay_s: float | None = None, bad: Refuse | None = None
    ) -> None:
        self._place, self._schema, self._max_delay_s, self._bad = place, schema, max_delay_s, bad
        self._width, self._read = len(schema.names), RowReader(schema).values
        self._rows: list[Sequence[Any]] = []
        self._arrivals: list[int] = []
        self._since = 0.0

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: Any, arrival: int | None = None) -> bool:
        """Buffer one more row, of any kind that ``RowReader`` reads; return whether the buffer must be flushed.

        Raises ``ContractError`` for an object that is no row of the columns and that nobody takes (``bad``), or if only
        some rows have arrivals.
        """
        rows = self._rows
        if row.__class__ is tuple and len(row) == self._width:
            values: Sequence[Any] = row
        else:
            try:
                values = self._read(row)
            except BadRowError as error:
                return self._is_bad(row, error)
        if arrival is not None or self._arrivals:
            self._arrive(arrival)
        rows.append(values)
        if self._max_delay_s is not None:
            self._since = wall() if len(rows) == 1 else self._since
            return len(rows) >= RING or wall() - self._since >= self._max_delay_s
        return len(rows) >= RING

    def _is_bad(self, row: Any, error: BadRowError) -> bool:
        if self._bad is None:
            msg = f"{self._place}: push_row: {error}; got {row!r:.200}"
            raise ContractError(msg) from None
        self._bad(None, str(error), row, str(error))
        return False

    def _arrive(self, arrival: int | None) -> None:
        """Note when the next row arrived, as all that wait or none."""
        if arrival is None or len(self._arrivals) != len(self._rows):
            msg = f"{self._place}: rows that wait together must all have arrivals, or none; got {arrival}"
            raise ContractError(msg)
        self._arrivals.append(arrival)

    def take(self) -> Page:
        """Return all rows that wait, which do so no longer.

        Raises ``ContractError`` that shows the first row with a value that is not of its column's type; if bad rows are
        taken, the others are the page, which may be empty.
        """
        rows, arrivals = self._rows, self._arrivals
        self._rows, self._arrivals = [], []
        try:
            return self._page(rows, arrivals)
        except ContractError as error:
            reasons = [self._reason(row) for row in rows]
            if not any(reasons):
                raise
            if self._bad is None:
                number = next(i for i, reason in enumerate(reasons) if reason)
                at = f"row {number + 1} of {len(rows)} that waited, {rows[number]!r:.200}"
                msg = f"{self._place}: {at}: {reasons[number]}"
                raise ContractError(msg) from error
            return self._good(rows, arrivals, reasons, self._bad)

    def _good(self, rows: list[Sequence[Any]], arrivals: list[int], reasons: list[str], bad: Refuse) -> Page:
        """Return the page of the rows without a reason, and have the others taken."""
        for row, reason in zip(rows, reasons, strict=True):
            if reason:
                why = reason.removeprefix("page: ")
                bad(None, why, dict(zip(self._schema.names, row, strict=True)), why)
        sound = [i for i, reason in enumerate(reasons) if not reason]
        if not sound:
            return self._schema_page()
        return self._page([rows[i] for i in sound], [arrivals[i] for i in sound if arrivals])

    def _schema_page(self) -> Page:
        return Page.of(self._schema, dict.fromkeys(self._schema.names, ()))

    def _page(self, rows: list[Sequence[Any]], arrivals: list[int]) -> Page:
        if not arrivals and (few := packed_rows(self._schema, rows)) is not None:
            return few
        columns = dict(zip(self._schema.names, zip(*rows, strict=True), strict=True))
        return Page.of(self._schema, columns, arrivals or None)

    def _reason(self, row: Sequence[Any]) -> str:
        """Return why a row does not fit the columns, or nothing."""
        try:
            self._page([row], [])
        except ContractError as error:
            return str(error)
        return ""


def _in_its_types(place: str, schema: Schema, punctuation: Punctuation) -> Punctuation:
    match punctuation:
        case Linear(below):
            check_bound(place, below)
        case Joint(bounds):
            for _, below in bounds:
                check_bound(place, below)
        case GroupWise():
            return once_each(fitted(punctuation, schema, place))
        case Watermark(soft):
            inside = _in_its_types(place, schema, soft)
            if not isinstance(inside, Linear | GroupWise):
                _refuse(place, f"a watermark must be of a Linear or a GroupWise; got {_short(soft)}")
            return Watermark(inside)
    return fitted(punctuation, schema, place)


def _in_words(wanted: Schema, got: Schema) -> str:
    if wanted.fields != got.fields:
        return f"of the columns {_columns(wanted)}; got one of {_columns(got)}"
    want = f"by {wanted.progressing!r} in {wanted.unit!r}"
    return f"{want}; got one by {got.progressing!r} in {got.unit!r}: make it with the schema of the source"


def _columns(schema: Schema) -> str:
    return ", ".join(schema.fields.to_string().splitlines())


def _refuse(place: str, reason: str) -> NoReturn:
    msg = f"{place}: {reason}"
    raise ContractError(msg)
