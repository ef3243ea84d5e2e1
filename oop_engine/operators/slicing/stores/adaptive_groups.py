"""Adaptive groups: tuples of sparse groups are held, those of dense groups aggregated (AdaptWID).

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

They take over the panes of all groups from a ``WindowStore`` when these turn out to be sparse.

Source: thesis 6.3.3, 6.3.4.2 (figures 6-17, 6-18).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oop_engine.core.groups.group_index import occurring
from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Part
from oop_engine.operators.kernels.partials import LOW, LOWEST, NO_WINDOW
from oop_engine.operators.slicing.accumulators import is_compiled
from oop_engine.operators.slicing.checks import AT_ONCE
from oop_engine.operators.slicing.panes.open_spans import OpenGrid, OpenSpans
from oop_engine.operators.slicing.panes.pane_block import PaneBlock
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.partials import Partials
from oop_engine.operators.slicing.stores.grid_cells import GridCells
from oop_engine.operators.slicing.stores.sparse_groups import EagerBytes, Volumes
from oop_engine.operators.slicing.stores.tail import Tail, Tuples
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers, by_slot, looked_up
from oop_engine.operators.windows import Extents
from oop_engine.system.knobs import knob

__all__ = ["WIDE", "AdaptiveGroups", "eager_bytes"]

WIDE = knob(__name__, "WIDE", 10_000)
"""Windows of a tuple, from which on none should get a partial aggregate in each."""


class AdaptiveGroups:
    """Tuples of sparse groups, and panes of dense ones, beside the ``cells`` in which windows are put together.

    The query reads the columns ``read`` of ``schema``.
    """

    def __init__(
        self, parts: Sequence[Part], schema: Schema, read: set[str], grid: OpenGrid, cells: GridCells
    ) -> None:
        assert grid.extents.range is not None
        self._grid, self._cells = grid, cells
        self._overlap = float(grid.extents.overlap)
        self._tail = Tail(schema, read, grid.extents)
        self.volumes = Volumes(grid.extents.range)
        self._eager_bytes, in_panes = eager_bytes(grid.extents, parts)
        self.block = PaneBlock(PaneRing(parts, grid.extents)) if in_panes else None

    def take_over(self) -> None:
        """Go on with the ring of the cells, all of whose groups are eager."""
        ring = self._cells.give_up_ring()
        self.volumes.grow(len(self._grid.spans), eager=True)
        if self.block is None:
            self._cells.to_table(ring)
        else:
            self.block = PaneBlock(ring)
            self.block.take_over(self._grid.spans)

    def state(self) -> State:
        """Return the tuples that are held, partial aggregates of the cells and the block, and bytes."""
        own, block = State(len(self._tail), nbytes=self._tail.nbytes + self.volumes.nbytes), self.block
        held = self._cells.state() + own
        return held if block is None else held + State(partials=block.panes.used, nbytes=block.nbytes)

    def add(self, page: Page, times: Integers, slots: Integers) -> None:
        """Fold tuples into the panes, or hold them, as their groups are.  O(tuples log tuples)."""
        first, last = self._grid.extents.wids(times)
        if not (inside := last >= first).all():
            page, slots, first, last = page.filter(inside), slots[inside], first[inside], last[inside]
        if not len(page):
            return
        self.volumes.duration.note(page.times, last)
        self._grid.open(slots, first, last)
        self.volumes.grow(len(self._grid.spans))
        risen = self.volumes.add(slots, self._threshold())
        eager, tuples = self.volumes.eager[slots], Tuples(page, slots, first, last)
        if not eager.all():
            lazy = tuples.take(~eager)
            self._tail.add(lazy.page, lazy.slots)
            tuples = tuples.take(eager)
        if risen.size:
            self._raise(risen)
        self._aggregate(tuples)

    def _threshold(self) -> float:
        return self._eager_bytes.threshold(self.volumes.duration.wed, self._tail.tuple_bytes)

    def _raise(self, risen: Integers) -> None:
        """Aggregate the tuples of groups that have become eager."""
        if self.block is not None:
            risen = risen[~self.block.alive(risen)]
        stays, tuples = by_slot(risen, False, len(self._grid.spans), True), self._tail.tuples()
        self._aggregate(self._tail.keep(tuples, stays[tuples.slots]))

    def _aggregate(self, tuples: Tuples) -> None:
        page, slots, first, last = tuples
        if self.block is None:
            first = np.maximum(
                first, self._grid.spans.of[slots, LOW]
            )  # of held tuples some windows have closed
            self._cells.add_to_table(page, page.times, slots, first, last)
            return
        left = self.block.add(page, page.times, slots)
        self._tail.add(page.take(left), slots[left])

    def before(self, bound: int | None) -> None:
        """Let groups become lazy, or eager, before windows close, of all groups by a bound, or of some.

        Where tuples are in very many windows, which would be put together from them one by one, all become eager.
        """
        if bound is not None:
            self.volumes.duration.close(bound, int(self._grid.extents.closed_by(bound)))
        self.volumes.settle(self._threshold())
        wide = self._overlap > WIDE and self.block is not None and not self._grid.every
        if wide and len(self._tail) * self._overlap > AT_ONCE:
            lazy = occurring(self._tail.tuples().slots, len(self._grid.spans))
            self.volumes.rise(lazy)
            self._raise(lazy)

    def most_until(self, slots: Integers | None, bounds: Integers | int, cut: int) -> float:
        """Return how many windows can leave at most by bounds, all of which are below a cut."""
        grid, lowest = self._grid, int(self._grid.spans.counts[LOWEST])
        block = 0 if self.block is None else self.block.most_between(lowest, cut)
        partials = self.state().partials if grid.every else 0
        most = grid.most_until(slots, bounds, cut, block + len(self._tail) * self._overlap, partials)
        if most <= AT_ONCE or grid.every or not len(self._tail):
            return most
        _, _, first, last = (
            self._tail.tuples()
        )  # between those of a group there may be a long stretch without one
        windows = np.minimum(last + 1, cut) - np.maximum(first, lowest)
        return min(most, float(block + np.maximum(windows, 0).sum()))

    def take(self, slots: Integers, low: Integers, stop: Integers) -> WindowStates:
        """Take out windows ``low[i]`` to ``stop[i]`` (exclusive) of ``slots[i]``, each named once."""
        self._pour(slots, low, stop)
        found = self._cells.take(slots, low, stop)
        if self.block is None:
            return found
        in_block = self.block.take(slots, low, stop)._replace(number=self._grid.number)
        return self._cells.united([found, in_block])

    def _pour(self, slots: Integers, low: Integers, stop: Integers) -> None:
        """Aggregate the tail's tuples, in the table of windows, as far as their windows are closing."""
        if not len(self._tail):
            return
        tuples = self._tail.of(slots)[0] if self._grid.spans.few(slots) else self._tail.tuples()
        lowest = looked_up(tuples.slots, slots, low, NO_WINDOW)
        above = looked_up(tuples.slots, slots, stop, 0)
        first, last = np.maximum(tuples.first, lowest), np.minimum(tuples.last, above - 1)
        page, slots, first, last = tuples._replace(first=first, last=last).take(first <= last)
        if slots.size:
            self._cells.add_to_table(page, page.times, slots, first, last)

    def expire(self, slots: Integers) -> None:
        """Drop the tuples of some groups that are in no open window any more."""
        if not len(self._tail):
            return
        low = self._grid.spans.of[:, LOW]
        if self._grid.spans.few(slots):
            tuples, at = self._tail.of(slots)
            over = tuples.last < low[tuples.slots]
            self._tail.drop(at[over])
            self.volumes.expire(tuples.slots[over])
            return
        tuples = self._tail.tuples()
        self.volumes.expire(self._tail.keep(tuples, tuples.last >= low[tuples.slots]).slots)

    def rename(self, kept: Integers, slots: Integers) -> None:
        self._tail.rename(slots)
        self.volumes.rename(kept)
        if self.block is not None:
            self.block.rename(slots)

    def save(self) -> dict[str, Any]:
        own = {"tail": self._tail.save(), "volumes": self.volumes.save(len(self._grid.spans))}
        return {**own, "block": None if self.block is None else self.block.save()}

    def load(self, saved: Saved, groups: int) -> None:
        self._tail.load(saved.part("tail"), groups)
        self.volumes.load(saved.part("volumes"), groups)
        if self.block is not None:
            self.block.load(saved.part("block"), groups)


def eager_bytes(extents: Extents, parts: Sequence[Part]) -> tuple[EagerBytes, bool]:
    """Return the bytes of an eager group, and whether that is in panes: whichever is less, at ``wed`` = RANGE."""
    assert extents.range is not None
    table = EagerBytes(Partials(parts, OpenSpans()).row_bytes, 0, extents.slide)
    panes = PaneRing(parts, extents)
    fixed = panes.back_bytes + PaneBlock.COLUMN_BYTES
    block = EagerBytes(panes.cell_bytes, fixed, extents.slide / panes.step)
    least = min(table, block, key=lambda eager: eager.threshold(extents.range or 0, 1))
    return (block, True) if least is block and is_compiled(parts) else (table, False)
