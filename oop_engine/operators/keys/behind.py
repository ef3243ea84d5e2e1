"""Behind: which tuples come behind a bound that punctuation of the input has set already.

Nothing comes behind punctuation, and results that it completes have left.  A tuple that comes all the same breaks it:
an operator of one's own announces too much, or a source that makes its punctuation itself.  Such a tuple can neither
change a final result nor make a second one beside it, so it is left out and counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Linear, passed
from oop_engine.core.saved import Saved
from oop_engine.core.sizes import room_for
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.values.columns import Integers, filled_up

__all__ = ["Behind", "BehindGroups"]


class Behind:
    """The bounds of an input; ``count``: of the tuples that came behind them.

    ``linear``: the bound of the whole stream; ``highest``: that of any group.  No tuple at or above it is behind one,
    so most pages need no closer look.  Bounds of groups are kept until that of the stream has passed them; a group that
    was ended may begin anew.
    """

    def __init__(self) -> None:
        self.linear = self.highest = NEVER
        self.count = 0
        self._of_groups = Progress(tables=IN_KERNELS)

    def hear(self, punctuation: Linear | GroupWise) -> None:
        """Update with a bound, of columns that the tuples have."""
        if isinstance(punctuation, Linear):
            self.linear = max(self.linear, punctuation.below)
            self.highest = max(self.highest, self.linear)
        elif len(punctuation):
            self.highest = max(self.highest, int(punctuation.below.max()))
            self._keep(punctuation)

    def _keep(self, punctuation: GroupWise) -> None:
        if len(punctuation):
            self._of_groups.advance(0, Linear(self.linear))
            self._of_groups.advance(0, punctuation)

    def timely(self, page: Page) -> Page:
        """Return a page without the tuples that are behind a bound, and count these.  O(rows)."""
        times = page.times
        if not times.size or page.reach_of(times)[0] >= self.highest:
            return page
        bounds: int | Integers = self.linear
        if self.highest > self.linear:
            bounds = self.bounds_of(page.batch)
        late = passed(times, bounds)
        self.count += int(late.sum())
        return page.filter(~late) if late.any() else page

    def bounds_of(self, columns: pa.RecordBatch) -> Integers:
        """Return the bound for each of some rows, int64 (rows,)."""
        bounds: Integers = np.maximum(self._of_groups.bounds(columns), self.linear)
        return bounds

    def save(self) -> dict[str, Any]:
        """Return all for a snapshot."""
        return {"bounds": [self.linear, self.highest, self.count], "groups": self._of_groups.save()}

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned."""
        bounds = saved.part("bounds")
        self.linear, self.highest = bounds.integer(0), bounds.integer(1)
        self.count = bounds.integer(2, least=0)
        self._of_groups.load(saved.part("groups"))


class BehindGroups(Behind):
    """The bounds of an input for ``groups``, which are those of the columns ``by``.

    Those of groups that are known are kept by slot, so a page is held against them in one pass, without a look-up.
    """

    def __init__(self, by: tuple[str, ...], groups: GroupIndex) -> None:
        super().__init__()
        self._by, self._groups = by, groups
        self._known = 0
        self._own = np.empty(0, np.int64)  # (room,)  bounds of the groups that are known
        self._measure()

    def raise_to(self, slots: Integers, rows: Integers, punctuation: GroupWise) -> None:
        """Raise group-wise bounds: that of group ``slots[i]``, which is known, is the one in row ``rows[i]``."""
        if not len(punctuation):
            return
        self.highest = max(self.highest, int(punctuation.below.max()))
        np.maximum.at(self._all(), slots, punctuation.below[rows])
        if len(punctuation.attributes) == len(self._by):
            unknown = np.ones(len(punctuation), np.bool_)
            unknown[rows] = False
            punctuation = punctuation.filter(unknown)
        self._keep(punctuation)
        self._measure()

    def of(self, times: Integers, slots: Integers) -> NDArray[np.bool_]:
        """Return which tuples are below the bounds of their groups, bool (rows,), and count them."""
        late = passed(times, self.bounds(slots))
        self.count += int(late.sum())
        return late

    def bounds(self, slots: Integers) -> Integers:
        """Return the bounds of some groups, int64 (n,)."""
        if self.highest <= self.linear:
            return np.full(slots.size, self.linear)
        bounds: Integers = np.maximum(self._all()[slots], self.linear)
        return bounds

    def _all(self) -> Integers:
        """Return the bounds of all groups that are known, by slot."""
        known = self._groups.size
        if known > self._own.size:
            self._own = filled_up(self._own, room_for(known, self._own.size), NEVER)
            self._measure()
        if known > self._known and self._of_groups.groups:
            self._own[self._known : known] = self._of_groups.bounds(self._keys(np.arange(self._known, known)))
        self._known = known
        return self._own[:known]

    def _keys(self, slots: Integers) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(self._groups.keys(slots), names=list(self._by))

    def _measure(self) -> None:
        self.nbytes = self._own.nbytes + self._of_groups.nbytes  # asked for after each message

    def forget(self, remaining: Integers) -> None:
        """Renumber: only the groups ``remaining`` are known from now on, in this order."""
        if self.highest > self.linear:
            own = self._all()
            forgotten = (own > self.linear) & (own < FOREVER)
            forgotten[remaining] = False
            slots = np.flatnonzero(forgotten)
            self._keep(GroupWise(self._keys(slots), own[slots]))
            self._own = own[remaining]
        else:
            self._own = self._own[:0]
        self._known = self._own.size
        self._measure()

    def save(self) -> dict[str, Any]:
        return {**super().save(), "own": self._all() if self.highest > self.linear else self._own[:0]}

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned; the groups are known by now."""
        super().load(saved)
        self._own = saved.integers("own", (self._groups.size if self.highest > self.linear else 0,))
        self._known = self._own.size
        self._measure()
