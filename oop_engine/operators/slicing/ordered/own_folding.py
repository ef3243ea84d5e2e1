"""Definitions of others: the values of ``places``, ``due`` and ``next_due``, checked before kernels read them.

Kernels do not look at indices: one too many would be memory of somebody else.  Definitions of this package are held to
their contract by its tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError
from oop_engine.core.punctuation import NEVER
from oop_engine.core.registry import is_ours
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.windows.folding import Due, FinalTuples, Folding, SliceView

__all__ = ["due_of", "next_due_of", "places_of"]


def places_of(definition: Folding, final: FinalTuples) -> Integers:
    """Return the slice of each final tuple; raises ``ContractError`` for anything else.  O(rows)."""
    found: Any = definition.places(final)
    if is_ours(type(definition)):
        places: Integers = found
        return places
    places = _integers(definition, "places", found, final.times.shape, "the slice of each final tuple")
    inside = np.flatnonzero(places >= 0)
    some, groups = places[inside], final.groups[inside]
    less = np.flatnonzero(((groups[1:] == groups[:-1]) | definition.whole_stream) & (some[1:] < some[:-1]))
    if less.size:
        at = int(less[0])
        raise _wrong(
            definition, "places", "slices that ascend within a group", f"{some[at + 1]} behind {some[at]}"
        )
    return places


def next_due_of(definition: Folding, view: SliceView) -> Integers:
    """Return the bound that each group waits for, ``NEVER``: any may do; raises ``ContractError`` for anything else."""
    found: Any = definition.next_due(view)
    if found is None:
        return np.full(view.bounds.size, NEVER)
    if is_ours(type(definition)):
        due: Integers = found
        return due
    return _integers(
        definition, "next_due", found, view.bounds.shape, "the least bound of each group, or None"
    )


def due_of(definition: Folding, view: SliceView) -> Due:
    """Return the windows that bounds complete; raises ``ContractError`` where they are out of range.  O(windows)."""
    due: Any = definition.due(view)
    if is_ours(type(definition)):
        found: Due = due
        return found
    if not isinstance(due, Due):
        raise _wrong(definition, "due", "a Due(groups, starts, ends, low, high, keep, cut)", _got(due))
    number, groups = view.bounds.size, _integers(definition, "due", due.groups, None, "groups")
    columns = {"groups": groups}
    for name in ("starts", "ends", "low", "high"):
        columns[name] = _integers(
            definition, "due", getattr(due, name), groups.shape, f"{name} of each window"
        )
    for name in ("keep", "cut"):
        columns[name] = _integers(
            definition, "due", getattr(due, name), view.bounds.shape, f"{name} of each group"
        )
    _in_range(definition, "groups", groups, np.zeros_like(groups), np.full_like(groups, number - 1))
    low, high = view.begins[:-1], view.begins[1:]
    _in_range(definition, "low", columns["low"], low[groups], high[groups])
    _in_range(definition, "high", columns["high"], columns["low"], high[groups])
    _in_range(definition, "keep", columns["keep"], low, high)
    if any(len(column) != groups.size for column in due.more):
        raise _wrong(
            definition, "due", f"columns `more` of {groups.size} windows", str([*map(len, due.more)])
        )
    if due.join is not None:
        columns["join"] = _integers(definition, "due", due.join, None, "join of each group")
    return Due(**{**due._asdict(), **columns})


def _integers(
    definition: Folding, method: str, found: Any, shape: tuple[int, ...] | None, meaning: str
) -> Integers:
    """Return integers of a shape (None: of one dimension)."""
    given: NDArray[Any] = np.asarray(found)
    fits = given.ndim == 1 if shape is None else given.shape == shape
    if given.size == 0 and given.dtype.kind == "f":  # an empty list
        given = given.astype(np.int64)
    if not fits or given.dtype.kind not in "iu":
        wanted = "int64 (n,)" if shape is None else f"int64 {shape}"
        raise _wrong(definition, method, f"{meaning}, {wanted}", _got(found))
    return given.astype(np.int64, copy=False)


def _in_range(definition: Folding, name: str, found: Integers, low: Integers, high: Integers) -> None:
    wrong = np.flatnonzero((found < low) | (found > high))
    if wrong.size:
        at = int(wrong[0])
        raise _wrong(definition, "due", f"{name} from {low[at]} to {high[at]}", str(found[at]))


def _got(found: Any) -> str:
    if isinstance(found, np.ndarray):
        return f"{found.dtype} {found.shape}"
    return f"{' '.join(f'{found!r:.60}'.split())} ({type(found).__name__})"


def _wrong(definition: Folding, method: str, wanted: str, got: str) -> ContractError:
    return ContractError(f"{type(definition).__name__}: {method} must return {wanted}; got {got}")
