"""Values: aggregates that need all values of a window, exactly: quantiles, the most frequent ones, how many differ.

A window has its different values in order, with how often each occurs; all aggregates here over one
column share that.  It is merged exactly, in any order.  Memory follows the different values, so columns with few of
them cost least; where an error will do, ``sketches.py`` has the same questions for less.  The lists are kept by
``slicing/accumulators/lists.py``.

Columns may be numbers, booleans, dates and times, decimals, texts and bytes, or dictionaries of these.  NaN is one
value, the largest, and -0.0 is 0.0; texts are in the order of their bytes.  Nulls are skipped; of no values the result
is null, a count 0.

With ``most=k`` the answer is that of a sample, the k tuples of a window whose (value, time) has the least hash: so it
depends on no order, and a state has k values at most.  Tuples that are equal in both are in the sample together.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates.base import Aggregation, Arrays, Part
from oop_engine.operators.aggregates.collecting import checked_most, chosen, tallied
from oop_engine.operators.aggregates.sort_keys import (
    ORDERED,
    has_keys,
    has_order,
    is_numeric,
    plain,
    to_floats,
)

if TYPE_CHECKING:
    from oop_engine.operators.aggregates.ragged import Ragged

__all__ = ["CountDistinct", "HeavyHitters", "Median", "Mode", "OfList", "Quantile", "TopK"]

Integers = NDArray[np.int64]
Method = Literal["linear", "lower", "nearest"]


@checked_arguments
@dataclass(frozen=True)
class _OfValues(Aggregation):
    """An aggregate of a column's different values and their counts."""

    column: str
    most: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.most is not None:
            checked_most(type(self).__name__, self.most)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def result_type(self, schema: Schema, operator: str) -> pa.DataType:
        schema.require(self.columns, f"{operator}: {self}")
        kind = schema.type_of(self.column)
        if not has_order(kind):
            msg = f"{operator}: {self} needs values in order: {ORDERED}; {self.column!r} is {kind}: cast it before"
            raise GraphError(msg)
        return self._type(plain(kind), operator)

    def _type(self, kind: pa.DataType, operator: str) -> pa.DataType:
        return kind

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        kind = plain(schema.type_of(self.column))
        if self.most is not None:
            return (Part("sampled", self.column, types=(kind,), parameter=self.most),)
        return (Part("values" if has_keys(kind) else "names", self.column, types=(kind,)),)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        values = cast("Ragged", states[0][0])
        return self._of(values.compact() if self.most is None else tallied(values.compact()), kind)

    @abstractmethod
    def _of(self, values: Ragged, kind: pa.DataType) -> pa.Array:
        """Return the results, one for each list of values."""


@dataclass(frozen=True)
class OfList(_OfValues):
    """A plain function of the list of a window's values; ``UserDefined.of`` makes it."""

    function: Callable[[list[Any]], Any]
    returns: pa.DataType
    most: None = field(default=None, init=False, repr=False)

    def _type(self, kind: pa.DataType, operator: str) -> pa.DataType:
        return self.returns

    def _of(self, values: Ragged, kind: pa.DataType) -> pa.Array:
        each = chosen(values, np.arange(values.values), np.zeros(values.values, np.bool_), values.kind)
        flat = each.take(pa.array(np.repeat(np.arange(values.values), values.flat[1]))).to_pylist()
        ends = np.cumsum(values.totals()).tolist()
        lists = [flat[begin:end] for begin, end in pairwise([0, *ends])]
        results = [self.function(values) if values else None for values in lists]
        try:
            return pa.array(results, kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            name = getattr(self.function, "__name__", repr(self.function))
            msg = f"UserDefined.of: {name} must return {kind} values; {error}: give returns=..."
            raise ContractError(msg) from error


@checked_arguments
@dataclass(frozen=True)
class Quantile(_OfValues):
    """The value below which a share ``q`` of the values lies, 0 <= ``q`` <= 1.

    Of n values in order, numbered from 0, it is at h = q(n - 1).  ``method``: "linear" is between the two values beside
    h, by how near they are, as float64; "lower" is the one below h, "nearest" the nearer one (the lower one, if both
    are as near), both of the column's type, which then need be no number.

    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators import Sliding, WindowAggregate
    >>> schema = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")
    >>> p90 = WindowAggregate(Sliding(20, 10), {"p90": Quantile("v", 0.9, "lower")}).opened(schema)
    >>> list(p90.on_page(0, Page.of(schema, {"ts": [1, 12, 3, 14], "v": [5, 9, 5, 7]})))
    []
    >>> [row["p90"] for _, page in list(p90.on_punctuation(0, Linear(30)))[:-1] for row in page.to_pylist()]
    [5, 7, 7]
    """

    q: float
    method: Method = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.q, int | float) or not 0 <= self.q <= 1:
            msg = f"{type(self).__name__}: q must be from 0 to 1; got {self.q!r}"
            raise GraphError(msg)
        if self.method not in get_args(Method):
            msg = f"{type(self).__name__}: method must be one of {', '.join(get_args(Method))}; got {self.method!r}"
            msg += did_you_mean(self.method, get_args(Method))
            raise GraphError(msg)

    def _type(self, kind: pa.DataType, operator: str) -> pa.DataType:
        if self.method != "linear":
            return kind
        if not is_numeric(kind):
            msg = (
                f"{operator}: {self} lies between two values, so it needs an integer or a float; {self.column!r} is "
                f"{kind}: take Quantile({self.column!r}, {self.q}, method='lower'), or cast it before"
            )
            raise GraphError(msg)
        return pa.float64()

    def _of(self, values: Ragged, kind: pa.DataType) -> pa.Array:
        last = values.totals() - 1
        null = last < 0
        if null.all():
            return pa.nulls(null.size, kind)
        place = self.q * np.maximum(last, 0)
        low = np.floor(place).astype(np.int64)
        share = place - low
        if self.method != "linear":
            rank = low + (share > 0.5) if self.method == "nearest" else low
            return chosen(values, values.places(rank), null, kind)
        a, b = (_floats(values, values.places(np.minimum(rank, last)), null) for rank in (low, low + 1))
        with np.errstate(invalid="ignore"):
            between = np.where((a == b) | (share == 0), a, a * (1 - share) + b * share)
        return pa.array(between, kind, mask=null, from_pandas=False)


