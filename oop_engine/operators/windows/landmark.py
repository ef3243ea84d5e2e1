"""Landmark windows: all since an origin (thesis 5.1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


from oop_engine.core.arguments import checked_arguments
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.windows.grid import Extents, instant_in, positive

__all__ = ["Landmark"]


@checked_arguments
@dataclass(frozen=True)
class Landmark:
    """Every ``slide``, all since ``origin``: window ``w`` covers ``[origin, origin + (w+1)*slide)``.

    ``origin``: in the attribute's unit, or a ``datetime`` (without a zone: UTC) where it is a timestamp.
    Tuples before it are in no window.  A stream has windows up to that of its
    largest position; a group is in all of them from its first tuple's on, for what came
    before counts as well.

    ``lulls``: windows without a later tuple leave too, as soon as a bound passes their end, so that the bound of the
    results goes on while the stream is silent.  Results then follow the punctuation; its end adds none.

    >>> import pyarrow as pa
    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators import Count, WindowAggregate
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> count = WindowAggregate(Landmark(10, lulls=True), {"n": Count()}).opened(schema)
    >>> list(count.on_page(0, Page.of(schema, {"ts": [3]})))
    []
    >>> (_, page), bound = count.on_punctuation(0, Linear(30))
    >>> page.batch.to_pydict()["window_end"], bound
    ([10, 20, 30], (0, Linear(below=40)))
    """

    slide: Length
    origin: Length | datetime = 0
    lulls: bool = False

    def bound(self, schema: Schema, place: str = "Landmark") -> Extents:
        slide = positive(self.slide, "slide", schema, place)
        return Extents(None, slide, instant_in(self.origin, "origin", schema, place), lulls=self.lulls)
