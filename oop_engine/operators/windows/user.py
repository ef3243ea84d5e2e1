"""Windows that a function cuts: ``UserWindows``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.punctuation import FOREVER, NEVER, shift
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.windows.folding import Due, FinalTuples, Folding, SliceView, checked_times
from oop_engine.operators.windows.grid import length_in

__all__ = ["Cut", "UserCut", "UserWindows"]

Integers = NDArray[np.int64]
Cut = Callable[[Integers, Mapping[str, pa.Array], int, int, bool], tuple[Any, Any]]
"""A function of times, columns, begin, bound and ended to starts and ends of windows."""


@checked_arguments
@dataclass(frozen=True)
class UserWindows:
    """Windows that ``cut(times, columns, begin, bound, ended)`` returns: their starts and ends, integers (n,).

    It is called once a group and bound, with the group's tuples from ``begin - back`` to ``bound`` (exclusive) in
    order: ``times`` int64 (n,), and ``columns``, those named in ``reads``.  ``begin`` is the bound of the call before
    (at first ``NEVER``).  It returns the windows that are complete now, exactly those with ``begin < end <= bound``; if
    the group has ``ended``, all that are left.  They may overlap, and begin at ``begin - back`` or behind; those
    without a tuple give no result.  It must depend on the set of tuples alone: not on their arrival, nor on where
    bounds lie.  Costs a call of Python a group and bound.

    Raises ``ContractError`` for other windows.

    >>> import numpy as np, pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators import Count, WindowAggregate
    >>> def rising(times, columns, begin, bound, ended):  # 1, 2, 4, 8...
    ...     ends = 2 ** np.arange(62)
    ...     some = ends[(ends > begin) & (ends <= bound)]
    ...     return some // 2, some
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> count = WindowAggregate(UserWindows(rising, back=2**20), {"n": Count()}).opened(schema)
    >>> list(count.on_page(0, Page.of(schema, {"ts": [5, 1, 9, 6]})))
    []
    >>> (_, page), _ = count.on_punctuation(0, Linear(8))
    >>> page.to_pylist()
    [{'window_start': 1, 'window_end': 2, 'n': 1}, {'window_start': 4, 'window_end': 8, 'n': 2}]
    """

    cut: Cut
    reads: Sequence[str] = ()
    back: Length = 0

    def bound(self, schema: Schema, place: str = "UserWindows") -> UserCut:
        """Return the definition in whole units of ``schema``'s progressing attribute."""
        cut: object = self.cut
        if not callable(cut):
            msg = (
                f"{place}: cut must be a function of (times, columns, begin, bound, ended); got {self.cut!r}"
            )
            raise GraphError(msg)
        if isinstance(self.reads, str):
            msg = (
                f"{place}: reads must be a tuple of column names; got {self.reads!r}: write ({self.reads!r},)"
            )
            raise GraphError(msg)
        schema.require(self.reads, f"{place}: reads")
        back = length_in(self.back, "back", schema, place)
        if back < 0:
            msg = f"{place}: back must be >= 0, in the unit of {schema.progressing!r} ({schema.unit}); got {back}"
            raise GraphError(msg)
        return UserCut(self.cut, back, tuple(self.reads))


@dataclass(frozen=True)
class UserCut(Folding):
    """Slices are tuples, with the columns that the function reads.  A group's number is the bound of its last call."""

    cut: Cut
    back: int
    keeps: tuple[str, ...] = ()

    def words(self) -> str:
        return f"one tuple, in windows cut by {getattr(self.cut, '__name__', 'a function')}"

    def check(self, times: Integers) -> None:
        checked_times(times, self.back, 1)

    def places(self, final: FinalTuples) -> Integers:
        return final.ranks

    def due(self, view: SliceView) -> Due:
        called = np.flatnonzero(view.bounds > view.cut)
        cuts = [self._windows(view, group) for group in called.tolist()]
        number = [starts.size for starts, _ in cuts]
        none = np.empty(0, np.int64)
        groups = np.repeat(called, number)
        starts, ends = (
            np.concatenate([none, *side]) for side in (zip(*cuts, strict=True) if cuts else ((), ()))
        )
        low, high = view.row(view.first, groups, starts), view.row(view.first, groups, ends)
        filled = low < high
        keep = view.row(view.first, np.arange(view.bounds.size), shift(view.bounds, -self.back))
        groups, starts, ends, low, high = (column[filled] for column in (groups, starts, ends, low, high))
        return Due(groups, starts, ends, low, high, keep, np.maximum(view.cut, view.bounds))

    def _windows(self, view: SliceView, group: int) -> tuple[Integers, Integers]:
        """Return the windows that the function cuts of a group, by their ends."""
        lo, hi = view.begins[group : group + 2].tolist()
        begin, bound = int(view.cut[group]), int(view.bounds[group])
        columns = (
            {}
            if view.kept is None
            else {name: view.kept.column(name).slice(lo, hi - lo) for name in self.keeps}
        )
        times = view.first[lo:hi]
        times.flags.writeable = False  # they are state
        given = self.cut(times, columns, begin, bound, bound == FOREVER)
        try:
            starts, ends = (_integers(side) for side in given)
        except (TypeError, ValueError) as error:
            msg = f"UserWindows: cut must return starts and ends, integers; got {given!r}"
            raise ContractError(msg) from error
        since = NEVER if begin == NEVER else begin - self.back
        if starts.shape != ends.shape or starts.ndim != 1:
            msg = f"UserWindows: cut must return as many starts as ends; got {starts.shape} and {ends.shape}"
            raise ContractError(msg)
        wrong = np.flatnonzero((starts >= ends) | (ends <= begin) | (ends > bound) | (starts < since))
        if wrong.size:
            at = int(wrong[0])
            msg = (
                f"UserWindows: cut must return windows [start, end) with {begin} < end <= {bound} and start >= "
                f"{since}; got [{starts[at]}, {ends[at]}): leave out those of other calls, or give a longer back"
            )
            raise ContractError(msg)
        order = np.lexsort((starts, ends))
        return starts[order], ends[order]

    def least_open(self, view: SliceView, stamp: str) -> Integers:
        return np.full(view.bounds.size, FOREVER)

    def least_later(self, bounds: Integers, stamp: str) -> Integers:
        return shift(bounds, -self.back if stamp == "start" else 1)


def _integers(side: Any) -> Integers:
    """Return one side of windows as integers; an empty list has none."""
    integers = np.asarray(side)
    return integers.astype(np.int64, casting="safe" if integers.size else "unsafe")
