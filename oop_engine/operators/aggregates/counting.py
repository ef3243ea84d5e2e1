"""Counting: of tuples, or of values."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import Aggregation, Part

__all__ = ["Count"]


@checked_arguments
@dataclass(frozen=True)
class Count(Aggregation):
    """Number of tuples, or of the non-null values of ``column``: int64, 0 for none."""

    column: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    def result_type(self, schema: Schema, operator: str) -> pa.DataType:
        schema.require(self.columns, f"{operator}: {self}")
        return pa.int64()

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return (Part("count", self.column),)
