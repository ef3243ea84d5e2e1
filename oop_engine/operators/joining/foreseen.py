"""Pages of an inner join that are known before they come, as in a replay, and their matches, which are found ahead.

Where a page is cut at each punctuation its parts are matched at once, not part by part: each call costs the same for
few tuples.  A part takes its matches when it comes: with tuples that were stored when it became known, and with those
parts of the other side that have come by then.  Tuples are stored, purged and counted as ever.

A match that was found ahead is one when its later tuple comes, for no tuple has been purged that this one could match.
A tuple behind its bound is another thing; its page is not the one that was foreseen.  So nothing is foreseen any more
once a page comes that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError
from oop_engine.core.page import Page, concat
from oop_engine.operators.joining.bands import Rule
from oop_engine.operators.joining.index import PAGE_ROWS, JoinIndex, Match
from oop_engine.operators.joining.matches import Matches, together
from oop_engine.operators.joining.run import Rows, SortedRun
from oop_engine.operators.kernels.join_index import by_other, come
from oop_engine.system.knobs import knob

__all__ = ["Foreseen"]

_MOST = knob(__name__, "_MOST", 1 << 20)
"""Matches that are found ahead for pages that become known together; where there are more, pages are large enough."""

Ints = NDArray[np.int64]
CodesOf = Callable[[int, Page], Ints | None]
"""The codes of the keys of a page of a side; None where one is null."""
SameKeys = Callable[[int, Page, Matches], Matches]
"""Those matches of a page of a side whose keys are equal, where codes are."""


class Foreseen:
    """The pages that both sides are going to get.

    ``stored``: the index of each side, to which the tuples of a page are added when it comes; ``same``: None where
    equal codes are equal keys.
    """

    def __init__(
        self, rule: Rule, stored: Sequence[JoinIndex], codes: CodesOf, same: SameKeys | None
    ) -> None:
        self._rule, self._stored, self._codes, self._same = rule, stored, codes, same
        self._blocks: list[list[_Block]] = [[], []]
        self._places: dict[tuple[int, int], _Place] = {}  # by side and batch of a page
        self._given_up = False

    def expect(self, side: int, pages: Sequence[Page]) -> None:
        """Announce the pages that come next of a source, in their order."""
        if self._given_up:
            return
        try:
            block = self._block(side, pages)
        except (ContractError, _NoUseError):
            self._give_up()
            return
        self._blocks[side].append(block)
        self._places.update(
            ((side, id(page.batch)), _Place(block, number, page.batch)) for number, page in enumerate(pages)
        )

    def take(self, side: int, page: Page) -> tuple[Ints, list[Match]] | None:
        """Return the codes of a page that comes, and its matches; None: it was not foreseen.  To be called once."""
        place = None if page.late else self._places.pop((side, id(page.batch)), None)
        if place is None:
            self._give_up()
            return None
        if place.block.is_last(place.number):
            self._blocks[side].remove(place.block)
        return place.block.take(place.number)

    def _block(self, side: int, pages: Sequence[Page]) -> _Block:
        """Return the pages with all their matches; ``ContractError`` if they do not fit into one."""
        whole = concat(pages[0].schema, pages)
        twice = not self._places.keys().isdisjoint((side, id(page.batch)) for page in pages)
        if twice or (codes := self._codes(side, whole)) is None:
            raise _NoUseError
        block = _Block(side, whole, codes, [0, *accumulate(page.rows for page in pages)])
        block.parts = list(self._parts(block))
        return block

    def _give_up(self) -> None:
        """Forget all; from now on pages are matched as they come."""
        self._blocks, self._places, self._given_up = [[], []], {}, True

    def _parts(self, block: _Block) -> Iterator[_Part]:
        """Yield the matches of a block that becomes known, and give those of the other side theirs with it."""
        low, high = self._rule.reach(block.side, block.page.times)
        left, runs = _MOST, dict[int, list[Match]]()
        for match in self._stored[1 - block.side].matches(block.codes, low, high):
            left = _less(left, match)
            runs.setdefault(id(match[1]), []).append(match)
        for matches in runs.values():
            probes, entries = self._found(block, matches)
            yield _Part(block, probes, matches[0][1], entries)
        for other in self._blocks[1 - block.side]:
            matches = list[Match]()
            for probes, entries in other.run.matches(block.codes, low, high, PAGE_ROWS):
                matches.append((probes, other.run, entries))
                left = _less(left, matches[-1])
            yield from self._between(block, other, *self._found(block, matches))

    def _found(self, block: _Block, matches: Sequence[Match]) -> tuple[Rows, Rows]:
        """Return the rows of a block, and the entries of one run that they match."""
        probes, entries = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        for page_matches in together(matches):
            same = page_matches if self._same is None else self._same(block.side, block.page, page_matches)
            probes.append(same.probes)
            entries += [of_run for _, of_run in same.by_run]
        return np.concatenate(probes), np.concatenate(entries)

    def _between(self, block: _Block, other: _Block, rows: Rows, entries: Rows) -> Iterator[_Part]:
        """Yield the matches of a block with another, those tuples of it that are still to come."""
        others = other.run.rows(entries)
        later = others >= other.come
        if not later.any():
            return
        rows, entries, others = rows[later], entries[later], others[later]
        yield _Part(block, rows, other.run, entries, other, others)
        counts = np.zeros(other.page.rows + 1, np.int32)
        others, rows, entries = by_other(rows, others, block.entries, counts)
        other.parts.append(_Part(other, others, block.run, entries, block, rows))


class _Block:
    """Pages of one side that become known together, as one ``page``, and where each begins.

    ``come``: how many of the tuples have come.
    """

    def __init__(self, side: int, page: Page, codes: Ints, starts: list[int]) -> None:
        self.side, self.page, self.codes, self.starts = side, page, codes, starts
        self.come = 0
        rows = np.arange(page.rows, dtype=np.int32)
        self.run = SortedRun(page.batch, rows, codes, page.times, young=True)
        self.entries = np.empty_like(rows)  # of each row, in the run
        self.entries[self.run.rows(rows)] = rows
        self.parts: list[_Part] = []

    def is_last(self, number: int) -> bool:
        """Return whether no page comes behind that of a number."""
        return number == len(self.starts) - 2

    def take(self, number: int) -> tuple[Ints, list[Match]]:
        """Return the codes of a page that comes, and its matches."""
        begin, self.come = self.starts[number : number + 2]
        matches = list[Match]()
        for part in self.parts:
            if (first := part.edges[number]) == (stop := part.edges[number + 1]):
                continue
            rows, entries = part.of(first, stop, begin)
            for start in range(0, rows.size, PAGE_ROWS):
                piece = slice(start, start + PAGE_ROWS)
                matches.append((rows[piece], part.run, entries[piece]))
        return self.codes[begin : self.come], matches


class _Place(NamedTuple):
    """Where a page is foreseen; its batch, by which it is known, is kept."""

    block: _Block
    number: int
    batch: pa.RecordBatch


class _Part:
    """Some matches of a block, by its rows: with entries of a run, or with those of another block that has ``come``."""

    def __init__(
        self, block: _Block, rows: Rows, run: SortedRun, entries: Rows, other: _Block | None = None,
        others: Rows | None = None,
    ) -> None:  # fmt: skip
        self.run, self._rows, self._entries, self._other, self._others = run, rows, entries, other, others
        self.edges: list[int] = np.searchsorted(rows, block.starts).tolist()
        """Where the matches of each page of the block begin."""

    def of(self, first: int, stop: int, begin: int) -> tuple[Rows, Rows]:
        """Return those matches among some that are there: rows from ``begin`` on, and entries of the run."""
        rows, entries = self._rows[first:stop], self._entries[first:stop]
        if self._other is None or self._others is None or self._other.come == self._other.page.rows:
            return rows - np.int32(begin), entries
        of_rows, entries = come(rows, entries, self._others[first:stop], self._other.come, begin)
        return of_rows, entries


class _NoUseError(Exception):
    """A page comes twice, has null keys, or more matches than are worth finding ahead."""


def _less(left: int, match: Match) -> int:
    if (left := left - match[2].size) < 0:
        raise _NoUseError
    return left
