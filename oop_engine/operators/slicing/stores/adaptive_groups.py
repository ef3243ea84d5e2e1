"""Adaptive groups: tuples of sparse groups are held, those of dense groups aggregated (AdaptWID).

Which groups are sparse follows from the bytes they would take: ``sparse_groups.py``.  A dense (eager) group has panes
in a block of dense groups; a sparse (lazy) group has its tuples in the tail.  Nothing else depends on which it is:

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

from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Part
from oop_engine.operators.kernels.partials import LOWEST, NO_WINDOW
from oop_engine.operators.slicing.checks import AT_ONCE
from oop_engine.operators.slicing.panes.open_spans import OpenGrid, OpenSpans
from oop_engine.operators.slicing.panes.pane_block import PaneBlock
from oop_engine.operators.slicing.panes.pane_ring import PaneRing
from oop_engine.operators.slicing.stores.grid_cells import GridCells
from oop_engine.operators.slicing.stores.sparse_groups import EagerBytes, Volumes
from oop_engine.operators.slicing.stores.tail import Tail
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
        self._tail = Tail(schema, read)
        self.volumes = Volumes(grid.extents.range)
        self._eager_bytes = eager_bytes(grid.extents, parts)
        self.block = PaneBlock(PaneRing(parts, grid.extents), OpenSpans())

    def take_over(self) -> None:
        """Go on with the ring of the cells, all of whose groups are eager."""
        self.volumes.grow(len(self._grid.spans), eager=True)
        self.block = PaneBlock(self._cells.give_up_ring(), OpenSpans(self._grid.spans.of.copy()))

    def state(self) -> State:
        """Return the tuples that are held, partial aggregates of the cells and the block, and bytes."""
        held = self._tail.rows.nbytes + self.volumes.nbytes + self.block.nbytes
        return self._cells.state() + State(len(self._tail), self.block.panes.used, nbytes=held)

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
        eager = self.volumes.eager[slots]
        if not eager.all():
            self._tail.add(page.filter(~eager), slots[~eager])
            page, slots = page.filter(eager), slots[eager]
        if risen.size:
            self._raise(risen)
        self._aggregate(page, slots)

    def _threshold(self) -> float:
        return self._eager_bytes.threshold(self.volumes.duration.wed, self._tail.tuple_bytes)

    def _raise(self, risen: Integers) -> None:
        """Aggregate the tuples of groups that have become eager."""
        stays = by_slot(risen[~self.block.alive(risen)], False, len(self._grid.spans), True)
        rows = self._tail.keep(stays[self._tail.rows.all().slots])
        self._aggregate(rows.page, rows.slots.astype(np.int64))

    def _aggregate(self, page: Page, slots: Integers) -> None:
        left = self.block.add(page, page.times, slots)
        self._tail.add(page.take(left), slots[left])

    def before(self, bound: int | None) -> None:
        """Let groups become lazy, or eager, before windows close, of all groups by a bound, or of some.

        Where tuples are in very many windows, which would be put together from them one by one, all become eager.
        """
        if bound is not None:
            self.volumes.duration.close(bound, int(self._grid.extents.closed_by(bound)))
        self.volumes.settle(self._threshold())
        wide = self._overlap > WIDE and not self._grid.every
        if wide and len(self._tail) * self._overlap > AT_ONCE:
            lazy = np.unique(self._tail.rows.all().slots).astype(np.int64)
            self.volumes.rise(lazy)
            self._raise(lazy)

    def most_until(self, slots: Integers | None, bounds: Integers | int, cut: int) -> float:
        """Return how many windows can leave at most by bounds, all of which are below a cut."""
        grid, lowest = self._grid, int(self._grid.spans.counts[LOWEST])
        block = self.block.most_between(lowest, cut)
        partials = self.state().partials if grid.every else 0
        most = grid.most_until(slots, bounds, cut, block + len(self._tail) * self._overlap, partials)
        if most <= AT_ONCE or grid.every or not len(self._tail):
            return most
        # Between those of a group there may be a long stretch without one.
        first, last = grid.extents.wids(self._tail.rows.all().page.times)
        windows = np.minimum(last + 1, cut) - np.maximum(first, lowest)
        return min(most, float(block + np.maximum(windows, 0).sum()))

    def take(self, slots: Integers, low: Integers, stop: Integers) -> WindowStates:
        """Take out windows ``low[i]`` to ``stop[i]`` (exclusive) of ``slots[i]``, each named once."""
        if len(self._tail):
            self._pour(slots, low, stop)
        found = self._cells.take(slots, low, stop)
        in_block = self.block.take(slots, low, stop)._replace(number=self._grid.number)
        return self._cells.united([found, in_block])

    def _pour(self, slots: Integers, low: Integers, stop: Integers) -> None:
        """Aggregate the tail's tuples, in the table of windows, as far as their windows are closing.

        Those that are in no open window any more are dropped.
        """
        rows, few = self._tail.rows, self._grid.spans.few(slots)
        places = rows.places("slots", slots) if few else np.arange(0)
        page, some = rows.take(places) if few else rows.all()
        of, (first, last) = some.astype(np.int64), self._grid.extents.wids(page.times)
        behind = looked_up(of, slots, stop, NEVER)
        first, closing = np.maximum(first, looked_up(of, slots, low, NO_WINDOW)), np.minimum(last + 1, behind)
        if (at := np.flatnonzero(first < closing)).size:
            self._cells.add_to_table(page.take(at), page.times[at], of[at], first[at], closing[at] - 1)
        over = last < behind
        self.volumes.expire(of[over])
        if few:
            rows.drop(places[over])
        else:
            self._tail.keep(~over)

    def rename(self, kept: Integers, slots: Integers) -> None:
        self._tail.rename(slots)
        self.volumes.rename(kept)
        self.block.rename(slots)

    def save(self) -> dict[str, Any]:
        volumes = self.volumes.save(len(self._grid.spans))
        return {"tail": self._tail.save(), "volumes": volumes, "block": self.block.save()}

    def load(self, saved: Saved, groups: int) -> None:
        self._tail.load(saved.part("tail"), groups)
        self._grid.extents.wids(
            self._tail.rows.all().page.times
        )  # raises where extents would not fit 64 bits
        self.volumes.load(saved.part("volumes"), groups)
        self.block.load(saved.part("block"), groups)


def eager_bytes(extents: Extents, parts: Sequence[Part]) -> EagerBytes:
    """Return the bytes of an eager group, which has panes."""
    panes = PaneRing(parts, extents)
    fixed = panes.back_bytes + PaneBlock.COLUMN_BYTES
    return EagerBytes(panes.cell_bytes, fixed, extents.slide / panes.step)
