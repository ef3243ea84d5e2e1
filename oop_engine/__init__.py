"""Out-of-order stream processing with punctuation: the kernel.

It knows streams and promises and no operator; those are in the package ``operators``.

The names of this package are loaded when they are first used, so that the program answers at once.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_NAMES_OF = {
    "errors": (
        "ContractError EngineError GraphError LateTuple OperatorError SetupError SnapshotError TraceError UnitError "
        "UsageError"
    ),
    "graph": "Graph Stream",
    "groups": "GroupIndex",
    "operator": "Emission Message Operator State",
    "page": "Page",
    "progress": "Progress",
    "punctuation": "FOREVER NEVER GroupWise Joint Linear Punctuation",
    "replay": "Outcome replay",
    "run": "run",
    "schema": "Schema",
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


class _Package(ModuleType):
    """``replay`` and ``run`` are functions, also when the modules of that name are loaded first."""

    def __setattr__(self, name: str, value: object) -> None:
        is_home = isinstance(value, ModuleType) and _HOMES.get(name) == name
        super().__setattr__(name, getattr(value, name) if is_home else value)


sys.modules[__name__].__class__ = _Package
