"""Events of Nexmark: of fifty, one person, three auctions and 46 bids, most of them on what is new.

``python -m tests.parts.query.nexmark_data 1000000`` runs all queries over so many events beside DuckDB, checks
that the rows are the same, and prints the seconds of both.
"""

from __future__ import annotations

import re
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine import scan, sql
from tests.parts.query.duck import answers, connected, same_rows
from tests.parts.query.nexmark import QUERIES

__all__ = ["events", "of_duckdb", "shuffled"]

START = np.datetime64("2026-01-01T00:00:00", "us").astype(np.int64)
STATES = ("or", "id", "ca", "az", "wa", "wy")
CITIES = ("portland", "boise", "phoenix", "seattle", "kent", "cheyenne")
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
Ints = NDArray[np.int64]


def events(count: int, seed: int = 0, gap_us: int = 10_000) -> dict[str, pa.Table]:
    """Return ``count`` events, one each ``gap_us``, as the tables ``bid``, ``auction`` and ``person``."""
    of, number = np.random.default_rng(seed), np.arange(count)
    moment, place = START + number * gap_us, number % 50
    people, auctions = number // 50, number // 50 * 3 + np.clip(place - 1, 0, 2)  # the newest at each event
    is_person, is_bid = place == 0, place > 3
    is_auction = ~is_person & ~is_bid
    return {
        "bid": _bids(of, moment[is_bid], auctions[is_bid], people[is_bid]),
        "auction": _auctions(of, moment[is_auction], auctions[is_auction], people[is_auction]),
        "person": _persons(of, moment[is_person], people[is_person]),
    }


def shuffled(table: pa.Table, seconds: float, seed: int = 1, time: str = "date_time") -> pa.Table:
    """Return the rows of a table, each up to so many seconds late."""
    moments = table[time].cast(pa.int64()).to_numpy()
    late = np.random.default_rng(seed).integers(0, int(seconds * 1e6), len(moments))
    return table.take(np.argsort(moments + late, kind="stable"))


def of_duckdb(name: str) -> str:
    """Return a query in the words of DuckDB, which has no TUMBLE and HOP."""
    return re.sub(
        r"(TUMBLE|HOP)\((\w+), date_time, (?:INTERVAL '(\d+)' SECOND, )?INTERVAL '(\d+)' SECOND\)",
        lambda found: _windows(found[2], int(found[3] or found[4]), int(found[4])),
        " ".join(QUERIES[name].split()),
    )


def _windows(table: str, slide: int, length: int) -> str:
    start = f"time_bucket(INTERVAL {slide} SECOND, date_time) - INTERVAL 1 SECOND * ({slide} * i)"
    end = f"{start} + INTERVAL {length} SECOND"
    return f"(SELECT *, {start} AS window_start, {end} AS window_end FROM {table}, range({length // slide}) n(i))"


def _bids(of: np.random.Generator, moment: Ints, auctions: Ints, people: Ints) -> pa.Table:
    rows = len(moment)
    hot = of.random(rows) < 0.5
    channel = of.integers(0, 8, rows)
    names = [CHANNELS[one] if one < 4 else f"channel-{one}" for one in channel]
    urls = [
        f"https://www.nexmark.com/a{one % 7}/b{one % 5}/c/item.htm?query=1"
        + (f"&channel_id={one * 31}" if one > 3 else "")
        for one in channel
    ]
    return pa.table(
        {
            "auction": 1000 + np.where(hot, auctions // 4 * 4, _recent(of, auctions, 100)),
            "bidder": 1000 + np.where(of.random(rows) < 0.5, people // 4 * 4, _recent(of, people, 200)),
            "price": (100 * 10 ** (6 * of.random(rows))).astype(np.int64),
            "channel": names,
            "url": urls,
            "date_time": _moments(moment),
            "extra": _texts(of, rows, "x"),
        }
    )


def _auctions(of: np.random.Generator, moment: Ints, auctions: Ints, people: Ints) -> pa.Table:
    rows = len(moment)
    first = of.integers(100, 100_000, rows)
    return pa.table(
        {
            "id": 1000 + auctions,
            "item_name": _texts(of, rows, "item "),
            "description": _texts(of, rows, "it is "),
            "initial_bid": first,
            "reserve": first + of.integers(1, 1000, rows),
            "date_time": _moments(moment),
            "expires": _moments(moment + of.integers(1_000_000, 20_000_000, rows)),
            "seller": 1000 + _recent(of, people, 20),
            "category": 10 + of.integers(0, 5, rows),
            "extra": _texts(of, rows, "y"),
        }
    )


def _persons(of: np.random.Generator, moment: Ints, people: Ints) -> pa.Table:
    rows = len(moment)
    return pa.table(
        {
            "id": 1000 + people,
            "name": _texts(of, rows, "somebody "),
            "city": [CITIES[one] for one in of.integers(0, len(CITIES), rows)],
            "state": [STATES[one] for one in of.integers(0, len(STATES), rows)],
            "date_time": _moments(moment),
            "extra": _texts(of, rows, "z"),
        }
    )


def _recent(of: np.random.Generator, newest: Ints, among: int) -> Ints:
    """Return one of the last ``among`` numbers up to each of ``newest``."""
    return newest - (of.random(len(newest)) * np.minimum(newest + 1, among)).astype(np.int64)


def _moments(at: Ints) -> pa.Array:
    return pa.array(at.astype("datetime64[us]"))


def _texts(of: np.random.Generator, rows: int, start: str) -> list[str]:
    return [f"{start}{one:x}" for one in of.integers(0, 1 << 40, rows)]


def compared(name: str, tables: dict[str, pa.Table], seconds: float = 5) -> tuple[bool, float, float]:
    """Run a query over late rows here and over the tables in DuckDB; tell whether rows agree, and both times."""
    late = {of: shuffled(table, seconds) for of, table in tables.items()}
    given: dict[str, Any] = {
        of: scan(table, of).event_time("date_time", f"{seconds:g} s") for of, table in late.items()
    }
    begun = time.perf_counter()
    ours = sql(QUERIES[name], **given).run().table
    took = time.perf_counter() - begun
    with connected(tables) as connection:
        begun = time.perf_counter()
        connection.sql(of_duckdb(name)).to_arrow_table()
        theirs = time.perf_counter() - begun
    return same_rows(ours, answers(of_duckdb(name), tables)), took, theirs


if __name__ == "__main__":
    made = events(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
    for one in sys.argv[2:] or QUERIES:
        equal, here, there = compared(one, made)
        print(
            f"{one:5} {'same rows' if equal else 'ROWS DIFFER':12} {here:7.2f} s  DuckDB {there:7.2f} s",
            flush=True,
        )
