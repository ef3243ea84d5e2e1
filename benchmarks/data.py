"""What the workloads read: generated columns, in order of arrival, the same for the same seed.

Times are microseconds since 1970.  Where more rows are asked for than the smallest trace has
the trace gets longer, not denser, so that what is open at a time stays the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BID",
    "ORIGIN",
    "SECOND",
    "Columns",
    "auctions",
    "clicks",
    "cycles",
    "flows",
    "links",
    "numbers",
    "responses",
]

Columns = dict[str, NDArray[Any]]

SECOND = 1_000_000
ORIGIN = 1_704_067_200 * SECOND  # 2024-01-01
SHORTEST_S = 120
BID = 2  # the kind of an event: 0 is a person, 1 an auction
DELAYED, DELAY = 0.2, 2 * SECOND  # so many tuples are late by up to so much


def links(rows: int, seed: int = 7, keys: int = 10_000, per_second: float = 5_000_000 / 1200) -> Columns:
    """Return packets of three links: two fast ones, of which B is 5 s behind, and a nearly silent one.

    ``src``: one of ``keys`` senders, Zipf with exponent 1.1; ``len``: 40 to 1 500 bytes.
    No packet arrives more than 7 s behind an earlier one.
    """
    rng = np.random.default_rng(seed)
    seconds = max(rows / per_second, SHORTEST_S)
    silent = int(0.8 * seconds)
    link = np.where(np.arange(rows) < silent, 2, np.arange(rows) % 2)
    ts = ORIGIN + (rng.random(rows) * seconds * SECOND).astype(np.int64)
    arrival = ts + _delays(rng, rows) + np.where(link == 1, 5 * SECOND, 0)
    order = np.argsort(arrival, kind="stable")
    src, length = zipf(rng, rows, keys), rng.integers(40, 1501, rows)
    return {"ts": ts[order], "src": src[order], "len": length[order].astype(np.int32)}


def zipf(rng: np.random.Generator, rows: int, keys: int, exponent: float = 1.1) -> NDArray[np.int32]:
    """Return int32 (rows,) below ``keys``; which of them are frequent is up to chance."""
    weight = np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -exponent)
    rank = np.searchsorted(weight, rng.random(rows) * weight[-1], side="right")
    names = rng.permutation(keys).astype(np.int32)
    drawn: NDArray[np.int32] = names[np.minimum(rank, keys - 1)]
    return drawn


def flows(
    rows: int, seed: int = 11, keys: int | None = None, per_second: float = 1_000_000 / 1200
) -> Columns:
    """Return two streams of ``rows / 2`` sightings of flows; the second arrives 5 s behind.

    Each flow that is seen on side 1 is seen on side 2, 4 s earlier or later (standard
    deviation).  ``keys`` flows, a tenth as many as rows by default; ``per_second`` sightings on each side;
    times are whole milliseconds.
    """
    rng = np.random.default_rng(seed)
    each = rows // 2
    ms = int(max(each / per_second, SHORTEST_S) * 1000)
    first = rng.integers(0, ms, each)
    flow = rng.integers(0, keys or max(rows // 10, 1), each).astype(np.int32)
    shuffled = rng.permutation(each)
    second = np.clip(first[shuffled] + rng.normal(0, 4000, each).astype(np.int64), 0, ms - 1)
    ts = ORIGIN + np.concatenate([first, second]) * 1000
    side = np.repeat(np.array([0, 1], np.int8), each)
    arrival = ts + _delays(rng, 2 * each) + np.where(side == 1, 5 * SECOND, 0)
    order = np.argsort(arrival, kind="stable")
    return {"ts": ts[order], "flow": np.concatenate([flow, flow[shuffled]])[order], "side": side[order]}


def cycles(rows: int, seed: int = 13) -> Columns:
    """Return values 0 to 999 in cycles of 12 s, the last 1.5 s of which are silent; 20 % out of order."""
    rng = np.random.default_rng(seed)
    seconds = max(rows / 5_000_000 * 1200, SHORTEST_S)
    at = np.sort(rng.random(rows)) * seconds
    cycle = at // 12
    ts = ORIGIN + ((cycle * 12 + (at - cycle * 12) * (10.5 / 12)) * SECOND).astype(np.int64)
    order = np.argsort(ts + _delays(rng, rows), kind="stable")
    return {"ts": ts[order], "v": rng.integers(0, 1000, rows).astype(np.int32)}


def clicks(rows: int, seed: int = 19, keys: int = 10_000, per_second: float = 5_000_000 / 120) -> Columns:
    """Return clicks of ``user``s (Zipf 1.1) with a number ``v``; each arrives up to 2 s after it was made."""
    rng = np.random.default_rng(seed)
    seconds = max(rows / per_second, 1)
    ts = ORIGIN + (rng.random(rows) * seconds * SECOND).astype(np.int64)
    order = np.argsort(ts + (rng.random(rows) * DELAY).astype(np.int64), kind="stable")
    v = rng.integers(-(2**30), 2**30, rows).astype(np.int32)
    return {"ts": ts[order], "user": zipf(rng, rows, keys), "v": v}


def responses(rows: int, seed: int = 23, keys: int = 100, most: int = 100_000) -> Columns:
    """Return how long responses of ``server``s ``took``: 1 to ``most`` - 1, mostly short; 20 % out of order."""
    rng = np.random.default_rng(seed)
    seconds = max(rows / 5_000_000 * 1200, SHORTEST_S)
    ts = ORIGIN + (rng.random(rows) * seconds * SECOND).astype(np.int64)
    order = np.argsort(ts + _delays(rng, rows), kind="stable")
    took = np.clip(rng.lognormal(8, 1.2, rows), 1, most - 1).astype(np.int32)
    return {"ts": ts[order], "server": rng.integers(0, keys, rows).astype(np.int32), "took": took}


def auctions(rows: int, seed: int = 29, per_second: int = 10_000) -> Columns:
    """Return events of an auction house, as the generators of Nexmark make them: of 50 a person, 3 auctions, 46 bids.

    Half of the bids are on the hot auction, one in a hundred of them, others on one of the last 100; three quarters
    are by the hot person, others by one of the last 1000.  Prices grow by powers of ten.  Times are whole milliseconds;
    20 % come out of order.
    """
    rng = np.random.default_rng(seed)
    number = np.arange(rows)
    epoch, of = np.divmod(number, 50)
    kind = np.where(of == 0, 0, np.where(of < 4, 1, BID)).astype(np.int8)
    newest, person = (
        1000 + 3 * epoch + np.clip(of - 1, 0, 2),
        1000 + epoch,
    )  # the first ones have the number 1000
    hot = newest // 100 * 100, person // 100 * 100
    some = newest - rng.integers(0, 100, rows), person - rng.integers(0, 1000, rows)
    auction = np.where(rng.random(rows) < 1 / 2, hot[0], some[0])
    bidder = np.where(rng.random(rows) < 3 / 4, hot[1], some[1])
    price = (10 ** (rng.random(rows) * 6) * 100).astype(np.int64)
    ts = ORIGIN + number * 1000 // per_second * 1000
    order = np.argsort(ts + _delays(rng, rows), kind="stable")
    columns = {"ts": ts, "kind": kind, "auction": auction, "bidder": bidder, "price": price}
    return {name: column[order] for name, column in columns.items()}


def numbers(rows: int, seed: int = 17) -> Columns:
    """Return a row number, int32 ``v`` over half of their range, float32 ``f`` from 0 to 1."""
    rng = np.random.default_rng(seed)
    v = rng.integers(-(2**30), 2**30, rows).astype(np.int32)
    return {"row": np.arange(rows), "v": v, "f": rng.random(rows, np.float32)}


def _delays(rng: np.random.Generator, rows: int) -> NDArray[np.int64]:
    late = rng.random(rows) < DELAYED
    return np.where(late, rng.random(rows) * DELAY, 0).astype(np.int64)
