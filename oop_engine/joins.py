"""Joins: the bands of ``OAJoin``, which pairs of records belong together, and joins of more than two streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.operators.joining.bands import (
        AsOf as AsOf,
        Band as Band,
        TumblingBand as TumblingBand,
        WindowIdBand as WindowIdBand,
    )
    from oop_engine.operators.rewrites.multi_join import multi_join as multi_join
else:
    __getattr__, __dir__ = shelf(__name__)
