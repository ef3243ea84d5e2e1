"""Own states: mistakes of aggregates and accumulators of others, each named with its method where it is made.

Those of this package are held to their contract by tests; NumPy would cut a fraction, or repeat a row, without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import iscoroutine
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.registry import is_ours
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import Aggregation, Arrays, Part

__all__ = ["check_identity", "fitting", "parts_of", "result_type_of", "watch"]


def check_identity(accumulator: Any) -> None:
    """Raise ``GraphError`` unless the identity of an accumulator has a NumPy scalar for each column of its state."""
    identity, place = getattr(accumulator, "identity", None), _place(accumulator)
    if (
        isinstance(identity, tuple | list)
        and identity
        and all(isinstance(each, np.generic) for each in identity)
    ):
        return
    msg = (
        f"{place}: identity must be the state of no values, a tuple of NumPy scalars, one a column; got "
        f"{identity!r:.80}: write identity = (np.int64(0),)"
    )
    raise GraphError(msg)


def watch(accumulator: Any) -> None:
    """Let ``prepare`` and ``combine`` of an accumulator raise ``ContractError`` where they return no states."""
    own = vars(accumulator)
    own["prepare"] = partial(_prepared, accumulator, accumulator.prepare)
    own["combine"] = partial(_combined, accumulator, accumulator.combine)


def _prepared(accumulator: Any, prepare: Callable[..., Any], page: Any, times: Any) -> Arrays:
    return _states(accumulator, "prepare", prepare(page, times), (len(page),))


def _combined(accumulator: Any, combine: Callable[..., Any], a: Arrays, b: Arrays) -> Arrays:
    return _states(accumulator, "combine", combine(a, b), a[0].shape)


def _states(accumulator: Any, method: str, found: Any, shape: tuple[int, ...]) -> Arrays:
    identity = accumulator.identity
    if isinstance(found, tuple | list) and len(found) == len(identity):
        alike = zip(found, identity, strict=True)
        if all(_is_column(column, value, shape) for column, value in alike):
            return tuple(found)
    if iscoroutine(found):
        found.close()
    kinds = ", ".join(str(value.dtype) for value in identity)
    rows = " x ".join(f"{size:,}" for size in shape)
    msg = (
        f"{_place(accumulator)}: {method} must return the columns of states, a tuple of {len(identity)} NumPy "
        f"arrays of {rows} values of {kinds}, as identity has them; got {_shown(found)}"
    )
    raise ContractError(msg)


def _is_column(column: Any, value: np.generic, shape: tuple[int, ...]) -> bool:
    return (
        isinstance(column, np.ndarray)
        and column.shape == shape
        and np.can_cast(column.dtype, value.dtype, "safe")
    )


def _shown(found: Any) -> str:
    if isinstance(found, tuple | list):
        return f"({', '.join(map(_shown, found))})"
    if isinstance(found, np.ndarray):
        return f"an array of {' x '.join(map(str, found.shape))} {found.dtype}"
    return f"{' '.join(repr(found).split()):.60} ({type(found).__name__})"


def _place(accumulator: Any) -> str:
    return f"accumulator {type(accumulator).__name__} of the part {accumulator.part.kind!r}"


def result_type_of(aggregate: Aggregation, schema: Schema, place: str) -> pa.DataType:
    """Return the type of the results of an aggregate.  Raises ``GraphError`` if it is none, or it names no columns."""
    given = aggregate.result_type(schema, place)
    if is_ours(type(aggregate)):
        return given
    found: Any = given
    of = f"{place}: {type(aggregate).__name__}"
    if not isinstance(found, pa.DataType):
        msg = f"{of}: result_type must return a type of Arrow, such as pa.int64(); got {found!r:.60}"
        raise GraphError(msg)
    columns: Any = aggregate.columns
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        msg = f"{of}: columns must be a tuple of the names of columns that it reads; got {columns!r:.60}"
        raise GraphError(msg)
    schema.require(columns, of)
    return found


def parts_of(aggregate: Aggregation, schema: Schema, place: str) -> tuple[Part, ...]:
    """Return the parts of an aggregate.  Raises ``GraphError`` if they are none."""
    given = aggregate.parts(schema)
    if is_ours(type(aggregate)):
        return given
    found: Any = given
    of = f"{place}: {type(aggregate).__name__}"
    parts = isinstance(found, tuple | list) and not isinstance(found, Part) and len(found) > 0
    if not parts or not all(isinstance(part, Part) for part in found):
        way = ": write (part,)" if isinstance(found, Part) else ""
        msg = f"{of}: parts must return a tuple of one Part or more; got {found!r:.80}{way}"
        raise GraphError(msg)
    for part in found:
        schema.require(part.columns, of)
    return tuple(found)


def fitting(found: Any, aggregate: Aggregation, kind: pa.DataType, rows: int, place: str) -> pa.Array:
    """Return the results ``found`` of so many windows.  Raises ``ContractError`` if they are no column of that type."""
    why = ""
    try:
        column = found if isinstance(found, pa.Array | pa.ChunkedArray) else pa.array(found, kind)
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if len(column) == rows:
            return column if column.type == kind else column.cast(kind)
        got = f"{len(column):,} values of {column.type}"
    except (pa.ArrowException, TypeError, ValueError) as error:
        got, why = _shown(found), f" ({' '.join(str(error).split()):.120})"
    wanted = f"an array of {rows:,} values of {kind}"
    msg = f"{place}: {type(aggregate).__name__}: result must return {wanted}; got {got}{why}"
    raise ContractError(msg)
