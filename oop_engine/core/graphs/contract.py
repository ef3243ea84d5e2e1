"""The contract of a stream, checked on a live edge: no tuple behind a bound, and no change behind either.

Operators rely on it and do not look.  A runner can look for them (``check=True``), and
the tests always do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.change import Change, Reached
from oop_engine.core.errors import ContractError
from oop_engine.core.fitted import is_below, once_each
from oop_engine.core.groups.in_python import rows_of
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Joint, Linear, Watermark, passed

__all__ = ["EdgeContract"]


class EdgeContract:
    """The bounds of the edge ``name``; every message is checked against them.

    O(rows) a page, O(groups) a punctuation; keeps the state of a ``Progress`` for each set of attributes,
    and one pair of bounds for each joint punctuation.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._linear = NEVER
        self._progress: dict[tuple[str, ...], Progress] = {}  # a set of attributes each
        self._joint: list[Joint] = []
        self._soft: EdgeContract | None = None  # of watermarks, which only must not shrink
        self._pages = 0
        self._reached, self._versions = Reached(), dict[str, int]()

    def check(self, message: Message) -> None:
        """Raise ``ContractError`` if ``message`` is behind a bound or lowers one."""
        match message:
            case Page():
                self._pages += 1
                self._check_page(message)
            case Linear(below):
                if below < self._linear:
                    self._fail(f"bound {below} is below the bound {self._linear} before it")
                self._linear = below
                for progress in self._progress.values():
                    progress.advance(0, message)
            case GroupWise():
                self._check_groups(message)
            case Joint():
                self._joint = [j for j in self._joint if not _covers(message, j)] + [message]
            case Watermark(bounds):
                self._soft = self._soft or EdgeContract(f"{self._name} (watermarks)")
                self._soft.check(bounds)
            case Change(version, operator=operator):
                self._reached.check(message, f"edge {self._name!r}")
                if version <= self._versions.get(operator, version - 1):
                    self._fail(f"version {version} of a change came after version {self._versions[operator]}")
                self._versions[operator] = version
        self._reached.note(message)

    def _check_page(self, page: Page) -> None:
        bounds = np.full(len(page), self._linear)
        for progress in self._progress.values():
            np.maximum(bounds, progress.bounds(page.batch), out=bounds)
        late = passed(page.times, bounds)
        if late.any():
            row = int(np.argmax(late))
            self._fail_row(page, row, f"{page.schema.progressing} < {bounds[row]}")
        for joint in self._joint:
            inside = _inside(page, joint)
            if inside.any():
                terms = " and ".join(f"{name} < {below}" for name, below in joint.bounds)
                self._fail_row(page, int(np.argmax(inside)), terms)

    def _check_groups(self, punctuation: GroupWise) -> None:
        """No group lowers its own bound.

        A bound below that of the stream, or of other attributes, has no effect; nor has one of a
        group that has ended, for an operator may have forgotten the group with its end.
        """
        if len(once_each(punctuation)) < len(punctuation):
            self._fail(f"a punctuation names a group twice: {rows_of(punctuation.groups.slice(0, 9))}")
        attributes = tuple(sorted(punctuation.attributes))
        if attributes not in self._progress:
            self._progress[attributes] = Progress(1, remember_ended=True)
            self._progress[attributes].advance(0, Linear(self._linear))
        progress = self._progress[attributes]
        bounds = progress.bounds(punctuation.groups)
        less = (punctuation.below < bounds) & (bounds > self._linear) & (bounds < FOREVER)
        if less.any():
            row = int(np.argmax(less))
            group = rows_of(punctuation.groups.slice(row, 1))[0]
            self._fail(
                f"bound {punctuation.below[row]} for {group} is below the bound {bounds[row]} before it"
            )
        progress.advance(0, punctuation)

    def _fail_row(self, page: Page, row: int, excluded: str) -> None:
        values = rows_of(page.batch.slice(row, 1))[0]
        self._fail(
            f"tuple {values} came after a punctuation that excluded {excluded} (page {self._pages}, row {row})"
        )

    def _fail(self, reason: str) -> None:
        msg = f"edge {self._name!r}: {reason}"
        raise ContractError(msg)


def _inside(page: Page, joint: Joint) -> NDArray[np.bool_]:
    inside = np.ones(len(page), np.bool_)
    for name, below in joint.bounds:
        inside &= is_below(page.column(name), below)
    return inside


def _covers(joint: Joint, other: Joint) -> bool:
    return joint.attributes == other.attributes and all(
        a[1] >= b[1] for a, b in zip(joint.bounds, other.bounds, strict=True)
    )
