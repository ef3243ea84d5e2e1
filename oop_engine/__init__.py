"""Out-of-order stream processing with punctuation: the kernel.

It knows streams and promises and no operator; those are in the package ``operators``.

The names of this package are loaded when they are first used, so that the program answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oop_engine.core.errors import (
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
    from oop_engine.core.graph import Graph, Stream
    from oop_engine.core.group_index import GroupIndex
    from oop_engine.core.operator import Emission, Message, Operator, State
    from oop_engine.core.page import Page
    from oop_engine.core.progress import Progress
    from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Joint, Linear, Punctuation
    from oop_engine.core.schema import Schema
    from oop_engine.face import run
    from oop_engine.runners.replay import Outcome, replay

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

_NAMES_OF = {
    "core.errors": (
        "ContractError EngineError GraphError LateTuple OperatorError SetupError SnapshotError TraceError UnitError "
        "UsageError"
    ),
    "core.graph": "Graph Stream",
    "core.group_index": "GroupIndex",
    "core.operator": "Emission Message Operator State",
    "core.page": "Page",
    "core.progress": "Progress",
    "core.punctuation": "FOREVER NEVER GroupWise Joint Linear Punctuation",
    "core.schema": "Schema",
    "runners.replay": "Outcome replay",
    "face": "run",
}
_HOMES = {name: home for home, names in _NAMES_OF.items() for name in names.split()}

if not TYPE_CHECKING:  # so that a checker knows the names above and no others

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            msg = f"module 'oop_engine' has no attribute {name!r}"
            raise AttributeError(msg)
        value = globals()[name] = getattr(import_module(f"oop_engine.{_HOMES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
