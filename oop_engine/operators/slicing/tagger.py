"""The tagger: positions and window ids of tuples, for the operators that bucket.

In windows over an attribute a tuple's position is that attribute.  In tuple-based windows
it is a number given on arrival, in the stream or in the group; the tagger then makes the
punctuation itself, for it knows the next number, while bounds on time tell nothing there
except that a group, or the stream, is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine.core.errors import GraphError
from oop_engine.core.groups.group_index import GroupIndex, occurring
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, GroupWise, Joint, Linear, Punctuation, Watermark
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.sizes import room_for
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.keys.group_match import GroupMatch
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.values.columns import Integers, begins_of, ends_of, filled_up
from oop_engine.operators.windows import Definition, Over, Windows
from oop_engine.system.knobs import knob

__all__ = ["Tagger", "bind", "ranks"]

_MOST = 1 << 61  # tuples: more than can ever come
_DEAD = knob(__name__, "_DEAD", 1024)  # groups that are over and may stay, however few are not


def bind(
    windows: Windows, schema: Schema, by: tuple[str, ...], place: str, aggregates: Iterable[Aggregation] = ()
) -> Definition:
    """Return the definition of ``windows`` in whole units; check that they have the groups they need.

    Where ``aggregates`` depend on the order of tuples it is one that is folded on the bound, if there is one.
    """
    if isinstance(windows, type) or not hasattr(windows, "bound"):  # asking a protocol takes 20 times as long
        way = ": write bound(self, schema, place), which returns self" if hasattr(windows, "known_by") else ""
        msg = f"{place}: windows must be a value such as Tumbling('1 min'); got {windows!r}{way}"
        raise GraphError(msg)
    schema.require(by, place)
    if len(set(by)) != len(by):
        msg = f"{place}: the columns to group by must differ; got by={list(by)}"
        raise GraphError(msg)
    definition = windows.bound(schema, place)
    if not hasattr(definition, "known_by"):
        kind, got = type(windows).__name__, type(definition).__name__
        msg = (
            f"{place}: {kind}.bound must return a definition of windows; no store keeps windows of {got}: return "
            "Extents, or derive the class from Merging or Folding"
        )
        raise GraphError(msg)
    if (definition.over is Over.GROUP_ROWS or definition.partitioned) and not by:
        msg = f"{place}: partitioned windows number tuples within a group; name its columns with by=(...)"
        raise GraphError(msg)
    return definition if all(one.commutative for one in aggregates) else definition.ordered()


class Tagger:
    """Gives tuples their positions, int64 (rows,).

    The number of a group that ends goes back to 0, as if the group had never come.  Its key is dropped with those of
    others, once most of the keys are of such groups, so the end of a key costs that key alone, amortised.
    """

    def __init__(self, over: Over, schema: Schema, by: tuple[str, ...]) -> None:
        self._over = over
        self._progressing = schema.progressing
        self._by = by if over is Over.GROUP_ROWS else ()
        self._index = GroupIndex([schema.type_of(name) for name in self._by], IN_KERNELS)
        self._match = GroupMatch(self._index, self._by)
        self._next = np.zeros(0, np.int64)  # (room,)  the next tuple's number; 0: the group is over
        self._alive = 0

    @property
    def groups(self) -> int:
        """How many groups have numbers of their own."""
        return self._alive if self._by else 0

    @property
    def nbytes(self) -> int:
        return self._index.nbytes + self._match.nbytes + self._next.nbytes if self._by else 0

    def tag(self, page: Page) -> tuple[Integers, Punctuation | None]:
        """Return the positions of the tuples, and the punctuation behind them."""
        if self._over is Over.ATTRIBUTE:
            return page.times, None
        slots = self._index.encode_page(page, self._by)
        if len(self._index) > self._next.size:
            self._next = filled_up(self._next, room_for(len(self._index), self._next.size), 0)
        positions = self._next[slots] + ranks(slots)
        self._alive += int(np.count_nonzero(positions == 0))
        np.maximum.at(self._next, slots, positions + 1)
        return positions, self._punctuation(slots)

    def translate(self, punctuation: Punctuation) -> Punctuation | None:
        """Return the punctuation of positions that follows from one of the input; None: there is none."""
        if self._over is Over.ATTRIBUTE:
            return punctuation
        match punctuation:
            case Linear(below):
                if below < FOREVER:
                    return None
                self._end(np.arange(len(self._index)))
                return punctuation
            case GroupWise():
                ended = punctuation.filter(punctuation.below == FOREVER)
                if self._by and len(ended) and set(ended.attributes) <= set(self._by):
                    slots, _ = self._match.of(ended)
                    self._end(slots)
                return ended if len(ended) else None
            case Watermark():
                return None  # of an attribute that windows are not on
            case Joint():
                return None if self._progressing in punctuation.attributes else punctuation

    def save(self) -> dict[str, Any]:
        return {"groups": self._index.save(), "next": self._next[: len(self._index)]}

    def load(self, saved: Saved) -> None:
        self._index.load(saved.part("groups"))
        self._next = saved.integers("next", (len(self._index),), least=0, below=_MOST)
        self._alive = int(np.count_nonzero(self._next))

    def _punctuation(self, slots: Integers) -> Punctuation | None:
        if not slots.size:
            return None
        if not self._by:
            return Linear(int(self._next[0]))
        groups = occurring(slots, len(self._index))
        batch = pa.RecordBatch.from_arrays(self._index.keys(groups), names=list(self._by))
        return GroupWise.unchecked(batch, self._next[groups])

    def _end(self, slots: Integers) -> None:
        """Begin the numbers of some groups anew; drop the keys of groups that are over, once they are most of all."""
        self._alive -= int(np.count_nonzero(self._next[slots]))
        self._next[slots] = 0
        known = len(self._index)
        if self._alive == 0 or known > 2 * self._alive + _DEAD:
            kept = np.flatnonzero(self._next[:known])
            self._index.keep(kept)
            self._next = self._next[kept]


def ranks(slots: Integers) -> Integers:
    """Return how many earlier rows have the same slot."""
    order = slots.argsort(kind="stable")
    begins = begins_of(slots[order])
    ranks = np.empty(slots.size, np.int64)
    ranks[order] = np.arange(slots.size) - begins.repeat(ends_of(begins, slots.size) - begins)
    return ranks
