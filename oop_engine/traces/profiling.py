"""Profile: how disordered a trace is, and the cost of each punctuation policy on it.

    lateness        how far a tuple comes behind the largest value before it (0: it is not late)
    own lateness    the same within its group: the lateness that remains when each group,
                    such as a link with a skew, makes progress by itself
    larger before   how many larger values came before it: the disorder as a number of tuples

One pass; memory does not grow with the trace, only with the number of groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.groups.in_python import rows_of
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.schema import Schema
from oop_engine.traces.blocks import Blocks
from oop_engine.traces.lateness import Histogram, OwnLateness, behind
from oop_engine.traces.lengths import length_text, rounded_up

__all__ = ["Candidate", "GroupProfile", "Lateness", "Profile", "profile"]

Ints = NDArray[np.int64]

_SHARES = (0.5, 0.99, 0.999, 1.0)
_TOP = 1 << 16
_SAMPLES = 256
_FAR = 4


@dataclass(frozen=True)
class Lateness:
    """A distribution over all tuples; values in the unit of the progressing attribute, or tuples.

    Quantiles are at most 1/64 too large, never too small; ``out_of_order`` counts the
    tuples above 0 and, like ``most``, is exact.
    """

    out_of_order: int
    p50: int
    p99: int
    p999: int
    most: int

    @classmethod
    def of(cls, seen: Histogram) -> Lateness:
        """Return the quantiles of a histogram."""
        p50, p99, p999, _ = (seen.quantile(share) for share in _SHARES)
        return cls(seen.above(0), p50, p99, p999, seen.most)


@dataclass(frozen=True)
class GroupProfile:
    """One group: its tuples, how many are out of order within it, by how much at most.

    ``behind``: how far its tuples are on average behind the whole stream: its skew.
    """

    group: dict[str, Any]
    tuples: int
    out_of_order: int
    most: int
    behind: float


@dataclass(frozen=True)
class Candidate:
    """The cost of a policy of ``oop_engine.operators.policies.policies`` on this trace.

    ``late``: tuples behind the bound.  ``delay``: how much longer than in an ordered
    stream a result waits, in units of the progressing attribute.  ``state``: tuples
    that arrive within that delay, which an in-order plan holds to sort them.
    """

    policy: str
    late: int
    delay: int
    state: int


@dataclass(frozen=True)
class Profile:
    """The disorder of a trace.

    ``shape``: "ordered" (nothing out of order), "block" (most tuples lie in parts of at
    least 8 tuples, each wholly before the next, in which some tuple comes half of the
    part or more behind: flushed as a whole), "tail" (the most late is more than 4 times
    as late as 99 % of those out of order: a few stragglers), else "band".
    ``block_tuples``, ``block_length``: the mean part, where the shape is "block".
    ``rate``: tuples per unit of the progressing attribute.
    ``larger_before``: quantiles and most of at most 256 tuples a page, counted to 65,536 in earlier pages.
    ``groups``: the largest ones, of ``groups_known``.
    """

    tuples: int
    promises: int
    unit: str
    first: int
    last: int
    rate: float
    shape: str
    block_tuples: float
    block_length: float
    lateness: Lateness
    larger_before: Lateness
    by: tuple[str, ...]
    own_lateness: Lateness | None
    groups_known: int
    groups: tuple[GroupProfile, ...]
    candidates: tuple[Candidate, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as for JSON."""
        return asdict(self)


def profile(
    messages: Iterable[Message], schema: Schema, by: Sequence[str] = (), most_groups: int = 20
) -> Profile:
    """Measure the disorder of messages in their order; ``by`` are the columns that make a group.

    O(n log page) time.  Raises ``GraphError`` if ``by`` are no columns.
    """
    schema.require(by, "profile")
    stream, groups = _Stream(), _Groups(schema, tuple(by))
    promises = 0
    for message in messages:
        if not isinstance(message, Page):
            promises += 1
        elif len(message):
            groups.add(message, stream.add(message.times))
    stream.blocks.end()
    return _result(schema, stream, groups, promises, most_groups)


