"""Balance: which shard works on which key groups, and when that changes.

An *assignment* maps each key group to the shard of its tuples.  Shards keep nothing, so a new assignment
takes effect at once, between two micro-batches, and no state has to move: partial aggregates of
one group that were made in two places are merged behind them (instant migration).

Groups are moved from the most loaded shard to the least loaded one, as long as that helps.  A single
group is never divided: the shard of one that has more than its share of all tuples stays the most loaded.

Source: Flux: Shah, Hellerstein, Chandrasekaran, Franklin, ICDE 2003; instant migration: Madsen, Zhou,
Su, Enorm, DEBS 2016, sections 4.4.2 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oop_engine.core.errors import UsageError

__all__ = [
    "Assignment",
    "Assignments",
    "Balance",
    "Balancer",
    "Move",
    "even_assignment",
    "loads_of_shards",
    "rebalanced",
    "unevenness",
]

Assignment: TypeAlias = tuple[int, ...]
"""The shard of each key group."""
Assignments: TypeAlias = Mapping[int, Assignment]
"""The assignment of each component that runs in shards, by its number."""
Loads: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Balance:
    """When groups are moved.

    ``threshold``: as soon as the most loaded shard has more than this times the mean.  ``groups``: into how
    many key groups an assignment divides the keys; more can be spread more evenly.  ``memory``: how much the
    micro-batches before weigh against the last one, so that a moment's peak moves nothing.
    Raises ``UsageError`` if a value is out of range.
    """

    threshold: float = 1.2
    groups: int = 64
    memory: float = 0.5

    def __post_init__(self) -> None:
        wrong = {
            f"threshold must be more than 1; got {self.threshold}": not self.threshold > 1,
            f"groups must be at least 2; got {self.groups}": self.groups < 2,
            f"memory must be from 0 to less than 1; got {self.memory}": not 0 <= self.memory < 1,
        }
        for message, is_wrong in wrong.items():
            if is_wrong:
                msg = f"Balance: {message}"
                raise UsageError(msg)

    @property
    def gain(self) -> float:
        """By how much of the mean the most loaded shard must get better: groups do not flap for less."""
        return (self.threshold - 1) / 4


@dataclass(frozen=True)
class Move:
    """A new assignment of one component: how many groups moved, and ``unevenness`` before and after.

    Both are of the loads that were seen so far.  ``indivisible``: a group that has more than the share of a
    shard all by itself, if there is one: no assignment makes that even.
    """

    batch: int
    component: int
    groups: int
    before: float
    after: float
    indivisible: int | None


def even_assignment(groups: int, shards: int) -> Assignment:
    """Return an assignment that gives all shards the same number of groups.

    >>> even_assignment(5, 2)
    (0, 1, 0, 1, 0)
    """
    return tuple(group % shards for group in range(groups))


def loads_of_shards(places: Sequence[int], loads: ArrayLike, shards: int) -> Loads:
    """Return the tuples of each shard, int64 (shards,), from those of each group."""
    return np.bincount(places, np.asarray(loads), shards).astype(np.int64)


def unevenness(places: Sequence[int], loads: ArrayLike, shards: int) -> float:
    """Return the load of the most loaded shard as a multiple of the mean: 1 is even.

    >>> unevenness((0, 0, 1), [6, 3, 3], shards=2)
    1.5
    """
    of_shards = loads_of_shards(places, loads, shards)
    return float(of_shards.max() * shards / of_shards.sum()) if of_shards.any() else 1.0


def rebalanced(places: Sequence[int], loads: Sequence[int], shards: int) -> Assignment:
    """Return an assignment under which no shard has more than the most loaded one had.

    Group after group goes from the most to the least loaded shard, each time that which makes
    the two most alike, until no single move makes the most loaded shard better.
    O(moves x (groups + shards)).

    >>> rebalanced((0, 0, 0, 1), loads=[5, 3, 2, 0], shards=2)
    (1, 0, 0, 1)
    """
    weights, assigned = np.asarray(loads, np.int64), np.array(places, np.int64)
    while True:
        sums = np.bincount(assigned, weights, shards)
        heaviest, lightest = int(sums.argmax()), int(sums.argmin())
        gap = sums[heaviest] - sums[lightest]
        movable = np.flatnonzero((assigned == heaviest) & (weights > 0) & (weights < gap))
        if not movable.size:
            return tuple(assigned.tolist())
        assigned[movable[np.abs(2 * weights[movable] - gap).argmin()]] = lightest


class Balancer:
    """Watches the loads of micro-batches, and decides when the assignments change."""

    def __init__(self, how: Balance, assignments: Assignments, shards: int) -> None:
        self._how, self._shards = how, shards
        self._seen: dict[int, NDArray[np.float64]] = {}
        self.assignments: dict[int, Assignment] = dict(assignments)
        self.moves: list[Move] = []

    def take(self, batch: int, loads: Mapping[int, Sequence[int]]) -> bool:
        """Take the tuples of each key group in a micro-batch; return whether ``assignments`` have changed."""
        moves = [move for number in loads if (move := self._look(batch, number, loads[number])) is not None]
        self.moves += moves
        return bool(moves)

    def _look(self, batch: int, component: int, loads: Sequence[int]) -> Move | None:
        seen, now = self._remembered(component, loads), self.assignments[component]
        before = unevenness(now, seen, self._shards)
        if before <= self._how.threshold:
            return None
        then = rebalanced(now, seen.tolist(), self._shards)
        after = unevenness(then, seen, self._shards)
        if before - after < self._how.gain:
            return None
        self.assignments[component] = then
        moved = sum(a != b for a, b in zip(now, then, strict=True))
        most = int(seen.argmax())
        alone = seen[most] * self._shards > seen.sum()
        return Move(batch, component, moved, before, after, most if alone else None)

    def _remembered(self, component: int, loads: Sequence[int]) -> Loads:
        new = np.asarray(loads, np.float64)
        old = self._seen.get(component, new)
        self._seen[component] = self._how.memory * old + (1 - self._how.memory) * new
        return np.rint(self._seen[component]).astype(np.int64)
