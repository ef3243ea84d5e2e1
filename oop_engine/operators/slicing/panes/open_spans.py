"""Open spans: the lowest open window of each group and its highest one, and which groups a bound concerns.

A bound that is passed by windows of few groups must not look at all others.  So blocks of groups have the least of
their lowest windows: a bound looks at these, and into the blocks where it has passed one.

``every``: a group has all windows from its first to its last one with a tuple; the next one that may be empty exists
only once a later tuple has come, so the punctuation stays behind it.  Landmark windows of a group run from its first
tuple's to that of the stream's last tuple.
"""

# Invariant   `least` and `counts` follow `of`: kernels write all three, and `counts` stays the array that a table has.

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import occurring
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.core.snapshot import Later
from oop_engine.operators.kernels import panes as kernels
from oop_engine.operators.kernels.partials import ALIVE, HIGH, LOW, LOWEST, NO_WINDOW, SHIFT, settle
from oop_engine.operators.slicing.checks import AT_ONCE, check_gap
from oop_engine.operators.slicing.output import Stamp, Stamps
from oop_engine.operators.slicing.window_states import as_slice, narrow
from oop_engine.operators.values.columns import Integers, filled_up
from oop_engine.operators.windows import Extents
from oop_engine.system.knobs import knob

__all__ = ["OpenGrid", "OpenSpans"]

_APART = knob(__name__, "_APART", 16)
"""Groups for each one whose windows are closed: with more, the others are not looked at."""
_MORE = knob(__name__, "_MORE", 8)  # room grows by an eighth: every pane has room for every group
_ALL = knob(__name__, "_ALL", 64)  # groups that are sooner looked at than searched
_FAR = 1 << 62  # windows; no extent reaches so far
_IN_BLOCK = np.arange(1 << SHIFT)


