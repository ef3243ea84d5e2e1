"""Windows: which extents a stream is cut into.  Values, a kind a file.

``bound`` of a kind gives its definition in whole units (``definition.py``), which is one of three: ``Extents`` (a
grid, ``grid.py``), ``Merging`` (windows that follow from their tuples, and merge), ``Folding`` (windows that need the
order of time).  A store in ``slicing/`` serves each, so a new kind is a file here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from oop_engine.operators.windows.count import (
        PartitionedTupleBased as PartitionedTupleBased,
        RowsBetween as RowsBetween,
        TupleBased as TupleBased,
    )
    from oop_engine.operators.windows.definition import (
        Definition as Definition,
        Over as Over,
        Windows as Windows,
        completed_by_rows as completed_by_rows,
    )
    from oop_engine.operators.windows.delimited import Delimited as Delimited
    from oop_engine.operators.windows.folding import (
        Due as Due,
        FinalTuples as FinalTuples,
        Folding as Folding,
        SliceView as SliceView,
        is_folded as is_folded,
    )
    from oop_engine.operators.windows.frames import Frames as Frames
    from oop_engine.operators.windows.grid import (
        Extents as Extents,
        divisible_by as divisible_by,
        is_grid as is_grid,
    )
    from oop_engine.operators.windows.intervals import (
        FixedBand as FixedBand,
        Intervals as Intervals,
    )
    from oop_engine.operators.windows.landmark import Landmark as Landmark
    from oop_engine.operators.windows.last_rows import LastRows as LastRows
    from oop_engine.operators.windows.merging import Merging as Merging, merges as merges
    from oop_engine.operators.windows.session import (
        Gap as Gap,
        Session as Session,
        is_gap as is_gap,
        nested as nested,
    )
    from oop_engine.operators.windows.slide_by_tuple import SlideByTuple as SlideByTuple
    from oop_engine.operators.windows.time import (
        Sliding as Sliding,
        Tumbling as Tumbling,
    )
    from oop_engine.operators.windows.user import UserWindows as UserWindows
    from oop_engine.operators.windows.whole import Global as Global
else:
    __getattr__, __dir__ = lazy_names(__name__)
