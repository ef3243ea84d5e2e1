"""What the results must be, found in NumPy over the whole trace; results are held against it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.spark.traces import BASE, SECOND, Trace

__all__ = ["check_join", "check_sums", "true_pairs", "true_sums"]

RANGE = 10  # seconds
Sums = NDArray[np.float64]


def true_sums(trace: Trace) -> Sums:
    """Return the sum of each (key, window), float64 (keys, windows); NaN: no tuple."""
    table = trace.table()
    second = (table["ts"].cast(pa.int64()).to_numpy() - BASE) // SECOND
    key, panes = table["key"].to_numpy(), trace.made.span + RANGE - 1
    shape = (trace.made.keys, panes)
    at = np.ravel_multi_index((key, second), shape)
    sums = np.bincount(at, table["val"].to_numpy(), minlength=shape[0] * shape[1]).reshape(shape)
    counts = np.bincount(at, minlength=shape[0] * shape[1]).reshape(shape)
    return np.where(_sliding(counts) > 0.5, _sliding(sums), np.nan)


def _sliding(panes: NDArray[np.float64] | NDArray[np.int64]) -> Sums:
    ends = np.concatenate([np.zeros((len(panes), RANGE)), np.cumsum(panes, axis=1)], axis=1)
    return np.asarray(ends[:, RANGE:] - ends[:, :-RANGE])


def check_sums(results: pa.Table, truth: Sums, *, complete: bool) -> int:
    """Raise ``AssertionError`` unless all results are right and, if ``complete``, all there; return how many lack."""
    window = (
        results["window_end"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy() - BASE
    ) // SECOND - 1
    found = np.full(truth.shape, np.nan)
    found[results["key"].to_numpy(), window] = results["sum"].to_numpy()
    there = ~np.isnan(found)
    assert there.sum() == len(results), "a window was answered twice"
    assert np.allclose(found[there], truth[there], rtol=1e-9), "wrong sums"
    lacking = int((~np.isnan(truth) & ~there).sum())
    assert not (complete and lacking), f"{lacking} windows lack"
    return lacking


def true_pairs(trace: Trace, band: int = 50_000) -> int:
    """Return how many pairs of one key are at most ``band`` microseconds apart."""
    left, right = (trace.source(name) for name in trace.made.sources)
    step = trace.made.span * SECOND * 4
    places = [
        t["key"].to_numpy() * step + t["ts"].cast(pa.int64()).to_numpy() - BASE + band for t in (left, right)
    ]
    others = np.sort(places[1])
    first = np.searchsorted(others, places[0] - band, "left")
    return int((np.searchsorted(others, places[0] + band, "right") - first).sum())


def check_join(results: pa.Table, truth: int, columns: tuple[str, str], *, complete: bool) -> int:
    """Raise ``AssertionError`` unless all pairs match and, if ``complete``, all are there; return how many lack."""
    left, right = (results[c].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy() for c in columns)
    assert (np.abs(left - right) <= 50_000).all(), "pairs that do not match"
    assert not complete or len(results) == truth, f"{truth - len(results)} pairs lack"
    return truth - len(results)
