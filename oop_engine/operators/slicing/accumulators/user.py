"""Accumulator of user-defined parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError
from oop_engine.core.page import Page
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.slicing.accumulator import Accumulator, register_accumulator
from oop_engine.operators.values.columns import Integers

if TYPE_CHECKING:
    from oop_engine.operators.aggregates import UserDefined

__all__: list[str] = []


@register_accumulator("user")
class _User(Accumulator):
    """A user-defined state, behind a column that tells how many tuples there are in it."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self._user = cast("UserDefined", part.user)
        self.identity = np.int64(0), *(np.dtype(name).type(0) for name in self._user.state_types)
        self.invertible = self._user.invert is not None

    def prepare(self, page: Page, times: Integers) -> Arrays:
        types = [np.dtype(name) for name in self._user.state_types]
        lifted = self._user.lift(*(page.column(name) for name in self._user.reads))
        return np.ones(len(page), np.int64), *_states(lifted, types, len(page), "lift")

    def combine(self, a: Arrays, b: Arrays) -> Arrays:
        merged = [np.where(a[0] > 0, old, new) for old, new in zip(a[1:], b[1:], strict=True)]
        return a[0] + b[0], *_put(merged, (a[0] > 0) & (b[0] > 0), self._user.combine, a, b)

    def without(self, a: Arrays, b: Arrays) -> Arrays:
        assert self._user.invert is not None
        left = a[0] - b[0]
        rest = [np.where(left > 0, old, old.dtype.type(0)) for old in a[1:]]
        return left, *_put(rest, (left > 0) & (b[0] > 0), self._user.invert, a, b)


def _put(
    merged: list[NDArray[Any]], rows: NDArray[np.bool_], function: Callable[[Arrays, Arrays], Arrays], a: Arrays,
    b: Arrays,
) -> list[NDArray[Any]]:  # fmt: skip
    """Return ``merged`` with the results of a function of the user in some rows."""
    some = np.flatnonzero(rows)
    together = function(tuple(state[some] for state in a[1:]), tuple(state[some] for state in b[1:]))
    states = _states(together, [column.dtype for column in merged], some.size, "combine")
    for column, new in zip(merged, states, strict=True):
        column[some] = new
    return merged


def _states(found: Any, types: list[np.dtype[Any]], rows: int, function: str) -> list[NDArray[Any]]:
    """Return the states that a function of the user returned; raises ``ContractError`` for anything else."""
    arrays = found if isinstance(found, tuple | list) and len(found) == len(types) else None
    for array in arrays or ():
        _check_whole(array, function)
    states = None if arrays is None else [np.asarray(array) for array in arrays]
    if states is None or any(state.shape != (rows,) for state in states):
        many = f"{len(types)} array{'' if len(types) == 1 else 's'} of {rows:,} values"
        got = f"{type(found).__name__} of {len(found)}" if isinstance(found, tuple | list) else repr(found)
        got = got if states is None else f"shapes {', '.join(str(state.shape) for state in states)}"
        msg = f"UserDefined: {function} must return a tuple of {many}, as state_types has them; got {got:.80}"
        raise ContractError(msg)
    return [_typed(state, kind, function) for state, kind in zip(states, types, strict=True)]


def _check_whole(array: Any, function: str) -> None:
    """Raise ``ContractError`` for an array without some of its values: the states would have values of no tuple."""
    nulls = getattr(array, "null_count", 0)
    hidden = int(np.ma.getmaskarray(array).sum()) if isinstance(array, np.ma.MaskedArray) else nulls
    if hidden:
        kind = "masked" if hidden is not nulls else "null"
        got = f"{hidden:,} {kind} values, and a state has none"
        msg = f"UserDefined: {function} returns {got}: fill them there, or filter the rows"
        raise ContractError(msg)


def _typed(given: NDArray[Any], wanted: np.dtype[Any], function: str) -> NDArray[Any]:
    """Return states in the type that was declared; raises ``ContractError`` for values that it would cut."""
    if given.dtype == wanted:
        return given
    with np.errstate(over="ignore"):
        typed = given.astype(wanted) if np.can_cast(given.dtype, wanted, "same_kind") else None
    if typed is None or _is_cut(typed, given):
        way_out = f"declare {given.dtype}, or cast it there"
        got = f"{function} returns {given.dtype}, and state_types has {wanted}, which would cut it"
        msg = f"UserDefined: {got}: {way_out}"
        raise ContractError(msg)
    return typed


def _is_cut(typed: NDArray[Any], given: NDArray[Any]) -> bool:
    """Tell whether whole numbers are others in their new type, or large numbers infinite."""
    if typed.dtype.kind in "iu":
        return not np.array_equal(typed, given)
    return typed.dtype.kind == "f" and bool((np.isinf(typed) & np.isfinite(given)).any())
