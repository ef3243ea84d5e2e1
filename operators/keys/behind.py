"""Behind: which tuples come behind a bound that punctuation of the input has set already.

Nothing comes behind punctuation, and results that it completes have left.  A tuple that comes all the same breaks it:
an operator of one's own announces too much, or a source that makes its punctuation itself.  Such a tuple can neither
change a final result nor make a second one beside it, so it is left out and counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import NEVER, GroupWise, Linear, passed
from oop_engine.core.saved import Saved

__all__ = ["Behind", "with_bounds"]

Integers = NDArray[np.int64]


class Behind:
    """The bounds of an input; ``count``: of the tuples that came behind them.

    ``linear``: the bound of the whole stream; ``highest``: that of any group.  No tuple at or above it is behind one,
    so most pages need no closer look.  Bounds of groups are kept until that of the stream has passed them; a group that
    was ended may begin anew.
    """

    def __init__(self) -> None:
        self.linear = self.highest = NEVER
        self.count = 0
        self._of_groups = Progress()

    def hear(self, punctuation: Linear | GroupWise) -> None:
        """Take a bound, of columns that the tuples have."""
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
        if not times.size or np.minimum.reduce(times) >= self.highest:
            return page
        bounds: int | Integers = self.linear
        if self.highest > self.linear:
            bounds = np.maximum(self._of_groups.bounds(page.batch), self.linear)
        behind = passed(times, bounds)
        self.count += int(behind.sum())
        return page.filter(~behind) if behind.any() else page

    def save(self) -> dict[str, Any]:
        """Return all for a snapshot."""
        return {"bounds": [self.linear, self.highest, self.count], "groups": self._of_groups.save()}

    def load(self, saved: Saved) -> None:
        """Take the state that ``save`` returned."""
        bounds = saved.part("bounds")
        self.linear, self.highest = bounds.integer(0), bounds.integer(1)
        self.count = bounds.integer(2, least=0)
        self._of_groups.load(saved.part("groups"))


def with_bounds(state: dict[Any, Any]) -> dict[Any, Any]:
    """Return a state that was saved without such bounds, with them (a ``Migration``): they are known from now on."""
    return {"behind": {**Behind().save(), "own": np.empty(0, np.int64)}, **state}
