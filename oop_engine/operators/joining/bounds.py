"""The bounds of a window join's inputs: which tuples they let go, and the bounds of the output.

Bounds are held in one ``Progress`` of all inputs, in terms of the *left* timestamp of
results: the left input's bound as it is, and of another input's bound the least left
timestamp that its later tuples can match.  Their minimum, linear or of a group, is the output's bound.
A left tuple is kept until that of all other inputs has passed it; one of another input until all left tuples
are gone that it can match, which those of the remaining inputs tell.
Key columns go by their position there, which all sides share, instead of by name.
Of a full join the output's bound is on the earlier of both timestamps, so it is combined in a second one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import NEVER, GroupWise, Linear, Punctuation, Watermark, passed
from oop_engine.core.saved import Saved
from oop_engine.operators.joining.bands import Bound, Rule
from oop_engine.operators.joining.terms import all_valid
from oop_engine.operators.keys.tables import IN_KERNELS

__all__ = ["JoinBounds"]

Ints = NDArray[np.int64]
NONE_RAISED: Mapping[int, int] = {}


class JoinBounds:
    """``linear``: the bounds of the inputs for their whole streams.  Sides are 0 (left), 1 (right), and so on.

    ``highest``: those of any group; ``behind``: how many tuples came behind a bound of theirs.
    ``keys``: the key columns of each side; ``rules``: those of each side but the left, with the left one.
    ``earlier``: the output's time is the earlier of both.
    """

    def __init__(
        self, keys: Sequence[Sequence[str]], rules: Sequence[Rule], *, earlier: bool = False
    ) -> None:
        self.rules = rules
        self.linear, self.highest = [NEVER] * len(keys), [NEVER] * len(keys)
        self.behind = 0
        self._keys = [list(names) for names in keys]
        self._left = Progress(inputs=len(keys), tables=IN_KERNELS)
        self._earlier = Progress(inputs=2, tables=IN_KERNELS) if earlier else None

    @property
    def rule(self) -> Rule:
        """The rule of the left and the right side."""
        return self.rules[0]

    @property
    def groups(self) -> int:
        """How many groups have a bound of their own."""
        return self._left.groups

    @property
    def nbytes(self) -> int:
        """Bytes of all bounds."""
        return sum(progress.nbytes for progress in self._kept())

    def keep_from(self, side: int, raised: Mapping[int, int] = NONE_RAISED) -> int:
        """Return the least timestamp with which a tuple of ``side`` can still match something.

        ``raised``: the bound of an input that is about to be.
        """
        linear = enumerate(self.linear)
        others = (self.on_left(port, raised.get(port, below)) for port, below in linear if port != side)
        return self._kept_from(side, min(others))

    def all_keep_from(self) -> list[int]:
        """Return ``keep_from`` of each side.  O(inputs log inputs) for all of them together."""
        left = [self.on_left(port, below) for port, below in enumerate(self.linear)]
        lowest, second = sorted(left)[:2]
        first = left.index(lowest)
        return [self._kept_from(side, second if side == first else lowest) for side in range(len(left))]

    def all_own(self, keys: pa.RecordBatch, raised: Mapping[int, Ints]) -> list[tuple[Ints, Ints]]:
        """Return ``own`` of each side, without ``raised`` and with it.  O(inputs) a row of keys for all of them."""
        left = np.stack([self._left.bounds(keys, port=port) for port in range(len(self.linear))])
        before = list(self._all_but_own(left))
        for port, below in raised.items():
            left[port] = np.maximum(left[port], below)
        return list(zip(before, self._all_but_own(left), strict=True))

    def _all_but_own(self, left: Ints) -> Iterator[Ints]:
        """Yield for each side the least time that is kept, by the left timestamps of all, int64 (sides, rows)."""
        first, lowest = left.argmin(axis=0), left.min(axis=0)
        second = np.partition(left, 1, axis=0)[1]
        for side in range(len(left)):
            yield self._kept_from(side, np.where(first == side, second, lowest))

    def own(self, side: int, keys: pa.RecordBatch, raised: Mapping[int, Ints] | None = None) -> Ints:
        """Return ``keep_from`` of each row of keys, by the bounds of that key and of all.

        ``raised``: left timestamps, one a row, to which the bound of an input is about to be raised.
        """
        candidates: list[Ints] = []
        for port in range(len(self.linear)):
            if port != side:
                bounds = self._left.bounds(keys, port=port)
                candidates.append(np.maximum(bounds, raised[port]) if raised and port in raised else bounds)
        return self._kept_from(side, np.minimum.reduce(candidates))

    def of(self, port: int, keys: pa.RecordBatch) -> Ints:
        """Return the bound of input ``port`` of each row of keys, by position, as a left timestamp."""
        return self._left.bounds(keys, port=port)

    def on_left(self, port: int, below: Bound) -> Bound:
        """Return the least left timestamp that tuples of input ``port`` can match by a bound of theirs."""
        return below if port == 0 else self.rules[port - 1].keep_from(0, below)

    def timely(self, side: int, page: Page) -> Page:
        """Return a page without the tuples that come behind a bound, for their partners may be gone; count these.

        Of right tuples behind the bound of a group: those that no left tuple could need but for the bound.
        """
        times = page.times
        if not times.size or page.reach_of(times)[0] >= self.highest[side]:
            return page
        late = passed(times, self.linear[side])
        if self.highest[side] > self.linear[side]:
            own = self._left.bounds(self.by_position(side, page.batch), port=side)
            late |= passed(self.on_left(side, times), own)
        self.behind += int(late.sum())
        return page.filter(~late) if late.any() else page

    def is_on_keys(self, port: int, punctuation: GroupWise) -> bool:
        """Return whether a punctuation is about key columns alone."""
        return 0 < len(set(punctuation.attributes) & set(self._keys[port])) == len(punctuation.attributes)

    def by_position(self, side: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return those key columns that ``batch`` has, each named by its position."""
        names = [name for name in self._keys[side] if name in batch.schema.names]
        positions = [str(self._keys[side].index(name)) for name in names]
        return pa.RecordBatch.from_arrays([batch.column(name) for name in names], names=positions)

    def grown(self, port: int, punctuation: Linear | GroupWise | Watermark) -> list[Punctuation]:
        """Update the bounds with one of input ``port``, groups by position; return new punctuation of the output."""
        if isinstance(punctuation, Linear):
            self.highest[port] = max(self.highest[port], punctuation.below)
        elif isinstance(punctuation, GroupWise) and len(punctuation):
            self.highest[port] = max(self.highest[port], int(punctuation.below.max()))
        grown = self._left.advance(port, _moved(punctuation, lambda below: self.on_left(port, below)))
        if self._earlier is not None:
            grown = self._earlier.advance(
                port, _moved(punctuation, lambda below: self._on_earlier(port, below))
            )
        named = (self._named(p) for p in grown)
        return [p for p in named if not isinstance(p, GroupWise) or len(p)]

    def save(self) -> dict[str, Any]:
        """Return the bounds for a snapshot."""
        bounds = {"linear": self.linear, "highest": self.highest, "behind": self.behind}
        return {**bounds, "progress": [progress.save() for progress in self._kept()]}

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned."""
        linear, highest = saved.part("linear"), saved.part("highest")
        ports = range(len(self.linear))
        self.linear, self.highest = ([part.integer(port) for port in ports] for part in (linear, highest))
        self.behind = saved.integer("behind", least=0)
        all_progress = self._kept()
        for progress, saved_progress in zip(
            all_progress, saved.parts("progress", len(all_progress)), strict=True
        ):
            progress.load(saved_progress)

    def _kept(self) -> list[Progress]:
        return [self._left] if self._earlier is None else [self._left, self._earlier]

    def _kept_from(self, side: int, left: Bound) -> Bound:
        """Return the least timestamp of a side that is kept, by the least left timestamp that it can match yet."""
        return left if side == 0 else self.rules[side - 1].keep_from(1, left)

    def _on_earlier(self, port: int, below: Bound) -> Bound:
        """Return the least time of later tuples of input ``port`` and of their partners."""
        partners = self.rule.keep_from(1 - port, below)
        if isinstance(below, np.ndarray):
            return np.minimum(below, partners)
        return min(below, partners)

    def _named(self, punctuation: Punctuation) -> Punctuation:
        if isinstance(punctuation, Watermark) and isinstance(punctuation.of, GroupWise):
            return Watermark(self._by_name(punctuation.of))
        return self._by_name(punctuation) if isinstance(punctuation, GroupWise) else punctuation

    def _by_name(self, punctuation: GroupWise) -> GroupWise:
        """Return the same of the output's columns: in a full join right tuples alone have a null key there."""
        names = [self._keys[0][int(position)] for position in punctuation.attributes]
        if self._earlier is not None:
            punctuation = punctuation.filter(all_valid(punctuation.groups.columns, len(punctuation)))
        return GroupWise(punctuation.groups.rename_columns(names), punctuation.below)


def _moved(
    punctuation: Linear | GroupWise | Watermark, by: Callable[[Any], Any]
) -> Linear | GroupWise | Watermark:
    if isinstance(punctuation, Watermark):
        return punctuation.with_bounds(by(punctuation.of.below))
    if isinstance(punctuation, Linear):
        return Linear(by(punctuation.below))
    return GroupWise(punctuation.groups, by(punctuation.below))
