"""Polars: batch queries over a data frame in memory, on two threads.

The same panes as the engine's are made by hand, which is several times faster than
``group_by_dynamic`` (that also leaves out windows that begin before the first tuple).
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "2"

from collections.abc import Callable

import numpy as np
import polars as pl

from benchmarks.contender import Contender
from benchmarks.data import SECOND, Columns

__all__ = ["contender"]

MINUTE = 60 * SECOND
Query = Callable[[pl.DataFrame], pl.DataFrame]


def contender(name: str, workload: str, columns: Columns) -> Contender:
    """Return the query of ``workload`` over ``columns``."""
    frame = pl.DataFrame(columns)
    query = QUERIES[workload]
    return Contender(lambda: frame, query, lambda found: {c: found[c].to_numpy() for c in found.columns})


def w1(frame: pl.DataFrame) -> pl.DataFrame:
    panes = frame.lazy().group_by(pane=pl.col("ts") // MINUTE).agg(count=pl.len().cast(pl.Int64))
    return _windows(panes.collect(), 5, MINUTE, [], "count")


def w2(frame: pl.DataFrame) -> pl.DataFrame:
    total = pl.col("len").cast(pl.Int64).sum().alias("total")
    panes = frame.lazy().group_by("src", pane=pl.col("ts") // SECOND).agg(total)
    return _windows(panes.collect(), 10, SECOND, ["src"], "total")


def w3(frame: pl.DataFrame) -> pl.DataFrame:
    start = (pl.col("ts") // SECOND * SECOND).alias("window_start")
    return frame.lazy().group_by(start, "src").agg(count=pl.len().cast(pl.Int64)).collect()


def w4(frame: pl.DataFrame) -> pl.DataFrame:
    left = frame.lazy().filter(pl.col("side") == 0).select("flow", left="ts")
    right = frame.lazy().filter(pl.col("side") == 1).select("flow", right="ts")
    near = (pl.col("left") - pl.col("right")).abs() <= SECOND
    start = (pl.col("left") // MINUTE * MINUTE).alias("window_start")
    both = left.join(right, on="flow").filter(near)
    return both.group_by(start).agg(count=pl.len().cast(pl.Int64)).collect()


def w5(frame: pl.DataFrame) -> pl.DataFrame:
    total = pl.col("v").cast(pl.Int64).sum()
    seconds = frame.lazy().group_by(second=pl.col("ts") // SECOND).agg(total).collect()
    return pl.concat(
        seconds.group_by(window_start=pl.col("second") // length * (length * SECOND))
        .agg(total=pl.col("v").sum())
        .select(pl.lit(length, pl.Int64).alias("length"), "window_start", "total")
        for length in range(1, 21)
    )


def w6(kind: str, slide: int) -> Query:
    """Return the query; rows that are null after the last one make its incomplete windows."""

    def query(frame: pl.DataFrame) -> pl.DataFrame:
        windows = (len(frame) + 1023) // slide
        after = pl.Series([None] * (windows * slide - len(frame)))
        if kind == "min":
            value = frame["v"].append(after.cast(pl.Int32)).rolling_min(1024, min_samples=1)
        else:
            value = (
                frame["f"].cast(pl.Float64).append(after.cast(pl.Float64)).rolling_mean(1024, min_samples=1)
            )
        ends = pl.Series("window_end", np.arange(1, windows + 1) * slide)
        return pl.DataFrame([ends, value.gather_every(slide, slide - 1).alias("value")])

    return query


def _windows(panes: pl.DataFrame, width: int, slide: int, by: list[str], value: str) -> pl.DataFrame:
    """Put each pane into the ``width`` windows that it is in."""
    spread = pl.concat([panes.with_columns(pl.col("pane") - back) for back in range(width)])
    start = (pl.col("pane") * slide).alias("window_start")
    return spread.lazy().group_by(start, *by).agg(pl.col(value).sum()).collect()


QUERIES: dict[str, Query] = {"W1": w1, "W2": w2, "W3": w3, "W4": w4, "W5": w5} | {
    f"W6-{kind}-{slide}": w6(kind, slide) for kind in ("min", "avg") for slide in (1, 64, 1024)
}
