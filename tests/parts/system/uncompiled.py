"""Graphs that try kernels without a compiler: ``NUMBA_DISABLE_JIT=1 python -m tests.parts.system.uncompiled``.

Prints their results as JSON: windows of each kind with all compiled aggregates, joins, keys of text, versions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa

from oop_engine import Graph, Operator, Page, Schema, run
from oop_engine.aggregates import (
    ArgMax,
    CountDistinct,
    First,
    Last,
    MaxCount,
    MinCount,
    Product,
    Stddev,
    WeightedAvg,
)
from oop_engine.extend import Aggregation
from oop_engine.operators import (
    Avg,
    Band,
    BoundedDisorder,
    Count,
    Distinct,
    Emit,
    Max,
    Min,
    OAJoin,
    Punctuate,
    Session,
    Sliding,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.triggers import AfterCount
from oop_engine.windows import TupleBased

__all__ = ["answers"]

SCHEMA = Schema(
    {"ts": pa.int64(), "k": pa.string(), "n": pa.int64(), "x": pa.float64(), "i": pa.int32(), "u": pa.uint64(),
     "d": pa.decimal128(9, 2), "b": pa.bool_()}, "ts", "s",
)  # fmt: skip
_WINDOWS: dict[str, Any] = {
    "tumbling": Tumbling(12), "sliding": Sliding(20, 5), "session": Session(4), "tuples": TupleBased(7, 3),
}  # fmt: skip


def _rows(begin: int, most: int) -> list[dict[str, Any]]:
    """Return rows a little out of order, with nulls, zeros of both signs and integers at the ends of their types."""
    rows = []
    for row in range(begin, begin + most):
        ts, key = row ^ 3, row % 5
        n = None if row % 11 == 0 else (row * 7919) % 101 - 50
        x = None if row % 7 == 0 else (-0.0 if row % 3 == 0 else (row % 13) / 4)
        k = None if key == 4 else "key" * (key * key + 1)
        rows.append(
            {"ts": ts, "k": k, "n": n, "x": x, "i": 2**31 - 1 - row % 2, "u": 2**64 - 1 - row,
             "d": Decimal(row) / 4, "b": row % 4 == 0}
        )  # fmt: skip
    return rows


def _aggregates() -> dict[str, Aggregation]:
    return {
        "count": Count(), "values": Count("x"), "sum": Sum("n"), "floats": Sum("x"), "narrow": Sum("i"),
        "wide": Max("u"),
        "decimals": Sum("d"), "avg": Avg("n"), "var": Stddev("x"), "exact": Stddev("i"), "min": Min("x"),
        "max": Max("n"),
        "least": Min("u"), "first": First("x"), "last": Last("n"), "most": ArgMax("ts", "x"), "many": MaxCount("n"),
        "few": MinCount("x"), "product": Product("x"), "weighted": WeightedAvg("x", "n"), "kinds": CountDistinct("k"),
    }  # fmt: skip


def _of(operator: Operator) -> Any:
    """Return the rows that an operator makes of one or two streams in pages of several sizes."""
    graph, feeds = Graph("uncompiled"), {}
    for port in operator.inputs:
        graph.add(f"edge-{port}", Punctuate(BoundedDisorder(5)), graph.source(port, SCHEMA))
        rows = _rows(1, 60) if port == operator.inputs[0] else _rows(3, 50)
        batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA.fields)
        feeds[port] = [Page(SCHEMA, batch.slice(at, size)) for at, size in ((0, 40), (40, 1), (41, 30))]
    graph.sink("out", graph.add("it", operator, *(f"edge-{port}" for port in operator.inputs)))
    return run(graph, feeds, check=True).final("out").to_pylist()


def _operators() -> Iterator[tuple[str, Operator]]:
    for name, windows in _WINDOWS.items():
        for by in ((), ("k",), ("k", "b")):
            some = (
                _aggregates() if "k" not in by or name == "tumbling" else {"sum": Sum("n"), "max": Max("x")}
            )
            yield f"{name} by {by}", WindowAggregate(windows, some, by)
    early = Emit(early=AfterCount(3))
    yield "versions", WindowAggregate(Sliding(20, 10), {"sum": Sum("n")}, ("k",), emit=early)
    yield "join", OAJoin([("k", "k"), ("n", "n")], Band(3, 9), how="left")
    yield "distinct", Distinct(("k", "n"))


def answers() -> dict[str, list[str]]:
    """Return the rows of each graph, as texts, sorted."""
    return {name: sorted(map(repr, _of(operator))) for name, operator in _operators()}


if __name__ == "__main__":
    print(json.dumps(answers()))
