"""The door of a source: messages are validated in one place for every runner.

A message is a page of the source's schema or a punctuation, and nothing else.  A page in another unit or by another
attribute has the same columns and would be counted as if it were right; a record batch or a text would go
nowhere.  O(columns) a page, O(1) where its schema is the very object that the source has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from reprlib import repr as _short
from typing import Any, NoReturn

import numpy as np

from oop_engine.core.errors import ContractError
from oop_engine.core.fitted import fitted, once_each
from oop_engine.core.operator import Message
from oop_engine.core.page import Page, pages
from oop_engine.core.plain import is_arrow
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Joint, Linear, Punctuation, Watermark
from oop_engine.core.schema import Schema

__all__ = ["admitted", "messages"]


def messages(schema: Schema, feed: Iterable[Any]) -> Iterator[Message]:
    """Yield the messages of a feed: Arrow data in it, or that it is as a whole, as pages of ``schema``."""
    given: Any
    for given in (feed,) if is_arrow(feed) else feed:
        if is_arrow(given) and not isinstance(given, Page):
            yield from pages(schema, given)
        else:
            yield given


def admitted(place: str, schema: Schema, message: object) -> Message:
    """Return a message that may enter by a source of ``schema``; ``place`` names it in errors.

    Raises ``ContractError`` for anything but a page of that very schema (columns, progressing attribute, unit), or a
    punctuation about its columns with bounds that are int64.  Group-wise ones get the types of the columns, and
    have each group once (``fitted``).
    """
    if not isinstance(message, Page | Linear | GroupWise | Joint | Watermark):
        got = f"got a {type(message).__name__} ({' '.join(_short(message).split())})"
        _refuse(place, f"a message must be a Page or a punctuation; {got}: make a page of it")
    if isinstance(message, Page):
        if message.schema is not schema and message.schema != schema:
            _refuse(place, f"a page must be {_in_words(schema, message.schema)}")
        return message
    return _in_its_types(place, schema, message)


def _in_its_types(place: str, schema: Schema, punctuation: Punctuation) -> Punctuation:
    match punctuation:
        case Linear(below):
            _check_bound(place, below)
        case Joint(bounds):
            for _, below in bounds:
                _check_bound(place, below)
        case GroupWise():
            return once_each(fitted(punctuation, schema, place))
        case Watermark(of):
            inside = _in_its_types(place, schema, of)
            if not isinstance(inside, Linear | GroupWise):
                _refuse(place, f"a watermark must be of a Linear or a GroupWise; got {_short(of)}")
            return Watermark(inside)
    return fitted(punctuation, schema, place)


def _in_words(wanted: Schema, got: Schema) -> str:
    if wanted.fields != got.fields:
        return f"of the columns {_columns(wanted)}; got one of {_columns(got)}"
    want = f"by {wanted.progressing!r} in {wanted.unit!r}"
    return f"{want}; got one by {got.progressing!r} in {got.unit!r}: make it with the schema of the source"


def _columns(schema: Schema) -> str:
    return ", ".join(schema.fields.to_string().splitlines())


def _check_bound(place: str, below: object) -> None:
    whole = isinstance(below, int | np.integer) and not isinstance(below, bool)
    if not (whole and NEVER <= below <= FOREVER):  # type: ignore[operator]
        _refuse(place, f"the bound of a punctuation must be an integer of 64 bits; got {_short(below)}")


def _refuse(place: str, reason: str) -> NoReturn:
    msg = f"{place}: {reason}"
    raise ContractError(msg)
