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
    found, expected = multiset(got), multiset(wanted)
    missing, extra = ([dict(r) for r in rest.elements()] for rest in (expected - found, found - expected))
    must(found == expected, f"{failure}: missing {missing}, extra {extra}")


def same_messages(failure: str, got: list[list[Message]], wanted: list[list[Message]]) -> None:
    """Compare messages in order, pages as rows: NaN equals NaN.  The first that differ are shown."""
    for port, (some, others) in enumerate(zip(got, wanted, strict=True)):
        for at, (one, other) in enumerate(zip(some, others, strict=False)):
            if isinstance(one, Page) and isinstance(other, Page) and one.schema == other.schema:
                rows, expected = map(_as_texts, (one, other))
                apart = [pair for pair in zip_longest(rows, expected) if pair[0] != pair[1]]
                shown = ", ".join(f"{row}, not {wanted_row}" for row, wanted_row in apart[:_SHOWN])
                must(not apart, f"{failure}: output {port}, message {at}, {len(apart)} rows differ: {shown}")
            else:
                must(one == other, f"{failure}: output {port}, message {at}: {one}, not {other}")
        numbers = f"{len(some)} messages, not {len(others)}"
        must(len(some) == len(others), f"{failure}: output {port}: {numbers}")


def _as_texts(page: Page) -> list[str]:
    """Return rows in words in which NaN is equal to NaN, and -0.0 to 0.0."""
    return [repr(plain_value(row)) for row in page.to_pylist()]


def must(holds: bool, otherwise: str) -> None:
    """Raise ``AssertionError`` with the words ``otherwise`` unless it holds."""
    if not holds:
        raise AssertionError(otherwise)
