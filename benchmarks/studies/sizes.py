"""Sizes: the bytes that an object keeps alive, as they are and not as it says."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine import Graph, Schema
from oop_engine.core.arguments import ARGUMENTS
from oop_engine.core.graphs.graph import Plan
from oop_engine.operators.slicing.accumulator import Accumulator
from oop_engine.system.kernel import Kernel

__all__ = ["held_bytes"]

_DESCRIPTION = (Graph, Plan, Schema, Accumulator, pa.Schema, pa.DataType, pa.Field)
_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, Kernel)

_COLUMNS = (np.ndarray, pa.Array, pa.RecordBatch, pa.ChunkedArray, pa.Table, pa.Buffer)

Piece = tuple[int, int]
"""A piece of memory: where it begins, and where it ends."""


def held_bytes(roots: Iterable[object]) -> int:
    """Return the bytes of all arrays, Arrow buffers, containers, texts and numbers reachable from ``roots``.

    What belongs to the query and not to its state (schemas, types, code) is left out, and
    memory that several share counts once.
    """
    pieces: set[Piece] = set()
    objects = 0
    seen: dict[int, object] = {}  # also keeps alive what is made on the way, so that no number is used twice
    waiting = list(roots)
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, (*_DESCRIPTION, *_CODE)):
            continue
        seen[id(item)] = item
        if isinstance(item, _COLUMNS):
            pieces.update(_own(item))
        else:
            objects += sys.getsizeof(item)
        waiting += _behind(item)
    return objects + _covered(pieces)


def _covered(pieces: Iterable[Piece]) -> int:
    """Return how many bytes are in some piece."""
    bytes_, reached = 0, 0
    for start, stop in sorted(pieces):
        bytes_ += max(stop - max(start, reached), 0)
        reached = max(reached, stop)
    return bytes_


def _own(item: Any) -> Iterator[Piece]:
    """Yield the pieces of memory that a column has, or several."""
    if isinstance(item, np.ndarray):
        if not _is_view(item):
            start = item.__array_interface__["data"][0]
            yield start, start + item.nbytes
    elif isinstance(item, pa.Buffer):
        yield item.address, item.address + item.size
    else:
        for buffer in filter(None, _buffers(item)):
            yield buffer.address, buffer.address + buffer.size


def _buffers(item: Any) -> list[pa.Buffer]:
    if isinstance(item, pa.Array):
        found: list[pa.Buffer] = item.buffers()
        return found + (_buffers(item.dictionary) if pa.types.is_dictionary(item.type) else [])
    columns = item.chunks if isinstance(item, pa.ChunkedArray) else item.columns
    return [buffer for column in columns for buffer in _buffers(column)]


def _is_view(array: np.ndarray[Any, Any]) -> bool:
    """Tell whether the array shows the memory of another object, which is looked at by itself."""
    return isinstance(array.base, (np.ndarray, pa.Array, pa.Buffer))


def _behind(item: Any) -> list[object]:
    if isinstance(item, np.ndarray):
        return [item.base] if _is_view(item) else []
    if isinstance(item, _COLUMNS):
        return []
    if isinstance(item, dict):
        state = [(key, one) for key, one in item.items() if key != ARGUMENTS]  # those are of the query
        return [each for pair in state for each in pair]  # the collector leaves out keys that are texts
    return gc.get_referents(item)
