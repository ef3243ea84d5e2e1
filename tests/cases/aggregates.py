"""Aggregates in every kind of store, for the contract suite."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from oop_engine import Schema
from oop_engine.operators import aggregates as of
from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Landmark, Session, Sliding, Tumbling, Windows
from tests.cases import Case, Row
from tests.naive import windows as naive
from tests.naive.many_windows import many
from tests.naive.sessions import sessions

__all__ = ["CASES"]

SCHEMA = Schema(
    {"ts": pa.int64(), "k": pa.string(), "j": pa.int32(), "v": pa.int64(), "x": pa.float64(), "b": pa.bool_(),
     "d": pa.decimal128(9, 2), "u": pa.uint64()},
    "ts", "s",
)  # fmt: skip
DOMAINS: dict[str, list[Any]] = {
    "ts": list(range(-30, 90)), "k": ["a", "b", None], "j": [1, 2, 5], "v": [0, 1, 2, 7, None],
    "x": [0.0, 0.25, 3.0, None], "b": [True, False, None],
    "d": [Decimal("-1.50"), Decimal("7.25"), None], "u": [1, 2**57, None],
}  # fmt: skip
WANTED: dict[str, tuple[of.Aggregation, tuple[str, ...]]] = {
    "arg": (of.ArgMin("x", "v"), ("argmin", "x", "ts", "v")),
    "top": (of.ArgMax("v", "x"), ("argmax", "v", "ts", "x")),
    "lows": (of.MinCount("x"), ("mincount", "x")),
    "highs": (of.MaxCount("v"), ("maxcount", "v")),
    "mean": (of.GeometricMean("v"), ("geometricmean", "v")),
    "spread": (of.Var("v", ddof=0), ("var of all", "v")),
    "product": (of.Product("v"), ("product", "v")),
    "centre": (of.WeightedAvg("v", "j"), ("weightedavg", "v", "ts", "j")),
    "four": (of.M4("v"), ("m4", "v")),
    "average": (of.Avg("v"), ("avg", "v")),
    "narrow": (of.Stddev("j"), ("stddev", "j")),
    "decimals": (of.Sum("d"), ("sum", "d")),
    "unsigned": (of.Sum("u"), ("sum", "u")),
    "any": (of.Any("b"), ("any", "b")),
    "all": (of.All("b"), ("all", "b")),
}
ASKED = {name: aggregate for name, (aggregate, _) in WANTED.items()}
FUNCTIONS = {name: naive.aggregate(*how) for name, (_, how) in WANTED.items()}
TWO: dict[str, Windows] = {"ten": Tumbling(10), "fifteen": Sliding(15, 10)}


def _sliding(inputs: list[list[Row]]) -> list[Row]:
    return naive.sliding(inputs[0], "ts", ("k",), FUNCTIONS, 20, 10)


CASES = [
    *(
        Case(f"aggregates-{how}", WindowAggregate(Sliding(20, 10), ASKED, ("k",), strategy=how), (SCHEMA,),
             _sliding, DOMAINS)
        for how in ("auto", "windows", "adaptive")
    ),
    Case(
        "aggregates-slices", WindowAggregate(TWO, ASKED), (SCHEMA,),
        lambda inputs: many(inputs[0], "ts", (), FUNCTIONS, {"ten": (10, 10, 0), "fifteen": (15, 10, 0)}), DOMAINS,
    ),
    Case(
        "aggregates-sessions", WindowAggregate(Session(3), ASKED, ("j",)), (SCHEMA,),
        lambda inputs: sessions(inputs[0], "ts", ("j",), FUNCTIONS, 3), DOMAINS,
    ),
    Case(
        "aggregates-landmark", WindowAggregate(Landmark(20, -30), ASKED), (SCHEMA,),
        lambda inputs: naive.landmark(inputs[0], "ts", (), FUNCTIONS, 20, -30), DOMAINS,
    ),
    Case(
        "aggregates-in-order", BufferingAggregate(Sliding(20, 10), ASKED, ("k",)), (SCHEMA,), _sliding, DOMAINS,
    ),
]  # fmt: skip
