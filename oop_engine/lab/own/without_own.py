"""A graph without the parts that its user wrote: it loads kernels, and calls no function of the user."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from oop_engine.core.graphs.graph import Graph, Plan, Stream
from oop_engine.core.units import TIME_UNITS

__all__ = ["is_own", "without_own"]

_LIBRARIES = sys.stdlib_module_names | {"numba", "numpy", "oop_engine", "pandas", "pyarrow"}
_BEHIND_S = 60


def without_own(plan: Plan) -> Graph:
    """Return the graph with sources, and a bound behind them, in the place of each operator that is the user's."""
    from oop_engine.operators.edge.punctuate import Punctuate
    from oop_engine.operators.policies.policies import BoundedDisorder

    graph, streams = Graph(plan.name), dict[Stream, Stream]()
    for node in plan.nodes:
        inputs = [streams[plan.input(node, port)] for port in range(len(node.inputs))]
        if node.schema is not None:
            streams[Stream(node.name, "out")] = graph.source(node.name, node.schema)
        elif node.operator is None:
            graph.sink(node.name, *inputs)
        elif is_own(node.operator):
            for number, stream in enumerate(inputs):
                graph.sink(f"{node.name}-in-{number}", stream)
            for port in node.ports:
                schema = plan.schema(Stream(node.name, port))
                policy = BoundedDisorder(_BEHIND_S * TIME_UNITS.get(schema.unit, 1))
                rows = graph.source(f"{node.name}-{port}-rows", schema)
                streams[Stream(node.name, port)] = graph.add(f"{node.name}-{port}", Punctuate(policy), rows)
        else:
            graph.add(node.name, node.operator, *inputs)
            streams |= {Stream(node.name, port): Stream(node.name, port) for port in node.ports}
    return graph


def is_own(value: Any) -> bool:
    """Return whether a value, or one in it, is of a class or a function that no library has."""
    seen, waiting = set[int](), [value]
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if _module(item).partition(".")[0] not in _LIBRARIES:
            return True
        waiting += _inside(item)
    return False


def _module(value: Any) -> str:
    cls = value if isinstance(value, type | FunctionType) else type(value)
    return str(cls.__module__)


def _inside(value: Any) -> Iterator[Any]:
    match value:
        case type() | FunctionType():
            return
        case MethodType():
            yield from (value.__func__, value.__self__)
        case partial():
            yield from (value.func, *value.args, *value.keywords.values())
        case Mapping():
            yield from value.values()
        case list() | tuple() | set() | frozenset():
            yield from value
    yield from getattr(value, "__dict__", {}).values()
