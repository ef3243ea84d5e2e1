"""Windows of tuples in order of arrival: ``TupleBased`` and ``PartitionedTupleBased`` (thesis 5.1.3)."""

from __future__ import annotations

from dataclasses import dataclass

from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length, to_units
from oop_engine.operators.windows.grid import LONGEST, Extents, Over

__all__ = ["PartitionedTupleBased", "TupleBased"]


@dataclass(frozen=True)
class TupleBased:
    """Every ``slide`` tuples, the last ``range`` tuples, in order of arrival (ROWS).

    The first tuple of the stream has number 0; window ``w`` takes the numbers
    ``[(w+1)*slide - range, (w+1)*slide)``.
    """

    range: Length
    slide: Length

    def bound(self, schema: Schema, what: str = "TupleBased") -> Extents:
        return _rows(self.range, self.slide, Over.ROWS, what)


@dataclass(frozen=True)
class PartitionedTupleBased:
    """As ``TupleBased``, but tuples are numbered within their group (thesis 5.1.3)."""

    range: Length
    slide: Length

    def bound(self, schema: Schema, what: str = "PartitionedTupleBased") -> Extents:
        return _rows(self.range, self.slide, Over.GROUP_ROWS, what)


def _rows(range: Length, slide: Length, over: Over, what: str) -> Extents:
    lengths = {"range": range, "slide": slide}
    found = {name: to_units(value, "rows", f"{what}: {name}") for name, value in lengths.items()}
    for name, value in found.items():
        if not 0 < value <= LONGEST:
            msg = f"{what}: {name} must be > 0 and in rows; got {name}={value}"
            raise GraphError(msg)
    return Extents(found["range"], found["slide"], 0, over)
