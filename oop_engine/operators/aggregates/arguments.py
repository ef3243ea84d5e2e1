"""Arguments: the value of one column where another one is extreme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import Aggregation, Arrays, Part, checked_type, fewer
from oop_engine.operators.aggregates.collecting import listed, listed_if, one_of
from oop_engine.operators.aggregates.extremes import Min
from oop_engine.operators.aggregates.order_codes import least, values_of
from oop_engine.operators.aggregates.sort_keys import has_order, plain

__all__ = ["ArgMax", "ArgMin"]


@checked_arguments
@dataclass(frozen=True)
class ArgMin(Aggregation):
    """Value of the column ``of`` in the tuple in which ``at`` is smallest; of several, the smallest value of ``of``.

    Tuples in which one of the two is null are skipped.  NaN in ``at`` counts only where there is nothing else, and so
    does NaN in ``of`` among equals.  ``First(c)`` is ``ArgMin(c, at)`` where ``at`` is the progressing attribute.
    """

    of: str
    at: str

    kind: ClassVar[str] = "arg_min"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.of, self.at

    def result_type(self, schema: Schema, operator: str) -> pa.DataType:
        for column in (self.at, self.of):
            kind = checked_type(schema, column, has_order, Min.wanted, f"{operator}: {self}")
        return plain(kind)

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        types = schema.type_of(self.of), schema.type_of(self.at)
        part = Part(self.kind, self.of, other=self.at, types=tuple(map(plain, types)))
        return listed_if(part, *types), Part("count", self.of, other=self.at)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        if (values := listed(states[0])) is not None:
            return one_of(values, kind)
        return values_of(states[0][: len(least(kind))], fewer(states[1][0], 1), kind)


class ArgMax(ArgMin):
    """Value of the column ``of`` in the tuple in which ``at`` is largest; of several, the largest value of ``of``.

    Nulls and NaN are taken as by ``ArgMin``.
    """

    kind = "arg_max"
