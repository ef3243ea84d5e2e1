"""Sparse groups: how many tuples a group has, and whether they are worth a partial aggregate.

A group is *lazy* (its tuples are kept) or *eager* (they are aggregated as they come).  It
becomes eager when its window volume, the number of its active tuples, passes the threshold

    winVol > aggr * (wed / SLIDE) / tup                            (condition 6.9)

bytes of its open partial aggregates over bytes of a tuple, and lazy again when it falls below
a somewhat lower one.  ``wed``, the duration of a window extent, is measured: RANGE at first, then for each
window that a linear punctuation closes the high-watermark at its close less the low-watermark at its
first tuple.  Disorder makes it longer, and so the threshold higher.

The sum over data sources in the condition corrects volume times wed where sources are not in
step.  Volumes are counted here, and a tuple that has not come is not counted: there is nothing to correct.

The volume of a lazy group is the number of its tuples in the tail.  Eager tuples are gone, so there volumes
are those of an epoch: the tuples that came while the high-watermark grew by one wed.

The tail itself is in ``tail.py``.

Source: thesis 6.3.2 (equations 6.5 to 6.8, condition 6.9), 6.3.4.1, 6.3.4.2 (figure 6-17).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from oop_engine.core.groups.group_index import occurring
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.operators.slicing.window_states import narrow
from oop_engine.operators.values.columns import Integers, filled_up

__all__ = ["EagerBytes", "ExtentDuration", "Volumes"]

_BACK = 0.75
"""The lower threshold over the upper one: the hysteresis."""


@dataclass(frozen=True)
class EagerBytes:
    """Bytes of an eager group: ``each`` for every open window (or pane), ``fixed`` beside; ``slide`` apart."""

    each: float
    fixed: float
    slide: float

    def threshold(self, wed: float, tuple_bytes: float) -> float:
        """Return the window volume from which tuples take as much as partial aggregates do.

        >>> EagerBytes(each=48, fixed=0, slide=60).threshold(wed=300, tuple_bytes=16)
        15.0
        """
        return (self.each * max(wed / self.slide, 1.0) + self.fixed) / tuple_bytes


class ExtentDuration:
    """``wed`` in units of the progressing attribute, and the watermarks that it is measured by."""

    def __init__(self, range_: int) -> None:
        self.wed = range_
        self.high = NEVER
        self._low = NEVER
        self._latest = NEVER  # window
        self._starts: list[tuple[int, int]] = []  # from which window on, low-watermark at the first tuple

    def note(self, times: Integers, last: Integers) -> None:
        """Learn of tuples (at least one) at ``times``, in windows up to ``last``."""
        self.high = max(self.high, int(times.max()))
        if (latest := int(last.max())) > self._latest:
            low = int(times.min()) if self._low == NEVER else self._low
            self._starts.append((self._latest + 1 if self._starts else NEVER, low))
            self._latest = latest

    def close(self, below: int, cut: int) -> None:
        """Learn that no time ``below`` comes any more, and so no window below ``cut`` is open."""
        if self._low < below < FOREVER:
            self._low = below
            if self._starts and cut <= self._latest:
                at = max(bisect_right(self._starts, (cut - 1, FOREVER)) - 1, 0)
                self.wed = max(self.high - self._starts[at][1], 1)
                self._starts = self._starts[at:]

    def save(self) -> list[Any]:
        return [self.wed, self.high, self._low, self._latest, [list(start) for start in self._starts]]

    def load(self, saved: Saved) -> None:
        self.wed = saved.integer(0, least=1)
        self.high, self._low, self._latest = (saved.integer(number) for number in (1, 2, 3))
        self._starts = [(start.integer(0), start.integer(1)) for start in saved.parts(4)]


class Volumes:
    """The volume of each group by slot, int32, and whether it is eager."""

    def __init__(self, range_: int) -> None:
        self.duration = ExtentDuration(range_)
        self.eager = np.zeros(0, np.bool_)
        self._volume = np.zeros(0, np.int32)
        self._since = NEVER  # the high-watermark when the epoch began

    @property
    def nbytes(self) -> int:
        return self.eager.nbytes + self._volume.nbytes

    def grow(self, groups: int, *, eager: bool = False) -> None:
        """Make room for so many groups; new ones are lazy, unless ``eager``."""
        self.eager, self._volume = filled_up(self.eager, groups, eager), filled_up(self._volume, groups, 0)

    def add(self, slots: Integers, threshold: float) -> Integers:
        """Count tuples of ``slots``; return the lazy groups that pass the threshold, eager from now on."""
        if self._since == NEVER:
            self._since = self.duration.high
        np.add.at(self._volume, slots, 1)
        above = ~self.eager[slots] & (self._volume[slots] > threshold)
        risen = occurring(slots[above], self._volume.size)
        self.eager[risen] = True
        return risen

    def rise(self, slots: Integers) -> None:
        """Let groups be eager from now on."""
        self.eager[slots] = True

    def expire(self, slots: Integers) -> None:
        """Count tuples, of ``slots``, that are in no open window any more."""
        lazy = slots[~self.eager[slots]]
        np.subtract.at(self._volume, lazy, 1)
        self._volume[lazy] = np.maximum(self._volume[lazy], 0)  # tuples from before it fell are not counted

    def settle(self, threshold: float) -> None:
        """At the end of an epoch let the groups that fall below the lower threshold be lazy from now on."""
        passed = self.duration.high - self._since if self._since != NEVER else 0
        if passed >= self.duration.wed:
            self._since = self.duration.high
            fallen = self.eager & (self._volume < _BACK * threshold * passed / self.duration.wed)
            self._volume[self.eager] = 0
            self.eager[fallen] = False

    def rename(self, kept: Integers) -> None:
        self.eager, self._volume = self.eager[kept], self._volume[kept]

    def save(self, groups: int) -> dict[str, Any]:
        own = {"eager": np.packbits(self.eager[:groups]), "volume": narrow(self._volume[:groups])}
        return {"duration": self.duration.save(), **own, "since": self._since}

    def load(self, saved: Saved, groups: int) -> None:
        self.duration.load(saved.part("duration"))
        self._volume = saved.integers("volume", (None,), least=0, below=2**31).astype(np.int32)
        self.eager = saved.bits("eager", self._volume.size)
        self.grow(groups)
        self._since = saved.integer("since")
