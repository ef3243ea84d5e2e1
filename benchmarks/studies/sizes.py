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
from oop_engine.graph import Plan

__all__ = ["held_bytes"]

_DESCRIPTION = (Graph, Plan, Schema, pa.Schema, pa.DataType, pa.Field)
_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, str)


def held_bytes(roots: Iterable[object]) -> int:
    """Return the bytes of all arrays, Arrow buffers, containers and numbers reachable from ``roots``.

    What belongs to the query and not to its state (schemas, types, code, names) is left out, and
    memory that several share counts once.
    """
    sizes: dict[int, int] = {}
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, (*_DESCRIPTION, *_CODE)):
            continue
        seen.add(id(item))
        sizes.update(_own(item))
        waiting += _behind(item)
    return sum(sizes.values())


def _own(item: Any) -> Iterator[tuple[int, int]]:
    """Yield the place and the size of each piece of memory that is the item's own."""
    if isinstance(item, np.ndarray):
        whole = item
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        yield whole.__array_interface__["data"][0], whole.nbytes
    elif isinstance(item, (pa.Array, pa.RecordBatch, pa.ChunkedArray, pa.Table)):
        for buffer in filter(None, _buffers(item)):
            yield buffer.address, buffer.size
    else:
        yield id(item), sys.getsizeof(item)


def _buffers(item: Any) -> list[pa.Buffer]:
    if isinstance(item, pa.Array):
        found: list[pa.Buffer] = item.buffers()
        return found + (item.dictionary.buffers() if pa.types.is_dictionary(item.type) else [])
    columns = item.chunks if isinstance(item, pa.ChunkedArray) else item.columns
    return [buffer for column in columns for buffer in _buffers(column)]


def _behind(item: Any) -> list[object]:
    if isinstance(item, (np.ndarray, pa.Array, pa.RecordBatch, pa.ChunkedArray, pa.Table)):
        return []
    return gc.get_referents(item)
