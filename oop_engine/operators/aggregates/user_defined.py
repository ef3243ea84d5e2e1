"""User-defined aggregates: of functions over whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import Aggregation, Arrays, Part

__all__ = ["UserDefined"]


@checked_arguments
@dataclass(frozen=True)
class UserDefined(Aggregation):
    """An aggregate of your own, as functions over whole arrays.

    ``lift(*columns)`` gets Arrow arrays and returns a tuple of NumPy arrays, the states of
    single tuples; ``combine(a, b)`` merges two tuples of arrays element by element and must
    be associative; ``lower(state)`` returns
    the results, a NumPy or Arrow array.  ``state_types`` are the NumPy dtypes of the state,
    numbers or booleans, ``reads`` the columns.  States of another type, which would be cut, are a ``ContractError``;
    sums of whole numbers wrap as those of NumPy: declare ``int64``.  The result of no tuples is null, or that of
    ``identity``, a state.  Use functions that can be pickled.

    ``invert(a, b)``: takes ``b`` away from the state ``a`` that it is part of, exactly; where panes of many groups are
    put together windows then follow from those before.  Shared slices and windows by rows do not ask for it.
    ``commutative=False``: ``combine`` gets the earlier one first, so tuples are held until a bound has passed them, and
    folded in time order; ``tie`` are columns that decide between tuples of one time, before their arrival.

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
    invert: Callable[[Arrays, Arrays], Arrays] | None = None
    commutative: bool = True
    identity: tuple[Any, ...] | None = None
    tie: tuple[str, ...] = ()

    @staticmethod
    def of(
        function: Callable[[list[Any]], Any], column: str, returns: pa.DataType | None = None
    ) -> Aggregation:
        """Return an aggregate by a plain function of the list of a window's values.

        ``function`` gets the values of ``column``, ascending and without nulls, so the order of arrival does not
        matter, and returns a value of the type ``returns`` (default: float64).  A window without values has null,
        without a call.  All values are kept until the window is emitted, and the function is called once for each
        window and group, in Python: slower than an aggregate of arrays, O(values) each.

        >>> import statistics
        >>> from oop_engine import Page, Schema
        >>> from oop_engine.operators import Tumbling, WindowAggregate
        >>> from oop_engine.testing import Driver
        >>> schema = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")
        >>> middle = WindowAggregate(Tumbling(10), {"g": UserDefined.of(statistics.harmonic_mean, "v")})
        >>> driver = Driver(middle, schema).run([(0, Page.of(schema, {"ts": [1, 2, 3], "v": [2, None, 2]}))])
        >>> driver.rows()
        [{'window_start': 0, 'window_end': 10, 'g': 2.0}]
        """
        from oop_engine.operators.aggregates.values import OfList

        given: Any = function
        if not callable(given):
            msg = f"UserDefined.of: function must be a function of a list; got {given!r}"
            raise GraphError(msg)
        return OfList(column, function, pa.float64() if returns is None else returns)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.reads, *(name for name in self.tie if name not in self.reads))

    def result_type(self, schema: Schema, operator: str) -> pa.DataType:
        schema.require(self.reads, f"{operator}: UserDefined")
        for name in self.state_types:
            if not _is_number(name):
                msg = f"{operator}: UserDefined: state types must be numbers or booleans; got {name!r}"
                raise GraphError(msg)
        if self.identity is not None and len(self.identity) != len(self.state_types):
            many = len(self.state_types)
            msg = f"{operator}: UserDefined: identity must have {many} values, as state_types; got {self.identity!r}"
            raise GraphError(msg)
        for given, name in zip(self.identity or (), self.state_types, strict=bool(self.identity)):
            if not _is_of(given, np.dtype(name)):
                msg = f"{operator}: UserDefined: identity has {given!r}, which is no {name}: give a value of that type"
                raise GraphError(msg)
        if self.tie and self.commutative:
            msg = f"{operator}: UserDefined: tie={self.tie!r} is of no use where order is not: add commutative=False"
            raise GraphError(msg)
        return self.returns

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return (Part("user", user=self),)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        number, *state = states[0]
        present = number > 0
        if self.identity is not None:
            pairs = zip(state, self.identity, strict=True)
            state = [np.where(present, column, column.dtype.type(nothing)) for column, nothing in pairs]
            present = np.ones_like(present)
        values = _results(self.lower(tuple(array[present] for array in state)), kind, int(present.sum()))
        place = np.cumsum(present) - 1
        return values.take(pa.array(place, pa.int64(), mask=~present))


def _results(lowered: Any, kind: pa.DataType, many: int) -> pa.Array:
    """Return the value of ``lower`` in the type that was declared; raises ``ContractError`` if it is anything else."""
    try:
        values = lowered if isinstance(lowered, pa.Array | pa.ChunkedArray) else pa.array(lowered)
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        values = _kept(values, values.cast(kind))
    except (pa.ArrowException, TypeError, ValueError) as error:
        got = f"{' '.join(f'{lowered!r:.60}'.split())} ({type(lowered).__name__}): {error}"
        wanted = f"an array of {many:,} results that are {kind}, as returns has it"
        msg = f"UserDefined: lower must return {wanted}; got {got}"
        raise ContractError(msg) from error
    if len(values) != many:
        msg = f"UserDefined: lower must return a result for each of {many:,} states; got {len(values):,}"
        raise ContractError(msg)
    return values


def _kept(given: pa.Array, typed: pa.Array) -> pa.Array:
    """Return values in their type; raises ``ValueError`` where a cast makes others of them without a word."""
    if pa.types.is_boolean(typed.type) and not typed.cast(given.type).equals(given):
        msg = "a number that is not 0 or 1 is no bool"
        raise ValueError(msg)
    if pa.types.is_floating(typed.type) and pa.types.is_floating(given.type):
        infinite = pc.and_(pc.is_inf(typed), pc.invert(pc.is_inf(given)))
        if pc.any(infinite).as_py():
            msg = f"a number is too large for {typed.type}"
            raise ValueError(msg)
    return typed


def _is_number(name: str) -> bool:
    try:
        return np.dtype(name).kind in "biufc"
    except TypeError:  # NumPy has no type of that name
        return False


def _is_of(given: Any, kind: np.dtype[Any]) -> bool:
    """Return whether a value is the same in the type of a state."""
    try:
        with np.errstate(over="ignore"):
            converted = kind.type(given)
        return bool(converted == given or converted != converted) and (
            kind.kind != "b" or given in (True, False)
        )
    except (TypeError, ValueError, OverflowError):
        return False
