"""Rows that are due: results that punctuation has completed, and that leave with the messages that follow.

A punctuation that closes a window of many groups, or purges many tuples without a match, makes many rows at once.
Nothing behind the operator needs them in one piece: they can leave a few with each message, as long as the
bounds behind the operator stay at the earliest row that is still here.

Rows in answer to tuples are emitted at once; only rows in answer to punctuation are delayed.

Source: slow-flush of the thesis, 8.3.3, for complete rows in place of partial aggregates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.change import Change
from oop_engine.core.errors import GraphError
from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.operator import Emission
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Linear, Punctuation, Watermark
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.ordering.time_sorted import merged_pages, sorted_page
from oop_engine.operators.values.flush import AtOnce, Flush, Slow
from oop_engine.system.knobs import knob

__all__ = ["DueRows", "check_flush"]

_MOST = knob(__name__, "_MOST", 65_536)  # rows of a page

Integers = NDArray[np.int64]


def check_flush(flush: Flush | None, place: str) -> Slow | None:
    """Return how rows are spread, None: not at all.  Raises ``GraphError`` for other kinds of a flush."""
    if flush is None or isinstance(flush, AtOnce):
        return None
    if not isinstance(flush, Slow):
        msg = f"{place}: flush must be AtOnce() or Slow(every, within); got {flush!r}: others are for LowLevelAggregate"
        raise GraphError(msg)
    return flush


class DueRows:
    """Rows of ``schema``, in order of time, that leave by ``flush``.

    One for each ``every`` tuples, at least one a message; all that one punctuation made due, before the
    ``within``-th one behind it that makes rows due is answered; all at the end.
    """

    def __init__(self, schema: Schema, flush: Slow) -> None:
        self._schema, self._flush = schema, flush
        self._rows = Page.empty(schema)  # in order of time
        self._born = np.empty(0, np.int64)  # which answer made each of them due
        self._answers = 0
        self._tuples = 0  # since the last row that left for them
        self._linear = NEVER  # the operator's bound; that behind it waits for rows
        self._waiting = Progress(remember_ended=True, tables=IN_KERNELS)  # bounds of groups, for their rows
        self._progress = Progress(tables=IN_KERNELS)  # behind the rows

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and bounds that are held."""
        row_bytes = self._rows.held_bytes if len(self) else 0
        return row_bytes + self._born.nbytes + self._waiting.nbytes + self._progress.nbytes

    def behind_page(self, emissions: Iterable[Emission], tuples: int) -> Iterator[Emission]:
        """Pass the answer to a page on, and let rows go for its tuples."""
        yield from emissions
        if len(self):
            self._tuples += tuples
            yield from self._leave(max(self._tuples // self._flush.every, 1))
            self._tuples %= self._flush.every
            yield from self._bounds([Linear(self._linear)])

    def behind_punctuation(self, emissions: Iterable[Emission]) -> Iterator[Emission]:
        """Hold the rows of the answer to a punctuation, and pass on those that have to leave, and the bounds."""
        pages, bounds = list[Page](), list[Punctuation]()
        for _, message in emissions:
            if isinstance(message, Page):
                pages.append(message)
            elif isinstance(message, Linear):
                self._linear = message.below
            elif not isinstance(message, Change):
                bounds.append(message)
        if pages:
            self._hold(pages)
            yield from self._out(np.flatnonzero(self._born <= self._answers - self._flush.within))
        if len(self):
            yield from self._leave(len(self) if self._linear == FOREVER else 1)
        waited, self._waiting = self._waiting.punctuation(), Progress(remember_ended=True, tables=IN_KERNELS)
        yield from self._bounds([Linear(self._linear), *waited, *bounds])

    def save(self) -> dict[str, Any]:
        """Return all for a snapshot."""
        return {
            "rows": self._rows.batch, "born": self._born, "answers": self._answers, "tuples": self._tuples,
            "linear": self._linear, "waiting": self._waiting.save(), "progress": self._progress.save(),
        }  # fmt: skip

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned."""
        self._rows = Page(self._schema, saved.batch("rows", self._schema.fields))
        self._born = saved.integers("born", (len(self._rows),))
        self._answers, self._tuples = saved.integer("answers", least=0), saved.integer("tuples", least=0)
        self._linear = saved.integer("linear")
        self._waiting.load(saved.part("waiting"))
        self._progress.load(saved.part("progress"))

    def _hold(self, pages: list[Page]) -> None:
        self._answers += 1
        fresh = merged_pages(self._schema, [sorted_page(page).without_arrival() for page in pages])
        together = merged_pages(self._schema, [self._rows, fresh])
        born = np.concatenate([self._born, np.full(len(fresh), self._answers)])
        order = np.argsort(np.concatenate([self._rows.times, fresh.times]), kind="stable")
        self._rows, self._born = together, born[order]

    def _leave(self, rows: int) -> Iterator[Emission]:
        return self._out(np.arange(min(rows, len(self))))

    def _out(self, places: Integers) -> Iterator[Emission]:
        if not places.size:
            return
        going = self._rows.take(places) if places[-1] >= places.size else self._rows.slice(0, places.size)
        stays = np.ones(len(self), np.bool_)
        stays[places] = False
        self._rows, self._born = self._without(places, stays), self._born[stays]
        for begin in range(0, len(going), _MOST):
            yield 0, going.slice(begin, min(begin + _MOST, len(going)))

    def _without(self, places: Integers, stays: NDArray[np.bool_]) -> Page:
        if places.size == len(self):
            return Page.empty(self._schema)
        if places[-1] < places.size:
            return self._rows.slice(places.size, len(self))
        return self._rows.filter(stays)

    def _bounds(self, bounds: list[Punctuation]) -> Iterator[Emission]:
        """Yield those bounds that have grown, none above a row that is here."""
        for bound in bounds:
            if (capped := self._capped(bound)) is not None:
                for grown in self._progress.advance(0, capped):
                    yield 0, grown

    def _capped(self, bound: Punctuation) -> Punctuation | None:
        if not len(self):
            return bound
        earliest = int(self._rows.times[0])
        match bound:
            case Linear(below):
                return Linear(min(below, earliest))
            case Watermark(Linear(below)):
                return Watermark(Linear(min(below, earliest)))
            case GroupWise(groups, below):
                least_of = self._least_of(groups)
                if (waits := below > least_of).any():
                    self._waiting.advance(0, bound.filter(waits))
                return GroupWise(groups, np.minimum(below, least_of))
        return None  # joint bounds, and watermarks of groups: those that follow do

    def _least_of(self, groups: pa.RecordBatch) -> Integers:
        """Return the time of the earliest row of each group that is here, ``FOREVER``: there is none."""
        index = GroupIndex(groups.schema.types, IN_KERNELS)
        slots = index.encode(groups.columns, groups.num_rows)
        slot_of = index.find([self._rows.column(name) for name in groups.schema.names], len(self))
        earliest = np.full(len(index), FOREVER)
        np.minimum.at(earliest, slot_of[slot_of >= 0], self._rows.times[slot_of >= 0])
        of_slots: Integers = earliest[slots]
        return of_slots
