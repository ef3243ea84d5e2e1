"""Windows folded on the bound: definitions that need the order of time, and how a store asks them.

Where windows follow from ranks, markers or frames, a tuple's slice is known only once no earlier tuple can come.  Until
then the tuple is held.  Those that a bound passes are final: sorted by group, time and tie they go into *slices*, the
partial aggregates of neighbouring tuples, and are gone.  So nothing is ever split or shifted, and tuples are kept above
the bound only.  Windows are ranges of slices.

A definition returns for many groups at once the slice of each final tuple (``places``), the windows that a bound
completes (``due``), and the bound that each group waits for, so that others cost it nothing (``next_due``).
The store keeps for each group how many tuples were final, and an integer of the definition's own (``cut``).

Source: Traub et al., Scotty, TODS 2021 (context-aware windows), without its splits and shifts; J. Li's thesis 5.1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, TypeGuard

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER, shift
from oop_engine.core.schema import Schema
from oop_engine.operators.kernels.sliding import bisect
from oop_engine.operators.values.columns import new_rows
from oop_engine.operators.windows.definition import Definition, Integers, KnownBy

__all__ = [
    "Due",
    "FinalTuples",
    "Folding",
    "SliceView",
    "checked_many",
    "checked_tie",
    "checked_times",
    "is_folded",
    "ties",
]

_MOST = 10_000_000  # windows of a group that one bound completes; more are a clock that is wrong


class FinalTuples(NamedTuple):
    """Tuples that a bound has passed, by group, time, tie and arrival.

    groups: number of the group of each, 0, 1, 2, ..., ascending; ``starts``: the first tuple of each group; ``ranks``:
    how many tuples of the group come before in time; ``tags``: as the definition gave them; ``page``: the columns that
    are read.  Of each group (groups,): ``opened``, the place of its last slice that is kept, -1 if there is none, and
    ``since`` and ``until``, the times of its first and last tuple.
    """

    groups: Integers
    starts: Integers
    times: Integers
    ranks: Integers
    tags: NDArray[np.int8]
    page: Page
    opened: Integers
    since: Integers
    until: Integers

    def begins(self) -> NDArray[np.bool_]:
        """Return which tuples are the first of their time in their group."""
        new = new_rows(self.times)
        new[self.starts] = True
        return new

    def take(self, rows: Integers) -> FinalTuples:
        """Return some of them; what is told of groups stays."""
        tags = self.tags[rows] if self.tags.size else self.tags
        columns = (
            self.groups[rows],
            self.starts,
            self.times[rows],
            self.ranks[rows],
            tags,
            self.page.take(rows),
        )
        return FinalTuples(*columns, self.opened, self.since, self.until)


class SliceView(NamedTuple):
    """The slices of some groups, by group and place: of group ``g`` the rows ``begins[g]`` to ``begins[g + 1]``.

    Of each slice: ``places``, and the times ``first`` and ``last`` of its tuples.  Of each group: ``bounds``, ``done``
    and ``cut`` (``NEVER`` at first), and ``tagged``, whether a tuple right at its bound is held that has a tag.
    ``final``: the tuples that were folded just now, and ``of_final``: the group here of each of their groups, -1
    if it has no slices.
    """

    begins: Integers
    places: Integers
    first: Integers
    last: Integers
    bounds: Integers
    done: Integers
    cut: Integers
    tagged: NDArray[np.bool_]
    final: FinalTuples | None
    of_final: Integers
    kept: pa.RecordBatch | None = None

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Return which groups are over."""
        ended: NDArray[np.bool_] = self.bounds == FOREVER
        return ended

    @property
    def groups(self) -> Integers:
        """The group of each slice."""
        groups: Integers = np.arange(self.begins.size - 1).repeat(self.begins[1:] - self.begins[:-1])
        return groups

    def row(self, column: Integers, groups: Integers, wanted: Integers) -> Integers:
        """Return the first row of each of ``groups`` in which an ascending column is ``wanted`` or more.

        O(log slices) each, less where they ascend.
        """
        rows = np.empty(groups.size, np.int64)
        bisect(column, self.begins, groups, wanted, rows)
        return rows


class Due(NamedTuple):
    """Windows that are complete: group, extent ``[starts, ends)``, and rows ``[low, high)`` of slices, int64 (n,) each.

    ``keep``: of each group the first row that a later window needs; ``cut``: its new number.  ``more``: columns (n,) of
    results beside the extent.  ``join``: of each group the row before which all become one slice, for no later window
    tells them apart; of the stream, where that is cut as a whole.
    """

    groups: Integers
    starts: Integers
    ends: Integers
    low: Integers
    high: Integers
    keep: Integers
    cut: Integers
    more: Sequence[pa.Array] = ()
    join: Integers | None = None


