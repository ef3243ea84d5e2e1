"""Column: the door for the values of one column, whatever they come in.

``column`` returns the values that were given in the type of the column, or raises an error that names the column, the
first value that its type has not, both types, and the call that converts it.  Where the types agree it is free.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.core.errors import ContractError
from oop_engine.core.groups.in_python import values_of
from oop_engine.core.late.packing import CODES
from oop_engine.core.values.array_likes import as_arrow, objects, of_numpy
from oop_engine.core.values.arrays import converted, without_views
from oop_engine.core.values.kinds import converts, plain_type, way_out
from oop_engine.core.values.python_values import of_values
from oop_engine.system.knobs import knob

__all__ = ["column", "misfit"]

_FEW = knob(__name__, "_FEW", 1024)  # values: so many are packed in less time than Arrow takes for them
_SHOWN = 80


def column(values: Any, kind: pa.DataType, place: str) -> pa.Array:
    """Return ``values`` as an array of ``kind``: of Python objects, NumPy, pandas, Polars, Arrow.

    Raises ``ContractError`` in the name of ``place`` for a value that ``kind`` has not, and for more of them than an
    array can hold (2 GiB of texts).

    >>> column([1, 2.0], pa.int8(), "page: 'n'").to_pylist()
    [1, 2]
    >>> column([1.5], pa.int8(), "page: 'n'")
    Traceback (most recent call last):
    oop_engine.core.errors.ContractError: page: 'n' must be int8; got 1.5 (double): declare it as double, or convert...
    """
    if values.__class__ is list or values.__class__ is tuple:
        few = _packed(values, kind)
        return _of_objects(values, kind, place) if few is None else few
    if isinstance(values, pa.Array) and values.type == kind:
        return values
    if (
        values.__class__ is np.ndarray
        and values.dtype.kind in "iufb"
        and values.ndim == 1
        and values.itemsize <= 8
    ):
        array = of_numpy(values)
        if array.type == kind:
            return array
    try:
        array = as_arrow(values)
        if array is None:
            return _of_objects(objects(values), kind, place)
        if isinstance(array, pa.ChunkedArray):
            array = _in_one(array)
        array = without_views(array)
        if not converts(array.type, kind):
            msg = f"{place} must be {misfit(kind, array.type)}"
            raise ContractError(msg)
        made, lost = converted(array, kind)
    except pa.ArrowException as error:
        msg = f"{place} must be {kind}; got {_type_of(values)}: {error}"
        raise ContractError(msg) from error
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"{place} must be {kind}; got {_type_of(values)}: {error}"
        raise ContractError(msg) from error
    if lost is not None:
        first = array.filter(lost)[:1]
        msg = f"{place} must be {misfit(kind, array.type, values_of(first)[0])}"
        raise ContractError(msg)
    return made


def misfit(kind: pa.DataType, given: pa.DataType, *value: Any) -> str:
    """Return the text of an error: a value, or all of type ``given``, cannot become ``kind``.

    >>> misfit(pa.bool_(), pa.int64(), 5)
    'bool; got 5 (int64): declare it as int64, or convert it: pc.not_equal(column, 0)'
    """
    got = f"{value[0]!r:.{_SHOWN}} ({given})" if value else str(given)
    return f"{kind}; got {got}: {way_out(given, kind)}"


def _of_objects(values: Sequence[Any], kind: pa.DataType, place: str) -> pa.Array:
    made, lost = of_values(values, kind)
    if lost is not None:
        _refuse(values[pc.index(lost, True).as_py()], kind, place)
    return made


def _refuse(value: Any, kind: pa.DataType, place: str) -> NoReturn:
    try:
        array = as_arrow([value]) or pa.array([value])
        msg = f"{place} must be {misfit(kind, array.type, value)}"
    except (pa.ArrowException, TypeError, ValueError, ArithmeticError):
        got = f"{value!r:.{_SHOWN}} ({type(value).__name__})"
        msg = f"{place} must be {kind}; got {got}: declare it as that, or convert it"
    raise ContractError(msg)


def _packed(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    """Return an array of a few numbers; None where there are more, or Arrow has to judge them."""
    wanted, code = CODES.get(kind.id, (None, ""))
    if wanted is None or len(values) > _FEW or set(map(type, values)) != {wanted}:
        return None
    try:
        packed = struct.pack(f"{len(values)}{code}", *values)
    except struct.error:  # too large
        return None
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(packed)], 0)


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_dictionary(column.type):  # all texts of all chunks may be more than a small index counts
        wide = plain_type(column.type)
        column = pa.chunked_array([converted(chunk, wide)[0] for chunk in column.chunks], wide)
    together = column.combine_chunks()
    if isinstance(together, pa.ChunkedArray):  # Arrow does not join chunks that one array cannot hold
        if together.num_chunks != 1:
            msg = f"{column.nbytes:,} bytes are too many for one array: make smaller pages, or declare large_string"
            raise OverflowError(msg)
        return together.chunk(0)
    return together


def _type_of(values: Any) -> str:
    return str(getattr(values, "type", None) or getattr(values, "dtype", None) or type(values).__name__)
