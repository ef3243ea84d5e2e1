"""Aggregates of all values of a window, by brute force: the rows of each window, put in order and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.schema import Schema
from oop_engine.lab.brute_force import aggregates as brute_aggregates
from oop_engine.lab.brute_force.aggregates import (
    ByArrow,
    NoTruthError,
    array_of,
    numbers_of,
    ranks_of,
    rows_of,
)
from oop_engine.operators.aggregates import (
    Aggregation,
    ApproxCountDistinct,
    ApproxQuantile,
    Collect,
    CountDistinct,
    FrequentItems,
    HeavyHitters,
    Kll,
    Median,
    Mode,
    Quantile,
    TDigest,
    TopK,
)

__all__ = ["asked"]

Integers = NDArray[np.int64]
Windows = list[Integers]
_ESTIMATES = (ApproxCountDistinct, ApproxQuantile, FrequentItems, Kll, TDigest)


class _Column(NamedTuple):
    """A column: its ``values``, and of each row its ``ranks`` among them, the same for equal ones, and its time."""

    values: pa.Array
    ranks: Integers
    times: Integers


def asked(aggregate: Aggregation, table: pa.Table, schema: Schema) -> ByArrow:
    """Return ``aggregate`` over ``table`` as Arrow computes it; ``NoTruthError`` for one without a definition."""
    name = type(aggregate).__name__
    if isinstance(aggregate, _ESTIMATES):
        msg = f"{name} is an estimate, which is not evaluated by brute force: compare it with the exact aggregate"
        raise NoTruthError(msg)
    if (way := _WAYS.get(type(aggregate))) is None:
        return brute_aggregates.asked(aggregate, table, schema)
    if getattr(aggregate, "most", None) is not None and not isinstance(aggregate, Collect):
        msg = f"{name} with most= is of a sample, which is not evaluated by brute force: leave most out"
        raise NoTruthError(msg)
    values = table.column(aggregate.columns[0])
    times = table.column(schema.progressing).cast(pa.int64()).to_numpy()
    column = _Column(array_of(values), ranks_of(values), times)
    kind = aggregate.result_type(schema, "brute force")

    def lower(places: pa.ChunkedArray) -> pa.Array:
        return way(aggregate, column, rows_of(table, aggregate, places), kind)

    return ByArrow(numbers_of(table), "list", None, lower)


def _quantile(aggregate: Quantile, column: _Column, windows: Windows, kind: pa.DataType) -> pa.Array:
    if aggregate.method == "linear":
        floats = column.values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return pa.array(
            [_between(floats, column.ranks, rows, aggregate.q) for rows in windows], kind, from_pandas=False
        )
    places = []
    for rows in windows:
        at = aggregate.q * (rows.size - 1)
        up = aggregate.method == "nearest" and at - int(at) > 0.5
        places.append(int(rows[np.argsort(column.ranks[rows])][int(at) + up]) if rows.size else None)
    return column.values.take(pa.array(places, pa.int64()))


def _between(floats: NDArray[np.float64], ranks: Integers, rows: Integers, q: float) -> float | None:
    if not rows.size:
        return None
    ordered, at = floats[rows[np.argsort(ranks[rows])]], q * (rows.size - 1)
    low, share = ordered[int(at)], at - int(at)
    if not share or low == (high := ordered[int(at) + 1]):
        return float(low)
    with np.errstate(invalid="ignore"):
        return float(low * (1 - share) + high * share)


def _counted(column: _Column, rows: Integers) -> list[tuple[int, int]]:
    """Return a row of each different value, and how often it is there: by count downwards, then value."""
    _, first, counts = np.unique(column.ranks[rows], return_index=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return list(zip(rows[first[order]].tolist(), counts[order].tolist(), strict=True))


def _mode(aggregate: Mode, column: _Column, windows: Windows, kind: pa.DataType) -> pa.Array:
    modes = [_counted(column, rows)[0][0] if rows.size else None for rows in windows]
    return column.values.take(pa.array(modes, pa.int64()))


def _distinct(aggregate: CountDistinct, column: _Column, windows: Windows, kind: pa.DataType) -> pa.Array:
    return pa.array([np.unique(column.ranks[rows]).size for rows in windows], kind)


def _frequent(
    aggregate: TopK | HeavyHitters, column: _Column, windows: Windows, kind: pa.DataType
) -> pa.Array:
    def frequent(rows: Integers) -> list[tuple[int, int]]:
        every = _counted(column, rows)
        if isinstance(aggregate, TopK):
            return every[: aggregate.k]
        return [pair for pair in every if pair[1] >= aggregate.share * rows.size]

    lists = [frequent(rows) for rows in windows]
    flat = [pair for pairs in lists for pair in pairs]
    values = column.values.take(pa.array([row for row, _ in flat], pa.int64()))
    counts = pa.array([count for _, count in flat], pa.int64())
    structs = pa.StructArray.from_arrays([values, counts], fields=list(kind.value_type))
    return _lists(lists, [not rows.size for rows in windows], structs)


def _collected(aggregate: Collect, column: _Column, windows: Windows, kind: pa.DataType) -> pa.Array:
    order = [rows[np.lexsort((column.ranks[rows], column.times[rows]))][: aggregate.most] for rows in windows]
    flat = column.values.take(pa.array(np.concatenate([np.empty(0, np.int64), *order])))
    lists = _lists(order, [False] * len(order), flat)
    beyond = pa.array([max(rows.size - aggregate.most, 0) for rows in windows], pa.int64())
    mask = pa.array([not rows.size for rows in windows], pa.bool_())
    return pa.StructArray.from_arrays([lists, beyond], fields=list(kind), mask=mask)


def _lists(lists: Sequence[Any], null: list[bool], flat: pa.Array) -> pa.Array:
    offsets = np.append(0, np.cumsum([len(values) for values in lists])).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets, mask=np.append(null, False).astype(bool)), flat)


_WAYS: dict[type, Callable[[Any, _Column, Windows, pa.DataType], pa.Array]] = {
    **dict.fromkeys((Quantile, Median), _quantile),
    Mode: _mode,
    CountDistinct: _distinct,
    **dict.fromkeys((TopK, HeavyHitters), _frequent),
    Collect: _collected,
}
