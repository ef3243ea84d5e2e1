"""Aggregates of brute force, from their definitions: for Arrow where it has one, else for the rows of each window."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.errors import EngineError
from oop_engine.core.schema import Schema
from oop_engine.operators import aggregates as asked_for
from oop_engine.operators.aggregates import (
    M4,
    Aggregation,
    ArgMax,
    ArgMin,
    Avg,
    Count,
    First,
    GeometricMean,
    Last,
    Max,
    MaxCount,
    Min,
    MinCount,
    Product,
    Stddev,
    Sum,
    Var,
    WeightedAvg,
)
from oop_engine.operators.aggregates.sort_keys import plain

__all__ = ["ByArrow", "NoTruthError", "array_of", "asked", "integers", "numbers_of", "ranks_of", "rows_of"]

Integers = NDArray[np.int64]
_DIGITS = 100  # more than a sum of decimals has, and its quotient needs
_FAR = 5000  # binary digits: behind the range of float64 to either side


class NoTruthError(EngineError):
    """A graph whose answer brute force cannot give; the message has the reason."""


class ByArrow(NamedTuple):
    """An aggregate for Arrow: its values, its name, its options, and a function of its result."""

    values: pa.ChunkedArray
    how: str
    options: Any
    lower: Callable[[pa.ChunkedArray], pa.ChunkedArray | pa.Array]


def asked(aggregate: Aggregation, table: pa.Table, schema: Schema) -> ByArrow:
    """Return ``aggregate`` over ``table`` as Arrow computes it; ``NoTruthError`` for one without a definition."""
    way = _WAYS.get(type(aggregate))
    if way is None:
        msg = f"{type(aggregate).__name__} is not evaluated by brute force"
        raise NoTruthError(msg)
    return way(table, schema, aggregate)


def integers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of integers, dates or times as int64."""
    return column.cast(pa.int64())


