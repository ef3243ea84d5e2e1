"""Questions: what is asked of files, their data, and what is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.data import DELAY, DELAYED, SECOND, auctions, flows, zipf
from benchmarks.workloads import WORKLOADS

__all__ = ["QUESTIONS", "Question", "Tables"]

Tables = Mapping[str, pa.Table]
"""The input: a table for each source."""
HOSTS, LONG_MS = 10_000, 10_000


class Question(NamedTuple):
    """``data(rows)`` makes the input, ``right(tables)`` the results to compare with."""

    data: Callable[[int], Tables]
    right: Callable[[Tables], pa.Table]


def log(rows: int, *, text: bool) -> Tables:
    """Return requests: 10,000 a second, of 10,000 hosts (Zipf 1.1), 20 % up to 2 s late; ``ts`` in ms."""
    rng = np.random.default_rng(31)
    ts = np.arange(rows) * 1000 // 10_000
    late = np.where(rng.random(rows) < DELAYED, rng.random(rows) * DELAY / 1000, 0).astype(np.int64)
    ts = (1_704_067_200_000 + ts)[np.argsort(ts + late, kind="stable")]
    host = pa.array(zipf(rng, rows, HOSTS))
    if text:
        host = pa.array([f"host-{number}" for number in range(HOSTS)]).take(host)
    return {"requests": pa.table({"ts": ts, "host": host, "size": rng.integers(40, 1501, rows)})}


def by_host(tables: Tables, slide_ms: int) -> pa.Table:
    """Return count, sum and maximum of windows of 10 s, from the definition: each row in each of its windows."""
    requests = tables["requests"]
    start = requests["ts"].to_numpy() // slide_ms * slide_ms
    each = [
        requests.set_column(0, "window_start", pa.array(start - back)) for back in range(0, LONG_MS, slide_ms)
    ]
    grouped = pa.concat_tables(each).group_by(["window_start", "host"])
    found = grouped.aggregate([("size", "count"), ("size", "sum"), ("size", "max")])
    return found.rename_columns(["window_start", "host", "requests", "bytes", "largest"])


def events(rows: int) -> Tables:
    """Return the events of Nexmark's auction house; ``ts`` in microseconds."""
    return {"tuples": pa.table(dict(auctions(rows)))}


def sightings(rows: int) -> Tables:
    """Return two streams of flows, half of ``rows`` each; ``ts`` in microseconds."""
    both = pa.table(dict(flows(rows)))
    sides = both["side"].to_numpy()
    return {
        name: both.filter(pa.array(sides == side)).drop(["side"])
        for side, name in enumerate(("lefts", "rights"))
    }


def hottest(tables: Tables) -> pa.Table:
    """Return the auction with the most bids of each 10 s, stamped with their end, as the next window has it."""
    found = _reference("Q5", tables)
    end = pa.array(found["window_start"].to_numpy() + 10 * SECOND)
    return found.set_column(0, "window_start", end).rename_columns(["window_start", "hottest", "most"])


def _reference(name: str, tables: Tables) -> pa.Table:
    columns = {column: tables["tuples"][column].to_numpy() for column in tables["tuples"].column_names}
    return pa.table(dict(WORKLOADS[name].reference(columns)))


def matched(tables: Tables) -> pa.Table:
    """Return how many sightings of both sides are of one flow and at most 1 s apart, a minute of the left ones."""
    left, right = ({n: t[n].to_numpy() for n in ("ts", "flow")} for t in (tables["lefts"], tables["rights"]))
    spread = np.int64(1) << 40
    base = min(int(side["ts"].min()) for side in (left, right)) - 2 * SECOND
    there = np.sort(right["flow"] * spread + right["ts"] - base)
    here = left["flow"] * spread + left["ts"] - base
    count = np.searchsorted(there, here + SECOND, "right") - np.searchsorted(there, here - SECOND, "left")
    start, which = np.unique(left["ts"] // (60 * SECOND), return_inverse=True)
    total = np.bincount(which, count).astype(np.int64)
    found = pa.table({"window_start": start * 60 * SECOND, "count": total})
    return found.filter(pa.array(total > 0))


QUESTIONS: dict[str, Question] = {
    "tumbling_text": Question(lambda rows: log(rows, text=True), lambda tables: by_host(tables, LONG_MS)),
    "tumbling_integer": Question(lambda rows: log(rows, text=False), lambda tables: by_host(tables, LONG_MS)),
    "sliding_text": Question(lambda rows: log(rows, text=True), lambda tables: by_host(tables, 2000)),
    "sliding_integer": Question(lambda rows: log(rows, text=False), lambda tables: by_host(tables, 2000)),
    "q5": Question(events, hottest),
    "q7": Question(events, lambda tables: _reference("Q7", tables)),
    "join": Question(sightings, matched),
}
"""The questions by name, which are those of the graphs in ``graphs.py`` and of the queries in ``sql.py``."""
