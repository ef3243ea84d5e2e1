"""Merging: definitions whose windows merge, such as sessions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, TypeGuard

import numpy as np
from numpy.typing import NDArray

from oop_engine.operators.windows.definition import Definition, Integers, KnownBy

__all__ = ["Merging", "merges"]

Assign = Callable[[Integers, Integers], tuple[Integers, Integers, Integers, Integers]]


class Merging(Definition, ABC):
    """Base of definitions whose windows merge.  Runs are given by group slot, first and last time, int64 (n,) each.

    A window begins with its first tuple.  Where it begins elsewhere, as in a calendar, derive from ``Folding``.

    ``single``: a group has one window, which is complete when the group ends.  ``assign``: returns of slots and times
    (n,) the run of each tuple, and slots, first and last times of runs, some of which may overlap; None: by a sort.
    """

    known_by: ClassVar[KnownBy] = "neighbours"
    single: ClassVar[bool] = False
    assign: Assign | None = None

    def words(self) -> str:
        return "runs, merged as they come"

    @abstractmethod
    def check(self, times: Integers) -> None:
        """Raise ``ContractError`` if the windows of these times would not fit 64 bits."""

    @abstractmethod
    def begins(self, slots: Integers, first: Integers, last: Integers) -> NDArray[np.bool_]:
        """Return which runs, sorted by slot, then first, begin a window; the others join the one before."""

    @abstractmethod
    def ends(self, last: Integers) -> Integers:
        """Return the ends of windows, by their last times."""

    @abstractmethod
    def complete(self, last: Integers, bounds: Integers | int) -> NDArray[np.bool_]:
        """Return which runs no later tuple can join, by the bounds of their groups."""

    @abstractmethod
    def least_end(self, bounds: Integers) -> Integers:
        """Return the least end of a window of later tuples alone; sentinels stay."""


def merges(definition: Definition) -> TypeGuard[Merging]:
    """Return whether the windows of a tuple are known from its neighbours."""
    return definition.known_by == "neighbours"
