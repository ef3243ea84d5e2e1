"""Operators that take a revision stream; rows that are taken back are in ``tests/operators/test_revisions.py``."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from oop_engine import Schema
from oop_engine.operators import Band, Count, Distinct, Finalize, Max, OAJoin, Tumbling, WindowAggregate
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


CASES = [
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
