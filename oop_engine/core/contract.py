"""The contract of a stream, checked on a live edge: no tuple behind a promise.

Operators rely on it and do not look.  A runner can look for them (``check=True``), and
the tests always do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError
from oop_engine.core.fitted import is_below, once_each
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Joint, Linear, passed

__all__ = ["EdgeContract"]


class EdgeContract:
    """All that has been promised on the edge ``name``; every message is held against it.

    O(rows) a page, O(groups) a punctuation; keeps what ``Progress`` keeps, and one bound
    pair a joint promise.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._linear = NEVER
        self._said: dict[tuple[str, ...], Progress] = {}  # a set of attributes each
        self._joint: list[Joint] = []
        self._pages = 0

    def check(self, message: Message) -> None:
        """Raise ``ContractError`` if ``message`` breaks a promise or takes one back."""
        match message:
            case Page():
                self._pages += 1
                self._check_page(message)
            case Linear(below):
                if below < self._linear:
                    self._fail(f"promise {below} takes back the promise {self._linear}")
                self._linear = below
                for said in self._said.values():
                    said.advance(0, message)
            case GroupWise():
                self._check_groups(message)
            case Joint():
                self._joint = [j for j in self._joint if not _covers(message, j)] + [message]

    def _check_page(self, page: Page) -> None:
        bounds = np.full(len(page), self._linear)
        for said in self._said.values():
            np.maximum(bounds, said.bounds(page.batch), out=bounds)
        behind = passed(page.times, bounds)
        if behind.any():
            row = int(np.argmax(behind))
            self._fail_row(page, row, f"{page.schema.progressing} < {bounds[row]}")
        for joint in self._joint:
            inside = _inside(page, joint)
            if inside.any():
                terms = " and ".join(f"{name} < {below}" for name, below in joint.bounds)
                self._fail_row(page, int(np.argmax(inside)), terms)

    def _check_groups(self, promise: GroupWise) -> None:
        """No group takes back its own promise.

        To say less than the stream, or than other attributes, is idle; and so it is of a
        group that has ended, for whoever has passed its end on may have forgotten it.
        """
        if len(once_each(promise)) < len(promise):
            self._fail(f"a punctuation tells a group twice: {promise.groups.to_pylist()[:9]}")
        attributes = tuple(sorted(promise.attributes))
        if attributes not in self._said:
            self._said[attributes] = Progress(1, remember_ended=True)
            self._said[attributes].advance(0, Linear(self._linear))
        said = self._said[attributes]
        bounds = said.bounds(promise.groups)
        less = (promise.below < bounds) & (bounds > self._linear) & (bounds < FOREVER)
        if less.any():
            row = int(np.argmax(less))
            group = promise.groups.slice(row, 1).to_pylist()[0]
            self._fail(f"promise {promise.below[row]} for {group} takes back the promise {bounds[row]}")
        said.advance(0, promise)

    def _fail_row(self, page: Page, row: int, promise: str) -> None:
        values = page.batch.slice(row, 1).to_pylist()[0]
        self._fail(
            f"tuple {values} came after the promise of nothing with {promise} (page {self._pages}, row {row})"
        )

    def _fail(self, what: str) -> None:
        msg = f"edge {self._name!r}: {what}"
        raise ContractError(msg)


def _inside(page: Page, joint: Joint) -> NDArray[np.bool_]:
    inside = np.ones(len(page), np.bool_)
    for name, below in joint.bounds:
        inside &= is_below(page.column(name), below)
    return inside


def _covers(one: Joint, other: Joint) -> bool:
    return one.attributes == other.attributes and all(
        a[1] >= b[1] for a, b in zip(one.bounds, other.bounds, strict=True)
    )