@checked_arguments
@dataclass(frozen=True)
class Median(Quantile):
    """The middle value, float64: the mean of the two in the middle, if they are an even number."""

    q: float = field(default=0.5, init=False, repr=False)
    method: Method = field(default="linear", init=False, repr=False)


@checked_arguments
@dataclass(frozen=True)
class CountDistinct(_OfValues):
    """Number of different values: int64, 0 for none."""

    most: None = field(default=None, init=False, repr=False)

    def _type(self, kind: pa.DataType, operator: str) -> pa.DataType:
        return pa.int64()

    def _of(self, values: Ragged, kind: pa.DataType) -> pa.Array:
        return pa.array(values.lengths, kind)


@checked_arguments
@dataclass(frozen=True)
class Mode(_OfValues):
    """The most frequent value, of several the smallest; of the column's type."""

    def _of(self, values: Ragged, kind: pa.DataType) -> pa.Array:
        rows, at = _frequent(values, 1)
        null = np.ones(values.size, np.bool_)
        null[rows] = False
        places = np.zeros(values.size, np.int64)
        places[rows] = at
        return chosen(values, places, null, kind)


@dataclass(frozen=True)
class _Frequent(_OfValues):
    """Some of the most frequent values."""

    def _type(self, kind: pa.DataType, operator: str) -> pa.DataType:
        return pa.list_(pa.struct([("value", kind), ("count", pa.int64())]))

    def _listed(self, values: Ragged, rows: Integers, at: Integers, kind: pa.DataType) -> pa.Array:
        """Return a list a row of the values ``at``, which are by row."""
        each = kind.value_type
        listed = chosen(values, at, np.zeros(at.size, np.bool_), each.field("value").type)
        counts = pa.array(values.flat[1][at], pa.int64())
        structs = pa.StructArray.from_arrays([listed, counts], fields=list(each))
        ends = np.zeros(values.size + 1, np.int32)
        np.cumsum(np.bincount(rows, minlength=values.size), out=ends[1:])
        null = np.append(values.lengths == 0, False)
        offsets = pa.array(ends, pa.int32(), mask=null if null.any() else None)
        return pa.ListArray.from_arrays(offsets, structs, type=kind)


@checked_arguments
@dataclass(frozen=True)
class TopK(_Frequent):
    """The ``k`` most frequent values: a list of structs (value, count), by count downwards, then value."""

    k: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.k, int) or self.k < 1:
            msg = f"TopK: k must be a number of values, at least 1; got {self.k!r}"
            raise GraphError(msg)

    def _of(self, values: Ragged, kind: pa.DataType) -> pa.Array:
        return self._listed(values, *_frequent(values, self.k), kind)


@checked_arguments
@dataclass(frozen=True)
class HeavyHitters(_Frequent):
    """The values that at least ``share`` of all are, 0 < ``share`` <= 1; a list as that of ``TopK``."""

    share: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.share, int | float) or not 0 < self.share <= 1:
            msg = f"HeavyHitters: share must be above 0 and at most 1; got {self.share!r}"
            raise GraphError(msg)

    def _of(self, values: Ragged, kind: pa.DataType) -> pa.Array:
        needed = np.repeat(self.share * values.totals(), values.lengths)
        return self._listed(values, *_frequent(values, None, values.flat[1] >= needed), kind)


def _frequent(
    values: Ragged, most: int | None, mask: NDArray[np.bool_] | None = None
) -> tuple[Integers, Integers]:
    """Return the rows and places of values by row, then count downwards, then value: ``most`` a row, of ``mask``."""
    at = np.arange(values.flat[1].size) if mask is None else np.flatnonzero(mask)
    rows = np.repeat(np.arange(values.size), values.lengths)[at]
    order = np.lexsort((-values.flat[1][at], rows))
    rows, at = rows[order], at[order]
    if most is None:
        return rows, at
    begins = np.searchsorted(rows, np.arange(values.size))
    first = np.flatnonzero(np.arange(rows.size) - begins[rows] < most)
    return rows[first], at[first]


def _floats(values: Ragged, at: Integers, null: NDArray[np.bool_]) -> NDArray[np.float64]:
    keys = values.flat[0][np.where(null, 0, at)]
    if pa.types.is_floating(values.kind):
        return to_floats(keys)
    if pa.types.is_uint64(values.kind):
        keys = (keys ^ np.iinfo(np.int64).min).view(np.uint64)
    floats: NDArray[np.float64] = keys.astype(np.float64)
    return floats
