"""Fingerprint: whether an operator has the parameters it had, in another process and on another day.

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

__all__ = ["fingerprint"]


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
    travels = value.__getstate__() if any("__getstate__" in vars(one) for one in kind.__mro__[:-1]) else None
    found: dict[str, Any] = travels if isinstance(travels, dict) else getattr(value, "__dict__", {})
    return {name: one for name, one in found.items() if not _is_kept(kind, name)}


def _is_kept(kind: type, name: str) -> bool:
    return isinstance(getattr(kind, name, None), cached_property)
