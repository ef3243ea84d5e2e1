"""Accumulator of user-defined parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.operators.aggregates import Arrays, Part, UserDefined
from oop_engine.operators.slicing.accumulator import Accumulator
from oop_engine.operators.slicing.accumulators.registry import register_accumulator

__all__: list[str] = []

Integers = NDArray[np.int64]


@register_accumulator("user")
class _User(Accumulator):
    """A user-defined state, behind a column that tells whether there is one."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        assert isinstance(part.user, UserDefined)
        self._user = part.user
        self.identity = np.bool_(False), *(np.dtype(name).type(0) for name in part.user.state_types)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        lifted = self._user.lift(*(page.column(name) for name in self._user.reads))
        types = self._user.state_types
        states = (np.asarray(array, name) for array, name in zip(lifted, types, strict=True))
        return np.ones(len(page), np.bool_), *states

    def combine(self, a: Arrays, b: Arrays) -> Arrays:
        both = np.flatnonzero(a[0] & b[0])
        together = self._user.combine(tuple(s[both] for s in a[1:]), tuple(s[both] for s in b[1:]))
        merged = [np.where(a[0], old, new) for old, new in zip(a[1:], b[1:], strict=True)]
        for column, new in zip(merged, together, strict=True):
            column[both] = new
        return a[0] | b[0], *merged
