"""Accumulators that keep one of the values: extremes, first and last, those where another column is extreme."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.page import Page
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.aggregates.order_codes import codes_of, least
from oop_engine.operators.kernels import monoids
from oop_engine.operators.slicing.accumulators.registry import register_accumulator
from oop_engine.operators.slicing.compiled import Compiled, fixed, known

__all__: list[str] = []

Integers = NDArray[np.int64]
_LIMITS = np.iinfo(np.int64)
_GREATEST = {"max", "last", "arg_max", "max_count"}


class _Choice(Compiled):
    """Keeps codes of values, from the least to the most important ones."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        greatest = part.kind in _GREATEST
        self.monoid = monoids.Largest() if greatest else monoids.Smallest()
        self.identity = _nothing(part, greatest=greatest)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        if not self.part.types:
            return super().prepare(page, times)
        columns = [page.batch.column(name) for name in self.part.columns]
        codes = (fixed(code) for column in columns for code in codes_of(column))
        return *codes, known(page, *self.part.columns)


@register_accumulator("min", "max")
class _Extreme(_Choice):
    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.of_column = not part.types


@register_accumulator("first", "last")
class _Edge(_Choice):
    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.identity += (np.int64(_LIMITS.min if part.kind in _GREATEST else _LIMITS.max),)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        *codes, valid = super().prepare(page, times)
        return *codes, fixed(times), valid


@register_accumulator("arg_min", "arg_max")
class _Argument(_Choice):
    pass


@register_accumulator("min_count", "max_count")
class _Often(_Choice):
    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.monoid = monoids.LargestCounted() if part.kind in _GREATEST else monoids.SmallestCounted()
        self.identity = (np.int64(0), *self.identity)


def _nothing(part: Part, *, greatest: bool) -> tuple[np.generic, ...]:
    """Return the codes that give way to those of any value."""
    if part.types:
        return tuple(code for kind in part.types for code in least(kind, greatest=greatest))
    number = np.int64(_LIMITS.min if greatest else _LIMITS.max)
    return (np.float64("nan") if part.floating else number,)
