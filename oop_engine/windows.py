"""Windows: into which extents of time, ranks or markers a stream is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.operators.windows import (
        Delimited as Delimited,
        FixedBand as FixedBand,
        Frames as Frames,
        Global as Global,
        Intervals as Intervals,
        Landmark as Landmark,
        LastRows as LastRows,
        PartitionedTupleBased as PartitionedTupleBased,
        RowsBetween as RowsBetween,
        Session as Session,
        SlideByTuple as SlideByTuple,
        Sliding as Sliding,
        Tumbling as Tumbling,
        TupleBased as TupleBased,
        UserWindows as UserWindows,
    )
else:
    __getattr__, __dir__ = shelf(__name__)
