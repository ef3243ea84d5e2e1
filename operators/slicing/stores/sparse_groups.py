"""Sparse groups: how many tuples a group has, whether they are worth a partial aggregate, and the tail, if not.

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

The tail is the tuple buffer B of AdaptWID, shared by all lazy groups: the columns that the query reads, and the group's
slot.  Tuples lie in the order in which they came.

Source: thesis 6.3.2 (equations 6.5 to 6.8, condition 6.9), 6.3.4.1, 6.3.4.2 (figure 6-17).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import occurring
from oop_engine.core.page import Page, concat
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.sizes import value_bytes
from oop_engine.operators.slicing.window_states import narrow
from oop_engine.operators.values.columns import Integers, filled_up, spread
from oop_engine.operators.windows import Extents

__all__ = ["EagerBytes", "ExtentDuration", "Tail", "Tuples", "Volumes"]

_SLOT = 4  # bytes
_NEW = 8  # tuples in the index for each one that came since it was made
_FEW = 1024  # tuples that may have come since, however few are in the index
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

    def expire(self, slots: Integers) -> None:
        """Count tuples, of ``slots``, that are in no open window any more."""
        lazy = slots[~self.eager[slots]]
        np.subtract.at(self._volume, lazy, 1)
        self._volume[lazy] = np.maximum(self._volume[lazy], 0)  # tuples from before it fell are not counted

    def settle(self, threshold: float) -> Integers:
        """At the end of an epoch return the groups that fall below the lower threshold, lazy from now on."""
        passed = self.duration.high - self._since if self._since != NEVER else 0
        if passed < self.duration.wed:
            return np.empty(0, np.int64)
        self._since = self.duration.high
        low = _BACK * threshold * passed / self.duration.wed
        fallen = np.flatnonzero(self.eager & (self._volume < low))
        self._volume[self.eager] = 0
        self.eager[fallen] = False
        return fallen

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


class Tuples(NamedTuple):
    """Tuples, the slot int64 (rows,) of the group of each, and the first and the last of its windows."""

    page: Page
    slots: Integers
    first: Integers
    last: Integers

    def take(self, rows: NDArray[Any]) -> Tuples:
        """Return some of them: ``rows`` are numbers, or booleans (rows,)."""
        at = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Tuples(self.page.take(at), self.slots[at], self.first[at], self.last[at])


class Tail:
    """The tuples that are kept; of ``schema`` the progressing attribute and the columns ``read``.

    Tuples of some groups are found by an index of most, and a look at the few that came since it was made.  Those that
    are over are marked in the index, and dropped together, once they are half of it.
    """

    def __init__(self, schema: Schema, read: set[str], extents: Extents) -> None:
        names = [name for name in schema.names if name in read or name == schema.progressing]
        self._schema = schema.select(names)
        self._extents = extents
        self.clear()

    def __len__(self) -> int:
        return self._rows - self._gone

    @property
    def nbytes(self) -> int:
        return self._page_bytes + _SLOT * self._rows + self._order.nbytes + self._over.nbytes

    @property
    def tuple_bytes(self) -> float:
        """Bytes of a tuple: the mean of those that are there, or else by the types of its columns."""
        if self._rows:
            return (self._value_bytes + _SLOT * self._rows) / self._rows
        return _SLOT + sum(_width(self._schema.type_of(name)) for name in self._schema.names)

    def add(self, page: Page, slots: Integers) -> None:
        """Keep the tuples of ``page``, which is a copy and holds no others alive.  O(tuples)."""
        if not len(page):
            return
        batch = page.batch.select(self._schema.names)
        self._pages.append(Page(self._schema, batch))
        self._slots.append(slots.astype(np.int32))
        self._rows += len(page)
        self._value_bytes += sum(map(value_bytes, batch.columns))
        self._page_bytes += batch.get_total_buffer_size()

    def tuples(self) -> Tuples:
        """Return everything.  O(tuples) if some are new or over, else O(tuples) for their windows."""
        over = self._over
        self._order, self._over = self._order[:0], over[:0]
        page, slots = self._joined(0)
        if self._gone:
            left = np.append(~over, np.ones(len(page) - over.size, np.bool_))
            self.clear()
            self.add(page.filter(left), slots[left])
            page, slots = self._joined(0)
        self._page_bytes = page.held_bytes
        return Tuples(page, slots.astype(np.int64), *self._extents.wids(page.times))

    def _joined(self, since: int) -> tuple[Page, NDArray[np.int32]]:
        """Return the tuples of the pages from the ``since``-th on, which are one page from now on."""
        if len(self._pages) != since + 1:
            self._pages[since:] = [concat(self._schema, self._pages[since:])]
            self._slots[since:] = [np.concatenate([np.empty(0, np.int32), *self._slots[since:]])]
        return self._pages[since], self._slots[since]

    def of(self, groups: Integers) -> tuple[Tuples, Integers]:
        """Return the tuples of some groups, and where each is.  O(these, and log tuples a group), amortised."""
        known = self._order.size
        if self._rows - known > max(known // _NEW, _FEW) or 2 * self._gone > known:
            known = len(self.tuples().page)
            self._order = np.argsort(self._slots[0], kind="stable").astype(np.int32)
            self._over = np.zeros(known, np.bool_)
        begin, end = np.zeros((2, groups.size), np.int64)
        if known:
            ends = np.stack([groups, groups + 1]).astype(np.int32)
            begin, end = np.searchsorted(self._slots[0], ends, sorter=self._order)
        old = self._order[spread(begin, end - begin)[1]].astype(np.int64)
        old = old[~self._over[old]]
        page, slots = self._joined(1 if known else 0)
        new = np.flatnonzero(np.isin(slots, groups))
        parts, of = [page.take(new)], [slots[new]]
        if old.size:
            parts, of = [self._pages[0].take(old), *parts], [self._slots[0][old], *of]
        found = concat(self._schema, parts)
        at = np.concatenate([old, known + new])
        return Tuples(found, np.concatenate(of).astype(np.int64), *self._extents.wids(found.times)), at

    def drop(self, at: Integers) -> None:
        """Forget tuples that ``of`` has found, by where they are.  O(these, and tuples that came since the index)."""
        known = self._order.size
        old, new = at[at < known], at[at >= known] - known
        self._over[old] = True
        self._gone += old.size
        if new.size:
            since = 1 if known else 0
            page, slots = self._joined(since)
            kept = np.ones(len(page), np.bool_)
            kept[new] = False
            self._pages[since], self._slots[since] = page.filter(kept), slots[kept]
            self._rows -= new.size
            bytes_ = (sum(map(value_bytes, part.batch.columns)) for part in self._pages)
            self._value_bytes = sum(bytes_)
            self._page_bytes = sum(part.held_bytes for part in self._pages)

    def keep(self, tuples: Tuples, kept: NDArray[np.bool_]) -> Tuples:
        """Keep only ``kept`` (rows,) of ``tuples``, which are all there are; return the others."""
        gone = tuples.take(~kept)
        if len(gone.page):
            staying = tuples.take(kept)
            self.clear()
            self.add(staying.page, staying.slots)
        return gone

    def clear(self) -> None:
        """Forget everything."""
        self._pages: list[Page] = []
        self._slots: list[NDArray[np.int32]] = []
        self._rows = self._gone = self._value_bytes = self._page_bytes = 0
        self._order = np.empty(
            0, np.int32
        )  # of the tuples in the first page, by slot; empty: there is no index
        self._over = np.empty(0, np.bool_)  # which of these are over

    def rename(self, slots: Integers) -> None:
        if len(self):
            self.tuples()
        self._slots = [slots[part].astype(np.int32) for part in self._slots]

    def save(self) -> dict[str, Any]:
        everything = self.tuples()
        return {"batch": everything.page.batch, "slots": everything.slots.astype(np.int32)}

    def load(self, saved: Saved, groups: int) -> None:
        self.clear()
        page = Page(self._schema, saved.batch("batch", self._schema.fields))
        self._extents.wids(page.times)
        self.add(page, saved.integers("slots", (len(page),), least=0, below=groups))


def _width(kind: pa.DataType) -> int:
    """Return the bytes of a value, a guess where that differs from value to value."""
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:
        return 16
