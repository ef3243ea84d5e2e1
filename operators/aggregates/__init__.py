"""Aggregates: what is computed of the tuples in a window.

An aggregate is a value: it names its column, checks types when a graph is built, says of
which partial aggregates it is made (``parts``), and turns those into a column of results.
Equal parts are kept once: ``Avg("x")`` beside ``Count("x")`` costs one float more a window.

Nulls are skipped, as in SQL; an aggregate of no values is null (a count is 0).

Source: thesis 6.1 (WID); lift, combine and lower after Traub et al., Scotty, TODS 2021;
variance after Welford 1962 and Chan, Golub, LeVeque 1979.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema

__all__ = [
    "Aggregation",
    "Avg",
    "Count",
    "First",
    "Last",
    "Max",
    "Min",
    "Part",
    "Stddev",
    "Sum",
    "UserDefined",
    "Var",
]

Arrays = tuple[NDArray[Any], ...]


class Part(NamedTuple):
    """A partial aggregate: its ``kind`` (see ``operators/slicing/accumulators.py``), its column, its number type."""

    kind: str
    column: str | None = None
    floating: bool = False
    user: UserDefined | None = None


class Aggregation(ABC):
    """Base of all aggregates."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns it reads."""
        return ()

    @abstractmethod
    def result_type(self, schema: Schema, what: str) -> pa.DataType:
        """Return the type of its results; raise ``GraphError`` in the name of ``what`` if there is none."""

    @abstractmethod
    def parts(self, schema: Schema) -> tuple[Part, ...]:
        """Return the partial aggregates it is made of."""

    @abstractmethod
    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        """Return its results, of type ``kind``, one for each row of its parts' states."""


@dataclass(frozen=True)
class Count(Aggregation):
    """Number of tuples, or of the non-null values of ``column``: int64, 0 for none."""

    column: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    def result_type(self, schema: Schema, what: str) -> pa.DataType:
        schema.require(self.columns, f"{what}: {self}")
        return pa.int64()

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return (Part("count", self.column),)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        return pa.array(np.ascontiguousarray(states[0][0]), kind)


@dataclass(frozen=True)
class _OfColumn(Aggregation):
    """An aggregate of one column's values."""

    column: str

    ordered: ClassVar[bool] = False  # dates and booleans will do, not only numbers

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def result_type(self, schema: Schema, what: str) -> pa.DataType:
        schema.require(self.columns, f"{what}: {self}")
        kind = schema.type_of(self.column)
        if not (_is_number(kind) or (self.ordered and _is_instant(kind))):
            wanted = "a number, a bool, a date or a time" if self.ordered else "an integer or a float"
            msg = f"{what}: {self} needs {wanted}; {self.column!r} is {kind}: cast it before"
            raise GraphError(msg)
        return self._type(kind)

    def _type(self, kind: pa.DataType) -> pa.DataType:
        return pa.float64()

    def _floating(self, schema: Schema) -> bool:
        return bool(pa.types.is_floating(schema.type_of(self.column)))


class Sum(_OfColumn):
    """Sum: of integers int64, of floats float64 (IEEE: NaN and infinities stay).

    Integer sums are checked: one that leaves 64 bits raises ``ContractError``, it never wraps,
    not even if later values would bring it back (so near the limit the order can tell).
    """

    def _type(self, kind: pa.DataType) -> pa.DataType:
        return pa.float64() if pa.types.is_floating(kind) else pa.int64()

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return Part("sum", self.column, self._floating(schema)), Part("count", self.column)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        return pa.array(states[0][0], kind, mask=_fewer(states[1][0], 1))


class Avg(_OfColumn):
    """Mean, float64; integers are added up as floats, so that nothing overflows."""

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return Part("sum", self.column, floating=True), Part("count", self.column)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        (total,), (number,) = states
        null = _fewer(number, 1)
        divisor = np.maximum(_stored(number), 1)
        return pa.array(total / divisor, kind, mask=null)


class Var(_OfColumn):
    """Sample variance (n - 1), float64, numerically stable; null for fewer than two values."""

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return (Part("moments", self.column, floating=True),)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        number, _, squares = states[0]
        return pa.array(squares / np.maximum(number - 1, 1), kind, mask=_fewer(number, 2))


