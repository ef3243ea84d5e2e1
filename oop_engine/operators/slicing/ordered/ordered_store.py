"""The ordered store: window state of definitions that are folded on the bound (``windows/folding.py``).

    held      tuples that no bound has passed: the columns read, by time, or by group once a group has a bound
    slices    partial aggregates of the tuples below it, by group and place, as far back as windows still need them
    edges     slices of the whole stream without states, where there are groups, and tuples of all cut them

A bound moves tuples from the first to the second: they are sorted, ranked, and folded into the slices that the
definition names.  Windows are ranges of slices, and are read without changing them.

A bound takes out the slices of the groups that it touches, and puts the rest of them back.  It
touches groups with tuples that it passes, and those that wait for it (``slot_times.py``).  Where these are many, or the
definition has no ``next_due``, it touches all.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import occurring
from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.kernels.time_order import time_order
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.ordered.bounds import Bounds, last_bounds
from oop_engine.operators.slicing.ordered.group_numbers import GroupNumbers
from oop_engine.operators.slicing.ordered.held import Held, Taken, columns_of
from oop_engine.operators.slicing.ordered.own_folding import due_of, next_due_of, places_of
from oop_engine.operators.slicing.ordered.slice_table import (
    SliceRows,
    in_groups,
    numbered,
    read_ranges,
    rows_from,
)
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.slot_times import SlotTimes
from oop_engine.operators.slicing.store import OnTime
from oop_engine.operators.slicing.window_states import WindowOverflowError, WindowStates
from oop_engine.operators.values.columns import Integers, begins_of, ends_of, filled_up
from oop_engine.operators.values.levels import Levels
from oop_engine.operators.windows.folding import Due, FinalTuples, Folding, SliceView
from oop_engine.system.knobs import knob

__all__ = ["OrderedStore"]

_FEW = knob(__name__, "_FEW", 1024)
"""So few slices are all taken out by each bound."""
_SHARE = knob(__name__, "_SHARE", 4)
"""All are taken out where a bound touches a group for every so many slices."""
_NO_SLOTS = np.empty(0, np.int64)


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
        self._none = self._slices  # ``_slices`` are those taken out; between bounds all are in ``_resting``
        self._resting = Levels(self._none)
        self._due, self._stamps = (
            SlotTimes(),
            SlotTimes(),
        )  # the bound that each waits for; its least open stamp
        self._occupied = np.zeros(0, np.bool_)  # (slots,) which groups have slices
        self._numbers = GroupNumbers(of_stream=definition.whole_stream, counts=definition.counts)
        self._bound = NEVER
        self._reserve(1)

    def state(self) -> State:
        tuples, held = (0, 0) if self._reader else (len(self._held), self._held.nbytes)
        slices = self._resting.nbytes + self._edges.nbytes
        own = slices + self._numbers.nbytes + self._due.nbytes + self._stamps.nbytes
        return State(tuples, self._resting.count, self.alive, held + own)

    @property
    def alive(self) -> int:
        return self._numbers.alive

    @property
    def _table(self) -> SliceRows:
        """The slices that windows are found in."""
        return self._edges if self._divided else self._slices

    def _reserve(self, groups: int) -> None:
        """Make room for so many groups."""
        self._numbers.reserve(groups)
        if groups > (size := self._occupied.size):
            self._occupied = filled_up(self._occupied, max(groups, 3 * size // 2), False)
        for times in (self._due, self._stamps):
            times.reserve(1 if self._definition.whole_stream else groups)

    def add(self, page: Page, times: Integers, slots: Integers, groups: int) -> None:
        self._definition.check(times)
        if groups > self._numbers.groups:
            self._reserve(groups)
        tags = np.empty(0, np.int8)
        if self._definition.tagged:
            numbers = self._numbers.number(slots) if self._definition.numbered else slots[:0]
            tags = self._definition.tags(page, numbers)
        if not self._reader:
            self._held.add(page, times, slots, tags, groups)
        self._numbers.begin(slots)

    def most_until(self, slots: Integers | None, bounds: Integers | int) -> float:
        return float(len(self._held) > 0 or len(self._resting) > 0 or slots is not None or bounds == FOREVER)

    def close(self, slots: Integers | None, bounds: Integers | int) -> list[WindowStates]:
        peeks = self._definition.peeks
        if slots is None:
            bound = int(bounds)
            self._bound = max(self._bound, bound)
            taken = self._held.take(self._reader, bound)
            tagged = self._held.tagged_at(bound) if peeks and bound < FOREVER else None
            touched = self._touched(bound, taken, tagged)
            if touched is not None and not touched.size:
                return []
            return self._closed(taken, Bounds(touched, bound), tagged)
        if self._definition.whole_stream or not slots.size:
            return []  # slices of the stream wait for the tuples of all groups
        slots, below = last_bounds(slots, np.asarray(bounds))
        tagged = self._held.tagged_of(slots, below) if peeks else None
        taken = self._held.take_some(self._reader, slots, below)
        return self._closed(taken, Bounds(slots, below), tagged)

    def _touched(self, bound: int, taken: Taken | None, tagged: Integers | None) -> Integers | None:
        """Return the groups that a bound of all touches, ascending; None: all, or slices are of the whole stream."""
        few = self._resting.count <= _FEW
        if self._definition.whole_stream or few or bound == FOREVER:
            return None
        found = [self._due.until(bound)]
        found += [] if taken is None else [taken.slots]
        found += [] if tagged is None else [tagged]
        touched = occurring(np.concatenate(found), self._numbers.groups)
        return touched if _SHARE * touched.size < len(self._resting) else None

    def _closed(self, taken: Taken | None, bounds: Bounds, tagged: Integers | None) -> list[WindowStates]:
        """Fold tuples that are final, and return the windows that the bounds of groups complete."""
        if not self._divided:
            self._slices = self._taken_out(bounds.slots)
        final, of = self._fold(taken) if taken is not None else (None, _NO_SLOTS)
        view, slots = self._numbers.view(self._table, bounds, final, of, tagged)
        found, touched = list[WindowStates](), slots
        if slots.size:
            due = due_of(self._definition, view)
            if self._divided and (due.groups.size or due.join is not None or due.keep[0] or view.ended[0]):
                self._slices = self._taken_out(None)
            touched = self._slices.slots if self._divided else slots
            found = self._read(due, slots) if due.groups.size else []
            self._forget(view, due, slots)
        self._watch(bounds, slots)
        self._rest()
        ended = bounds.ended(self._numbers.groups)
        self._numbers.clear(ended)
        some = (touched, ended) if taken is None else (touched, ended, taken.slots)
        self._look_alive(occurring(np.concatenate(some), self._numbers.groups))
        return found

    def _taken_out(self, slots: Integers | None) -> SliceRows:
        """Take out the slices of some groups, ascending; None: of all.  O(log slices) each, amortised."""
        rows = self._resting.take_all() if slots is None else self._resting.take_out("slots", slots)
        self._occupied[rows.slots] = False
        return rows

    def _rest(self) -> None:
        """Put the slices back that were taken out."""
        self._resting.put(self._slices)
        self._occupied[self._slices.slots] = True
        self._slices = self._none

    def _watch(self, bounds: Bounds, looked: Integers) -> None:
        """Learn which bounds groups wait for, and their least stamps, of those that were looked at."""
        view, slots = self._numbers.view(self._table, bounds)
        self._due.clear(looked)
        self._stamps.clear(looked)
        if slots.size:
            self._due.put(slots, next_due_of(self._definition, view))
            self._stamps.put(slots, self._definition.least_open(view, self._stamp))

    def _look_alive(self, slots: Integers) -> None:
        """Learn which of some groups have tuples or slices."""
        held = self._held.of(self._numbers.groups)[slots] > 0
        self._numbers.revive(slots, held | self._occupied[slots])

    def _fold(self, taken: Taken) -> tuple[FinalTuples | None, Integers]:
        """Put final tuples into slices; return those that are in windows, and the slot of each of their groups."""
        whole = self._definition.whole_stream
        taken = taken.in_order(self._tie, by_group=not whole)
        by = np.zeros_like(taken.slots) if self._divided else taken.slots
        final, of = numbered(taken, by, self._numbers.done, self._table)
        places = places_of(self._definition, final)
        self._numbers.done[of] += ends_of(final.starts, by.size) - final.starts
        slots, some = taken.slots, final
        if places.min(initial=0) < 0:
            (inside,) = (places >= 0).nonzero()
            some, places, slots = final.take(inside), places[inside], slots[inside]
        if self._divided:
            starts = begins_of(places)
            edges = rows_from(
                np.zeros_like(starts), places, some.times, starts, ends_of(starts, places.size), []
            )
            self._edges = self._edges.with_more(edges, ())
            if (slots[1:] < slots[:-1]).any():
                order = time_order(slots)
                some, places, slots = some.take(order), places[order], slots[order]
            self._slices = self._taken_out(occurring(slots, self._numbers.groups))
        self._slices = self._slices.with_tuples(some.page, slots, places, self._parts)
        if self._divided:
            self._rest()
        return final, of

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
        self._numbers.cut[slots] = due.cut
        if (keep > view.begins[:-1]).any():
            (rows,) = (np.arange(view.places.size) >= keep[view.groups]).nonzero()
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
            self._numbers.clear(slots[keep == view.begins[1:]])

    def least_stamp(self, bound: int) -> int:
        least = int(self._definition.least_later(np.array([bound]), self._stamp)[0])
        return min(least, self._stamps.earliest())

    def least_stamps(self, slots: Integers, of: Integers, bounds: Integers) -> Integers:
        if self._definition.whole_stream:
            return np.minimum(bounds, self.least_stamp(self._bound))
        if not bounds.size:
            return bounds
        stamps = self._definition.least_later(bounds, self._stamp).copy()
        np.minimum.at(stamps, of, self._stamps.times[slots])
        return stamps

    def living(self, groups: int) -> NDArray[np.bool_]:
        return self._numbers.living(groups)

    def rename(self, kept: Integers, slots: Integers) -> None:
        if not self._reader:
            self._held.rename(kept, slots)
        self._slices = self._taken_out(None)
        self._slices = self._slices._replace(slots=slots[self._slices.slots])
        self._numbers.rename(kept, slots.size)
        if not self._definition.whole_stream:
            self._due, self._stamps = self._due.kept(kept), self._stamps.kept(kept)
        self._reserve(max(kept.size, 1))
        self._rest()

    def save(self) -> dict[str, Any]:
        numbers = self._numbers.save()
        held = {} if self._reader else self._held.save()
        self._slices = self._taken_out(None)
        slices, edges = self._slices.save(self._parts), self._edges.save(())
        self._rest()
        return {"held": held, "slices": slices, "edges": edges, "numbers": numbers, "bound": self._bound}

    def load(self, saved: Saved, groups: int) -> None:
        self._bound = saved.integer("bound")
        self._numbers.load(saved, "numbers", groups)
        if not self._reader:
            self._held.load(saved.part("held"), groups)
        edges = self._edges.loaded(saved.part("edges"), (), 1)
        self._edges = edges if self._divided else self._edges
        self._begin(self._none.loaded(saved.part("slices"), self._parts, groups), groups)

    def _begin(self, slices: SliceRows, groups: int) -> None:
        """Let these be the slices of so many groups, whose tuples and numbers are there."""
        self._slices = slices
        self._resting, self._occupied = Levels(self._none), np.zeros(0, np.bool_)
        self._due, self._stamps = SlotTimes(), SlotTimes()
        self._reserve(max(groups, 1))
        self._watch(Bounds(None, self._bound), _NO_SLOTS)
        self._rest()
        self._look_alive(np.arange(groups))

    def copied(self, slots: Integers) -> OrderedStore:
        self._reserve(int(slots.max(initial=-1)) + 1)
        other = copy(self)
        other._held, other._numbers = self._held.copied(slots), self._numbers.copied(slots)
        other._reader = other._held.reader()
        there = self._resting.take(self._resting.places("slots", slots))
        there = there.take(np.arange(there.size))
        other._begin(there._replace(slots=slots.searchsorted(there.slots)), slots.size)
        return other
