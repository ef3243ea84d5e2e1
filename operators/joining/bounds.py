"""The bounds of a window join's inputs: which tuples they let go, and the bounds of the output.

Bounds are held in one ``Progress`` of two inputs, in terms of the *left* timestamp of
results: the left input's bound as it is, and of the right input's bound the least left
timestamp that is still kept.  Their minimum, linear or of a group, is the output's bound.
Key columns go by their position there, which both sides share, instead of by name.
Of a full join the output's bound is on the earlier of both timestamps, so it is combined in a second one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import NEVER, GroupWise, Linear, Punctuation, Watermark
from oop_engine.core.saved import Saved
from oop_engine.operators.joining.bands import Bound, Rule
from oop_engine.operators.joining.terms import JoinTerms, all_valid

__all__ = ["JoinBounds"]

Ints = NDArray[np.int64]


class JoinBounds:
    """``linear``: the bounds of both inputs for their whole streams.  Sides are 0 (left) and 1 (right)."""

    def __init__(self, terms: JoinTerms, rule: Rule) -> None:
        self.rule = rule
        self.linear = [NEVER, NEVER]
        self._keys = [terms.names(0), terms.names(1)]
        self._left = Progress(inputs=2)
        self._earlier = Progress(inputs=2) if all(terms.kind.alone) else None

    @property
    def groups(self) -> int:
        """How many groups have a bound of their own."""
        return self._left.groups

    @property
    def nbytes(self) -> int:
        """Bytes of all bounds."""
        return sum(kept.nbytes for kept in self._kept())

    def keep_from(self, side: int) -> int:
        """Return the least timestamp with which a tuple of ``side`` can still match something."""
        return self.rule.keep_from(side, self.linear[1 - side])

    def own(self, side: int, keys: pa.RecordBatch) -> Ints:
        """Return ``keep_from`` of each row of keys, by the bounds of that key and of all."""
        if side == 0:
            return self._left.bounds(keys, port=1)
        return self.rule.keep_from(1, self._left.bounds(keys, port=0))

    def is_on_keys(self, port: int, punctuation: GroupWise) -> bool:
        """Tell whether a punctuation is about key columns alone."""
        return 0 < len(set(punctuation.attributes) & set(self._keys[port])) == len(punctuation.attributes)

    def by_position(self, side: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return those key columns that ``batch`` has, each named by its position."""
        names = [name for name in self._keys[side] if name in batch.schema.names]
        positions = [str(self._keys[side].index(name)) for name in names]
        return pa.RecordBatch.from_arrays([batch.column(name) for name in names], names=positions)

    def grown(self, port: int, punctuation: Linear | GroupWise | Watermark) -> list[Punctuation]:
        """Take a bound of input ``port``, groups by position; return new punctuation of the output."""
        grown = self._left.advance(port, _moved(punctuation, lambda below: self._on_left(port, below)))
        if self._earlier is not None:
            grown = self._earlier.advance(
                port, _moved(punctuation, lambda below: self._on_earlier(port, below))
            )
        named = (self._named(p) for p in grown)
        return [p for p in named if not isinstance(p, GroupWise) or len(p)]

    def save(self) -> dict[str, Any]:
        """Return the bounds for a snapshot."""
        return {"linear": self.linear, "progress": [kept.save() for kept in self._kept()]}

    def load(self, saved: Saved) -> None:
        """Take the state that ``save`` returned."""
        linear = saved.part("linear")
        self.linear = [linear.integer(0), linear.integer(1)]
        kept = self._kept()
        for one, of in zip(kept, saved.parts("progress", len(kept)), strict=True):
            one.load(of)

    def _kept(self) -> list[Progress]:
        return [self._left] if self._earlier is None else [self._left, self._earlier]

    def _on_left(self, port: int, below: Bound) -> Bound:
        return below if port == 0 else self.rule.keep_from(0, below)

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
