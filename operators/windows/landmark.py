"""Landmark windows: all since an origin (thesis 5.1.2)."""

from __future__ import annotations

from dataclasses import dataclass

from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.windows.grid import Extents, length_in, positive

__all__ = ["Landmark"]


@dataclass(frozen=True)
class Landmark:
    """Every ``slide``, all since ``origin``: window ``w`` covers ``[origin, origin + (w+1)*slide)``.

    Tuples before ``origin`` are in no window.  A stream has windows up to that of its
    largest position; a group is in all of them from its first tuple's on, for what came
    before counts as well.
    """

    slide: Length
    origin: Length = 0

    def bound(self, schema: Schema, what: str = "Landmark") -> Extents:
        slide = positive(self.slide, "slide", schema, what)
        return Extents(None, slide, length_in(self.origin, "origin", schema, what))
