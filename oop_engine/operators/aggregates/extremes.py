"""Extremes: one of the column's own values, the smallest, largest, first or last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import Arrays, OfColumn, Part, fewer
from oop_engine.operators.aggregates.collecting import listed, listed_if, one_of
from oop_engine.operators.aggregates.order_codes import is_narrow, values_of
from oop_engine.operators.aggregates.sort_keys import ORDERED, has_order, plain

__all__ = ["M4", "All", "Any", "First", "Last", "Max", "MaxCount", "Min", "MinCount"]


class _Chosen(OfColumn):
    """One of the column's own values."""

    kind: ClassVar[str]
    wanted = ORDERED

    def _takes(self, kind: pa.DataType) -> bool:
        return has_order(kind)

    def _type(self, kind: pa.DataType) -> pa.DataType:
        return plain(kind)

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        kind = schema.type_of(self.column)
        types = () if is_narrow(kind) else (plain(kind),)
        part = Part(self.kind, self.column, self._floating(schema), types=types)
        return listed_if(part, kind), Part("count", self.column)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        if (values := listed(states[0])) is not None:
            return one_of(values, kind)
        codes = states[0][:-1] if self.kind in ("first", "last") else states[0]
        return values_of(codes, fewer(states[1][0], 1), kind)


class Min(_Chosen):
    """Smallest value, of the column's type (that of a dictionary's values).

    NaN counts only where there is nothing else.
    """

    kind = "min"


class Max(_Chosen):
    """Largest value, of the column's type (that of a dictionary's values).

    NaN counts only where there is nothing else.
    """

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


class MinCount(OfColumn):
    """How often the smallest value occurs: int64, 0 for no values; NaN counts only where there is nothing else."""

    kind: ClassVar[str] = "min_count"
    wanted = _Chosen.wanted

    def _takes(self, kind: pa.DataType) -> bool:
        return has_order(kind)

    def _type(self, kind: pa.DataType) -> pa.DataType:
        return pa.int64()

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        kind = schema.type_of(self.column)
        return (listed_if(Part(self.kind, self.column, types=(plain(kind),)), kind),)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        values = listed(states[0])
        often = states[0][0] if values is None else values.totals(-1)
        return pa.array(np.ascontiguousarray(often), kind)


class MaxCount(MinCount):
    """How often the largest value occurs: int64, 0 for no values; NaN counts only where there is nothing else."""

    kind = "max_count"


class Any(Max):
    """Whether any value of a boolean column is true; null for no values, as in SQL."""

    wanted = "a bool"

    def _takes(self, kind: pa.DataType) -> bool:
        return bool(pa.types.is_boolean(kind))


class All(Min):
    """Whether all values of a boolean column are true; null for no values, as in SQL."""

    wanted = "a bool"

    def _takes(self, kind: pa.DataType) -> bool:
        return bool(pa.types.is_boolean(kind))


class M4(_Chosen):
    """Smallest, largest, first and last value, a struct of ``min``, ``max``, ``first``, ``last``; null for no values.

    A line chart needs no more of the tuples in a column of pixels.  Each of the four is as ``Min``, ``Max``,
    ``First`` and ``Last`` have it, and kept once where those are asked for as well.

    Source: Jugel, Jerzak, Hackenbroich, Markl, M4, VLDB 2014.
    """

    @property
    def _four(self) -> tuple[_Chosen, ...]:
        return Min(self.column), Max(self.column), First(self.column), Last(self.column)

    def _type(self, kind: pa.DataType) -> pa.DataType:
        return pa.struct([(aggregate.kind, plain(kind)) for aggregate in self._four])

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return *(aggregate.parts(schema)[0] for aggregate in self._four), Part("count", self.column)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        number = states[-1]
        values = [
            aggregate.result([state, number], kind.field(i).type)
            for i, (aggregate, state) in enumerate(zip(self._four, states, strict=False))
        ]
        null = fewer(number[0], 1)
        mask = None if null is None else pa.array(null)
        return pa.StructArray.from_arrays(values, fields=list(kind), mask=mask)
