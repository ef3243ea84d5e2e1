"""Errors, by who has to mend them.

    EngineError
    ├── GraphError      the graph or an operator was put together wrongly: mend the program
    │   └── UnitError   a length that does not fit the unit of the progressing attribute
    ├── ContractError   a source or an operator contradicted its punctuation: mend the source
    │   └── LateTuple   a tuple came behind a bound, and the late policy is to raise
    ├── OperatorError   an operator, or a function in it, failed: mend ``__cause__``
    ├── TraceError      a file cannot be read as declared: mend the data
    ├── SnapshotError   bytes that are no snapshot of this operator
    ├── UsageError      an unknown scenario, parameter, format: mend the command
    │   └── UnknownNameError  a KeyError, too: results of a sink that the graph has not
    └── SetupError      a requirement of a runner is missing or too old: mend the machine

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
    "UnknownNameError",
    "UsageError",
    "not_installed",
]


class EngineError(Exception):
    """Any error this package raises on purpose."""


class GraphError(EngineError, ValueError):
    """The graph, or an operator in it, was put together wrongly."""


class UnitError(GraphError):
    """A length does not fit the unit of the progressing attribute."""


class ContractError(EngineError):
    """A source or an operator contradicted the punctuation of its stream."""


class LateTuple(ContractError):  # noqa: N818  (it is the tuple that is late)
    """A tuple came behind a bound and the late policy is to raise."""


class OperatorError(EngineError):
    """An operator, or a function of yours that it called, raised an error that is none of these.

    It names the graph, the node and the message that was being handled; ``__cause__`` is the error itself.
    """


class TraceError(EngineError, ValueError):
    """A trace cannot be read as declared."""


class SnapshotError(EngineError, ValueError):
    """The bytes are no snapshot of this operator."""


class UsageError(EngineError, ValueError):
    """A command or call names something that does not exist."""


class UnknownNameError(UsageError, KeyError):
    """Something was looked up by a name that it has not."""

    __str__ = Exception.__str__  # that of KeyError is a repr


class SetupError(EngineError):
    """A requirement of a runner (a Java, a package, a setting of a session) is missing or too old."""


def not_installed(place: str, packages: str, extra: str) -> SetupError:
    """Return the error that ``place`` needs packages which an extra of this project brings.

    >>> print(not_installed("Mqtt", "paho", "mqtt"))
    Mqtt needs paho, not installed here: pip install 'oop-engine[mqtt]', or in a clone pip install '.[mqtt]'
    """
    msg = f"{place} needs {packages}, not installed here: pip install 'oop-engine[{extra}]', or in a clone "
    return SetupError(f"{msg}pip install '.[{extra}]'")
