"""The graph of a pipeline: the result of the function ``graph`` in a Python file of the user.

``graph(schemas, policies)`` is given a schema and a policy for each source, by its name, and returns a
``Graph`` with sources of these names::

    def graph(schemas: Mapping[str, Schema], policies: Mapping[str, Policy]) -> Graph: ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from oop_engine.core.close_names import renamed
from oop_engine.core.errors import EngineError, UsageError
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.schema import Schema
from oop_engine.operators.policies.running_bound import Policy
from oop_engine.system.python_file import file_and_name, load_file

__all__ = ["Build", "build", "load_build"]

Build: TypeAlias = Callable[[Mapping[str, Schema], Mapping[str, Policy]], Graph]


def load_build(path: Path) -> Build:
    """Return the function ``graph`` in a file, or that of another name: ``graph.py:hourly``.

    Raises ``UsageError`` if there is none.
    """
    file, name = file_and_name(path)
    function = getattr(load_file(file, "Python"), name, None)
    if not callable(function):
        msg = f"{path}: must define def {name}(schemas, policies) -> Graph; got {function!r}"
        raise UsageError(msg)
    made: Build = function
    return made


def build(made: Build, path: Path, schemas: Mapping[str, Schema], policies: Mapping[str, Policy]) -> Graph:
    """Return the graph, checked; raises ``UsageError`` if its function fails, or its sources are others."""
    try:
        graph: object = made(schemas, policies)
    except EngineError:
        raise
    except Exception as error:
        msg = f"{path}: graph() failed: {type(error).__name__}: {error}"
        raise UsageError(msg) from error
    if not isinstance(graph, Graph):
        msg = f"{path}: graph() must return a Graph; got {graph!r}"
        raise UsageError(msg)
    names = [node.name for node in graph.plan().of_kind("source")]
    if set(names) != set(schemas):
        msg = f"{path}: the graph has the sources {', '.join(names)}; the events have {', '.join(schemas)}"
        msg += renamed(names, schemas)
        raise UsageError(msg)
    return graph