class Folding(Definition, ABC):
    """Base of definitions whose tuples are folded in time order, once a bound has passed them.

    ``places`` and ``due`` are asked of each; the rest has defaults.  ``whole_stream``: slices are cut by the tuples of
    all groups together.  ``tie``: columns that order tuples of one time, before their arrival.  ``reads``: columns
    that it needs of final tuples; ``keeps``: those kept beside slices, which are of one tuple each.  ``tagged``: tuples
    get ``tags`` as they come; ``numbered``: for these it must know how many of the group came before; ``peeks``: it
    asks whether a tuple right at the bound is tagged.  ``counts``: a group without slices must be remembered, for its
    tuples are counted.  ``partitioned``: they are so within groups, so there must be some.  ``sides``: names of the
    columns that have the extents.  ``retains``: the state of a group that stays until it ends, and why; "": none does.
    """

    known_by: ClassVar[KnownBy] = "order"
    tie: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    tagged: bool = False
    peeks: ClassVar[bool] = False
    counts: bool = False

    @property
    def trailing(self) -> int | None:
        """Return the range where each tuple has a window, of the tuples so long before it; None: other windows."""
        return None

    @abstractmethod
    def places(self, final: FinalTuples) -> Integers:
        """Return the slice of each final tuple, from 0 on and ascending within a group, -1: in no window."""

    @abstractmethod
    def due(self, view: SliceView) -> Due:
        """Return the windows that the bounds of groups complete, all that is left of groups that are over."""

    @abstractmethod
    def words(self) -> str:
        """Return in a few words how windows are cut."""

    def next_due(self, view: SliceView) -> Integers | None:
        """Return of each group the least bound that completes a window or frees a slice without another tuple.

        ``FOREVER``: only the end does.  Called behind ``due``; each group of the view has a slice.  None, as here: any
        bound may, so each costs all groups.
        """
        return None

    def least_open(self, view: SliceView, stamp: str) -> Integers:
        """Return the least stamp of each group's later results that its slices are in; here the last may end them.

        Each group of the view has a slice.
        """
        rows = view.begins[:-1] if stamp == "start" else view.begins[1:] - 1
        return view.first[rows] if stamp == "start" else view.last[rows] + 1

    def least_later(self, bounds: Integers, stamp: str) -> Integers:
        """Return the least stamp of results of later tuples alone, by their bounds; sentinels stay."""
        return bounds if stamp == "start" else shift(bounds, 1)

    def tags(self, page: Page, numbers: Integers) -> NDArray[np.int8]:
        """Return the tags of tuples as they come, not 0 where something may begin or end; see ``tagged``."""
        return np.zeros(len(page), np.int8)

    def columns(self, schema: Schema) -> frozenset[str]:
        """Return the columns that it reads of tuples; here all where there are tags, which may be of any."""
        return frozenset(schema.names if self.tagged else (*self.tie, *self.reads, *self.keeps))

    def check(self, times: Integers) -> None:
        """Raise ``ContractError`` if the windows of these times would not fit 64 bits."""
        checked_times(times, 0, 1)


def is_folded(definition: Definition) -> TypeGuard[Folding]:
    """Return whether the windows of a tuple are known once a bound has passed it."""
    return definition.known_by == "order"


def checked_times(times: Integers, before: int, behind: int) -> None:
    """Raise ``ContractError`` unless so much may be taken from, and added to, each of ``times`` within 64 bits."""
    low, high = NEVER + 1 + before, FOREVER - 1 - behind
    if times.size and not (
        low <= (earliest := int(np.minimum.reduce(times)))
        and (latest := int(np.maximum.reduce(times))) <= high
    ):
        value = earliest if earliest < low else latest
        msg = f"windows: positions must lie in [{low}, {high}] for extents to fit 64 bits; got {value}"
        raise ContractError(msg)


def checked_many(many: NDArray[Any], least: Integers, every: int, place: str) -> None:
    """Raise ``ContractError`` if a bound completes too ``many`` windows of a group, one ``every`` from ``least`` on."""
    if many.size and many.max() > _MOST:
        group = int(many.argmax())
        msg = (
            f"{place}: one bound may complete at most {_MOST:,} windows of a group; got {many[group]:,.0f}, every "
            f"{every} from {least[group]} on: if one clock is wrong, put a Guard in front; else let windows be further "
            "apart"
        )
        raise ContractError(msg)


def checked_tie(tie: Sequence[str], schema: Schema, place: str) -> tuple[str, ...]:
    """Return ``tie`` as a tuple; raise ``GraphError`` in the name of ``place`` unless its columns have an order."""
    if isinstance(tie, str):
        msg = f"{place}: tie must be a tuple of column names; got {tie!r}: write tie=({tie!r},)"
        raise GraphError(msg)
    schema.require(tie, place)
    for name in tie:
        kind = schema.type_of(name)
        if pa.types.is_nested(kind) or pa.types.is_dictionary(kind) or pa.types.is_null(kind):
            msg = f"{place}: tie must be columns of numbers, texts or instants; {name!r} is {kind}: cast it before"
            raise GraphError(msg)
    return tuple(tie)


def ties(tie: tuple[str, ...]) -> str:
    """Return how equal times are ordered, in words."""
    return f"equal times by {', '.join(tie)}, then as they came" if tie else "equal times as they came"
