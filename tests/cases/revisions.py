"""Operators that take a revision stream; rows that are taken back are in ``test_revisions.py``."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from oop_engine import Schema
from oop_engine.operators import (
    Band,
    Count,
    Distinct,
    Finalize,
    IfNone,
    Max,
    OAJoin,
    TopN,
    Tumbling,
    WindowAggregate,
)
from tests.cases import Case, Row
from tests.naive.revisions import net

COLUMNS = {"ts": pa.int64(), "k": pa.string(), "change": pa.int8()}
CHANGES = Schema(COLUMNS, "ts", "s", change="change")
VALUES: dict[str, list[Any]] = {"ts": [0, 3, 4, 20], "k": ["a", None], "change": [1]}


def distinct(rows: list[Row]) -> list[Row]:
    return [dict(row) for row in {tuple(row.items()) for row in net(rows)}]


def joined(inputs: list[list[Row]]) -> list[Row]:
    left, right = map(net, inputs)
    return [
        {"ts": one["ts"], "k": one["k"], "ts_right": other["ts"], "k_right": other["k"]}
        for one in left
        for other in right
        if one["k"] == other["k"] is not None and 0 <= other["ts"] - one["ts"] <= 3
    ]


def counted(rows: list[Row]) -> list[Row]:
    keys = {(row["k"], row["ts"] // 5) for row in net(rows)}
    found = []
    for key, window in keys:
        times = [row["ts"] for row in net(rows) if (row["k"], row["ts"] // 5) == (key, window)]
        start = 5 * window
        found.append(
            {"k": key, "window_start": start, "window_end": start + 5, "n": len(times), "m": max(times)}
        )
    return found


PLAIN = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
RANKED: dict[str, list[Any]] = {"ts": [0, 3, 4, 20], "k": ["a", "b", None], "v": [1, 2, None, 7]}


def ranked(rows: list[Row], n: int | None, key: tuple[str, ...], ties: str = "row_number") -> list[Row]:
    """Return the first rows of each partition: the largest values, then the least of the other columns."""
    found = []
    for part in {tuple(row[name] for name in key) for row in rows}:
        some = [row for row in rows if tuple(row[name] for name in key) == part]
        some.sort(
            key=lambda row: (row["v"] is None, -(row["v"] or 0), row["ts"], row["k"] is None, row["k"] or "")
        )
        for number, row in enumerate(some, 1):
            before = [one["v"] for one in some[: number - 1] if one["v"] != row["v"]]
            place = {"row_number": number, "rank": len(before) + 1, "dense_rank": len(set(before)) + 1}[ties]
            found += [{**row, "place": place}] if n is None or place <= n else []
    return found


CASES = [
    Case("top_n", TopN(2, "-v", rank="place"), (PLAIN,), lambda i: ranked(i[0], 2, ("ts",)), RANKED),
    Case(
        "top_n-of_keys",
        TopN(1, "-v", by="k", timed=False, rank="place"),
        (PLAIN,),
        lambda i: ranked(i[0], 1, ("k",)),
        RANKED,
    ),
    Case(
        "top_n-of_keys-ranked",
        TopN(2, "-v", by="k", timed=False, rank="place", ties="rank"),
        (PLAIN,),
        lambda i: ranked(i[0], 2, ("k",), "rank"),
        RANKED,
    ),
    Case(
        "top_n-of_keys_and_times",
        TopN(None, "-v", by="k", rank="place", ties="rank"),
        (PLAIN,),
        lambda i: ranked(i[0], None, ("k", "ts"), "rank"),
        RANKED,
    ),
    Case(
        "top_n-dense",
        TopN(2, "-v", rank="place", ties="dense_rank"),
        (PLAIN,),
        lambda i: ranked(i[0], 2, ("ts",), "dense_rank"),
        RANKED,
    ),
    Case("if_none", IfNone({"v": 0}), (PLAIN,), lambda i: i[0] or [{"ts": 0, "k": None, "v": 0}], RANKED),
    Case("finalize", Finalize(), (CHANGES,), lambda i: net(i[0]), VALUES),
    Case("distinct-of_changes", Distinct(), (CHANGES,), lambda i: distinct(i[0]), VALUES),
    Case("oa_join-of_changes", OAJoin([("k", "k")], Band(0, 3)), (CHANGES, CHANGES), joined, VALUES),
    Case(
        "window_aggregate-of_changes",
        WindowAggregate(Tumbling(5), {"n": Count(), "m": Max("ts")}, by=("k",)),
        (CHANGES,),
        lambda i: counted(i[0]),
        VALUES,
    ),
]
