"""Session windows: a session is a group's tuples with no two neighbours further apart than ``gap``.

Windows are ``[first, last + gap)``.  They are not known before their tuples, but they merge: what is kept are runs of
tuples (first, last, partial aggregate), any two of a group further apart than the gap.  A tuple between two runs joins
them; merging is associative and commutative, so tuples may come in any order.  A run is complete when its group's bound
is above ``last + gap``; a tuple right at ``last + gap`` still joins.

Equal distances join here; systems with strict ones write a gap that is one unit shorter.

Source: Traub et al., Scotty, TODS 2021 (context-aware windows); Akidau et al., The Dataflow Model, VLDB 2015.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import ContractError
from oop_engine.core.punctuation import FOREVER, NEVER, shift
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.kernels.runs import begins, within
from oop_engine.operators.windows.capped import Capped
from oop_engine.operators.windows.definition import Definition, Integers
from oop_engine.operators.windows.grid import positive
from oop_engine.operators.windows.merging import Merging
from oop_engine.system.knobs import knob

__all__ = ["Gap", "Session", "is_gap", "nested"]

_SPARSE = knob(
    __name__, "_SPARSE", 64
)  # groups there may be for each tuple of a page, else those in it are numbered
_FEW = knob(__name__, "_FEW", 2048)  # groups for which there is a place in any case


@checked_arguments
@dataclass(frozen=True)
class Session:
    """The tuples of a group between which there is no ``gap``: window ``[first, last + gap)``.

    ``most``: a session ends so long behind its first tuple at the latest, and the next tuple begins a new one.  Where
    it ends then depends on all tuples before, so tuples are held until a bound has passed them.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators import Count, WindowAggregate
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> count = WindowAggregate(Session(10), {"n": Count()}).opened(schema)
    >>> list(count.on_page(0, Page.of(schema, {"ts": [7, 30, 21, 15]})))
    []
    >>> (_, page), _ = count.on_punctuation(0, Linear(41))
    >>> page.to_pylist()
    [{'window_start': 7, 'window_end': 40, 'n': 4}]
    """

    gap: Length
    most: Length | None = None

    def bound(self, schema: Schema, place: str = "Session") -> Gap | Capped:
        """Return the definition in whole units of ``schema``'s progressing attribute."""
        gap = positive(self.gap, "gap", schema, place)
        return Gap(gap) if self.most is None else Capped(gap, positive(self.most, "most", schema, place))


@dataclass(frozen=True)
class Gap(Merging):
    """Sessions in whole units."""

    gap: int

    @property
    def distance(self) -> int:
        return self.gap

    def ordered(self) -> Capped:
        """Return the sessions as folded on the bound."""
        return Capped(self.gap)

    def check(self, times: Integers) -> None:
        """Raise ``ContractError`` if the windows of these times would not fit 64 bits."""
        if times.size:
            self.check_span(int(times.min()), int(times.max()))

    def check_span(self, least: int, most: int) -> None:
        """Raise ``ContractError`` if sessions of the least or the greatest time do not fit 64 bits."""
        low, high = NEVER + 1 + 2 * self.gap, FOREVER - 1 - 2 * self.gap
        if not low <= least <= most <= high:
            value = least if least < low else most
            msg = f"windows: positions must lie in [{low}, {high}] for sessions to fit 64 bits; got {value}"
            raise ContractError(msg)

    def assign(self, slots: Integers, times: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """Return the run of each tuple, and slots, first and last times of runs, some of which may overlap.  O(n)."""
        run_of, first, last, of_run = (np.empty_like(times) for _ in range(4))
        groups, names = int(slots.max(initial=-1)) + 1, None
        if groups > max(_SPARSE * slots.size, _FEW):  # a page of few tuples must not cost all groups
            names, slots = np.unique(slots, return_inverse=True)
            groups = names.size
        runs = within(slots, times, self.gap, np.full((groups, 2), -1), run_of, first, last, of_run)
        slots_of_runs = of_run[:runs].copy() if names is None else names[of_run[:runs]]
        return run_of, slots_of_runs, first[:runs].copy(), last[:runs].copy()

    def begins(self, slots: Integers, first: Integers, last: Integers) -> NDArray[np.bool_]:
        """Return which runs, sorted by slot, then first, begin a session; the others join the one before.  O(n)."""
        new: NDArray[np.bool_] = begins(slots, first, last, self.gap)
        return new

    def ends(self, last: Integers) -> Integers:
        """Return the ends of windows, by their last times."""
        return last + self.gap

    def complete(self, last: Integers, bounds: Integers | int) -> NDArray[np.bool_]:
        """Return which runs no later tuple can join, by the bounds of their groups."""
        done: NDArray[np.bool_] = last + self.gap < bounds
        return done

    def least_end(self, bounds: Integers) -> Integers:
        """Return the least end of a window of later tuples alone; sentinels stay."""
        return shift(bounds, self.gap)


def is_gap(definition: Definition) -> TypeGuard[Gap]:
    """Return whether tuples are neighbours by their distance alone, so that windows of several such gaps nest."""
    return definition.known_by == "neighbours" and definition.distance is not None


def nested(definitions: Mapping[int, Definition]) -> dict[int, Gap]:
    """Return the sessions among definitions, the shortest gap first: a longer one joins sessions of a shorter one."""
    gaps = {number: window for number, window in definitions.items() if is_gap(window)}
    return dict(sorted(gaps.items(), key=lambda item: item[1].gap))