def _same(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column


def _count(table: pa.Table, schema: Schema, aggregate: Count) -> ByArrow:
    values = table.column(aggregate.column or schema.progressing)
    return ByArrow(values, "count", pc.CountOptions(mode="only_valid"), _same)


def _sum(table: pa.Table, schema: Schema, aggregate: Sum) -> ByArrow:
    values = table.column(aggregate.column)
    wide = pa.int64()
    if pa.types.is_floating(values.type):
        wide = pa.float64()
    elif pa.types.is_uint64(values.type):
        wide = pa.uint64()
    elif pa.types.is_decimal(values.type):
        wide = pa.decimal128(38, values.type.scale)
    return ByArrow(values.cast(wide), "sum", pc.ScalarAggregateOptions(skip_nulls=True, min_count=1), _same)


def _mean(table: pa.Table, schema: Schema, aggregate: Avg) -> ByArrow:
    values = table.column(aggregate.column)
    if pa.types.is_decimal(values.type) or pa.types.is_duration(values.type):
        exact = values if pa.types.is_decimal(values.type) else integers(values)
        return _of_windows(table, aggregate, partial(_rounded, array_of(exact)))
    return ByArrow(values.cast(pa.float64(), safe=False), "mean", None, _same)


def _rounded(values: pa.Array, rows: Integers) -> Any:
    """Return the mean of exact numbers, a half away from zero."""
    scale = values.type.scale if pa.types.is_decimal(values.type) else 0
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        total = sum(map(decimal.Decimal, values.take(pa.array(rows)).to_pylist()), decimal.Decimal(0))
        mean = (total / rows.size).quantize(decimal.Decimal(1).scaleb(-scale), decimal.ROUND_HALF_UP)
        return mean if pa.types.is_decimal(values.type) else int(mean)


def _variance(table: pa.Table, schema: Schema, aggregate: Var) -> ByArrow:
    values = table.column(aggregate.column).cast(pa.float64(), safe=False)
    how = "stddev" if isinstance(aggregate, Stddev) else "variance"
    return ByArrow(values, how, pc.VarianceOptions(ddof=aggregate.ddof), _same)


def _chosen(table: pa.Table, schema: Schema, aggregate: Min | Max | First | Last | ArgMin) -> ByArrow:
    """The value that comes first when all are sorted; NaN sorts behind the numbers, and null is no value."""
    values = table.column(aggregate.of if isinstance(aggregate, ArgMin) else aggregate.column)
    values = values.cast(plain(values.type))
    order, places = _sorted(table, schema, aggregate)
    missing = np.logical_or.reduce([table.column(name).is_null().to_numpy() for name in aggregate.columns])
    first = pa.chunked_array([pa.array(places, mask=missing)])
    return ByArrow(first, "min", None, lambda places: values.take(pa.array(order).take(places)))


def _sorted(table: pa.Table, schema: Schema, aggregate: Aggregation) -> tuple[Integers, Integers]:
    """Return the rows as ``aggregate`` prefers them, and the place of each."""
    columns = {name: _sortable(table.column(name)) for name in reversed(aggregate.columns)}
    if isinstance(aggregate, First | Last):
        columns = {"": integers(table.column(schema.progressing)), **columns}
    from_least = isinstance(aggregate, ArgMin) and not isinstance(aggregate, ArgMax)
    from_least = from_least or type(aggregate) is MinCount or isinstance(aggregate, Min | First)
    way = "ascending" if from_least else "descending"
    order = pc.sort_indices(pa.table(columns), sort_keys=[(name, way) for name in columns]).to_numpy()
    places = np.empty(order.size, np.int64)
    places[order] = np.arange(order.size)
    return order.astype(np.int64), places


def _often(table: pa.Table, schema: Schema, aggregate: MinCount) -> ByArrow:
    values = _sortable(table.column(aggregate.column))
    order, _ = _sorted(table, schema, aggregate)
    ranks = _ranks(values, order)
    return _of_windows(
        table, aggregate, lambda rows: int((ranks[rows] == ranks[rows].min()).sum()), nothing=0
    )


def _ranks(values: pa.ChunkedArray, order: Integers) -> Integers:
    """Return a number for each row, the same for equal values (NaN equals NaN), growing along ``order``."""
    ordered = array_of(values.take(pa.array(order)))
    differ = pc.fill_null(pc.not_equal(ordered[1:], ordered[:-1]), True)
    if pa.types.is_floating(values.type):
        nan = pc.fill_null(pc.is_nan(ordered), False)
        differ = pc.and_not(differ, pc.and_(nan[1:], nan[:-1]))
    ranks = np.zeros(order.size, np.int64)
    ranks[order[1:]] = np.cumsum(differ.to_numpy(zero_copy_only=False))
    return ranks


def _four(table: pa.Table, schema: Schema, aggregate: M4) -> ByArrow:
    """The four values of a window: those of the aggregates that choose them."""
    values, four = table.column(aggregate.column), (Min, Max, First, Last)
    places = [_sorted(table, schema, kind(aggregate.column))[1] for kind in four]
    names = [kind.kind for kind in four]

    def lower(rows_found: pa.ChunkedArray) -> pa.Array:
        windows = rows_of(table, aggregate, rows_found)
        mask = pa.array([not rows.size for rows in windows], pa.bool_())
        chosen = [
            [int(rows[place[rows].argmin()]) if rows.size else None for rows in windows] for place in places
        ]
        columns = [array_of(values.take(pa.array(rows, pa.int64()))) for rows in chosen]
        return pa.StructArray.from_arrays(columns, names=names, mask=mask)

    return ByArrow(numbers_of(table), "list", None, lower)


def _product(table: pa.Table, schema: Schema, aggregate: Product) -> ByArrow:
    return _of_windows(table, aggregate, partial(_multiplied, _floats(table, aggregate.column)))


def _multiplied(values: NDArray[np.float64], rows: Integers) -> float:
    """Return the product, with the binary digits before the point counted apart."""
    mantissas, exponents = np.frexp(values[rows])
    digits = int(exponents.sum())
    while mantissas.size > 1:
        pairs = np.append(mantissas, np.ones(mantissas.size % 2)).reshape(-1, 2)
        mantissas, exponents = np.frexp(pairs[:, 0] * pairs[:, 1])
        digits += int(exponents.sum())
    return float(np.ldexp(mantissas[0], max(-_FAR, min(digits, _FAR))))


def _geometric(table: pa.Table, schema: Schema, aggregate: GeometricMean) -> ByArrow:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(_floats(table, aggregate.column))
    return _of_windows(table, aggregate, lambda rows: float(np.exp(logs[rows].mean())))


def _weighted(table: pa.Table, schema: Schema, aggregate: WeightedAvg) -> ByArrow:
    values, weights = (_floats(table, name) for name in aggregate.columns)
    return _of_windows(
        table, aggregate, lambda rows: float((values[rows] * weights[rows]).sum() / weights[rows].sum())
    )


def _of_windows(
    table: pa.Table, aggregate: Aggregation, function: Callable[[Integers], Any], nothing: Any = None
) -> ByArrow:
    """Wrap a function of a window's rows, of which there is one at least; without rows the result is ``nothing``."""

    def lower(places: pa.ChunkedArray) -> pa.Array:
        with np.errstate(all="ignore"):
            windows = rows_of(table, aggregate, places)
            return pa.array([function(rows) if rows.size else nothing for rows in windows], from_pandas=False)

    return ByArrow(numbers_of(table), "list", None, lower)


def rows_of(table: pa.Table, aggregate: Aggregation, places: pa.ChunkedArray) -> list[Integers]:
    """Return the rows in each window in which no column of ``aggregate`` is null."""
    known = np.ones(table.num_rows, np.bool_)
    for name in aggregate.columns:
        known &= table.column(name).is_valid().to_numpy()
    windows = (rows.values.to_numpy() for rows in places)
    return [rows[known[rows]] for rows in windows]


def numbers_of(table: pa.Table) -> pa.ChunkedArray:
    """Return the number of each row."""
    return pa.chunked_array([pa.array(np.arange(table.num_rows))])


def _floats(table: pa.Table, name: str) -> NDArray[np.float64]:
    values: NDArray[np.float64] = table.column(name).cast(pa.float64(), safe=False).to_numpy()
    return values


def array_of(values: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece, without a dictionary."""
    values = values.cast(plain(values.type))
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.nulls(0, values.type)


def ranks_of(values: pa.ChunkedArray) -> Integers:
    """Return a number for each row, the same for equal values and in their order; NaN is behind the numbers."""
    sortable = _sortable(values)
    order = pc.sort_indices(pa.table({"": sortable}), sort_keys=[("", "ascending")]).to_numpy()
    return _ranks(sortable, order)


def _sortable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    values = values.cast(plain(values.type))
    if pa.types.is_duration(values.type):
        return integers(values)
    return values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values


_WAYS: dict[type, Callable[[pa.Table, Schema, Any], ByArrow]] = {
    Count: _count,
    Sum: _sum,
    Avg: _mean,
    Var: _variance,
    Stddev: _variance,
    **dict.fromkeys((Min, Max, First, Last, ArgMin, ArgMax, asked_for.Any, asked_for.All), _chosen),
    **dict.fromkeys((MinCount, MaxCount), _often),
    M4: _four,
    Product: _product,
    GeometricMean: _geometric,
    WeightedAvg: _weighted,
}
