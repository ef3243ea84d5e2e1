"""What can go wrong, by who has to mend it.

    EngineError
    ├── GraphError      the graph or an operator was put together wrongly: mend the program
    │   └── UnitError   a length that does not fit the unit of the progressing attribute
    ├── ContractError   a source or an operator broke a promise of its stream: mend the source
    │   └── LateTuple   a tuple came behind a promise, and the late policy is to raise
    ├── OperatorError   an operator, or a function in it, failed: mend what ``__cause__`` tells
    ├── TraceError      a file cannot be read as what it was said to be: mend the data
    ├── SnapshotError   bytes that are no snapshot of this operator
    ├── UsageError      an unknown scenario, parameter, format: mend the command
    └── SetupError      what a runner stands on is missing or too old: mend the machine

Every message names the place, what must hold, the value got with its unit, and the
way out.  A command ends with exit code 2 on any of them, without a traceback; of an
``OperatorError`` it shows the traceback, and ends with 70.
"""

from __future__ import annotations

__all__ = [
    "ContractError",
    "EngineError",
    "GraphError",
    "LateTuple",
    "OperatorError",
    "SetupError",
    "SnapshotError",
    "TraceError",
    "UnitError",
    "UsageError",
]


class EngineError(Exception):
    """Any error this package raises on purpose."""


class GraphError(EngineError, ValueError):
    """The graph, or an operator in it, was put together wrongly."""


class UnitError(GraphError):
    """A length does not fit the unit of the progressing attribute."""


class ContractError(EngineError):
    """A source or an operator broke a promise of its stream."""


class LateTuple(ContractError):  # noqa: N818  (it is the tuple that is late)
    """A tuple came behind a promise and the late policy is to raise."""


class OperatorError(EngineError):
    """An operator, or a function of yours that it called, raised an error that is none of these.

    It tells the graph, the node and the message that was being handled; ``__cause__`` is the error itself.
    """


class TraceError(EngineError, ValueError):
    """A trace cannot be read as what it was said to be."""


class SnapshotError(EngineError, ValueError):
    """The bytes are no snapshot of this operator."""


class UsageError(EngineError, ValueError):
    """A command or call names something that does not exist."""


class SetupError(EngineError):
    """What a runner stands on (a Java, a package, a setting of a session) is missing or too old."""
