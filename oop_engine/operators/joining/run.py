"""A run: tuples of one side of a window join, indexed together and never changed but by dying.

Its tuples lie in the order of its index, by bucket of the key, then by time in a crowded bucket, so an entry needs no
number of its tuple, and the matches of a key are a stretch of the columns.  A young run, which becomes one
with others soon, has numbers: to copy a few rows costs more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import occurring
from oop_engine.core.punctuation import FOREVER
from oop_engine.core.saved import Saved
from oop_engine.core.sizes import owned
from oop_engine.operators.joining.taking import (
    Living,
    Marks,
    Rows,
    dense,
    is_full,
    joined,
    narrowed,
    taken,
    taken_values,
    widened,
)
from oop_engine.operators.kernels import join_index
from oop_engine.operators.kernels.join_index import CROWD, Entries
from oop_engine.operators.kernels.time_order import time_order
from oop_engine.operators.keys.key_codes import Flat
from oop_engine.system.knobs import knob

__all__ = ["FEW", "Marks", "Rows", "SortedRun"]

_NO_MARKS = np.empty(0, np.bool_)
_NO_TUPLES = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32)
_MOST_BITS = 26
_SHORT = 1 << 31
"""Codes and spans of time below it take 32 bits."""
FEW = knob(__name__, "FEW", 16_384)
"""Entries that are counted in less time than they are sorted, and copied in less than there is room for them."""

Ints = NDArray[np.int64]


class SortedRun:
    """Some ``rows`` (entries,) of a ``batch``, copied unless it is ``young``, with their ``codes`` and ``times``.

    ``matched``: which of them have matched something; None: not needed.
    Dead entries are only counted, until a fifth of all are: by a bound for all it is
    the oldest entries, which are sorted for that when there is a second such bound; by
    bounds for keys it is any, and then they are marked.
    """

    def __init__(
        self, batch: pa.RecordBatch, rows: Rows, codes: Ints, times: Ints, matched: Marks | None = None, *,
        young: bool = False,
    ) -> None:  # fmt: skip
        bits = min(max(max(len(rows) - 1, 0).bit_length() - 1, 0), _MOST_BITS)
        lowest_code, most, oldest, newest = join_index.spans(codes, times)
        self._bits = bits if lowest_code != most else 0
        narrow = newest - oldest < _SHORT and lowest_code >= -_SHORT and most < _SHORT
        self._base = oldest if narrow else 0
        self._extent = np.array([oldest, newest, self._base])  # dead entries are older
        room = (len(rows), 2)
        self._entries: Entries = np.empty(room, np.int32) if narrow else np.empty(room, np.int64)
        own = rows if matched is None else np.arange(len(rows), dtype=np.int32)
        into = self._base, self._bits, self._entries
        self._first, at, self.groups = join_index.indexed(codes, times, own, *into)
        if matched is not None:
            at, matched = taken_values(rows, at), matched[at]
        self._matched = matched
        self._rows = (
            narrowed(at, batch.num_rows) if young else None
        )  # of each entry; None: they lie in one order
        self.batch = batch if young else taken(batch, at)
        self.live = self.size = len(rows)
        made = [self._first, self._entries, self._rows, matched]
        self._nbytes = int(self.batch.get_total_buffer_size() + sum(a.nbytes for a in made if a is not None))
        self.flat_keys: Flat | None = None  # where the keys of the batch are, once they have been compared
        self._by_time: Rows | None = None  # entries in time order
        self._buried = 0  # how many of these are dead
        self._alive: Marks | None = None  # (entries,)  None: all from ``_extent`` on are

    @classmethod
    def young(
        cls, batch: pa.RecordBatch, rows: Rows, codes: Ints, times: Ints, matched: Marks | None
    ) -> Self:
        """Make a run that others will soon be made of, which holds few bytes that it does not need."""
        batch, rows = dense(batch, rows)
        return cls(owned(batch), rows, codes, times, matched, young=True)

    @property
    def nbytes(self) -> int:
        """Bytes of the batch, and of all arrays that are there."""
        by_time = 0 if self._by_time is None else int(self._by_time.nbytes)
        return self._nbytes + by_time + (0 if self._alive is None else int(self._alive.nbytes))

    def times(self, entries: Rows) -> Ints:
        """Return the time of some entries, int64 (entries,)."""
        times: Ints = self._entries[entries, 1] + np.int64(self._base)
        return times

    def rows(self, entries: Rows) -> Rows:
        """Return which row of the batch each of some entries is."""
        return entries if self._rows is None else widened(taken_values(self._rows, entries))

    def times_into(self, entries: Rows, out: Ints) -> None:
        """Write the times of many entries."""
        join_index.times_of(self._entries, self._base, entries, out)

    @property
    def first(self) -> int:
        """No entry that is alive is older than this."""
        return int(self._extent[0])

    @property
    def last(self) -> int:
        """No entry is newer than this."""
        return int(self._extent[1])

    def keys(self, entries: Rows) -> Ints:
        """Return the code and the time of some entries, int64 (entries, 2)."""
        pairs = self._entries[entries].astype(np.int64)
        pairs[:, 1] += self._base
        return pairs

    def latest(self, codes: Ints, low: Ints, high: Ints, best: Ints, has_match: Marks) -> None:
        """Raise ``best`` to the largest time of each code from ``low`` to ``high``, and note where there is one."""
        join_index.latest(
            codes, low, high, self._first, self._entries, self._base, self._bits, best, has_match
        )

    def earliest(self, codes: Ints, low: Ints, best: Ints) -> None:
        """Lower ``best`` to the least time of each code from ``low`` on, dead or alive."""
        join_index.earliest(codes, low, self._first, self._entries, self._base, self._bits, best)

    def matches(self, codes: Ints, low: Ints, high: Ints, most: int) -> Iterator[tuple[Rows, Rows]]:
        """Yield the entries of each code with ``low <= time <= high``: which probe, which entry.

        At most ``most`` of them at a time, or as many as a bucket has that is not sorted.
        """
        resume = np.zeros(2, np.int64)
        while resume[0] < codes.size:
            probes, entries = np.empty((2, max(most, CROWD + 1)), np.int32)
            index = self._first, self._entries, self._bits, self._extent
            count = join_index.match(codes, low, high, *index, resume, probes, entries)
            if count < FEW:  # a late page would keep all that room
                yield probes[:count].copy(), entries[:count].copy()
            else:
                yield probes[:count], entries[:count]

    def take(self, entries: Rows) -> pa.RecordBatch:
        """Return the tuples of some entries."""
        return taken(self.batch, self.rows(entries))

    def mark(self, entries: Rows) -> None:
        """Remember that some entries have matched something."""
        assert self._matched is not None
        self._matched[entries] = True

    def lone(self, entries: Rows) -> Rows:
        """Return those of some entries that are alive and have matched nothing, each once."""
        entries = self.living_of(occurring(entries.astype(np.int64), len(self._entries)).astype(np.int32))
        return entries if self._matched is None else entries[~self._matched[entries]]

    def living_of(self, entries: Rows) -> Rows:
        """Return those of some entries that are alive."""
        living = self.times(entries) >= self._extent[0] if self._alive is None else self._alive[entries]
        return entries[living]

    def between(self, low: int, high: int) -> Rows:
        """Return the entries, alive or dead, with ``low <= time < high``.  O(log n + found), once sorted by time."""
        if high <= low or high <= self._extent[0] or low > self._extent[1]:
            return np.empty(0, np.int32)
        by_time = self._in_time_order()
        return by_time[self._place(by_time, low) : self._place(by_time, high)]

    def before(self, keep_from: int) -> Rows:
        """Return the entries, alive or dead, that ``bury_before`` would let die now."""
        if keep_from <= self._extent[0] and keep_from < FOREVER:
            return np.empty(0, np.int32)
        if self._by_time is None:
            dead = ~self._from(keep_from) | (keep_from == FOREVER)
            return np.flatnonzero(dead).astype(np.int32)
        upto = len(self._by_time) if keep_from == FOREVER else self._place(self._by_time, keep_from)
        return self._by_time[self._buried : upto]

    def bury_before(self, keep_from: int) -> None:
        """Discard all entries whose time is below ``keep_from``."""
        if keep_from > self._extent[1] or keep_from == FOREVER:
            self.live = 0
        elif keep_from > self._extent[0]:
            self._extent[0] = keep_from
            self._bury_oldest(keep_from)

    def bury(self, entries: Rows) -> None:
        """Discard some entries."""
        if self._alive is None:
            self._alive = self._from(self.first)
        self.live -= int(np.count_nonzero(self._alive[entries]))
        self._alive[entries] = False

    def alive(self) -> Rows:
        """Return the entries that are alive."""
        alive = self._from(self.first) if self._alive is None else self._alive
        return np.flatnonzero(alive).astype(np.int32)

    def living(self, more: tuple[Ints, Ints, Rows] = _NO_TUPLES) -> Living:
        """Return the live entries: a batch, and rows of it with their codes and times; ``more`` tuples behind them."""
        alive = _NO_MARKS if self._alive is None else self._alive
        own = np.arange(len(self._entries), dtype=np.int32) if self._rows is None else widened(self._rows)
        of_run = self._entries, own, self._base, alive, self.first
        codes, times, rows = join_index.gathered(*of_run, *more)
        return self.batch, rows, codes, times, None if self._matched is None else self._matched[self.alive()]

    def compacted(self) -> SortedRun:
        """Return the run without its dead, if they are a fifth of it."""
        return self if is_full(self.live, len(self._entries)) else SortedRun(*self.living())

    def extended(
        self, batch: pa.RecordBatch, rows: Rows, codes: Ints, times: Ints, matched: Marks | None
    ) -> SortedRun:
        """Return a young run of the live entries and of more tuples: that of ``joined``, in a few calls.  O(rows)."""
        if not is_full(self.live, self.batch.num_rows):
            return SortedRun(*joined([self.living(), (batch, rows, codes, times, matched)]), young=True)
        batch, rows = dense(batch, rows)
        # Copies may be written to: the kernel is compiled for those alone.
        more = codes.copy(), times.copy(), rows + np.int32(self.batch.num_rows)
        _, rows, codes, times, marks = self.living(more)
        matched = matched if matched is None or marks is None else np.concatenate([marks, matched])
        return SortedRun(pa.concat_batches([self.batch, batch]), rows, codes, times, matched, young=True)

    def save(self) -> dict[str, Any]:
        """Return all for a snapshot."""
        return {
            "batch": self.batch if self._rows is None else taken(self.batch, widened(self._rows)),
            "entries": self.keys(np.arange(len(self._entries), dtype=np.int32)),
            "alive": self._alive,
            "matched": self._matched,
            "oldest": int(self._extent[0]),
            "buried": None if self._by_time is None else self._buried,
        }

    @classmethod
    def loaded(cls, saved: Saved, fields: pa.Schema, *, marks: bool) -> Self:
        """Make the run of which ``save`` returned all, of tuples with the columns ``fields``."""
        batch = saved.batch("batch", fields)
        rows = np.arange(batch.num_rows, dtype=np.int32)
        codes, times = np.ascontiguousarray(saved.integers("entries", (rows.size, 2)).T)
        matched = saved.numbers("matched", rows.shape, np.bool_) if marks else None
        if saved["alive"] is not None:  # the dead stay behind: the index of a young run had another order
            rows = np.flatnonzero(saved.numbers("alive", rows.shape, np.bool_)).astype(np.int32)
            codes, times, matched = codes[rows], times[rows], None if matched is None else matched[rows]
        run = cls(batch, rows, codes, times, matched)
        run._extent[0] = oldest = saved.integer("oldest")
        if saved["buried"] is not None:
            run._buried = run._place(run._in_time_order(), oldest)
        run.live = len(run.alive())
        return run

    def _bury_oldest(self, keep_from: int) -> None:
        if self._by_time is None and self._alive is None:
            self.live = int(np.count_nonzero(self._from(keep_from)))
            if not is_full(self.live, len(self._entries)) or len(self._entries) <= FEW:
                return  # it will be copied, or is soon counted anew: both are cheaper than to sort it first
        entries = self._in_time_order()
        upto = self._place(entries, keep_from)
        if self._alive is None:
            self.live = len(entries) - upto
        else:
            self.bury(entries[self._buried : upto])
        self._buried = upto

    def _in_time_order(self) -> Rows:
        if self._by_time is None:
            self._by_time = time_order(self._entries[:, 1].astype(np.int64)).astype(np.int32)
        return self._by_time

    def _place(self, by_time: Rows, keep_from: int) -> int:
        """Return how many entries are below ``keep_from``; their times are looked up, for to keep them takes memory."""
        since = int(keep_from) - self._base
        return bisect_left(by_time, since, lo=self._buried, key=self._entries[:, 1].__getitem__)

    def _from(self, time: int) -> Marks:
        """Return which entries are not older than a time."""
        mask: Marks = self._entries[:, 1] >= int(time) - self._base
        return mask
