"""Adaptive groups: tuples of sparse groups are kept, those of dense groups aggregated (AdaptWID).

Which groups are sparse is told by what they would take: ``operators/slicing/window_volume.py``.  A dense
(eager) group has panes in a block of dense groups, or the windows of a table where these take
less; a sparse (lazy) group has its tuples in the tail.  Nothing else depends on which it is:

* closing aggregates the tail's tuples in the windows that close, and combines them with
  what the group has in panes.  So a group in transition needs no care.
* a group that becomes eager has its tuples aggregated at once, unless it still has panes from
  before: their windows may be half put together, so the tuples stay in the tail until they expire.
* where many windows close of which each tuple is in very many, groups become eager before: their
  tuples would be added to each of the windows by itself.
* one that becomes lazy keeps its panes until their windows have closed.
* what does not fit the block, of a time far away, goes to the tail.

With ``at_once=False`` this begins as plain panes of all groups, and adapts when those turn out
to be sparse: the panes in use are few in the rectangle that they lie in, or most tuples do not fit it.

Source: thesis 6.3.3, 6.3.4.2 (figures 6-17, 6-18).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.group_index import occurring
from oop_engine.core.operator import Emission, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.slicing.accumulators import is_compiled
from oop_engine.operators.slicing.closed import Closed, joined
from oop_engine.operators.slicing.pane_block import PaneBlock
from oop_engine.operators.slicing.pane_ring import Panes, PaneSumOverflowError
from oop_engine.operators.slicing.partials import NO_WINDOW, Partials
from oop_engine.operators.slicing.tuple_tail import Tail, Tuples
from oop_engine.operators.slicing.window_groups import WindowGroups
from oop_engine.operators.slicing.window_results import Results
from oop_engine.operators.slicing.window_volume import EagerBytes, Volumes

__all__ = ["WIDE", "AdaptiveGroups", "eager_bytes"]

Integers = NDArray[np.int64]

WIDE = 10_000
"""Windows of a tuple, from which on none should get a partial aggregate in each."""
_FLOOR = 1 << 23  # bytes: a rectangle so small may be as empty as it likes
_SPARSE = 16  # cells of the rectangle for each one in use: then groups are sparse
_MANY = 1000  # tuples; fewer that do not fit tell nothing


class AdaptiveGroups(WindowGroups):
    """As ``WindowGroups``, for windows of one length over an attribute; the query reads columns ``read``."""

    def __init__(
        self, results: Results, schema: Schema, by: tuple[str, ...], read: set[str], *, at_once: bool
    ) -> None:
        super().__init__(results, schema, by, empty=False, panes=not at_once)
        assert results.extents.range is not None
        self._tail = Tail(schema, read, results.extents)
        self._volumes = Volumes(results.extents.range)
        self._eager_bytes, self._in_panes = eager_bytes(results)
        self._block: PaneBlock | None = None
        self._adapting = False
        self._most = self._seen = 0  # since the last look: panes in use, tuples
        if at_once:
            self._adapt()

    def _adapt(self) -> None:
        """Begin to adapt; groups that are there are eager."""
        self._adapting = True
        self._volumes.grow(len(self._spans), eager=True)
        panes = self._panes or Panes(self._results.parts, self._results.extents)
        if self._in_panes:
            self._block = PaneBlock(panes)
            self._block.take_over(self._spans, self._partials.counts)
        elif self._panes is not None:
            self._give_up_panes()
        self._panes = None

    def add_at(self, page: Page, times: Integers) -> None:
        """Add tuples to the panes, or to the tail, as their groups are.  O(tuples log tuples)."""
        if not self._adapting:
            super().add_at(page, times)
            self._most = max(self._most, len(self._panes or ()))
            self._seen += len(page)
            return
        first, last = self._results.extents.wids(times)
        if not (inside := last >= first).all():
            page, first, last = page.filter(inside), first[inside], last[inside]
        if len(page):
            self._share_out(Tuples(page, self._slots(page), first, last))
            self._forget_dead()

    def take(self, punctuation: Punctuation) -> Iterator[Emission]:
        """Close what a promise completes; groups may become lazy behind it.  O(groups + tuples kept)."""
        if isinstance(punctuation, Linear):
            cut = int(self._results.extents.closed_by(punctuation.below))
            self._volumes.duration.close(punctuation.below, cut)
        yield from super().take(punctuation)
        if self._adapting:
            self._volumes.settle(self._threshold())

    def state(self) -> State:
        if not self._adapting:
            return super().state()
        in_block = 0 if self._block is None else len(self._block)
        return State(len(self._tail), len(self._partials) + in_block, self._partials.alive, self.nbytes)

    @property
    def nbytes(self) -> int:
        """Bytes that are held, with the room there is for more."""
        held = super().nbytes
        if self._adapting:
            held += self._tail.nbytes + self._volumes.nbytes
        return held if self._block is None else held + self._block.nbytes

    def save(self) -> dict[str, Any]:
        return {
            **super().save(),
            "adapting": self._adapting,
            "looked": [self._most, self._seen, self._refused],
            "tail": self._tail.save(),
            "volumes": self._volumes.save(len(self._groups)),
            "block": None if self._block is None else self._block.save(),
        }

    def load(self, saved: Saved) -> None:
        if saved.flag("adapting") and not self._adapting:
            self._adapt()
        super().load(saved)
        groups, looked = len(self._groups), saved.part("looked")
        self._most, self._seen, self._refused = (looked.integer(i, least=0) for i in range(3))
        self._tail.load(saved.part("tail"), groups)
        self._volumes.load(saved.part("volumes"), groups)
        if self._block is not None:
            self._block.load(saved.part("block"), groups)

    def _threshold(self) -> float:
        return self._eager_bytes.threshold(self._volumes.duration.wed, self._tail.tuple_bytes)

    def _share_out(self, tuples: Tuples) -> None:
        """Put new tuples where those of their groups go."""
        self._note(tuples)
        self._volumes.grow(len(self._spans))
        risen = self._volumes.add(tuples.slots, self._threshold())
        eager = self._volumes.eager[tuples.slots]
        if not eager.all():
            lazy = tuples.take(~eager)
            self._tail.add(lazy.page, lazy.slots)
            tuples = tuples.take(eager)
        if risen.size:
            self._raise(risen)
        self._aggregate(tuples)

    def _note(self, tuples: Tuples) -> None:
        """Keep up to date which windows are open."""
        _, slots, first, last = tuples
        self._volumes.duration.note(tuples.page.times, last)
        asleep = slots[self._spans[slots, 0] == NO_WINDOW]
        fresh = occurring(asleep, len(self._spans)).size
        np.minimum.at(self._spans[:, 0], slots, first)
        np.maximum.at(self._spans[:, 1], slots, last)
        lowest = min(self._partials.lowest, int(first.min()))
        self._partials.note(self._partials.alive + fresh, lowest)

    def _raise(self, risen: Integers) -> None:
        """Aggregate the tuples of groups that have become eager."""
        if self._block is not None:
            risen = risen[~self._block.alive(risen)]
        chosen = np.zeros(len(self._groups), np.bool_)
        chosen[risen] = True
        tuples = self._tail.tuples()
        self._aggregate(self._tail.keep(tuples, ~chosen[tuples.slots]))

    def _aggregate(self, tuples: Tuples) -> None:
        page, slots, first, last = tuples
        if self._block is None:
            first = np.maximum(first, self._spans[slots, 0])  # of kept tuples some windows have closed
            self._add(page, page.times, slots, first, last)
            return
        try:
            left = self._block.add(page, page.times, slots)
        except PaneSumOverflowError as error:
            raise self._overflow(error.column, error.slot, error.wid) from None
        self._tail.add(page.take(left), slots[left])

    def _reach(self) -> tuple[Integers, Integers, NDArray[np.float64]]:
        if self._results.extents.overlap > WIDE and self._block is not None and len(self._tail):
            lazy = occurring(self._tail.tuples().slots, len(self._groups))
            self._volumes.eager[lazy] = True
            self._raise(lazy)
        first, behind, groups = super()._reach()
        spans = [] if self._block is None else [self._block.reach]
        block = np.array(spans, np.int64).reshape(-1, 3).T
        tuples = self._tail.tuples() if len(self._tail) else None
        kept = (tuples.first, tuples.last + 1) if tuples else (first[:0], first[:0])
        return (
            np.concatenate([first, block[0], kept[0]]),
            np.concatenate([behind, block[1], kept[1]]),
            np.concatenate([groups, block[2], np.ones(kept[0].size)]),
        )

    def _closed(self, slots: Integers, low: Integers, stop: Integers) -> Closed:
        if self._is_sparse():
            self._adapt()
        self._pour(slots, low, stop)
        closed = super()._closed(slots, low, stop)
        if self._block is None:
            return closed
        both = joined([closed, self._block.take(slots, low, stop)])
        return self._united(both.by_window(len(self._groups)))

    def _is_sparse(self) -> bool:
        """Tell whether plain panes have turned out to be sparse, at a moment when windows close."""
        if self._panes is None:
            return False
        of = self._panes.rectangle
        area = (of.high - of.low + 1) * of.groups  # there is room for more panes, at most as many again
        empty = area > max(_FLOOR // of.cell_bytes, _SPARSE * self._most)
        refused = self._refused > max(_MANY, self._seen / 2)
        self._most, self._seen, self._refused = len(self._panes), 0, 0
        return empty or refused

    def _pour(self, slots: Integers, low: Integers, stop: Integers) -> None:
        """Aggregate the tail's tuples, in the table of windows, as far as their windows are closing."""
        if not len(self._tail):
            return
        lowest, above = np.full(len(self._groups), NO_WINDOW), np.zeros(len(self._groups), np.int64)
        lowest[slots], above[slots] = low, stop
        tuples = self._tail.tuples()
        first = np.maximum(tuples.first, lowest[tuples.slots])
        last = np.minimum(tuples.last, above[tuples.slots] - 1)
        page, slots, first, last = tuples._replace(first=first, last=last).take(first <= last)
        if slots.size:
            self._add(page, page.times, slots, first, last)

    def _reopen(self, slots: Integers, low: Integers) -> None:
        super()._reopen(slots, low)
        if len(self._tail):
            tuples = self._tail.tuples()
            gone = self._tail.keep(tuples, tuples.last >= self._spans[tuples.slots, 0])
            self._volumes.expire(gone.slots)

    def _rename(self, kept: Integers, slots: Integers) -> None:
        super()._rename(kept, slots)
        self._tail.rename(slots)
        if self._adapting:
            self._volumes.rename(kept)
        if self._block is not None:
            self._block.rename(slots)


def eager_bytes(results: Results) -> tuple[EagerBytes, bool]:
    """Return what an eager group takes, and whether that is in panes: whichever is less, at ``wed`` = RANGE."""
    extents = results.extents
    assert extents.range is not None
    table = EagerBytes(Partials(results.parts).row_bytes, 0, extents.slide)
    panes = Panes(results.parts, extents)
    fixed = panes.rectangle.back_bytes + PaneBlock.COLUMN_BYTES
    block = EagerBytes(panes.rectangle.cell_bytes, fixed, extents.slide / panes.rectangle.step)
    least = min(table, block, key=lambda eager: eager.threshold(extents.range or 0, 1))
    return (block, True) if least is block and is_compiled(results.parts) else (table, False)
