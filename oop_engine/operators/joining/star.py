"""The state of a window join of several streams on one key, each within a band of the first, the anchor.

A result is an anchor tuple with one tuple of each other stream.  A tuple that comes finds the anchor tuples that it can
be with, and those look for their tuples in the other streams, one after the other; an anchor tuple that finds none
in one is asked no further.  Nothing is joined until all have been found, so there are no intermediate results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.operator import State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import GroupWise, Linear, Punctuation, Watermark, passed
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.joining.bands import Rule
from oop_engine.operators.joining.bounds import JoinBounds
from oop_engine.operators.joining.index import PAGE_ROWS, JoinIndex
from oop_engine.operators.joining.purging import purge_groups
from oop_engine.operators.joining.run import SortedRun
from oop_engine.operators.joining.terms import all_valid
from oop_engine.operators.keys.key_codes import KeyCodes
from oop_engine.system.knobs import knob

__all__ = ["StarState"]

_AT_ONCE = knob(__name__, "_AT_ONCE", 8192)  # tuples whose partners are in memory together

Ints = NDArray[np.int64]


@dataclass
class _Entries:
    """Tuples that are somewhere: ``entries`` of a page or of runs, by the ``numbers`` of these."""

    sources: Sequence[Page | SortedRun]
    numbers: Ints
    entries: Ints

    def at(self, places: Ints) -> _Entries:
        return _Entries(self.sources, self.numbers[places], self.entries[places])

    @property
    def times(self) -> Ints:
        times = np.empty(self.entries.size, np.int64)
        for number, source in enumerate(self.sources):
            here = self.numbers == number
            rows = self.entries[here]
            times[here] = source.times[rows] if isinstance(source, Page) else source.times(rows)
        return times

    def batch(self) -> pa.RecordBatch:
        """Return the tuples, copied."""
        order = np.argsort(self.numbers, kind="stable")
        counts = np.bincount(self.numbers, minlength=len(self.sources))
        stretches: list[Ints] = np.split(self.entries[order], np.cumsum(counts)[:-1])
        parts = [_taken(source, at) for source, at in zip(self.sources, stretches, strict=True) if at.size]
        if len(parts) == 1:
            return parts[0]
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        return pa.concat_batches(parts).take(pa.array(back))


@dataclass
class _Partners:
    """The tuples of a stream that go with each anchor tuple: ``counts`` (anchors,) of ``found``, from ``first`` on."""

    counts: Ints
    first: Ints
    found: _Entries

    def at(self, anchors: Ints) -> _Partners:
        return _Partners(self.counts[anchors], self.first[anchors], self.found)


class StarState:
    """Side 0 is the anchor; ``rules`` are those of the others with it; ``keys`` the key columns of each."""

    def __init__(
        self, inputs: Sequence[Schema], keys: Sequence[Sequence[str]], rules: Sequence[Rule]
    ) -> None:
        self.bounds = JoinBounds(keys, rules)
        self._inputs, self._keys, self._rules = inputs, keys, rules
        self._codes = KeyCodes([inputs[0].type_of(name) for name in keys[0]])
        widths = [rule.width for rule in rules]
        self._sides = [JoinIndex(width) for width in [max(widths), *widths]]
        self.probes = [0] * len(inputs)
        """How many anchor tuples have looked for tuples of each stream."""
        self.matches = [0] * len(inputs)
        """How many they have found."""

    def arrive(self, side: int, page: Page) -> Iterator[list[pa.RecordBatch]]:
        """Yield the results of a page, of each stream row by row; then store tuples that can match something later."""
        valid = all_valid(self._key_columns(side, page.batch), len(page))
        page = page if valid.all() else page.filter(valid)
        codes = self._codes.of(self._key_columns(side, page.batch), len(page), source=side)
        for begin in range(0, len(page), _AT_ONCE):
            stop = min(begin + _AT_ONCE, len(page))
            yield from self._results(side, page.slice(begin, stop), codes[begin:stop])
        stays = ~passed(page.times, self.bounds.keep_from(side))
        if self.bounds.groups and stays.any():
            stays &= ~passed(page.times, self.bounds.own(side, self.bounds.by_position(side, page.batch)))
        rows = np.flatnonzero(stays).astype(np.int32)
        self._sides[side].add(page.batch, rows, codes[stays], page.times[stays])

    def advance(self, port: int, punctuation: Punctuation) -> list[Punctuation]:
        """Process a punctuation of input ``port`` and purge; return grown bounds of the results."""
        match punctuation:
            case Linear(below) if below > self.bounds.linear[port]:
                self.bounds.linear[port] = below
                keep_from = self.bounds.all_keep_from()
                for side, index in self._others(port):
                    index.purge(keep_from[side])
                return self.bounds.grown(port, punctuation)
            case GroupWise() if self.bounds.is_on_keys(port, punctuation):
                groups = GroupWise(self.bounds.by_position(port, punctuation.groups), punctuation.below)
                own = self.bounds.all_own(groups.groups, {port: self.bounds.on_left(port, groups.below)})
                for side, index in self._others(port):
                    columns = partial(self._key_columns, side)
                    purge_groups(
                        index.purge_entries, side, port, groups, self.bounds, self._codes, columns, own[side]
                    )
                return self.bounds.grown(port, groups)
            case Watermark(Linear()):
                return self.bounds.grown(port, punctuation)
            case Watermark(GroupWise(groups, below) as group_bounds) if self.bounds.is_on_keys(
                port, group_bounds
            ):
                by_position = GroupWise(self.bounds.by_position(port, groups), below)
                return self.bounds.grown(port, Watermark(by_position))
        return []

    def state(self) -> State:
        """Return the state; a group of several streams, or of several runs of one, counts for each."""
        return State(
            tuples=sum(side.tuples for side in self._sides),
            groups=sum(side.groups for side in self._sides) + self.bounds.groups,
            nbytes=self.bounds.nbytes + self._codes.nbytes + sum(side.nbytes for side in self._sides),
        )

    def save(self) -> dict[str, Any]:
        """Return all for a snapshot."""
        sides = [side.save() for side in self._sides]
        return {"bounds": self.bounds.save(), "sides": sides, "probes": self.probes, "matches": self.matches}

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned."""
        self.bounds.load(saved.part("bounds"))
        sides, probes, matches = (saved.part(name) for name in ("sides", "probes", "matches"))
        for number, side in enumerate(self._sides):
            side.load(sides.parts(number), self._inputs[number].fields)
            self.probes[number] = probes.integer(number, least=0)
            self.matches[number] = matches.integer(number, least=0)

    def _others(self, port: int) -> Iterator[tuple[int, JoinIndex]]:
        return ((side, index) for side, index in enumerate(self._sides) if side != port)

    def _key_columns(self, side: int, batch: pa.RecordBatch) -> list[pa.Array]:
        return [batch.column(name) for name in self._keys[side]]

    def _results(self, side: int, page: Page, codes: Ints) -> Iterator[list[pa.RecordBatch]]:
        own = _Entries([page], np.zeros(len(page), np.int64), np.arange(len(page)))
        partners = dict[int, _Partners]()
        if side == 0:
            anchors = own
        else:
            counts, found = self._search(0, codes, *self._rules[side - 1].reach(1, page.times))
            places, anchor_of = np.unique(
                found.numbers << 32 | found.entries, return_index=True, return_inverse=True
            )[1:]
            probes = np.repeat(np.arange(len(page)), counts)
            anchors, codes = found.at(places), codes[probes[places]]
            tuples = own.at(probes[np.argsort(anchor_of, kind="stable")])
            partners[side] = _partners(np.bincount(anchor_of, minlength=places.size), tuples)
        for other in self._order(side):
            if not codes.size:
                return
            counts, found = self._search(other, codes, *self._rules[other - 1].reach(0, anchors.times))
            self.probes[other] += codes.size
            self.matches[other] += found.entries.size
            partners[other] = _partners(counts, found)
            left = np.flatnonzero(counts)
            if left.size < counts.size:
                anchors, codes = anchors.at(left), codes[left]
                partners = {port: of_one.at(left) for port, of_one in partners.items()}
        yield from self._joined(anchors, [partners[port] for port in range(1, len(self._sides))])

    def _order(self, side: int) -> list[int]:
        """Return the other inputs in the order of the probes: fewest matches a probe first."""
        others = [port for port in range(1, len(self._sides)) if port != side]
        return sorted(others, key=lambda port: self.matches[port] / max(self.probes[port], 1))

    def _search(self, side: int, codes: Ints, low: Ints, high: Ints) -> tuple[Ints, _Entries]:
        """Return how many tuples of a side go with each probe, and these, by probe."""
        runs = dict[int, tuple[int, SortedRun]]()
        empty = np.empty(0, np.int64)
        parts: list[tuple[Any, Any, Any]] = [(empty, empty, empty)]
        for probes, run, entries in self._sides[side].matches(codes, low, high):
            number, _ = runs.setdefault(id(run), (len(runs), run))
            parts.append((probes, np.full(entries.size, number), entries))
        probes, numbers, entries = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(probes, kind="stable")
        found = _Entries([run for _, run in runs.values()], numbers[order], entries[order].astype(np.int64))
        return np.bincount(probes, minlength=codes.size), found

    def _joined(self, anchors: _Entries, others: list[_Partners]) -> Iterator[list[pa.RecordBatch]]:
        """Yield all combinations of each anchor tuple's partners."""
        total = np.multiply.reduce([partners.counts for partners in others])
        ends = np.cumsum(total)
        for begin in range(0, int(ends[-1]) if ends.size else 0, PAGE_ROWS):
            rows = np.arange(begin, min(begin + PAGE_ROWS, int(ends[-1])))
            anchor_of = np.searchsorted(ends, rows, side="right")
            which, batches = rows - (ends - total)[anchor_of], [anchors.at(anchor_of).batch()]
            for partners in others:
                counts = partners.counts[anchor_of]
                batches.append(partners.found.at(partners.first[anchor_of] + which % counts).batch())
                which = which // counts
            yield self._with_equal_keys(batches)

    def _with_equal_keys(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        if self._codes.exact:
            return batches
        keys = [self._key_columns(side, batch) for side, batch in enumerate(batches)]
        equal = np.logical_and.reduce([self._codes.equal(keys[0], other_keys) for other_keys in keys[1:]])
        return batches if equal.all() else [batch.filter(pa.array(equal)) for batch in batches]


def _partners(counts: Ints, found: _Entries) -> _Partners:
    return _Partners(counts, np.cumsum(counts) - counts, found)


def _taken(source: Page | SortedRun, entries: Ints) -> pa.RecordBatch:
    return (
        source.batch.take(pa.array(entries))
        if isinstance(source, Page)
        else source.take(entries.astype(np.int32))
    )
