"""Slice groups: what ``SlicedAggregate`` keeps, closes and promises.

All is as in ``slicing/window_groups.py``, with bounds on the tuples in the place of windows: what a promise closes
is another window in each definition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError
from oop_engine.core.operator import Emission, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER, Linear
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.slicing.shared_slices import Slicing
from oop_engine.operators.slicing.slice_results import SliceResults
from oop_engine.operators.slicing.slice_ring import SliceRing
from oop_engine.operators.slicing.slice_windows import Found, WindowOverflowError
from oop_engine.operators.slicing.window_groups import WindowGroups
from oop_engine.operators.slicing.window_limits import AT_ONCE, pauses

__all__ = ["SliceGroups"]

Integers = NDArray[np.int64]


class SliceGroups(WindowGroups):
    """Open slices of the groups of ``by``, a ring for each of ``slicings``."""

    _results: SliceResults

    def __init__(
        self, results: SliceResults, schema: Schema, by: tuple[str, ...], slicings: list[Slicing]
    ) -> None:
        super().__init__(results, schema, by, empty=False)
        self._rings = [SliceRing(results.parts, slicing) for slicing in slicings]

    def state(self) -> State:
        return State(0, sum(map(len, self._rings)), self._partials.alive, self.nbytes)

    @property
    def nbytes(self) -> int:
        """Bytes that are held, with the room there is for more."""
        return super().nbytes + sum(ring.nbytes for ring in self._rings)

    def add_at(self, page: Page, times: Integers) -> None:
        """Add tuples to their slices.  O(tuples x rings), in kernels."""
        if not len(page):
            return
        slots = self._slots(page)
        try:
            for ring in self._rings:
                ring.add(page, times, slots, len(self._groups))
        except WindowOverflowError as error:
            raise self._overflow_in(error) from None
        self._note()
        self._forget_dead()

    def save(self) -> dict[str, Any]:
        return {**super().save(), "rings": [ring.save() for ring in self._rings]}

    def load(self, saved: Saved) -> None:
        super().load(saved)
        for ring, of_ring in zip(self._rings, saved.parts("rings", len(self._rings)), strict=True):
            ring.load(of_ring, len(self._groups))

    def _note(self) -> None:
        alive = max(ring.alive for ring in self._rings)
        self._partials.note(alive, min(ring.lowest for ring in self._rings))

    def _linear(self, below: int) -> Iterator[Emission]:
        if below > self._partials.lowest:
            for bound in (*self._pauses_until(below), below):
                try:
                    found = [some for ring in self._rings for some in ring.close(bound)]
                except WindowOverflowError as error:
                    raise self._overflow_in(error) from None
                yield from self._put_out(found)
        yield from self._say(Linear(int(self._results.promise(below))))

    def _close(self, slots: Integers, cuts: Integers, *, over: bool = False) -> Iterator[Emission]:
        for bound in (*self._pauses_until(int(cuts.max(initial=NEVER))), FOREVER):
            try:
                bounds = np.minimum(cuts, bound)
                found = [some for ring in self._rings for some in ring.close_some(slots, bounds)]
            except WindowOverflowError as error:
                raise self._overflow_in(error) from None
            yield from self._put_out(found)

    def _pauses_until(self, bound: int) -> list[int]:
        """Return where to pause on the way to a bound, so that not too many windows are in memory together."""
        if sum(ring.most_until(bound) for ring in self._rings) <= AT_ONCE:
            return []
        first, behind, windows = (
            np.concatenate(a) for a in zip(*(r.reach() for r in self._rings), strict=True)
        )
        return [at for at in pauses(first, behind, windows, AT_ONCE) if at < bound]

    def _put_out(self, found: list[Found]) -> Iterator[Emission]:
        """Put out windows by their end, then in the order of definitions, then of groups."""
        self._note()
        if not found:
            return
        together = Found.joined(found)
        for page in self._results.found_pages(self._groups.keys(together.slots), together):
            yield 0, page

    def _living(self) -> NDArray[np.bool_]:
        known = len(self._groups)
        living: NDArray[np.bool_] = np.logical_or.reduce([ring.living()[:known] for ring in self._rings])
        return living

    def _rename(self, kept: Integers, slots: Integers) -> None:
        super()._rename(kept, slots)
        for ring in self._rings:
            ring.rename(kept, slots)

    def _overflow_in(self, error: WindowOverflowError) -> ContractError:
        keys: list[pa.Array] = self._groups.keys(np.array([error.slot]))
        extents = self._results.definitions[error.number]
        group = dict(zip(self._by, keys, strict=True))
        return self._results.overflow(error.column, error.wid, group, extents)