class OpenSpans:
    """``of`` int64 (groups, 2), ``LOW`` and ``HIGH``, and ``least`` int64 (blocks,), as in ``kernels/partials.py``.

    ``counts`` int64 (3,): rows of the table that has windows of these groups (``Partials``), how many groups have an
    open window, and the lowest one of any.  ``nbytes``: of ``of`` and ``least``.
    """

    of: Integers
    least: Integers
    nbytes: int

    def __init__(self, of: Integers | None = None) -> None:
        self.counts = np.array([0, 0, NO_WINDOW])
        self._take(np.empty((0, 2), np.int64) if of is None else of)

    def __len__(self) -> int:
        return len(self.of)

    @property
    def lowest(self) -> int:
        """The lowest open window of any group."""
        return int(self.counts[LOWEST])

    @property
    def alive(self) -> int:
        """How many groups have an open window."""
        return int(self.counts[ALIVE])

    def living(self, groups: int) -> NDArray[np.bool_]:
        """Tell which groups have an open window."""
        return np.asarray(self.of[:groups, LOW] != NO_WINDOW)

    def few(self, slots: Integers) -> bool:
        """Tell whether groups are so few that the others are not looked at."""
        return _APART * slots.size < len(self.of)

    def reserve(self, groups: int) -> None:
        """Have room for so many groups, and some more; new ones have no window."""
        if groups > len(self.of):
            self.grow(max(groups, len(self.of) + len(self.of) // _MORE))

    def grow(self, groups: int) -> None:
        """Have room for so many groups; new ones have no window."""
        more = np.empty((groups - len(self.of), 2), np.int64)
        more[:, LOW], more[:, HIGH] = NO_WINDOW, NEVER
        self.of = np.concatenate([self.of, more])
        self.least = filled_up(self.least, _blocks(groups), NO_WINDOW)
        self.nbytes = self.of.nbytes + self.least.nbytes

    def below(self, cut: int) -> Integers:
        """Return groups, ascending, among which are all with a window below a cut.  O(blocks + groups returned)."""
        blocks = np.flatnonzero(self.least < cut)
        slots: Integers = ((blocks[:, None] << SHIFT) + _IN_BLOCK).ravel()
        return slots[: slots.searchsorted(len(self.of))]

    def between(self, slots: Integers, low: Integers, stop: Integers) -> Integers:
        """Return int64 (3, n): who has windows from ``low[i]`` to ``stop[i]`` (exclusive), and from which to which."""
        sides = (np.ascontiguousarray(np.broadcast_to(one, slots.shape)) for one in (low, stop))
        room = np.empty((3, slots.size), np.int64)
        return room[:, : kernels.between(self.of, slots, *sides, room)]

    def widen(self, slots: Integers, first: Integers, last: Integers) -> None:
        """Open the windows ``first[i]`` to ``last[i]`` of ``slots[i]``."""
        asleep = slots[self.of[slots, LOW] == NO_WINDOW]
        np.minimum.at(self.of[:, LOW], slots, first)
        np.maximum.at(self.of[:, HIGH], slots, last)
        np.minimum.at(self.least, slots >> SHIFT, first)
        if asleep.size:
            self.counts[ALIVE] += occurring(asleep, len(self.of)).size
        self.counts[LOWEST] = min(self.lowest, int(first.min(initial=NO_WINDOW)))

    def reopen(self, slots: Integers, low: Integers) -> None:
        """Note that the lowest open window of some groups is another now, or that there is none."""
        kernels.reopen(self.of, self.least, slots, low, self.counts)

    def close_below(self, slots: Integers, stop: Integers) -> None:
        """Note that windows below ``stop[i]`` of ``slots[i]`` have left."""
        kernels.close_below(self.of, self.least, slots, stop, self.counts)

    def count(self, alive: int, lowest: int) -> None:
        """Note how many groups have an open window, and the lowest one, now that a kernel has changed the spans."""
        self.counts[ALIVE:] = alive, lowest

    def reopen_all(self, cut: int) -> None:
        """Note that all groups have closed their windows below a cut."""
        kernels.reopen_all(self.of, self.least, cut, self.counts)

    def keep(self, slots: Integers) -> None:
        """Keep the spans of some groups alone.  O(groups)."""
        self._take(self.of[slots])

    def save(self) -> Later:
        """Return the spans for a snapshot.  O(groups) for the copy."""
        copied = self.of.copy()
        return Later(lambda: _narrow(copied))

    def load(self, saved: Saved, groups: int, room: int = 0) -> None:
        """Restore the spans of so many groups, with ``room`` for at least as many."""
        lowest = saved.integer(0, least=-_FAR, most=_FAR)
        rows = saved.narrow(1, (None,), least=0, below=groups)
        low = saved.narrow(2, rows.shape, least=0, below=_FAR)
        # below low: a group that waits for its next
        high = saved.narrow(3, rows.shape, least=-_FAR, below=_FAR)
        of = np.empty((max(room, groups), 2), np.int64)
        of[:, LOW], of[:, HIGH] = NO_WINDOW, NEVER
        where = as_slice(rows)
        of[where, LOW], of[where, HIGH] = low, high
        of[where] += lowest
        self._take(of)

    def _take(self, of: Integers) -> None:
        """Let these be the spans."""
        self.of, self.least = of, np.full(_blocks(len(of)), NO_WINDOW)
        self.nbytes = of.nbytes + self.least.nbytes
        if of.size:  # else no kernel is loaded
            settle(of, self.least, np.arange(0, len(of), 1 << SHIFT))
        self.count(int(np.count_nonzero(of[:, LOW] != NO_WINDOW)), int(self.least.min(initial=NO_WINDOW)))


class OpenGrid:
    """Open windows of ``extents``, the definition ``number``, by their ``spans``; ``stamp`` is that of results.

    ``alike_from``: the first window that no group has closed before the others.
    """

    def __init__(
        self, number: int, extents: Extents, stamp: Stamp, *, every: bool = False, of: Integers | None = None,
        latest: int = NEVER,
    ) -> None:  # fmt: skip
        self.number, self.extents, self.every = number, extents, every or extents.landmark
        self.stamps, self.spans = Stamps([extents], stamp), OpenSpans(of)
        self.alike_from = NEVER
        self._latest = latest  # the stream's last window with a tuple, of landmark ones

    def open(self, slots: Integers, first: Integers, last: Integers) -> None:
        """Open the windows ``first[i]`` to ``last[i]`` of ``slots[i]``."""
        self.spans.widen(slots, first, last)
        if self.extents.landmark:
            self._latest = max(self._latest, int(first.max(initial=NEVER)))

    def each(self, slots: Integers | None, cuts: Integers) -> tuple[Integers, Integers]:
        """Return groups, and the first window that each leaves open; None: those with one below, by one cut."""
        if slots is not None:
            return slots, cuts
        known = len(self.spans.of)
        slots = self.spans.below(int(cuts)) if known > _ALL else np.arange(known)
        each = np.empty(slots.size, np.int64)  # np.full takes twice as long
        each.fill(cuts)
        return slots, each

    def closing(self, slots: Integers | None, cuts: Integers) -> Integers:
        """Return int64 (4, n): who has windows below its cut, from which to which (exclusive), and the lowest then.

        None: all groups, by one cut.
        """
        some, cuts = self.each(slots, cuts)
        room = np.empty((4, some.size), np.int64)
        found: Integers = room[:, : kernels.closing(self.spans.of, some, cuts, *room)]
        if self.every:  # groups stay open behind their last window, but those that are over
            found[3] = np.where(np.isin(found[0], some[cuts == FOREVER]), NO_WINDOW, found[2])
        if slots is not None and found.size:
            self.alike_from = max(self.alike_from, int(found[2].max()))
        return found

    def least_stamp(self, bound: int) -> int:
        """Return the least stamp of later results, if no later tuple is below ``bound``."""
        if self.every and self.spans.alive:
            bound = min(bound, self.extents.origin + self.spans.lowest * self.extents.slide)
        return self.stamps.least(bound)

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        """Do so for many bounds, where that of group ``slots[i]`` is ``bounds[of[i]]``."""
        if self.every:
            low = self.spans.of[slots, LOW]
            some = np.flatnonzero(low != NO_WINDOW)
            bounds = bounds.copy()
            np.minimum.at(bounds, of[some], self.extents.origin + low[some] * self.extents.slide)
        return self.stamps.of_each(bounds)

    def most_until(
        self, slots: Integers | None, bounds: Integers | int, cut: int, held: float, partials: int
    ) -> float:
        """Return how many windows, all below a cut, can leave at most by their bounds, where so many are ``held``.

        O(1); where more than are put out at once may leave, O(slots), or O(blocks + groups of which some window ends,
        and those beside them).  ``every``: by the spans alone; raises ``LongGapError`` if a group would put out too
        many windows without a tuple, where ``partials`` have some.
        """
        if self.every:
            _, alive, lowest = self.spans.counts.tolist()
            held = max(float(cut) - lowest, 0.0) * alive
        if held > AT_ONCE:
            cuts = self.extents.closed_by(bounds)
            some = self.spans.below(int(cuts)) if slots is None else slots
            low, high = self.spans.of[some].T
            stop = self.stop(np.broadcast_to(cuts, low.shape), high)
            if self.every:
                check_gap(self.extents, some, low, stop, partials)
            held = min(held, float(np.maximum(stop.astype(float) - low.astype(float), 0).sum()))
        return max(held, 1.0)

    def stop(self, cuts: Integers, high: Integers) -> Integers:
        """Return behind which windows groups put out none, by their cuts and highest windows."""
        if not self.extents.landmark:
            return np.minimum(cuts, np.where(high == NEVER, high, high + 1))
        stop = np.minimum(cuts, self._latest + 1)
        return np.where(cuts == FOREVER, stop, cuts) if self.extents.lulls else stop

    def copied(self, slots: Integers) -> OpenGrid:
        """Return the windows of some groups, as those of the groups 0, 1, ..."""
        some = self.spans.of[slots]
        return OpenGrid(
            self.number, self.extents, self.stamps.stamp, every=self.every, of=some, latest=self._latest
        )

    def save(self) -> dict[str, Any]:
        return {"spans": self.spans.save(), "latest": self._latest}

    def load(self, saved: Saved, groups: int, room: int = 0) -> None:
        """Restore a snapshot of so many groups, with ``room`` for at least as many."""
        self.spans.load(saved.part("spans"), groups, room)
        self._latest = saved.integer("latest")
        low = self.spans.of[:, LOW]
        self.alike_from = int(low[low != NO_WINDOW].max(initial=NEVER))


def _blocks(groups: int) -> int:
    return (groups + (1 << SHIFT) - 1) >> SHIFT


def _narrow(spans: Integers) -> list[Any]:
    alive = np.flatnonzero(spans[:, LOW] != NO_WINDOW)
    low, high = spans[alive].T
    lowest = int(low.min()) if low.size else 0
    return [lowest, narrow(alive), narrow(low - lowest), narrow(high - lowest)]
