"""Folds: how the partial aggregates of panes are put together, by their kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.kernels import panes_fold as kernels
from oop_engine.operators.slicing.components import SumOverflowError
from oop_engine.operators.slicing.pane_states import PaneStates

__all__ = ["fold", "foldable"]

Integers = NDArray[np.int64]


def foldable(parts: Sequence[Part]) -> bool:
    """Tell whether there is a kernel for each of ``parts``: user-defined ones have none."""
    return all(part.kind in _FOLDS for part in parts)


def fold(states: PaneStates, steps: Integers, results: int) -> list[Arrays]:
    """Take the ``steps`` int64 (3, steps), in order, in the columns of each part; return the results.

    Raises ``SumOverflowError`` with the step at which an integer sum would wrap.
    """
    made = []
    for of, state in zip(states.components, states.columns, strict=True):
        if state is not None:
            new = tuple(np.empty(results, column.dtype) for column in state)
            _FOLDS[of.part.kind](of.part, (*state, *new), steps)
            made.append(new)
        else:
            made.append(())
    tuples = np.empty(results, np.int64)
    kernels.add(states.tuples, tuples, *steps)
    return [new or (tuples,) for new in made]


def _add(part: Part, columns: Arrays, steps: Integers) -> None:
    kernels.add(*columns, *steps)


def _sum(part: Part, columns: Arrays, steps: Integers) -> None:
    if part.floating:
        kernels.add(*columns, *steps)
    elif (step := kernels.add_checked(*columns, *steps)) >= 0:
        raise SumOverflowError(part.column, step)


def _extreme(part: Part, columns: Arrays, steps: Integers) -> None:
    kernels.extreme(*columns, *steps, part.kind == "max")


def _edge(part: Part, columns: Arrays, steps: Integers) -> None:
    kernels.edge(*columns, *steps, part.kind == "last")


def _moments(part: Part, columns: Arrays, steps: Integers) -> None:
    kernels.moments(*columns, *steps)


_FOLDS: dict[str, Callable[[Part, Arrays, Integers], Any]] = {
    "count": _add,
    "sum": _sum,
    "min": _extreme,
    "max": _extreme,
    "first": _edge,
    "last": _edge,
    "moments": _moments,
}
