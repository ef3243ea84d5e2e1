"""Windows: which extents a stream is cut into.  Values, a kind a file.

``bound`` of a kind gives its definition in whole units, which is one of three: ``Extents`` (``grid.py``: a grid),
``Merging`` (windows that follow from their tuples, and merge), ``Folding`` (windows that need the order of time).  A
store in ``slicing/`` serves each, so a new kind is a file here.
"""

from oop_engine.operators.windows.count import PartitionedTupleBased, RowsBetween, TupleBased
from oop_engine.operators.windows.delimited import Delimited
from oop_engine.operators.windows.folding import Due, FinalTuples, Folding, SliceView
from oop_engine.operators.windows.frames import Frames
from oop_engine.operators.windows.grid import Definition, Extents, Over, Windows, divisible_by
from oop_engine.operators.windows.intervals import FixedBand, Intervals
from oop_engine.operators.windows.landmark import Landmark
from oop_engine.operators.windows.last_rows import LastRows
from oop_engine.operators.windows.merging import Merging
from oop_engine.operators.windows.session import Gap, Session, nested
from oop_engine.operators.windows.slide_by_tuple import SlideByTuple
from oop_engine.operators.windows.time import Sliding, Tumbling
from oop_engine.operators.windows.user import UserWindows
from oop_engine.operators.windows.whole import Global

__all__ = [
    "Definition",
    "Delimited",
    "Due",
    "Extents",
    "FinalTuples",
    "FixedBand",
    "Folding",
    "Frames",
    "Gap",
    "Global",
    "Intervals",
    "Landmark",
    "LastRows",
    "Merging",
    "Over",
    "PartitionedTupleBased",
    "RowsBetween",
    "Session",
    "SliceView",
    "SlideByTuple",
    "Sliding",
    "Tumbling",
    "TupleBased",
    "UserWindows",
    "Windows",
    "divisible_by",
    "nested",
]
