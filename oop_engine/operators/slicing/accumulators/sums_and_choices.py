"""Accumulators of compiled loops: those that add up or multiply, and those that keep one of the values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from oop_engine.core.page import Page
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.aggregates.order_codes import codes_of, least, words_of
from oop_engine.operators.aggregates.wide import FITTING
from oop_engine.operators.kernels import monoids
from oop_engine.operators.slicing.accumulator import register_accumulator
from oop_engine.operators.slicing.compiled import Compiled, fixed, known, numbers, values
from oop_engine.operators.values.columns import Integers

__all__: list[str] = []

_LIMITS = np.iinfo(np.int64)
_NARROW = monoids.Narrow()
_GREATEST = {"max", "last", "arg_max", "max_count"}


@register_accumulator("count")
class _Count(Compiled):
    of_column = True
    monoid = monoids.Counted()
    identity = (np.int64(0),)
    counts = True
    invertible = True

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.of_column, self._read = part.other is None, part.columns

    def prepare(self, page: Page, times: Integers) -> Arrays:
        return (known(page, *self._read),)


class _Narrowing(Compiled):
    """Adds integers in 32 bits, too, until a sum does not fit."""

    of_column = True

    def add_narrow(self, state: Arrays, rows: Integers, inputs: Arrays) -> int:
        at = self._loops.add_rows(_NARROW, state[:1], rows, inputs[:-1], inputs[-1])
        return int(rows.size if at < 0 else at)


@register_accumulator("sum")
class _Sum(_Narrowing):
    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.monoid = monoids.Summed() if part.floating else monoids.Checked()
        self.identity = (np.float64(0) if part.floating else np.int64(0),)
        self.invertible = self.by_times = not part.floating


@register_accumulator("carried")
class _Carried(_Narrowing):
    """Integers of 64 bits, exactly."""

    invertible = by_times = True
    monoid = monoids.Carried()
    identity = np.int64(0), np.int32(0)


@register_accumulator("total", "checked", "total_of_squares")
class _Total(Compiled):
    """Integers and decimals in 128 bits, decimals of more than 28 digits in 192; ``checked``: a sum of these."""

    identity: tuple[np.generic, ...] = np.int64(0), np.int64(0)
    invertible = True

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.of_column = not part.types
        self.monoid = monoids.Squares() if part.kind == "total_of_squares" else monoids.Total()
        if part.types:
            self.monoid = monoids.Words()
            if pa.types.is_decimal(part.types[0]) and part.types[0].precision > FITTING:
                self.monoid, self.identity = monoids.Triple(), (np.int64(0),) * 3

    def prepare(self, page: Page, times: Integers) -> Arrays:
        if not self.part.types:
            return super().prepare(page, times)
        words = [fixed(word) for word in words_of(page.column(self.part.column or ""))]
        words += [fixed(np.zeros_like(words[0]))] if len(words) == 1 else []
        return *words, known(page, *self.part.columns)


@register_accumulator("moments")
class _Moments(Compiled):
    of_column = True
    monoid = monoids.Moments()
    identity = np.int64(0), np.float64(0), np.float64(0)


@register_accumulator("logs")
class _Logs(Compiled):
    monoid = monoids.Summed()
    identity = (np.float64(0),)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        values, valid = super().prepare(page, times)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(values), valid


@register_accumulator("product")
class _Product(Compiled):
    monoid = monoids.Multiplied()
    identity = np.float64(0.5), np.int64(1)


@register_accumulator("weighted")
class _Weighted(Compiled):
    monoid = monoids.Weighted()
    identity = np.float64(0), np.float64(0)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        weights = numbers(page.column(self.part.other or ""), pa.float64())
        return values(page, self.part), weights, known(page, *self.part.columns)


@register_accumulator("arg_min", "arg_max")
class _Choice(Compiled):
    """Keeps codes of values, from the least to the most important ones."""

    exact = True

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        greatest = part.kind in _GREATEST
        self.monoid = monoids.Largest() if greatest else monoids.Smallest()
        self.identity = _nothing(part, greatest=greatest)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        if not self.part.types:
            return super().prepare(page, times)
        columns = [page.column(name) for name in self.part.columns]
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
