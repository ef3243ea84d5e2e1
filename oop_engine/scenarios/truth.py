"""Answers by brute force: every tuple is put into every window that contains it.

Written from the definition of a window and without the engine, on Arrow's own hash
aggregation: an independent judge.  And two measures of how far results are from such an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.lab.brute_force.windows import memberships
from oop_engine.lab.scenario import COMPLETE_AT

__all__ = ["cut_out", "mean_error", "windows", "wrong_results"]

Integers = NDArray[np.int64]
Aggregates = Mapping[str, tuple[str, Callable[[NDArray[Any]], Any]]]


def windows(
    table: pa.Table,
    *,
    time: str,
    arrival: NDArray[np.int64],
    range_: int,
    slide: int,
    by: Sequence[str] = (),
    aggregates: dict[str, tuple[str, str]],
) -> pa.Table:
    """Return one row per group and window ``[start, start + range_)`` that has tuples.

    Windows end at the multiples of ``slide``.  ``time`` is an int64 or timestamp column,
    lengths in its unit; ``aggregates``: output name -> (column, Arrow aggregate); ``arrival``
    (rows,) gives ``COMPLETE_AT``.  O(rows x windows a row).
    """
    kind = table.schema.field(time).type
    times = table.column(time).cast(pa.int64()).to_numpy()
    used = sorted({*by, *(column for column, _ in aggregates.values())})
    plain = table.select(used).append_column(COMPLETE_AT, pa.array(arrival))
    parts = [
        plain.take(pa.array(rows))
        .append_column("window_start", pa.array(ends - range_).cast(kind))
        .append_column("window_end", pa.array(ends).cast(kind))
        for rows, ends in memberships(times, range_, slide)
    ]
    wanted = [*aggregates.values(), (COMPLETE_AT, "max")]
    grouped = pa.concat_tables(parts).group_by([*by, "window_start", "window_end"]).aggregate(wanted)
    names = {f"{column}_{how}": name for name, (column, how) in aggregates.items()}
    names[f"{COMPLETE_AT}_max"] = COMPLETE_AT
    grouped = grouped.rename_columns([names.get(n, n) for n in grouped.column_names])
    return grouped.take(pc.sort_indices(grouped, sort_keys=[("window_end", "ascending")]))


def cut_out(
    table: pa.Table, starts: Integers, stops: Integers, aggregates: Aggregates, arrival: str = "arrival"
) -> pa.Table:
    """Return one row for each stretch ``[start, stop)`` of rows: ``aggregates`` of its values, and ``COMPLETE_AT``.

    ``aggregates``: output name -> (column, function of an array).  Each stretch is cut out of the columns and looked
    at by itself.  O(rows in all stretches).
    """
    columns = {
        name: table.column(name).to_numpy() for name in {arrival, *(c for c, _ in aggregates.values())}
    }
    cuts = list(zip(starts.tolist(), stops.tolist(), strict=True))
    asked: dict[str, tuple[str, Callable[[NDArray[Any]], Any]]] = {
        **aggregates,
        COMPLETE_AT: (arrival, np.max),
    }
    found = {
        name: [function(columns[column][start:stop]) for start, stop in cuts]
        for name, (column, function) in asked.items()
    }
    return pa.table({name: np.array(values) for name, values in found.items()})


def mean_error(table: pa.Table, truth: pa.Table, column: str) -> float:
    """Return the mean over all true windows of ``|result - truth| / truth``, in percent.

    A window without a result is off by 100 %.  Windows are identified by ``window_end``.
    """
    result, true = _side_by_side(table, truth, column)
    off = np.abs(result - true) / np.abs(true)
    return 100 * float(np.nan_to_num(off, nan=1.0).mean())


def wrong_results(table: pa.Table, truth: pa.Table, column: str) -> float:
    """Return for how many of the true windows there is no result or a wrong one, in percent."""
    result, true = _side_by_side(table, truth, column)
    return 100 * float((result != true).mean())


def _side_by_side(
    table: pa.Table, truth: pa.Table, column: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return result and truth of each true window, NaN where there is no result."""
    results = dict(zip(table["window_end"].to_pylist(), table[column].to_pylist(), strict=True))
    found = [results.get(end, np.nan) for end in truth["window_end"].to_pylist()]
    return np.array(found, np.float64), truth[column].to_numpy().astype(np.float64)
