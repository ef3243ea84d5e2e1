"""Purging one side of a window join by group-wise punctuation, or by the tuples of the other side that are emitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import NEVER, GroupWise
from oop_engine.operators.joining.bounds import JoinBounds
from oop_engine.operators.joining.index import PAGE_ROWS, RunEntries
from oop_engine.operators.joining.run import SortedRun
from oop_engine.operators.joining.terms import all_valid
from oop_engine.operators.keys.key_codes import KeyCodes
from oop_engine.operators.keys.tables import IN_KERNELS

__all__ = ["Asking", "purge_groups", "purge_keys"]

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]
Taker = Callable[[Callable[[SortedRun], Rows]], list[RunEntries]]
"""Takes of each run the entries that a function finds in it: ``JoinIndex.purge_entries``, or ``lone`` to look only."""
KeysOf = Callable[[pa.RecordBatch], Sequence[pa.Array]]
"""The key columns of tuples of the side."""


class Asking(NamedTuple):
    """Some keys of an as-of join of which right tuples may be dropped, once a punctuation is taken.

    ``columns``: the key columns, and ``codes`` of them.  ``left``: the bound of the left input; ``emitted``: stored
    left tuples below are emitted; ``before``: right tuples below are dropped.  All int64 (keys,).
    """

    columns: list[pa.Array]
    codes: Ints
    left: Ints
    emitted: Ints
    before: Ints


def purge_groups(
    take: Taker, side: int, port: int, punctuation: GroupWise, bounds: JoinBounds, codes: KeyCodes,
    keys_of: KeysOf, own: tuple[Ints, Ints] | None = None,
) -> list[RunEntries]:  # fmt: skip
    """Purge the tuples of ``side`` that a punctuation of input ``port`` passes, of key columns by their positions.

    To be called before ``bounds`` takes it.  ``own``: those of the side's rows, if they are known (``all_own``).
    Returns the tuples that leave alone.
    """
    on_left: Ints = bounds.on_left(port, punctuation.below)
    if own is None:
        own = bounds.own(side, punctuation.groups), bounds.own(side, punctuation.groups, {port: on_left})
    before, keep_from = own
    grown, names = keep_from > before, [str(place) for place in range(codes.columns)]
    if (
        len(bounds.linear) > 2
    ):  # a linear bound of a third input may have raised some, and those stay until now
        before = np.full_like(before, NEVER)
    if len(punctuation.attributes) < codes.columns:
        raised = GroupWise(punctuation.groups, on_left).filter(grown)
        return _purge_some_keys(take, side, port, raised, bounds, keys_of)
    groups = [punctuation.groups.column(name) for name in names]
    grown &= all_valid(groups, len(punctuation))
    groups = [column.filter(pa.array(grown)) for column in groups]
    return purge_keys(take, groups, before[grown], keep_from[grown], codes, keys_of)


def purge_keys(
    take: Taker, groups: list[pa.Array], before: Ints, keep_from: Ints, codes: KeyCodes, keys_of: KeysOf
) -> list[RunEntries]:
    """Drop the tuples of groups, all different, with ``before <= time < keep_from``.

    Returns the tuples that leave alone.  O(log tuples) a group and run, O(1) a tuple.
    """
    if not before.size:
        return []
    of_groups = codes.of(groups, len(before), source=-1)

    def due(run: SortedRun) -> Rows:
        matches = list(run.matches(of_groups, before, keep_from - 1, PAGE_ROWS))
        group, entries = (np.concatenate(part) for part in zip(*matches, strict=True))
        if codes.exact or not entries.size:
            return entries
        wanted = [column.take(pa.array(group)) for column in groups]
        return entries[codes.equal(keys_of(run.take(entries)), wanted)]

    return take(due)


def _purge_some_keys(
    take: Taker, side: int, port: int, raised: GroupWise, bounds: JoinBounds, keys_of: KeysOf
) -> list[RunEntries]:
    """Drop the same where the groups are of some of the key columns only: O(tuples)."""
    if not len(raised):
        return []
    alone = Progress(remember_ended=True, tables=IN_KERNELS)
    alone.advance(0, raised)

    def due(run: SortedRun) -> Rows:
        entries: Rows = run.alive()
        keys = bounds.by_position(side, run.take(entries))
        return entries[run.times(entries) < bounds.own(side, keys, {port: alone.bounds(keys)})]

    return take(due)
