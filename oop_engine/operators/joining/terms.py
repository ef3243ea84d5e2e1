"""The terms of a window join: keys, band, residual predicate, kind, and the columns it emits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import GraphError
from oop_engine.core.schema import NULL_UNMATCHED, Schema
from oop_engine.operators.joining.bands import AsOf, Bands
from oop_engine.operators.joining.kinds import KINDS, Kind
from oop_engine.operators.values.expressions import columns_of, evaluate, mask_of, require_boolean

__all__ = ["TIME", "JoinTerms", "Keys", "Residual", "all_valid", "without_nulls"]

TIME = "time"
"""The progressing attribute of a full join."""

Keys = tuple[tuple[str, ...], ...]
"""Pairs of a left and a right column that must be equal."""

Residual: TypeAlias = pc.Expression | Callable[[pa.RecordBatch], pa.Array | NDArray[np.bool_]]
"""A condition on a joined tuple: an expression, or a function from joined columns to a mask."""


@dataclass(frozen=True)
class JoinTerms:
    """The parameters all window joins share; ``operator`` is the name for errors.

    Raises ``GraphError`` if the keys are not pairs of names or use a column twice on one
    side, if ``band`` is none, or ``how`` no kind of join.
    """

    operator: str
    keys: Keys
    band: Bands
    residual: Residual | None
    suffix: str
    how: str = "inner"

    def __post_init__(self) -> None:
        if self.how not in KINDS:
            msg = f"{self.operator}: how must be one of {', '.join(KINDS)}; got {self.how!r}"
            msg += did_you_mean(self.how, KINDS)
            raise GraphError(msg)
        if type(self.band) not in get_args(Bands):
            msg = (
                f"{self.operator}: band must be a Band, TumblingBand, WindowIdBand or AsOf; got {self.band!r}"
            )
            raise GraphError(msg)
        if isinstance(self.band, AsOf) and (self.how not in ("inner", "left") or self.residual is not None):
            got = f"how={self.how!r}" if self.residual is None else "a residual"
            needed = "an AsOf band is for inner and left joins without a residual"
            msg = f"{self.operator}: {needed}; got {got}: select before it, or take a Band"
            raise GraphError(msg)
        for side in (0, 1):
            names = self.names(side)
            if len(set(names)) < len(names):
                msg = f"{self.operator}: a column can be in one key pair only; got {names}: use the residual"
                raise GraphError(msg)

    def __str__(self) -> str:
        equal = ", ".join(left if left == right else f"{left} = {right}" for left, right in self.keys)
        how = "" if self.how == "inner" else f"{self.how}, "
        return f"{how}on {equal or 'no key'}, {self.band}{'' if self.residual is None else ', residual'}"

    @property
    def kind(self) -> Kind:
        """The rows that leave for tuples with and without a match."""
        return KINDS[self.how]

    def names(self, side: int) -> list[str]:
        """Return the key columns of a side (0: left, 1: right)."""
        return [pair[side] for pair in self.keys]

    def output_schema(self, left: Schema, right: Schema) -> Schema:
        """Return the columns that go out; raise ``GraphError`` if the inputs do not fit."""
        self._check_inputs(left, right)
        self.band.fitted(left, self.operator)
        if not self.kind.pairs and self.residual is None:
            return left
        pairs = self.pair_schema(left, right)
        self._check_residual(pairs)
        return pairs if self.kind.pairs else left

    def pair_schema(self, left: Schema, right: Schema) -> Schema:
        """Return left columns, then right ones; of a full join the ``time`` of the earlier one before them."""
        names = self.right_names(left, right)
        if all(self.kind.alone) and TIME in left.names:
            taken = f"{TIME!r} is the progressing attribute of a full join; got a left column of that name"
            msg = f"{self.operator}: {taken}: rename it with a Project"
            raise GraphError(msg)
        clashes = sorted({name for name in names if name in left.names or names.count(name) > 1})
        if clashes:
            clash = f"right columns clash even with suffix {self.suffix!r}; got {clashes}"
            msg = f"{self.operator}: {clash}: choose another suffix"
            raise GraphError(msg)
        known, of_left, of_right = [], [*left.fields], [f.with_nullable(True) for f in right.fields]
        of_right = [field.with_name(name) for name, field in zip(names, of_right, strict=True)]
        if self.kind.alone[0]:
            of_right = [field.with_metadata(NULL_UNMATCHED) for field in of_right]
        if self.kind.alone[1]:
            of_left = [field.with_metadata(NULL_UNMATCHED).with_nullable(True) for field in of_left]
            known = [pa.field(TIME, self._time_type(left, right))]
        progressing = TIME if known else left.progressing
        return Schema(pa.schema([*known, *of_left, *of_right]), progressing, left.unit)

    def right_names(self, left: Schema, right: Schema) -> list[str]:
        """Return the names that the right columns have in the output."""
        taken = {*left.names, *([TIME] if all(self.kind.alone) else [])}
        return [name + self.suffix if name in taken else name for name in right.names]

    def right_progressing(self, left: Schema, right: Schema) -> str:
        """Return the output's name of the right progressing attribute."""
        return self.right_names(left, right)[right.names.index(right.progressing)]

    def retains(self, more: str = "") -> str | None:
        """Return the state of a key that no bound of the stream frees, and why; None: bounds free all.  O(1)."""
        if not (self.keys and isinstance(self.band, AsOf) and self.band.within is None):
            return None
        return f"the newest right row of each key{more}: any later left row matches it; AsOf(within=...) limits that"

    def lineage(self, column: str, left: Schema, right: Schema) -> tuple[str | None, str | None]:
        """Return the left and the right column that ``column`` of the output repeats.

        Columns that are null where nothing matched repeat nothing.
        """
        on_right = dict(zip(self.right_names(left, right), right.names, strict=True)).get(column)
        side = 0 if column in left.names else 1
        if self.kind.alone[1 - side] and self.kind.pairs:
            return None, None
        own = column if side == 0 else on_right
        pair = next((pair for pair in self.keys if pair[side] == own), None)
        return (pair[0], pair[1]) if pair else (own if side == 0 else None, own if side == 1 else None)

    def reads(
        self, downstream: frozenset[str], left: Schema, right: Schema
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Return the columns of each side that the join reads, or downstream operators, which read ``downstream``.

        A left column stays where a right one of its name is read, which would lose its suffix without it.
        """
        if self.residual is not None:
            downstream |= columns_of([self.residual], self.pair_schema(left, right))
        out = zip(right.names, self.right_names(left, right), strict=True)
        later = {own: name for own, name in out if name in downstream}
        named = {own for own, name in later.items() if own != name}
        of_left = (downstream | named) & frozenset(left.names)
        return of_left.union(self.names(0)), frozenset(later).union(self.names(1))

    def holds(self, joined: pa.RecordBatch) -> NDArray[np.bool_] | None:
        """Return of which joined tuples the residual holds (null does not hold); None: there is none."""
        if self.residual is None:
            return None
        return mask_of(evaluate(self.operator, [self.residual], [pa.bool_()], joined)[0])

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
        if self.residual is None:
            return
        place = f"{self.operator}: residual must give a boolean for each joined tuple"
        require_boolean(place, [self.residual], schema)

    def _time_type(self, left: Schema, right: Schema) -> pa.DataType:
        types = {schema.type_of(schema.progressing) for schema in (left, right)}
        return types.pop() if len(types) == 1 else pa.int64()


def key_columns(keys: object, inputs: Sequence[str], place: str) -> tuple[tuple[str, ...], ...]:
    """Return the columns of each key, one of each input; a name alone stands for the columns of that name.

    Raises ``GraphError`` in the name of ``place`` for anything else.

    >>> key_columns(["k", ("host", "src")], ("left", "right"), "OAJoin")
    (('k', 'k'), ('host', 'src'))
    """
    given: Any = (
        keys if isinstance(keys, Iterable) and not isinstance(keys, str | bytes | Mapping) else (keys,)
    )
    pairs = [(key,) * len(inputs) if isinstance(key, str) else key for key in given]
    for key in pairs:
        is_tuple = isinstance(key, tuple | list) and len(key) == len(inputs)
        if not is_tuple or not all(isinstance(name, str) and name for name in key):
            form = ", ".join(f"{name} column" for name in inputs)
            msg = (
                f"{place}: keys must be names, or tuples ({form}) where names differ; got {key!r}: "
                "write keys=['k'] for columns of one name"
            )
            raise GraphError(msg)
    return tuple(tuple(key) for key in pairs)


def without_nulls(columns: Sequence[pa.Array]) -> bool:
    """Return whether no column has a null.  O(columns): nulls are counted once a buffer."""
    return not any(
        column.null_count or (isinstance(column, pa.DictionaryArray) and column.dictionary.null_count)
        for column in columns
    )


def all_valid(columns: Sequence[pa.Array], rows: int) -> NDArray[np.bool_]:
    """Return in which of ``rows`` no column is null, bool (rows,)."""
    valid = np.ones(rows, np.bool_)
    for column in columns:
        if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
            column = column.dictionary_decode()
        if column.null_count:
            valid &= column.is_valid().to_numpy(zero_copy_only=False)
    return valid