class Stddev(Var):
    """Sample standard deviation (n - 1), float64; null for fewer than two values."""

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        number, _, squares = states[0]
        return pa.array(np.sqrt(squares / np.maximum(number - 1, 1)), kind, mask=_fewer(number, 2))


class _Chosen(_OfColumn):
    """One of the column's own values."""

    kind: ClassVar[str]
    ordered = True

    def _type(self, kind: pa.DataType) -> pa.DataType:
        return kind

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return Part(self.kind, self.column, self._floating(schema)), Part("count", self.column)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        return _as_type(states[0][0], _fewer(states[1][0], 1), kind)


class Min(_Chosen):
    """Smallest value, of the column's type; NaN counts only where there is nothing else."""

    kind = "min"


class Max(_Chosen):
    """Largest value, of the column's type; NaN counts only where there is nothing else."""

    kind = "max"


class First(_Chosen):
    """Value of the first tuple by the windowing attribute; of several, the smallest.

    The windowing attribute is the progressing attribute, or in tuple-based windows the
    arrival number.  Nulls are skipped.
    """

    kind = "first"


class Last(_Chosen):
    """Value of the last tuple by the windowing attribute; of several, the largest."""

    kind = "last"


@dataclass(frozen=True)
class UserDefined(Aggregation):
    """An aggregate of your own, as functions over whole arrays.

    ``lift(*columns)`` gets Arrow arrays and returns a tuple of NumPy arrays, the states of
    single tuples; ``combine(a, b)`` merges two tuples of arrays element by element and must
    be commutative and associative, for tuples come in any order; ``lower(state)`` returns
    the results, a NumPy or Arrow array.  ``state_types`` are the NumPy dtypes of the state,
    numbers or booleans, ``reads`` the columns.  The result of no tuples is null.  Use functions that can
    be pickled.

    >>> import numpy as np, pyarrow as pa
    >>> product = UserDefined(
    ...     lift=lambda x: (x.to_numpy(zero_copy_only=False).astype("float64"),),
    ...     combine=lambda a, b: (a[0] * b[0],),
    ...     lower=lambda state: state[0],
    ...     reads=("x",), state_types=("float64",), returns=pa.float64())
    """

    lift: Callable[..., Arrays]
    combine: Callable[[Arrays, Arrays], Arrays]
    lower: Callable[[Arrays], Any]
    reads: tuple[str, ...]
    state_types: tuple[str, ...]
    returns: pa.DataType

    @property
    def columns(self) -> tuple[str, ...]:
        return self.reads

    def result_type(self, schema: Schema, what: str) -> pa.DataType:
        schema.require(self.reads, f"{what}: UserDefined")
        for name in self.state_types:
            if np.dtype(name).kind not in "biufc":
                msg = f"{what}: UserDefined: state types must be numbers or booleans; got {name!r}"
                raise GraphError(msg)
        return self.returns

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return (Part("user", user=self),)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        present, *state = states[0]
        lowered = self.lower(tuple(array[present] for array in state))
        values = pa.array(lowered).cast(kind)
        place = np.cumsum(present) - 1
        return values.take(pa.array(place, pa.int64(), mask=~present))


def _is_number(kind: pa.DataType) -> bool:
    signed = pa.types.is_integer(kind) and not pa.types.is_uint64(kind)
    return bool(signed or pa.types.is_floating(kind))


def _is_instant(kind: pa.DataType) -> bool:
    instant = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    return bool(instant or pa.types.is_boolean(kind))


def _fewer(number: NDArray[Any], least: int) -> NDArray[np.bool_] | None:
    """Return where ``number`` is below ``least``, or None if it is nowhere."""
    return None if number.size == 0 or _stored(number).min() >= least else number < least


def _stored(number: NDArray[Any]) -> NDArray[Any]:
    """Return a column, or its one value where that is stored once for all rows."""
    return number[:1] if number.strides == (0,) else number


def _as_type(values: NDArray[Any], null: NDArray[np.bool_] | None, kind: pa.DataType) -> pa.Array:
    """Return numbers as the column's own type; those of no values are not looked at."""
    numbers = pa.array(values if null is None else np.where(null, values.dtype.type(0), values), mask=null)
    if pa.types.is_temporal(kind):
        return numbers.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return numbers if numbers.type == kind else numbers.cast(kind)
