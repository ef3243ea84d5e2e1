"""Distinct: duplicate elimination that punctuation keeps small.

Two tuples are the same if they agree in the progressing attribute and in some columns;
only these columns leave, so it does not matter which copy came first.  Without the
progressing attribute no punctuation could ever purge the state, so it is always compared.

    Pass       the first copy of each tuple, at once; of a revision stream also that the last one was retracted.
    Keep       the key of each tuple that came, once, as long as another copy may come:
               until the bound of the stream, or of a group that the tuple is in, has
               passed its time.
    Propagate  linear; group-wise, joint ones and watermarks about columns that are compared.
    Cost       O(rows) a page: a hash lookup in Arrow and one in a kernel, and in Python
               once for each value of ``by`` that differs within the page.  A punctuation costs
               the keys that it lets go, amortised: they are dropped together, once they are
               half of those that are held.  The first one about fewer columns than ``by`` looks at all.

Source: J. Li, "Window Queries over Data Streams" (2008), ch. 4; duplicate elimination of
Tucker et al., TKDE 15(3), 2003.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.groups.group_index import GroupIndex, occurring
from oop_engine.core.groups.timers import Timers
from oop_engine.core.groups.zeros import with_unsigned_zeros, zeros_in
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, GroupWise, Joint, Linear, Punctuation, Watermark, passed
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.kernels.hashing import add_pairs
from oop_engine.operators.keys.behind import Behind
from oop_engine.operators.keys.group_match import GroupMatch
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.revisions.net_rows import NetRows
from oop_engine.operators.values.columns import Integers, filled_up
from oop_engine.system.knobs import knob

__all__ = ["Distinct"]

_FREE = -1
_MOST_LIVES = 1 << 40  # of keys, in all: they are numbered anew when keys are dropped
_LEAST = knob(__name__, "_LEAST", 64)
_FEW = knob(__name__, "_FEW", 1024)  # so few pairs are compared with each bound that may pass one


def _roomy(column: Integers, size: int) -> Integers:
    return filled_up(column, max(size, 2 * column.size), 0) if size > column.size else column


@checked_arguments
class Distinct(Operator):
    """Each combination of ``by`` and the progressing attribute once (None: of all columns).

    The output has these columns only, in the order of the input.  Keys are the same as in
    SQL's DISTINCT: null equals null, NaN equals NaN, -0.0 equals 0.0.  Raises
    ``GraphError`` for a column named twice, and when the graph is built for unknown ones.

    >>> import pyarrow as pa
    >>> schema = Schema({"ts": pa.int64(), "src": pa.string(), "len": pa.int64()}, "ts", "s")
    >>> distinct = Distinct(by=("src",)).opened(schema)
    >>> page = Page.of(schema, {"ts": [1, 1, 2], "src": ["a", "a", "a"], "len": [40, 50, 60]})
    >>> [part.to_pylist() for _, part in distinct.on_page(0, page)]
    [[{'ts': 1, 'src': 'a'}, {'ts': 2, 'src': 'a'}]]
    >>> list(distinct.on_punctuation(0, Linear(2))), distinct.state().tuples
    ([(0, Linear(below=2))], 1)
    """

    revisions = "takes"
    waits = "every value is kept"

    def __init__(self, by: Sequence[str] | None = None) -> None:
        if by is not None and len(set(by)) != len(by):
            msg = f"Distinct: by must be different column names, by=['src']; got by={by!r}"
            raise GraphError(msg)
        self.by = None if by is None else tuple(by)

    def uses_arrival(self) -> bool:
        return False

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        [schema] = inputs
        if self.by is None:
            return inputs
        schema.require(self.by, "Distinct")
        columns = (*self.by, schema.progressing, schema.change)
        return (schema.select([n for n in schema.names if n in columns]),)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]]:
        names = self.output_schemas(inputs)[0].names
        return [(name,) for name in names if name not in (inputs[0].progressing, inputs[0].change)]

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column,)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        return super().reads(inputs, downstream) if self.by is None else (frozenset(self.by),)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def open(self) -> None:
        [schema] = self.schemas_out
        self._names = [n for n in schema.names if n != schema.progressing]
        self._zeros = zeros_in(schema, self._names)
        self._index = GroupIndex([schema.type_of(n) for n in self._names], IN_KERNELS)
        self._match = GroupMatch(self._index, self._names)
        self._net = None if schema.change is None else NetRows(schema)
        self._behind = Behind() if self._net is None else self._net.behind
        self._start(*np.empty((3, 0), np.int64))

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        [schema] = self.schemas_out
        keys = with_unsigned_zeros(page.with_batch(schema, page.batch.select(schema.names)), self._zeros)
        if self._net is not None:
            if (revised := self._net.distinct(keys)) is not None:
                yield 0, revised
            return
        keys = self._behind.timely(keys)
        slots = self._index.encode([keys.column(n) for n in self._names], rows=len(keys))
        self._count_lives()
        lives = self._life[slots]
        self._reserve(len(keys))
        new = add_pairs(self._lives, self._times, lives, keys.times)
        count = int(np.count_nonzero(new))
        self._held += count
        if count:
            np.add.at(self._pairs_of, lives[new], 1)
            self._timers.set(keys.times[new], lives[new])
            yield 0, keys if count == len(keys) else keys.filter(new)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        match punctuation:
            case Linear() | GroupWise() if self._net is not None:
                if not self._net.knows(punctuation):
                    return
                self._net.forget(punctuation)
            case Linear(below):
                self._behind.hear(punctuation)
                over = self._timers.due(below)
                self._let_go(self._held if below == FOREVER else over.size)
            case GroupWise() if set(punctuation.attributes) <= set(self._names):
                self._behind.hear(punctuation)
                self._let_go(self._passed_in(punctuation))
            case Joint() | Watermark() if self.schemas_out[0].has(punctuation.attributes):
                pass
            case _:
                return
        yield 0, punctuation

    def state(self) -> State:
        if self._net is not None:
            return self._net.state()
        pairs = self._lives.nbytes + self._times.nbytes + self._timers.nbytes
        nbytes = pairs + self._life.nbytes + self._pairs_of.nbytes + self._index.nbytes + self._match.nbytes
        return State(tuples=self._held, groups=len(self._index), nbytes=nbytes)

    def counts(self) -> dict[str, int]:
        return {"behind": self._behind.count}

    def save(self) -> dict[str, Any]:
        if self._net is not None:
            return {"net": self._net.save()}
        lives, times = self._pairs()
        life = self._life[: self._known]
        renewed = np.flatnonzero(life != np.arange(life.size))
        pairs = {"lives": lives, "times": times, "renewed": renewed, "renewed_lives": life[renewed]}
        return {"index": self._index.save(), "due": self._due, "behind": self._behind.save(), **pairs}

    def load(self, state: Saved) -> None:
        if self._net is not None:
            self._net.load(state.part("net"))
            return
        self._behind.load(state.part("behind"))
        self._index.load(state.part("index"))
        life = np.arange(len(self._index))
        renewed = state.integers("renewed", (None,), least=0, below=life.size)
        life[renewed] = state.integers("renewed_lives", renewed.shape, least=0, below=_MOST_LIVES)
        lives = state.integers("lives", (None,), least=0, below=int(life.max(initial=-1)) + 1)
        self._start(life, lives, state.integers("times", lives.shape))
        self._due = state.integer("due", least=0)

    def describe(self) -> str:
        return "Distinct" if self.by is None else f"Distinct by {', '.join(self.by) or 'time'}"

    def _start(self, life: Integers, lives: Integers, times: Integers) -> None:
        """Store these pairs alone, and the life of each slot, of which one that is new has the highest number."""
        self._known, self._born = life.size, int(life.max(initial=-1)) + 1
        self._life = life  # (room,)  of each slot
        self._pairs_of = np.bincount(lives, minlength=self._born)  # (room,)  of each life
        self._timers, self._due = Timers(), 0
        timed = times >= self._behind.linear
        self._timers.set(times[timed], lives[timed])
        self._hold(lives, times)

    def _count_lives(self) -> None:
        """Give slots that are new a life."""
        known, size = self._known, len(self._index)
        if size > known:
            self._life = _roomy(self._life, size)
            self._life[known:size] = self._new_lives(size - known)
            self._known = size

    def _new_lives(self, count: int) -> Integers:
        """Return the numbers of so many lives that begin; O(1) amortised each."""
        lives = np.arange(self._born, self._born + count)
        self._born += count
        self._pairs_of = _roomy(self._pairs_of, self._born)
        return lives

    def _passed_in(self, punctuation: GroupWise) -> int:
        """Return how many pairs at most a group-wise bound passes; a group that ends begins a new life.

        A group that was ended may begin anew, so the pairs of its last life must not be found by then.
        """
        slots, rows = self._match.of(punctuation)
        many = int(self._pairs_of[self._life[slots]].sum())
        ended = slots[punctuation.below[rows] == FOREVER]
        self._life[ended] = self._new_lives(ended.size)
        return many

    def _let_go(self, more: int) -> None:
        """Forget the pairs that bounds have passed, once they may be half of all."""
        self._due += more
        if self._due and (self._held <= _FEW or 2 * self._due >= self._held):
            self._purge()

    def _purge(self) -> None:
        """Forget all pairs that bounds have passed, and slots when most have none left."""
        lives, times = self._pairs()
        slots = self._slots_of_lives()[lives]
        there = slots >= 0
        slots, times = slots[there], times[there]
        stays = ~passed(times, self._bounds()[slots])
        slots, times = slots[stays], times[stays]
        used = occurring(slots, len(self._index))
        if 2 * used.size <= len(self._index):
            self._index.keep(used)
            slots = np.searchsorted(used, slots)
        self._start(np.arange(len(self._index)), slots, times)

    def _slots_of_lives(self) -> Integers:
        """Return the slot of each life, int64 (lives,); of those that are over -1."""
        slots = np.full(self._born, _FREE)
        slots[self._life[: self._known]] = np.arange(self._known)
        return slots

    def _bounds(self) -> Integers:
        """Return the bound of each slot, int64 (slots,)."""
        if self._behind.highest <= self._behind.linear:
            return np.full(len(self._index), self._behind.linear)
        keys = pa.RecordBatch.from_arrays(self._index.keys(np.arange(len(self._index))), names=self._names)
        return self._behind.bounds_of(keys)

    def _pairs(self) -> tuple[Integers, Integers]:
        taken = self._lives != _FREE
        return self._lives[taken], self._times[taken]

    def _reserve(self, more: int) -> None:
        if 2 * (self._held + more) > self._lives.size:
            self._hold(*self._pairs(), more)

    def _hold(self, lives: Integers, times: Integers, more: int = 0) -> None:
        """Make a table of these pairs, at most half full with ``more`` to come."""
        capacity = 1 << max(2 * (lives.size + more), _LEAST).bit_length()
        self._lives, self._times = np.full(capacity, _FREE), np.empty(capacity, np.int64)
        add_pairs(self._lives, self._times, lives, times)
        self._held = lives.size
