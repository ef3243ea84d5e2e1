"""Base of all aggregates: a value that names its columns, checks types and says of which parts it is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema

__all__ = [
    "Aggregation",
    "Arrays",
    "OfColumn",
    "Part",
    "checked_type",
    "fewer",
    "is_number",
    "of_words",
    "stored",
]

Arrays = tuple[NDArray[Any], ...]


class Part(NamedTuple):
    """A partial aggregate: its ``kind``, its column, its number type.

    ``other``: a second column; tuples in which one of the two is null do not count.  ``types``: of the columns,
    where that tells more.  ``parameter``: of a sketch.
    ``oop_engine.operators.slicing.accumulators`` says how a kind is kept, and how to add one.
    """

    kind: str
    column: str | None = None
    floating: bool = False
    user: Aggregation | None = None
    other: str | None = None
    types: tuple[pa.DataType, ...] = ()
    parameter: float = 0.0

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns whose nulls do not count."""
        return tuple(name for name in (self.column, self.other) if name is not None)


class Aggregation(ABC):
    """Base of all aggregates.

    ``commutative``: tuples may come in any order.  Else they are folded in time order, those of one time by the columns
    ``tie``, then as they came.  ``depends_on_order``: the answer does, within an error that is known.
    """

    depends_on_order: bool = False

    commutative: bool = True
    tie: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns it reads."""
        return ()

    @abstractmethod
    def result_type(self, schema: Schema, operator: str) -> pa.DataType:
        """Return the type of its results; raise ``GraphError`` in the name of ``operator`` if there is none."""

    @abstractmethod
    def parts(self, schema: Schema) -> tuple[Part, ...]:
        """Return the partial aggregates it is made of."""

    def all_columns(self, schema: Schema) -> frozenset[str]:
        """Return the columns that it, its order or its parts read."""
        of_parts = (part.columns for part in self.parts(schema))
        return frozenset((*self.columns, *self.tie)).union(*of_parts)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        """Return its results, of type ``kind``, one for each row of its parts' states.

        Here it is the number (or words of 64 bits) of the first part, null where a second part counts nothing.
        """
        null = fewer(states[1][0], 1) if len(states) > 1 else None
        if len(states[0]) > 1:
            return of_words(states[0][: kind.bit_width // 64], null, kind)
        return column_of(states[0][0], kind, null)


@checked_arguments
@dataclass(frozen=True)
class OfColumn(Aggregation):
    """An aggregate of one column's values."""

    column: str

    wanted: ClassVar[str] = "an integer or a float, but not uint64"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def result_type(self, schema: Schema, operator: str) -> pa.DataType:
        return self._type(checked_type(schema, self.column, self._takes, self.wanted, f"{operator}: {self}"))

    def _takes(self, kind: pa.DataType) -> bool:
        return is_number(kind)

    def _type(self, kind: pa.DataType) -> pa.DataType:
        return pa.float64()

    def _floating(self, schema: Schema) -> bool:
        return bool(pa.types.is_floating(schema.type_of(self.column)))


def checked_type(
    schema: Schema, column: str, takes: Callable[[pa.DataType], bool], wanted: str, owner: str
) -> pa.DataType:
    """Return a column's type; raise ``GraphError`` in the name of ``owner`` if it is none that it ``takes``."""
    schema.require((column,), owner)
    kind = schema.type_of(column)
    if not takes(kind):
        msg = f"{owner} needs {wanted}; {column!r} is {kind}: cast it before"
        raise GraphError(msg)
    return kind


def is_number(kind: pa.DataType) -> bool:
    """Return whether values are numbers of at most 64 bits, uint64 apart."""
    signed = pa.types.is_integer(kind) and not pa.types.is_uint64(kind)
    return bool(signed or pa.types.is_floating(kind))


def fewer(number: NDArray[Any], least: int) -> NDArray[np.bool_] | None:
    """Return where ``number`` is below ``least``, or None if it is nowhere."""
    if number.size == 0:
        return None
    lowest = number[0] if number.strides == (0,) else np.minimum.reduce(number)  # stored once for all rows
    return None if lowest >= least else number < least


def stored(number: NDArray[Any]) -> NDArray[Any]:
    """Return a column, or its one value where that is stored once for all rows."""
    return number[:1] if number.strides == (0,) else number


_FLOATING = (pa.float64(), pa.float32(), pa.float16())
_STORED = {
    pa.int64().id: np.dtype(np.int64),
    pa.timestamp("s").id: np.dtype(np.int64),
    pa.float64().id: np.dtype(np.float64),
}
"""How values of the most frequent kinds are stored, by their ids."""


def column_of(values: NDArray[Any], kind: pa.DataType, null: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return values as a column of ``kind``, which may be of instants; ``null`` tells which rows are null.

    No copy of numbers as wide as ``kind``; ``pa.array`` looks at them for as long as a page of one row takes.
    """
    if null is None and _STORED.get(kind.id) == values.dtype:  # as mostly
        return pa.Array.from_buffers(kind, values.size, [None, pa.py_buffer(np.ascontiguousarray(values))])
    numbers = values.dtype.kind in "iuf"  # else a kind need not have a width
    same = numbers and 8 * values.itemsize == kind.bit_width
    if null is None and same and (values.dtype.kind == "f") == (kind in _FLOATING):
        return pa.Array.from_buffers(kind, values.size, [None, pa.py_buffer(np.ascontiguousarray(values))])
    return pa.array(values, kind, mask=null)


def of_words(words: Sequence[NDArray[Any]], null: NDArray[np.bool_] | None, kind: pa.DataType) -> pa.Array:
    """Return the values that have these words of 64 bits, the lowest first; null where ``null`` is true."""
    known = None if null is None else pa.array(~null).buffers()[1]
    values = np.ascontiguousarray(np.stack(list(words), axis=1))
    return pa.Array.from_buffers(kind, len(values), [known, pa.py_buffer(values)])
