"""Matches: the stored tuples that the tuples of a page have met, of all runs together.

A small page meets a few tuples in each of several runs.  To take rows and to compare keys costs by the
call, and is done once for all runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.operators.joining.index import PAGE_ROWS, RunEntries, Match
from oop_engine.operators.joining.run import Marks, Rows

__all__ = ["Matches", "together"]


class Matches(NamedTuple):
    """``probes``: the row of the page of each match; ``by_run``: the stored tuples, run after run."""

    probes: Rows
    by_run: list[RunEntries]

    def stored(self) -> pa.RecordBatch:
        """Return the stored tuple of each match."""
        batches = [run.take(entries) for run, entries in self.by_run]
        return batches[0] if len(batches) == 1 else pa.concat_batches(batches)

    def rows(self) -> list[tuple[pa.RecordBatch, Rows]]:
        """Return of each run the batch, and the rows of its matches."""
        return [(run.batch, run.rows(entries)) for run, entries in self.by_run]

    def times(self) -> NDArray[np.int64]:
        """Return the time of the stored tuple of each match."""
        times, begin = np.empty(len(self.probes), np.int64), 0
        for run, entries in self.by_run:
            run.times_into(entries, times[begin : begin + len(entries)])
            begin += len(entries)
        return times

    def where(self, holds: Marks) -> Matches:
        """Return the matches for which ``holds``, bool (matches,)."""
        ends = np.cumsum([len(entries) for _, entries in self.by_run])
        parts = zip(self.by_run, np.split(holds, ends[:-1]), strict=True)
        return Matches(self.probes[holds], [(run, entries[of_run]) for (run, entries), of_run in parts])


def together(matches: Iterable[Match]) -> Iterator[Matches]:
    """Yield all of ``matches``, at most ``PAGE_ROWS`` at a time; large ones are not copied."""
    probes, by_run, rows = list[Rows](), list[RunEntries](), 0
    for rows_of_page, run, entries in matches:
        if by_run and rows + len(entries) > PAGE_ROWS:
            yield _gathered(probes, by_run)
            probes, by_run, rows = [], [], 0
        probes.append(rows_of_page)
        by_run.append((run, entries))
        rows += len(entries)
    if by_run:
        yield _gathered(probes, by_run)


def _gathered(probes: list[Rows], by_run: list[RunEntries]) -> Matches:
    return Matches(probes[0] if len(probes) == 1 else np.concatenate(probes), by_run)
