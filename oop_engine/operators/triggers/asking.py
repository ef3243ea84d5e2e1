"""Triggers that look beyond a window's numbers: at its tuples, at the arrival clock, at requests from outside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length, to_units
from oop_engine.operators.triggers.basic import Integers, Mask, Trigger, WindowView
from oop_engine.operators.values.expressions import Expression, require_boolean

__all__ = ["AfterDelay", "AfterMatch", "OnRequest"]


@checked_arguments
@dataclass(frozen=True, eq=False)
class AfterMatch(Trigger):
    """A tuple came for which ``predicate`` is true, as in ``Filter``: a punctuation mark, the end of a segment.

    Raises ``GraphError`` when the graph is built if it is not boolean.
    """

    predicate: Expression

    width = 1  # matches of the last version
    adds = (True,)

    def check(self, names: list[str], schema: Schema, place: str) -> None:
        require_boolean(f"{place}: AfterMatch", [self.predicate], schema)

    def fires(self, view: WindowView, state: Integers) -> Mask:
        """Return for which windows it fires, bool (n,)."""
        fired: Mask = view.matches[self] > state[:, 0]
        return fired

    def after(self, view: WindowView, state: Integers, asked: Mask) -> Integers:
        return view.matches[self][:, None]


@checked_arguments
@dataclass(frozen=True)
class AfterDelay(Trigger):
    """So long on the arrival clock since the first tuple that is in no version, up to a quarter more.

    A window whose extents follow from its tuples waits anew when they change, but for sessions.

    ``length``: in units of the attribute, or text such as ``"10 s"``.  The operator asks for the clock, so on Spark it
    has to stand at a source.  Raises ``GraphError`` if it is not positive.
    """

    length: Length

    def check(self, names: list[str], schema: Schema, place: str) -> None:
        if (length := self._units(schema, place)) < 1:
            msg = f"{place}: AfterDelay must be at least 1 {schema.unit}; got {length}"
            raise GraphError(msg)

    def _units(self, schema: Schema, place: str = "AfterDelay") -> int:
        return to_units(self.length, schema.unit, f"{place}: AfterDelay")

    def every(self, schema: Schema) -> int:
        """Return how often the clock is asked, in units of the attribute."""
        return max(self._units(schema) // 4, 1)

    def fires(self, view: WindowView, state: Integers) -> Mask:
        fired: Mask = (view.since > 0) & (view.waited >= self._units(view.schema))
        return fired


@checked_arguments
@dataclass(frozen=True)
class OnRequest(Trigger):
    """A page on the second input, ``ask``, names its group by columns of ``by``; without such columns: all groups."""

    def fires(self, view: WindowView, state: Integers) -> Mask:
        return np.full(view.since.size, view.asked)
