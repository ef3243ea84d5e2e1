"""Windows on the progressing attribute: ``Sliding`` and ``Tumbling`` (thesis 5.1.1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.windows.grid import Extents, instant_in, positive

__all__ = ["Sliding", "Tumbling"]


@checked_arguments
@dataclass(frozen=True)
class Sliding:
    """Every ``slide``, the last ``range`` of the progressing attribute (RANGE, SLIDE).

    >>> from oop_engine import Schema
    >>> import numpy as np, pyarrow as pa
    >>> minutes = Sliding("10 min", "1 min").bound(Schema({"ts": pa.int64()}, "ts", "s"))
    >>> [ids.tolist() for ids in minutes.wids(np.array([5]))], int(minutes.closed_by(119))
    ([[0], [9]], 1)
    """

    range: Length
    slide: Length
    origin: Length | datetime = 0

    def bound(self, schema: Schema, place: str = "Sliding") -> Extents:
        return Extents(
            positive(self.range, "range", schema, place),
            positive(self.slide, "slide", schema, place),
            instant_in(self.origin, "origin", schema, place),
        )


@checked_arguments
@dataclass(frozen=True)
class Tumbling:
    """Windows side by side, each ``range`` long: sliding by its own range."""

    range: Length
    origin: Length | datetime = 0

    def bound(self, schema: Schema, place: str = "Tumbling") -> Extents:
        range = positive(self.range, "range", schema, place)
        return Extents(range, range, instant_in(self.origin, "origin", schema, place))
