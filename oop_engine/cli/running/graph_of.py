"""The graph in a Python file, and the texts of options that belong to its nodes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from oop_engine.core.close_names import renamed
from oop_engine.core.errors import EngineError, UsageError
from oop_engine.system.addresses import printable

if TYPE_CHECKING:
    from oop_engine.core.graphs.graph import Graph

__all__ = [
    "check_takes",
    "checked_graph",
    "graph_in_sql",
    "graph_of",
    "graph_or_function",
    "made_graph",
    "named_nodes",
    "named_or_alone",
    "of_any_name",
    "takes_nothing",
]

_NAME = re.compile(r"[\w-]+")
T = TypeVar("T")


def named_nodes(option: str, given: tuple[str, ...], names: list[str]) -> dict[str, str]:
    """Return texts by the names before their ``=``; a single one needs none."""
    nodes: dict[str, str] = {}
    for text in given:
        name, equals, rest = text.partition("=")
        path = not Path(text).exists() and Path(rest).exists()
        meant = (
            equals and (":" in rest or path) and _NAME.fullmatch(name)
        )  # a name, and no part of an address
        if not equals or (len(names) == 1 and name not in names and not meant):
            if len(names) != 1:
                known = ", ".join(names) or "NAME"
                msg = f"{option} {printable(text)!r}: must begin with the name of its node: {known}=..."
                raise UsageError(msg)
            name, rest = names[0], text
        if name in nodes:
            msg = f"{option}: {name!r} is given twice"
            raise UsageError(msg)
        nodes[name] = rest
    if names and {*names} != {*nodes}:
        got = f"{', '.join(nodes) or 'none'}{renamed(nodes, names)}"
        msg = f"{option}: the graph has {', '.join(names)}; got {got}"
        raise UsageError(msg)
    return nodes


def named_or_alone(option: str, given: tuple[str, ...]) -> dict[str, str]:
    """Return texts by the names before their ``=``, before the names of the nodes are known.

    A single text may come without a name, which is ``""`` then.
    """
    if len(given) == 1 and (Path(given[0]).exists() or not re.match(rf"{_NAME.pattern}=", given[0])):
        return {"": given[0]}
    return named_nodes(option, given, [])


class _ByName(dict[str, T]):
    """Values by the names of traces; ``alone``: the trace has no name of its own, so its value is given for all."""

    def __init__(self, values: Mapping[str, T], *, alone: bool) -> None:
        super().__init__(values)
        self._alone = alone

    def __missing__(self, name: str) -> T:
        if self._alone:
            return next(iter(self.values()))
        msg = f"TRACE: the graph has a source {name!r}; got {', '.join(self)}: write {name}=TRACE"
        raise UsageError(msg)


def of_any_name(values: dict[str, T], path: Path | None) -> dict[str, T]:
    """Return values by the names of traces; asking for a name that no trace has is a ``UsageError``.

    A trace that was given without a name, ``""``, is named after its file, ``path``, and answers to all names.
    """
    if "" not in values or path is None:
        return _ByName(values, alone=False)
    name = re.sub(r"\W", "_", path.name.partition(".")[0]) or "trace"
    return _ByName({name: values[""]}, alone=True)


def graph_or_function(path: Path) -> Any:
    """Return the value of ``graph`` in a file, or that of another name: ``graph.py:hourly``."""
    from oop_engine.core.graphs.graph import Graph
    from oop_engine.system.python_file import file_and_name, load_file

    if path.suffix == ".sql":
        return graph_in_sql(path, live=False)
    file, name = file_and_name(path)
    module = load_file(file, "Python")
    made = getattr(module, name, None)
    if not callable(made) and not isinstance(made, Graph):
        others = [
            each
            for each, value in vars(module).items()
            if isinstance(value, Graph) or _may_make(value, module)
        ]
        hint = f"; it has {', '.join(others)}: {file}:{others[0]}" if others else ""
        msg = f"{path}: must have {name}, a Graph or a function that returns one; got {made!r}{hint}"
        raise UsageError(msg)
    return made


def _may_make(made: Any, module: ModuleType) -> bool:
    """Return whether a function of a module may return a graph: its own, for all to see, and without parameters."""
    own = isinstance(made, FunctionType) and made.__module__ == module.__name__
    return own and not made.__name__.startswith("_") and takes_nothing(made)


def takes_nothing(function: Any) -> bool:
    """Return whether a function has no parameters."""
    return not inspect.signature(function).parameters


def graph_of(path: Path) -> Graph:
    """Return the graph in a file, which needs no schemas.

    Raises ``UsageError`` for one that does, and for one in SQL whose state has no end over live sources.
    """
    if path.suffix == ".sql":
        return graph_in_sql(path, live=True)
    made = graph_or_function(path)
    if not callable(made):
        return checked_graph(path, made)
    if not takes_nothing(made):
        msg = (
            f"{path}: graph(schemas, policies) is given those of traces, by `oop-engine run {path} NAME=TRACE`; here "
            "graph must be a Graph, or a function without parameters"
        )
        raise UsageError(msg)
    return made_graph(path, made)


def graph_in_sql(path: Path, *, live: bool) -> Graph:
    """Return the graph of the statements in a file: a sink for each INSERT, and ``result`` for a last SELECT."""
    from oop_engine.query.finish import check_plain
    from oop_engine.query.graph_of import built
    from oop_engine.query.sql.entry import results_of

    if not path.is_file():
        msg = f"no file of SQL at {path}"
        raise UsageError(msg)
    results = results_of(path.read_text("utf-8"), {})
    if not results:
        msg = f"{path}: has no result: end it with a SELECT, or write INSERT INTO sink SELECT ..."
        raise UsageError(msg)
    check_plain(str(path), {name: result.finish for name, result in results.items()})
    made = built(path.stem, {name: result.output for name, result in results.items()}, measure=not live)
    if live and made.unbounded:
        name, why = next(iter(made.unbounded.items()))
        msg = f"{path}: {name!r} has a state without an end over a live source: {why}"
        raise UsageError(msg)
    return made.graph


def made_graph(path: Path, function: Any, *given: Any) -> Graph:
    """Return the graph that a function of a file makes.  Raises ``UsageError`` if it cannot, or it is no graph."""
    from oop_engine.system.python_file import raised

    try:
        graph = function(*given)
    except EngineError:
        raise
    except Exception as error:
        msg = f"{path}: graph() raised {raised(path, error)}"
        raise UsageError(msg) from error
    return checked_graph(path, graph)


def check_takes(path: Path, function: Any, *given: Any) -> None:
    """Raise ``UsageError`` if a function cannot be called with so many arguments."""
    try:
        inspect.signature(function).bind(*given)
    except TypeError:
        msg = f"{path}: must have graph() or graph(schemas, policies); got graph{inspect.signature(function)}"
        raise UsageError(msg) from None


def checked_graph(path: Path, graph: Any) -> Graph:
    """Return the graph that a function has returned.  Raises ``UsageError`` if it is no graph."""
    from oop_engine.core.graphs.graph import Graph

    if not isinstance(graph, Graph):
        msg = f"{path}: graph() must return a Graph; got {graph!r}"
        raise UsageError(msg)
    return graph
