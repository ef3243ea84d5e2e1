"""Case: an operator with parameters, and the oracle of its output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from oop_engine.core.operator import Operator
from oop_engine.core.schema import Schema

__all__ = ["Case", "Row", "typed"]

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Case:
    """An operator with parameters, its input schemas, and its oracle.

    ``oracle`` gets the rows of each input, in arrival order, and returns the rows of
    output 0 as a multiset; it is written from the definition and knows no punctuation.  It is
    asked only about streams in which nothing is late.
    ``domains``: values to draw a column from, where the default for its type will not do.
    ``exempt``: laws that do not hold for the operator, by name, each with the reason.

    >>> import pyarrow as pa
    >>> Case("pass", Operator(), (Schema({"ts": pa.int64()}, "ts", "s"),), oracle=lambda inputs: inputs[0]).id
    'pass'
    """

    id: str
    operator: Operator
    inputs: tuple[Schema, ...]
    oracle: Callable[[list[list[Row]]], list[Row]]
    domains: dict[str, list[Any]] = field(default_factory=dict)
    exempt: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.id


def typed(values: list[Any], kind: pa.DataType) -> Any:
    """Return values of rows as a page takes them: a script has integers for times, in the unit of their column."""
    whole = all(value is None or type(value) is int for value in values)
    return pa.array(values, kind) if whole and pa.types.is_temporal(kind) else values
