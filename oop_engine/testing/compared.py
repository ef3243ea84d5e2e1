"""Comparison of two runs of an operator: rows as a multiset, messages in order."""

from __future__ import annotations

from itertools import zip_longest

from oop_engine.core.groups.group_index import plain_value
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.testing.case import Row
from oop_engine.testing.driver import multiset

__all__ = ["must", "same_messages", "same_rows"]

_SHOWN = 3  # rows


def same_rows(failure: str, got: list[Row], wanted: list[Row]) -> None:
    """Raise ``AssertionError`` unless both have the same rows, in any order."""
    actual, expected = multiset(got), multiset(wanted)
    missing, extra = ([dict(r) for r in rest.elements()] for rest in (expected - actual, actual - expected))
    must(actual == expected, f"{failure}: missing {missing}, extra {extra}")


def same_messages(failure: str, got: list[list[Message]], wanted: list[list[Message]]) -> None:
    """Compare punctuation and rows in order, however these are cut into pages: NaN equals NaN.

    The first that differ are shown.
    """
    for port, (messages, expected) in enumerate(zip(got, wanted, strict=True)):
        pairs = list(zip_longest(_flat(messages), _flat(expected)))
        apart = [(at, *pair) for at, pair in enumerate(pairs) if pair[0] != pair[1]]
        shown = ", ".join(f"{got_item}, not {wanted_item}" for _, got_item, wanted_item in apart[:_SHOWN])
        first = apart[0][0] if apart else 0
        must(
            not apart,
            f"{failure}: output {port}, {len(apart)} of {len(pairs)} differ from number {first} on: {shown}",
        )


def _flat(messages: list[Message]) -> list[object]:
    """Return punctuation, and the rows of pages in words, each with its columns where these are others than before."""
    items: list[object] = []
    schema = None
    for message in messages:
        if not isinstance(message, Page):
            items.append(message)
            continue
        if message.schema != schema:
            schema = message.schema
            items.append(schema)
        items += _as_texts(message)
    return items


def _as_texts(page: Page) -> list[str]:
    """Return rows in words in which NaN is equal to NaN, and -0.0 to 0.0."""
    return [repr(plain_value(row)) for row in page.to_pylist()]


def must(holds: bool, otherwise: str) -> None:
    """Raise ``AssertionError`` with the words ``otherwise`` unless it holds."""
    if not holds:
        raise AssertionError(otherwise)
