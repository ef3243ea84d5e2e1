"""The adaptive store: tuples of sparse groups are held, those of dense groups aggregated (AdaptWID).

Which groups are sparse follows from the bytes they would take: ``sparse_groups.py``.  A dense (eager) group has panes
in a block of dense groups, or the windows of a table where these take less; a sparse (lazy) group has its tuples in the
tail.  Nothing else depends on which it is:

* closing aggregates the tail's tuples in the windows that close, and combines them with
  the panes of the group.  So a group in transition needs no care.
* a group that becomes eager has its tuples aggregated at once, unless it still has panes from
  before: their windows may be half put together, so the tuples stay in the tail until they expire.
* where many windows close of which each tuple is in very many, groups become eager before: their
  tuples would be added to each of the windows by itself.
* one that becomes lazy keeps its panes until their windows have closed.
* tuples that do not fit the block, of a time far away, go to the tail.

It takes over from a ``WindowStore`` of panes of all groups when these turn out to be sparse.

Source: thesis 6.3.3, 6.3.4.2 (figures 6-17, 6-18).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from oop_engine.core.groups.group_index import occurring
from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Part
from oop_engine.operators.kernels.partials import LOW, NO_WINDOW
from oop_engine.operators.slicing.accumulators import is_compiled
from oop_engine.operators.slicing.output import Stamp
from oop_engine.operators.slicing.panes.pane_block import PaneBlock
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.partials import Partials
from oop_engine.operators.slicing.store import Reach, Store
from oop_engine.operators.slicing.stores.sparse_groups import EagerBytes, Volumes
from oop_engine.operators.slicing.stores.tail import Tail, Tuples
from oop_engine.operators.slicing.stores.window_store import WindowStore
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers, by_slot
from oop_engine.operators.windows import Extents
from oop_engine.system.knobs import knob

__all__ = ["WIDE", "AdaptiveStore", "eager_bytes"]

WIDE = knob(__name__, "WIDE", 10_000)
"""Windows of a tuple, from which on none should get a partial aggregate in each."""


class AdaptiveStore(WindowStore):
    """As ``WindowStore``, for windows over an attribute; the query reads the columns ``read`` of ``schema``."""

    def __init__(
        self, number: int, extents: Extents, parts: Sequence[Part], stamp: Stamp, schema: Schema, read: set[str],
        *, every: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(number, extents, parts, stamp, panes=False, every=every)
        assert extents.range is not None
        self._tail = Tail(schema, read, extents)
        self.volumes = Volumes(extents.range)
        self._eager_bytes, in_panes = eager_bytes(extents, parts)
        self.block = PaneBlock(PaneRing(parts, extents)) if in_panes else None

    def take_over(self, before: WindowStore) -> Store:
        """Go on with the state of another store, all of whose groups are eager; return this one."""
        super().take_over(before)
        self.volumes.grow(len(self.opened.of), eager=True)
        if self.block is None:
            before.give_up_panes()
        else:
            assert before.panes is not None
            self.block = PaneBlock(before.panes)
            self.block.take_over(self.opened, self.partials.counts)
        return self

    def state(self) -> State:
        held = super().state() + State(len(self._tail), nbytes=self._tail.nbytes + self.volumes.nbytes)
        return (
            held
            if self.block is None
            else held + State(partials=self.block.panes.used, nbytes=self.block.nbytes)
        )

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        """Fold tuples into the panes, or hold them, as their groups are.  O(tuples log tuples)."""
        if groups > len(self.opened.of):
            self.grow(groups)
        first, last = self.extents.wids(times)
        if not (inside := last >= first).all():
            page, slots, first, last = page.filter(inside), slots[inside], first[inside], last[inside]
        if len(page):
            self._share_out(Tuples(page, slots, first, last))

    def close(self, slots: Integers | None, bounds: Integers | int) -> Iterable[WindowStates]:
        """Close the windows that bounds complete; groups may become lazy behind them.  O(groups + tuples held)."""
        if slots is None:
            self.volumes.duration.close(int(bounds), int(self.extents.closed_by(bounds)))
        found = super().close(slots, bounds)
        self.volumes.settle(self._threshold())
        return found

    def _threshold(self) -> float:
        return self._eager_bytes.threshold(self.volumes.duration.wed, self._tail.tuple_bytes)

    def _share_out(self, tuples: Tuples) -> None:
        """Put new tuples where those of their groups go."""
        self._note(tuples)
        self.volumes.grow(len(self.opened.of))
        risen = self.volumes.add(tuples.slots, self._threshold())
        eager = self.volumes.eager[tuples.slots]
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
        self.volumes.duration.note(tuples.page.times, last)
        woken = self.opened.widen(slots, first, last)
        self.partials.note(self.alive + woken, min(self.partials.lowest, int(first.min())))

    def _raise(self, risen: Integers) -> None:
        """Aggregate the tuples of groups that have become eager."""
        if self.block is not None:
            risen = risen[~self.block.alive(risen)]
        stays, tuples = by_slot(risen, False, len(self.opened.of), True), self._tail.tuples()
        self._aggregate(self._tail.keep(tuples, stays[tuples.slots]))

    def _aggregate(self, tuples: Tuples) -> None:
        page, slots, first, last = tuples
        if self.block is None:
            first = np.maximum(first, self.opened.of[slots, LOW])  # of held tuples some windows have closed
            self.add_to_table(page, page.times, slots, first, last)
            return
        left = self.block.add(page, page.times, slots)
        self._tail.add(page.take(left), slots[left])

    def most_until(self, bound: int, slots: Integers | None = None) -> float:
        if slots is not None and self.few(slots):
            return super().most_until(bound, slots)
        tuples = len(self._tail) * float(self.extents.overlap)
        if self.block is not None:
            tuples += self.most_of(self.block.panes, bound)
        return self.open_until(super().most_until(bound) + tuples, bound)

    def reach(self, slots: Integers | None, bounds: Integers | int) -> Reach:
        if self.every:
            return super().reach(slots, bounds)
        if self.extents.overlap > WIDE and self.block is not None and len(self._tail):
            lazy = occurring(self._tail.tuples().slots, len(self.opened.of))
            self.volumes.eager[lazy] = True
            self._raise(lazy)
        spans = [] if self.block is None else [self.block.panes.reach]
        if len(self._tail):
            tuples = self._tail.tuples()
            each = zip(tuples.first.tolist(), (tuples.last + 1).tolist(), strict=True)
            spans += [(first, behind, 1) for first, behind in each]
        return self.reaching(spans)

    def take(self, slots: Integers, low: Integers, stop: Integers) -> WindowStates:
        self._pour(slots, low, stop)
        found = super().take(slots, low, stop)
        if self.block is None:
            return found
        return self.united([found, self.block.take(slots, low, stop)._replace(number=self.number)])

    def _pour(self, slots: Integers, low: Integers, stop: Integers) -> None:
        """Aggregate the tail's tuples, in the table of windows, as far as their windows are closing."""
        if not len(self._tail):
            return
        if self.few(slots):
            tuples, _ = self._tail.of(slots)
            order = np.argsort(slots)
            row = order[np.searchsorted(slots, tuples.slots, sorter=order)]
            lowest, above = low[row], stop[row]
        else:
            groups, tuples = len(self.opened.of), self._tail.tuples()
            lowest = by_slot(slots, low, groups, NO_WINDOW)[tuples.slots]
            above = by_slot(slots, stop, groups, 0)[tuples.slots]
        first, last = np.maximum(tuples.first, lowest), np.minimum(tuples.last, above - 1)
        page, slots, first, last = tuples._replace(first=first, last=last).take(first <= last)
        if slots.size:
            self.add_to_table(page, page.times, slots, first, last)

    def reopen(self, slots: Integers, low: Integers) -> None:
        super().reopen(slots, low)
        if not len(self._tail):
            return
        if self.few(slots):
            tuples, at = self._tail.of(slots)
            over = tuples.last < self.opened.of[tuples.slots, LOW]
            self._tail.drop(at[over])
            self.volumes.expire(tuples.slots[over])
            return
        tuples = self._tail.tuples()
        gone = self._tail.keep(tuples, tuples.last >= self.opened.of[tuples.slots, LOW])
        self.volumes.expire(gone.slots)

    def rename(self, kept: Integers, slots: Integers) -> None:
        super().rename(kept, slots)
        self._tail.rename(slots)
        self.volumes.rename(kept)
        if self.block is not None:
            self.block.rename(slots)

    def save(self) -> dict[str, Any]:
        own = {"tail": self._tail.save(), "volumes": self.volumes.save(len(self.opened.of))}
        block = None if self.block is None else self.block.save()
        return {**super().save(), "adapted": True, **own, "block": block}

    def load(self, saved: Saved, groups: int) -> Store:
        super().load(saved, groups)
        self._tail.load(saved.part("tail"), groups)
        self.volumes.load(saved.part("volumes"), groups)
        if self.block is not None:
            self.block.load(saved.part("block"), groups)
        return self


def eager_bytes(extents: Extents, parts: Sequence[Part]) -> tuple[EagerBytes, bool]:
    """Return the bytes of an eager group, and whether that is in panes: whichever is less, at ``wed`` = RANGE."""
    assert extents.range is not None
    table = EagerBytes(Partials(parts).row_bytes, 0, extents.slide)
    panes = PaneRing(parts, extents)
    fixed = panes.back_bytes + PaneBlock.COLUMN_BYTES
    block = EagerBytes(panes.cell_bytes, fixed, extents.slide / panes.step)
    least = min(table, block, key=lambda eager: eager.threshold(extents.range or 0, 1))
    return (block, True) if least is block and is_compiled(parts) else (table, False)
