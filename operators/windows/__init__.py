"""Windows: which extents a stream is cut into.  Values, a kind a file."""

from oop_engine.operators.windows.count import PartitionedTupleBased, TupleBased
from oop_engine.operators.windows.folding import Due, FinalTuples, Folding, SliceView
from oop_engine.operators.windows.grid import Definition, Extents, Over, Windows, divisible_by
from oop_engine.operators.windows.landmark import Landmark
from oop_engine.operators.windows.merging import Merging
from oop_engine.operators.windows.session import Gap, Session, nested
from oop_engine.operators.windows.time import Sliding, Tumbling
from oop_engine.operators.windows.whole import Global

__all__ = [
    "Definition",
    "Due",
    "Extents",
    "FinalTuples",
    "Folding",
    "Gap",
    "Global",
    "Landmark",
    "Merging",
    "Over",
    "PartitionedTupleBased",
    "Session",
    "SliceView",
    "Sliding",
    "Tumbling",
    "TupleBased",
    "Windows",
    "divisible_by",
    "nested",
]
