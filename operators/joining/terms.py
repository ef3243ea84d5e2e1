"""The terms of a window join: keys, band, residual predicate, and the columns it puts out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.joining.bands import Band, TumblingBand

__all__ = ["JoinTerms", "Keys", "Residual"]

Keys = tuple[tuple[str, str], ...]
"""Pairs of a left and a right column that must be equal."""

Residual: TypeAlias = pc.Expression | Callable[[pa.RecordBatch], pa.Array | NDArray[np.bool_]]
"""A condition on a joined tuple: an expression, or a function from joined columns to a mask."""


@dataclass(frozen=True)
class JoinTerms:
    """The parameters all window joins share; ``operator`` is the name for errors.

    Raises ``GraphError`` if the keys are not pairs of names or use a column twice on one
    side, or if ``band`` is none.
    """

    operator: str
    keys: Keys
    band: Band | TumblingBand
    residual: Residual | None
    suffix: str

    def __post_init__(self) -> None:
        if type(self.band) not in (Band, TumblingBand):
            msg = f"{self.operator}: band must be a Band or a TumblingBand; got {self.band!r}"
            raise GraphError(msg)
        if any(isinstance(pair, str) or len(pair) != 2 for pair in self.keys):
            msg = f"{self.operator}: keys must be pairs (left column, right column); got {self.keys!r}"
            raise GraphError(msg)
        for side in (0, 1):
            names = self.names(side)
            if len(set(names)) < len(names):
                msg = f"{self.operator}: a column can be in one key pair only; got {names}: use the residual"
                raise GraphError(msg)

    def __str__(self) -> str:
        equal = ", ".join(left if left == right else f"{left} = {right}" for left, right in self.keys)
        return f"on {equal or 'no key'}, {self.band}{'' if self.residual is None else ', residual'}"

    def names(self, side: int) -> list[str]:
        """Return the key columns of a side (0: left, 1: right)."""
        return [pair[side] for pair in self.keys]

    def output_schema(self, left: Schema, right: Schema) -> Schema:
        """Return left columns, then right ones; raise ``GraphError`` if the inputs do not fit."""
        self._check_inputs(left, right)
        self.band.fitted(left, self.operator)
        names = self.right_names(left, right)
        clashes = sorted({name for name in names if name in left.names or names.count(name) > 1})
        if clashes:
            clash = f"right columns clash even with suffix {self.suffix!r}; got {clashes}"
            msg = f"{self.operator}: {clash}: choose another suffix"
            raise GraphError(msg)
        fields = [pa.field(n, f.type) for n, f in zip(names, right.fields, strict=True)]
        schema = Schema(pa.schema([*left.fields, *fields]), left.progressing, left.unit)
        self._check_residual(schema)
        return schema

    def right_names(self, left: Schema, right: Schema) -> list[str]:
        """Return the names that the right columns have in the output."""
        return [name + self.suffix if name in left.names else name for name in right.names]

    def right_progressing(self, left: Schema, right: Schema) -> str:
        """Return the output's name of the right progressing attribute."""
        return self.right_names(left, right)[right.names.index(right.progressing)]

    def lineage(self, column: str, left: Schema, right: Schema) -> tuple[str | None, str | None]:
        """Return the left and the right column that ``column`` of the output repeats."""
        on_right = dict(zip(self.right_names(left, right), right.names, strict=True)).get(column)
        side = 0 if column in left.names else 1
        own = column if side == 0 else on_right
        pair = next((pair for pair in self.keys if pair[side] == own), None)
        return pair or (own if side == 0 else None, own if side == 1 else None)

    def passing(self, joined: pa.RecordBatch) -> pa.RecordBatch:
        """Return the joined tuples of which the residual holds (null does not hold)."""
        if self.residual is None:
            return joined
        if isinstance(self.residual, pc.Expression):
            return joined.filter(self.residual)
        mask = self.residual(joined)
        return joined.filter(pa.array(mask) if isinstance(mask, np.ndarray) else mask)

    def _check_inputs(self, left: Schema, right: Schema) -> None:
        left.require(self.names(0), f"{self.operator}: left")
        right.require(self.names(1), f"{self.operator}: right")
        for a, b in self.keys:
            if left.type_of(a) != right.type_of(b):
                got = f"left {a!r} {left.type_of(a)} and right {b!r} {right.type_of(b)}"
                msg = f"{self.operator}: key columns must be of one type; got {got}: cast one of them"
                raise GraphError(msg)
        if left.unit != right.unit:
            times = ((left.progressing, left.unit), (right.progressing, right.unit))
            got = " and ".join(f"{name!r} in {unit!r}" for name, unit in times)
            msg = f"{self.operator}: progressing attributes must have one unit; got {got}: convert one"
            raise GraphError(msg)

    def _check_residual(self, schema: Schema) -> None:
        nothing = pa.RecordBatch.from_pylist([], schema=schema.fields)
        try:
            self.passing(nothing)
        except Exception as error:  # whatever a user's function raises on no rows, it is a wrong graph
            condition = f"residual must give a boolean for each joined tuple; got {error}"
            msg = f"{self.operator}: {condition}: the columns are {', '.join(schema.names)}"
            raise GraphError(msg) from error
