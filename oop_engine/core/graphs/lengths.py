"""Lengths: those of a graph that are probably not as they were meant.

A plain integer over a column of timestamps counts in the unit of the column: ``Tumbling(60)`` over milliseconds is
60 ms.  Windows whose slide is longer than their range leave gaps: a record in a gap is in no window.  Both are allowed,
so both are logged and are no errors.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from oop_engine.core.errors import EngineError
from oop_engine.core.graphs.graph import Plan
from oop_engine.core.schema import Schema
from oop_engine.core.units import lasting

__all__ = ["doubtful_lengths", "log_doubtful_lengths"]

_LOGGED = set[str]()
_DEEP = 4  # values within values: an operator, its windows by name, a definition, its parts


def doubtful_lengths(plan: Plan) -> list[str]:
    """Return a line for each length that is a plain integer over timestamps, and for windows with gaps, each once.

    >>> import pyarrow as pa
    >>> from oop_engine import Graph, Schema
    >>> from oop_engine.operators import Count, Tumbling, WindowAggregate
    >>> graph = Graph("g")
    >>> source = graph.source("in", Schema({"at": pa.timestamp("ms")}, "at"))
    >>> graph.sink("out", graph.add("count", WindowAggregate(Tumbling(60), {"n": Count()}), source))
    >>> doubtful_lengths(graph.plan())
    ["graph 'g', node 'count': Tumbling(range=60) is 60 ms, in the unit of 'at'; write the unit with it, as in '60 s'"]
    """
    lines: dict[str, None] = {}
    for node in plan.nodes:
        if node.operator is not None and node.inputs:
            schema = plan.schema(node.inputs[0])
            place = f"graph {plan.name!r}, node {node.name!r}"
            for value in _values(node.operator, _DEEP):
                gaps = not _has_several(node.operator)
                lines |= dict.fromkeys(f"{place}: {words}" for words in _doubts(value, schema, gaps=gaps))
    return list(lines)


def log_doubtful_lengths(plan: Plan) -> None:
    """Log (``oop_engine``) a warning for each of these lines that this process has not logged yet."""
    for line in doubtful_lengths(plan):
        if line not in _LOGGED:
            _LOGGED.add(line)
            logging.getLogger("oop_engine").warning("%s", line)


def _has_several(operator: Any) -> bool:
    """Return whether windows have several definitions: others may cover the gaps of one."""
    windows = getattr(operator, "windows", None)
    return isinstance(windows, Mapping) and len(windows) > 1


def _doubts(value: Any, schema: Schema, *, gaps: bool) -> Iterator[str]:
    cls: Any = type(value)
    kind = type(value).__name__
    if pa.types.is_timestamp(schema.type_of(schema.progressing)):
        for name in _lengths(cls):
            length = getattr(value, name, None)
            if length.__class__ is int and length:
                yield (
                    f"{kind}({name}={length}) is {lasting(length, schema.unit)}, in the unit of "
                    f"{schema.progressing!r}; write the unit with it, as in '{length} s'"
                )
    if gaps and {"range", "slide"} <= _lengths(cls) and value.range is not None:
        try:
            range_, slide = (schema.length(length, kind) for length in (value.range, value.slide))
        except EngineError:  # another place refuses it
            return
        if slide > range_ > 0:
            yield (
                f"{kind}(range={value.range!r}, slide={value.slide!r}) leaves gaps: records in "
                f"{lasting(slide - range_, schema.unit)} of each {lasting(slide, schema.unit)} are in no window; "
                "if that is not meant, exchange range and slide"
            )


@cache
def _lengths(kind: Any) -> frozenset[str]:
    """Return the parameters of a class that are lengths, by their annotations; a moment is none."""
    if not kind.__module__.startswith("oop_engine."):
        return frozenset()
    parameters = inspect.signature(kind).parameters
    if "order" in parameters:  # windows of so many records
        return frozenset()
    return frozenset(
        name
        for name, parameter in parameters.items()
        if str(parameter.annotation) in ("Length", "Length | None")
    )


def _values(value: Any, deep: int) -> Iterator[Any]:
    """Yield a value of this library and those it is made with."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for item in value:
            yield from _values(item, deep)
    elif deep and type(value).__module__.startswith("oop_engine.operators"):
        yield value
        for part in getattr(value, "__dict__", {}).values():
            yield from _values(part, deep - 1)
