"""Out-of-order stream processing with punctuation: the kernel.

It knows streams and promises and no operator; those are in the package ``operators``.
"""

from oop_engine.errors import (
    ContractError,
    EngineError,
    GraphError,
    LateTuple,
    OperatorError,
    SetupError,
    SnapshotError,
    TraceError,
    UnitError,
    UsageError,
)
from oop_engine.graph import Graph, Stream
from oop_engine.groups import GroupIndex
from oop_engine.operator import Emission, Message, Operator, State
from oop_engine.page import Page
from oop_engine.progress import Progress
from oop_engine.punctuation import FOREVER, NEVER, GroupWise, Joint, Linear, Punctuation
from oop_engine.replay import Outcome, replay
from oop_engine.run import run
from oop_engine.schema import Schema

__all__ = [
    "FOREVER",
    "NEVER",
    "ContractError",
    "Emission",
    "EngineError",
    "Graph",
    "GraphError",
    "GroupIndex",
    "GroupWise",
    "Joint",
    "LateTuple",
    "Linear",
    "Message",
    "Operator",
    "OperatorError",
    "Outcome",
    "Page",
    "Progress",
    "Punctuation",
    "Schema",
    "SetupError",
    "SnapshotError",
    "State",
    "Stream",
    "TraceError",
    "UnitError",
    "UsageError",
    "replay",
    "run",
]