class _Stream:
    """Measurements of the stream as a whole."""

    def __init__(self) -> None:
        self.lateness, self.larger_before = Histogram(), Histogram()
        self.blocks = Blocks()
        self.tuples = 0
        self.first: int | None = None
        self.largest = NEVER
        self._top = np.empty(0, np.int64)  # the largest values before, sorted

    def add(self, times: Ints) -> Ints:
        """Take the next tuples; return their lateness."""
        lateness = behind(np.maximum(np.maximum.accumulate(times), self.largest), times)
        self.tuples += len(times)
        self.lateness.add(lateness)
        self.larger_before.add(self._larger_before(times))
        self.blocks.add(times)
        earliest = int(times.min())
        self.first = earliest if self.first is None else min(self.first, earliest)
        self.largest = max(self.largest, int(times.max()))
        return lateness

    def _larger_before(self, times: Ints) -> Ints:
        rows = np.arange(0, len(times), -(-len(times) // _SAMPLES))
        within = np.array([np.count_nonzero(times[:row] > times[row]) for row in rows], np.int64)
        before = len(self._top) - np.searchsorted(self._top, times[rows], side="right")
        self._top = np.sort(np.concatenate([self._top, times]))[-_TOP:]
        return within + before


class _Groups:
    """Measurements of each group, in arrays by slot."""

    def __init__(self, schema: Schema, by: tuple[str, ...]) -> None:
        self.by = by
        self.index = GroupIndex([schema.type_of(name) for name in by])
        self.lateness = Histogram()
        self._own = OwnLateness(self.index)
        self._sums = np.zeros((4, 0))  # (tuples, out of order, most, behind; groups)

    def add(self, page: Page, behind: Ints) -> None:
        """Take a page, and the lateness of its tuples in the stream."""
        if not self.by:
            return
        slots = self.index.encode([page.column(name) for name in self.by])
        lateness = self._own.add(page.times, slots)
        self.lateness.add(lateness)
        size = len(self.index)
        sums = np.pad(self._sums, ((0, 0), (0, size - self._sums.shape[1])))
        sums[0] += np.bincount(slots, minlength=size)
        sums[1] += np.bincount(slots, lateness > 0, size)
        np.maximum.at(sums[2], slots, lateness)
        sums[3] += np.bincount(slots, behind, size)
        self._sums = sums

    def largest(self, count: int) -> tuple[GroupProfile, ...]:
        """Return the groups with the most tuples."""
        slots = np.argsort(-self._sums[0], kind="stable")[:count]
        keys = rows_of(pa.RecordBatch.from_arrays(self.index.keys(slots), names=list(self.by)))
        rows = self._sums[:, slots].T.tolist()
        return tuple(
            GroupProfile(key, int(tuples), int(late), int(most), lag / tuples)
            for key, (tuples, late, most, lag) in zip(keys, rows, strict=True)
        )


def _result(schema: Schema, stream: _Stream, groups: _Groups, promises: int, most_groups: int) -> Profile:
    first = stream.first or 0
    last = stream.largest if stream.tuples else 0
    rate = stream.tuples / max(last - first, 1)
    shape = _shape(stream)
    parts = max(stream.blocks.parts, 1) if shape == "block" else 0
    return Profile(
        tuples=stream.tuples,
        promises=promises,
        unit=schema.unit,
        first=first,
        last=last,
        rate=rate,
        shape=shape,
        block_tuples=stream.blocks.in_parts / parts if parts else 0.0,
        block_length=stream.blocks.span / parts if parts else 0.0,
        lateness=Lateness.of(stream.lateness),
        larger_before=replace(Lateness.of(stream.larger_before), out_of_order=stream.lateness.above(0)),
        by=groups.by,
        own_lateness=Lateness.of(groups.lateness) if groups.by else None,
        groups_known=len(groups.index) if groups.by else 0,
        groups=groups.largest(most_groups) if groups.by else (),
        candidates=_candidates(stream, groups, schema.unit, rate),
    )


def _shape(stream: _Stream) -> str:
    late = stream.lateness.above(0)
    if not late:
        return "ordered"
    if stream.blocks.are_blocks:
        return "block"
    most_of_late = stream.lateness.quantile(1 - 0.01 * late / stream.tuples)
    return "tail" if stream.lateness.most > _FAR * most_of_late else "band"


def _candidates(stream: _Stream, groups: _Groups, unit: str, rate: float) -> tuple[Candidate, ...]:
    candidates = _slacks(stream.lateness, "{}", unit, rate)
    if groups.by:
        by = ", ".join(map(repr, groups.by))
        candidates += _slacks(groups.lateness, f"PerGroup({{}}, by=({by},))", unit, rate)
    return tuple(candidates)


def _slacks(seen: Histogram, policy: str, unit: str, rate: float) -> list[Candidate]:
    """Return the policy without slack, and with the slack for some shares of the tuples."""
    slacks = sorted({rounded_up(seen.quantile(share), unit) for share in _SHARES} - {0})
    names = ["Ordered()", *(f'BoundedDisorder("{length_text(slack, unit)}")' for slack in slacks)]
    return [
        Candidate(policy.format(name), seen.above(slack), slack, round(slack * rate))
        for name, slack in zip(names, [0, *slacks], strict=True)
    ]
