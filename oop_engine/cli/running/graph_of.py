"""The graph in a Python file, and the texts of options that belong to its nodes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oop_engine.core.errors import UsageError

if TYPE_CHECKING:
    from oop_engine.core.graphs.graph import Graph

__all__ = ["checked_graph", "graph_of", "graph_or_function", "named_nodes", "takes_nothing"]

_NAME = re.compile(r"[\w-]+")


def named_nodes(option: str, given: tuple[str, ...], names: list[str]) -> dict[str, str]:
    """Return texts by the names before their ``=``; a single one needs none."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, rest = text.partition("=")
        meant = equals and ":" in rest and _NAME.fullmatch(name)  # a name, and no part of an address
        if not equals or (len(names) == 1 and name not in names and not meant):
            if len(names) != 1:
                msg = f"{option} {text!r}: must begin with the name of its node: {', '.join(names) or 'NAME'}={text}"
                raise UsageError(msg)
            name, rest = names[0], text
        if name in found:
            msg = f"{option}: {name!r} is given twice"
            raise UsageError(msg)
        found[name] = rest
    if names and {*names} != {*found}:
        msg = f"{option}: the graph has {', '.join(names)}; got {', '.join(found) or 'none'}"
        raise UsageError(msg)
    return found


def graph_or_function(path: Path) -> Any:
    """Return the value of ``graph`` in a file."""
    from oop_engine.core.graphs.graph import Graph
    from oop_engine.system.python_file import load_file

    found = getattr(load_file(path, "Python"), "graph", None)
    if not callable(found) and not isinstance(found, Graph):
        msg = f"{path}: must have graph, a Graph or a function that returns one; got {found!r}"
        raise UsageError(msg)
    return found


def takes_nothing(found: Any) -> bool:
    """Tell whether a function has no parameters."""
    import inspect

    return not inspect.signature(found).parameters


def graph_of(path: Path) -> Graph:
    """Return the graph in a file, which needs no schemas."""
    found = graph_or_function(path)
    if not callable(found):
        return checked_graph(path, found)
    if not takes_nothing(found):
        msg = f"{path}: graph(schemas, policies) is for traces; live, it must be a Graph, or graph() without parameters"
        raise UsageError(msg)
    return checked_graph(path, found())


def checked_graph(path: Path, graph: Any) -> Graph:
    """Return the graph that a function has returned.  Raises ``UsageError`` if it is no graph."""
    from oop_engine.core.graphs.graph import Graph

    if not isinstance(graph, Graph):
        msg = f"{path}: graph() must return a Graph; got {graph!r}"
        raise UsageError(msg)
    return graph
