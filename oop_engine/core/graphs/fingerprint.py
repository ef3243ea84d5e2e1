"""Fingerprint: whether a graph, and an operator, is the one it was, in another process and on another day.

Pickled bytes cannot tell: they differ with the order of a set and with the line a lambda is written on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Set
from enum import Enum
from functools import cached_property, partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine.core.arguments import ARGUMENTS
from oop_engine.core.graphs.graph import Node, Plan

__all__ = ["described", "difference", "fingerprint"]


def described(plan: Plan) -> dict[str, list[str]]:
    """Return each node as texts: words, inputs, fingerprint of its operator; they are equal for equal nodes."""
    return {
        node.name: [_words(node), " ".join(map(str, node.inputs)), fingerprint(node.operator)]
        for node in plan.nodes
    }


def difference(name: str, was: list[str] | None, now: list[str] | None) -> str:
    """Return in words how two descriptions of a node differ: visibly, or else in parameters and functions."""
    if was is None or now is None:
        there = (was or now or [""])[0]
        return f"node {name!r} {'was not' if was is None else 'is no longer'} there: {there}"
    if was[0] != now[0]:
        return f"node {name!r} was {was[0]} and is {now[0]}"
    if was[1] != now[1]:
        return f"node {name!r}, {now[0]}, was fed by {was[1]} and is by {now[1]}"
    return f"node {name!r}, {now[0]}, has other parameters or functions than it had"


def fingerprint(value: object) -> str:
    """Return a short text that is the same for equal parameters.

    Functions are compared by their code and the values they enclose, wherever they are written; functions
    that they call are not looked into.  O(size of ``value``).
    """
    return hashlib.sha256(repr(_plain(value, ())).encode()).hexdigest()[:16]


def _plain(value: Any, around: tuple[int, ...]) -> Any:
    """Return ``value`` as lists of texts and numbers; ``around``: the values it is inside of."""
    if id(value) in around:
        return "itself"
    inside = (*around, id(value))
    match value:
        case None | bool() | int() | float() | str() | bytes():
            return [type(value).__name__, value.name if isinstance(value, Enum) else value]
        case list() | tuple():
            return [_plain(v, inside) for v in value]
        case Mapping():
            return sorted(([_plain(k, inside), _plain(v, inside)] for k, v in value.items()), key=repr)
        case Set():
            return sorted((_plain(v, inside) for v in value), key=repr)
        case np.ndarray():
            return [value.dtype.str, value.shape, _plain(value.tolist(), inside)]
        case pa.Array() | pa.ChunkedArray() | pa.RecordBatch() | pa.Table():
            return [type(value).__name__, _plain(value.to_pylist(), inside)]
        case _:
            return _plain_object(value, inside)


def _plain_object(value: Any, inside: tuple[int, ...]) -> Any:
    match value:
        case type():
            return value.__qualname__
        case FunctionType():
            enclosed = [cell.cell_contents for cell in value.__closure__ or ()]
            given = [value.__defaults__, value.__kwdefaults__, enclosed]
            return [_plain(value.__code__, inside), _plain(given, inside)]
        case CodeType():
            return [value.co_code, value.co_names, _plain(value.co_consts, inside)]
        case MethodType():
            return [_plain(value.__func__, inside), _plain(value.__self__, inside)]
        case partial():
            return [_plain(part, inside) for part in (value.func, value.args, value.keywords)]
        case Enum():
            return [type(value).__qualname__, value.name]
        case _:
            return [type(value).__qualname__, _contents(value, inside)]


def _contents(value: Any, inside: tuple[int, ...]) -> Any:
    if (compiled := getattr(value, "py_func", None)) is not None:
        return _plain(compiled, inside)
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    fields = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    fields |= _parameters(value)
    if fields:
        return _plain(fields, inside)
    return getattr(value, "__qualname__", "") if " at 0x" in repr(value) else repr(value)


def _parameters(value: Any) -> dict[str, Any]:
    """Return the attributes of ``value`` that travel when it is pickled, without those computed once and kept."""
    kind = type(value)
    travels = (
        value.__getstate__() if any("__getstate__" in vars(base) for base in kind.__mro__[:-1]) else None
    )
    attributes: dict[str, Any] = travels if isinstance(travels, dict) else getattr(value, "__dict__", {})
    return {
        name: attribute
        for name, attribute in attributes.items()
        if name != ARGUMENTS and not _is_kept(kind, name)
    }


def _is_kept(kind: type, name: str) -> bool:
    return isinstance(getattr(kind, name, None), cached_property)


def _words(node: Node) -> str:
    return node.describe() if node.schema is None else f"{node.describe()} of {node.schema}"
