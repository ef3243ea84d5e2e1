"""The ordered store: window state of definitions that are folded on the bound (``windows/folding.py``).

    held      tuples that no bound has passed: the columns read, in sorted pages
    slices    partial aggregates of the tuples below it, by group and place, as far back as windows still need them
    edges     slices of the whole stream without states, where there are groups, and tuples of all cut them

A bound moves tuples from the first to the second: they are sorted, ranked, and folded into the slices that the
definition names.  Windows are ranges of slices, and are read without changing them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.kernels.runs import numbered as number_runs
from oop_engine.operators.kernels.time_order import time_order
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.compiled import fixed
from oop_engine.operators.slicing.ordered.held import Held, Taken, columns_of
from oop_engine.operators.slicing.ordered.slice_table import SliceRows, in_groups, numbered, read_ranges
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.store import OnTime, Store
from oop_engine.operators.slicing.tagger import ranks
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates
from oop_engine.operators.values.columns import Integers, begins_of, by_slot
from oop_engine.operators.windows.folding import Due, FinalTuples, Folding, SliceView

__all__ = ["OrderedStore"]

_DONE, _CUT, _CAME = range(3)  # rows of the numbers of groups


class OrderedStore(OnTime):
    """Tuples and slices of ``definition``, which has the ``number``; of ``schema`` the columns ``read`` are needed.

    Tuples of one time are ordered by the tie of the definition, then of the ``output``.  Where windows are over rows, a
    tuple's number is its time.  ``held``: where tuples are held together with other stores, of which the first adds and
    saves them, and counts them as its own.
    """

    def __init__(
        self, number: int, definition: Folding, output: Output, schema: Schema, read: set[str], held: Held | None,
    ) -> None:  # fmt: skip
        self._number, self._definition = number, definition
        self._parts, self._stamp = output.parts, output.stamp
        self._divided = definition.whole_stream and output.grouped  # else slices are those of one group
        self._tie = tuple(dict.fromkeys((*definition.tie, *output.tie)))
        names = columns_of(definition, read, output.tie)
        own = Held(schema, names, definition.over, tagged=definition.tagged, grouped=output.grouped)
        self._held = own if held is None else held
        self._reader = self._held.reader()
        kept = pa.schema(map(schema.fields.field, definition.keeps)) if definition.keeps else None
        self._slices, self._edges = SliceRows.none(self._parts, kept), SliceRows.none((), None)
        self._numbers = np.empty((3, 0), np.int64)
        self._groups, self._bound = 0, NEVER
        self._room(1)

    def state(self) -> State:
        held = State() if self._reader else State(len(self._held), nbytes=self._held.nbytes)
        own = self._slices.nbytes + self._edges.nbytes + self._numbers.nbytes
        return held + State(0, int(self._slices.slots.size), self.alive, own)

    @property
    def alive(self) -> int:
        return int(np.count_nonzero(self.living(self._groups)))

    @property
    def _table(self) -> SliceRows:
        """The slices that windows are found in."""
        return self._edges if self._divided else self._slices

    def _room(self, groups: int) -> None:
        """Let there be numbers of so many groups; where the stream is numbered, of one."""
        self._groups = max(self._groups, groups)
        more = 0 if self._definition.whole_stream and self._numbers.size else groups - self._numbers.shape[1]
        if more > 0:
            more = max(more, self._numbers.shape[1] // 2)
            new = np.array([[0], [NEVER], [0]]).repeat(more, axis=1)
            self._numbers = np.concatenate([self._numbers, new], axis=1)

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        self._definition.check(times)
        self._room(groups)
        tags = np.empty(0, np.int8)
        if self._definition.tagged:
            numbers = slots[:0]
            if self._definition.numbered:
                numbers = self._numbers[_CAME][slots] + ranks(slots)
                np.maximum.at(self._numbers[_CAME], slots, numbers + 1)
            tags = self._definition.tags(page, numbers)
        if not self._reader:
            self._held.add(page, times, slots, tags, groups)

    def due(self, bound: int) -> bool:
        return len(self._held) > 0 or self._slices.slots.size > 0 or bound == FOREVER

    def close(self, slots: Integers | None, bounds: Integers | int) -> list[WindowStates]:
        if slots is None:
            bound = int(bounds)
            self._bound = max(self._bound, bound)
            tagged = self._held.tagged_at(bound) if self._definition.peeks and bound < FOREVER else None
            return self._closed(self._held.take(self._reader, bound), np.full(self._groups, bound), tagged)
        if self._definition.whole_stream:
            return []  # slices wait for the tuples of all groups
        below = by_slot(slots, bounds, self._groups, NEVER)
        tagged = self._held.tagged_at(below) if self._definition.peeks else None
        return self._closed(self._held.take_some(self._reader, slots, below), below, tagged)

    def _closed(self, taken: Taken | None, below: Integers, tagged: Integers | None) -> list[WindowStates]:
        """Fold tuples that are final, and return the windows that the bounds of groups complete."""
        final, of = self._fold(taken) if taken is not None else (None, below[:0])
        view, slots = self._view(below, final, of, tagged)
        found: list[WindowStates] = []
        if slots.size:
            due = self._definition.due(view)
            found = self._read(due, slots) if due.groups.size else []
            self._forget(view, due, slots)
        if below.size and int(below.max()) == FOREVER:  # forget the numbers of groups that are over
            over = below[:1] if self._definition.whole_stream else below
            self._clear(np.flatnonzero(over == FOREVER))
        return found

    def _fold(self, taken: Taken) -> tuple[FinalTuples | None, Integers]:
        """Put final tuples into slices; return those that are in windows, and the slot of each of their groups."""
        whole = self._definition.whole_stream
        taken = taken.in_order(self._tie, by_group=not whole)
        by = np.zeros_like(taken.slots) if self._divided else taken.slots
        final, of = numbered(taken, by, self._numbers[_DONE], self._table)
        places = self._definition.places(final)
        self._numbers[_DONE][of] += np.diff(final.starts, append=by.size)
        slots, some = taken.slots, final
        if places.min(initial=0) < 0:
            inside = np.flatnonzero(places >= 0)
            some, places, slots = final.take(inside), places[inside], slots[inside]
        if self._divided:
            starts = begins_of(places)
            edges = self._rows(np.zeros_like(starts), places, some.times, starts, [])
            self._edges = self._edges.with_more(edges, ())
            if (slots[1:] < slots[:-1]).any():
                order = time_order(slots)
                some, places, slots = some.take(order), places[order], slots[order]
        self._fold_in(some.page, slots, places)
        return final, of

    def _fold_in(self, page: Page, slots: Integers, places: Integers) -> None:
        """Fold tuples into slices, which they are in order of."""
        starts = np.empty(places.size, np.int64)
        starts = starts[: number_runs(fixed(slots), fixed(places), starts)].copy()
        states = States(self._parts, starts.size)
        new = self._rows(slots[starts], places, page.times, starts, states.columns)
        if self._slices.kept is not None:
            new = new._replace(kept=page.batch.select(self._definition.keeps))
        try:
            states.add_runs(starts, places.size, states.prepare(page, page.times))
            self._slices = self._slices.with_more(new, self._parts)
        except SumOverflowError as error:
            at = error.at
            raise WindowOverflowError(error.column, new.slots[at], new.first[at], new.last[at] + 1) from None

    def _rows(
        self, slots: Integers, places: Integers, times: Integers, starts: Integers, states: Any
    ) -> SliceRows:
        behind = np.append(starts[1:], places.size) - 1 if starts.size else starts
        return SliceRows(slots, places[starts], times[starts], times[behind], states)

    def _view(
        self, below: Integers, final: FinalTuples | None, of: Integers, tagged: Integers | None = None
    ) -> tuple[SliceView, Integers]:
        """Return the slices as definitions see them, by bounds of groups (slots,), and the slot of each group."""
        table = self._table
        starts = begins_of(table.slots)
        slots = table.slots[starts]
        held = np.zeros(slots.size, np.bool_) if tagged is None else np.isin(slots, tagged)
        if self._definition.whole_stream and tagged is not None:
            held[:] = tagged.size > 0
        begins = np.append(starts, table.slots.size)
        numbers = self._numbers[:, slots]
        bounds = below[:1] if self._definition.whole_stream else below[slots]
        found = np.searchsorted(slots, of)
        found[np.append(slots, -1)[found] != of] = -1
        columns = (table.places, table.first, table.last, bounds[: slots.size], numbers[_DONE], numbers[_CUT])
        return SliceView(begins, *columns, held, final, found, table.kept), slots

    def _read(self, due: Due, slots: Integers) -> list[WindowStates]:
        low, high, starts, ends, more = due.low, due.high, due.starts, due.ends, list(due.more)
        of = slots[due.groups]
        if self._divided:
            rows, of, low, high = in_groups(self._slices, self._edges.places, low, high)
            starts, ends, more = starts[rows], ends[rows], [column.take(pa.array(rows)) for column in more]
        try:
            states = read_ranges(self._parts, self._slices.states, low, high)
        except SumOverflowError as error:
            row = error.at
            raise WindowOverflowError(error.column, of[row], starts[row], ends[row]) from None
        return [WindowStates(of, ends, states, self._number, starts, more=tuple(more))] if of.size else []

    def _forget(self, view: SliceView, due: Due, slots: Integers) -> None:
        """Drop the slices that no later window needs, and take the new numbers of groups."""
        keep = np.where(view.ended, view.begins[1:], due.keep)
        self._numbers[_CUT][slots] = due.cut
        if (keep > view.begins[:-1]).any():
            rows = np.flatnonzero(np.arange(view.places.size) >= np.repeat(keep, np.diff(view.begins)))
            if self._divided:
                least = self._edges.places[rows[0]] if rows.size else FOREVER
                self._edges = self._edges.take(rows)
                rows = np.flatnonzero(self._slices.places >= least)
            self._slices = self._slices.take(rows)
        if due.join is not None and self._table.slots.size:
            places = int(np.append(view.places, FOREVER)[due.join[0]]), int(self._table.places[0])
            if self._divided:
                self._edges = self._edges.joined_before(*places, ())
            self._slices = self._slices.joined_before(*places, self._parts)
        if not self._definition.counts:
            self._clear(slots[keep == view.begins[1:]])

    def _clear(self, slots: Integers) -> None:
        self._numbers[:, slots] = np.array([[0], [NEVER], [0]])

    def least_stamp(self, bound: int) -> int:
        least = int(self._definition.least_later(np.array([bound]), self._stamp)[0])
        if not self._table.slots.size:
            return least
        view, _ = self._view(np.full(self._groups, bound), None, self._table.slots[:0])
        return min(least, int(self._definition.least_open(view, self._stamp).min()))

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        if self._definition.whole_stream:
            return np.minimum(bounds, self.least_stamp(self._bound))
        if not bounds.size:
            return bounds
        stamps = self._definition.least_later(bounds, self._stamp).copy()
        row = by_slot(slots, of, self._groups, -1)
        below = np.where(row >= 0, bounds[row], NEVER)
        view, there = self._view(below, None, slots[:0])
        if there.size:
            some = row[there] >= 0
            open_ = self._definition.least_open(view, self._stamp)
            np.minimum.at(stamps, row[there][some], open_[some])
        return stamps

    def living(self, groups: int) -> NDArray[np.bool_]:
        living: NDArray[np.bool_] = self._held.of(groups)[:groups] > 0
        living[self._slices.slots] = True
        if self._definition.counts and not self._definition.whole_stream:
            self._room(groups)
            living |= (self._numbers[[_DONE, _CAME], :groups] > 0).any(axis=0)
        return living

    def rename(self, kept: Integers, slots: Integers) -> None:
        if not self._reader:
            self._held.rename(kept, slots)
        self._slices = self._slices._replace(slots=slots[self._slices.slots])
        if not self._definition.whole_stream:
            self._room(slots.size)
            self._numbers = self._numbers[:, kept]
        self._groups = kept.size
        self._room(1)

    def save(self) -> dict[str, Any]:
        numbers = self._numbers[:, : 1 if self._definition.whole_stream else max(self._groups, 1)]
        held = {} if self._reader else self._held.save()
        slices, edges = self._slices.save(self._parts), self._edges.save(())
        return {"held": held, "slices": slices, "edges": edges, "numbers": numbers, "bound": self._bound}

    def load(self, saved: Saved, groups: int) -> Store:
        whole = self._definition.whole_stream
        self._groups, self._bound = groups, saved.integer("bound")
        self._numbers = saved.integers("numbers", (3, 1 if whole else max(groups, 1)))
        if not self._reader:
            self._held.load(saved.part("held"), groups)
        self._slices = self._slices.loaded(saved.part("slices"), self._parts, groups)
        edges = self._edges.loaded(saved.part("edges"), (), 1)
        self._edges = edges if self._divided else self._edges
        return self
