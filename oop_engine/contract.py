"""The contract of a stream, checked on a live edge: no tuple behind a promise.

Operators rely on it and do not look.  A runner can look for them (``check=True``), and
the tests always do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oop_engine.errors import ContractError
from oop_engine.operator import Message
from oop_engine.page import Page
from oop_engine.progress import Progress
from oop_engine.punctuation import GroupWise, Joint, Linear

__all__ = ["EdgeContract"]


class EdgeContract:
    """All that has been promised on the edge ``name``; every message is held against it.

    O(rows) a page, O(groups) a punctuation; keeps what ``Progress`` keeps, and one bound
    pair a joint promise.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._progress = Progress(1, remember_ended=True)
        self._joint: list[Joint] = []
        self._pages = 0

    def check(self, message: Message) -> None:
        """Raise ``ContractError`` if ``message`` breaks a promise or takes one back."""
        match message:
            case Page():
                self._pages += 1
                self._check_page(message)
            case Linear(below):
                if below < self._progress.linear:
                    self._fail(f"promise {below} takes back the promise {self._progress.linear}")
                self._progress.advance(0, message)
            case GroupWise():
                if len(message) and self._progress.advance(0, message) == [] and self._shrinks(message):
                    self._fail("a group-wise promise takes back an earlier one")
            case Joint():
                self._joint = [j for j in self._joint if not _covers(message, j)] + [message]

    def _check_page(self, page: Page) -> None:
        behind = page.times < self._progress.bounds(page.batch)
        if behind.any():
            row = int(np.argmax(behind))
            bound = int(self._progress.bounds(page.batch)[row])
            self._fail_row(page, row, f"{page.schema.progressing} < {bound}")
        for joint in self._joint:
            inside = _inside(page, joint)
            if inside.any():
                terms = " and ".join(f"{name} < {below}" for name, below in joint.bounds)
                self._fail_row(page, int(np.argmax(inside)), terms)

    def _shrinks(self, punctuation: GroupWise) -> bool:
        return bool((punctuation.below < self._progress.bounds(punctuation.groups)).any())

    def _fail_row(self, page: Page, row: int, promise: str) -> None:
        values = page.batch.slice(row, 1).to_pylist()[0]
        self._fail(f"tuple {values} came after the promise of nothing with {promise} (page {self._pages}, row {row})")

    def _fail(self, what: str) -> None:
        msg = f"edge {self._name!r}: {what}"
        raise ContractError(msg)


def _inside(page: Page, joint: Joint) -> NDArray[np.bool_]:
    inside = np.ones(len(page), np.bool_)
    for name, below in joint.bounds:
        values = page.column(name).cast("int64").fill_null(below).to_numpy(zero_copy_only=False)
        inside &= values < below
    return inside


def _covers(one: Joint, other: Joint) -> bool:
    return one.attributes == other.attributes and all(
        a[1] >= b[1] for a, b in zip(one.bounds, other.bounds, strict=True)
    )
