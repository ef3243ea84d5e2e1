"""Aggregates of values that are no numbers, collected values, samples and sketches, for the contract suite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine import Schema
from oop_engine.operators import aggregates as of
from oop_engine.operators.slicing.accumulators.lists import hashes
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Session, Sliding
from tests.cases import Case, Row
from tests.naive import values as oracle
from tests.naive import windows as naive
from tests.naive.sessions import sessions

__all__ = ["CASES"]

SCHEMA = Schema(
    {"ts": pa.int64(), "k": pa.string(), "t": pa.string(), "c": pa.dictionary(pa.int32(), pa.string()),
     "y": pa.binary(), "x": pa.float64()}, "ts", "s",
)  # fmt: skip
DOMAINS: dict[str, list[Any]] = {
    "ts": list(range(-30, 90)), "k": ["a", "b", None], "t": ["", "b", "é", None], "c": ["left", "right", None],
    "y": [b"", b"\x00", b"\xff", None], "x": [-3.0, 0.25, 0.0, 2.0, None],
}  # fmt: skip


def text_hash(text: str, time: int) -> int:
    return int(hashes(pa.array([text]), np.array([time]))[0])


WANTED: dict[str, tuple[of.Aggregation, Any]] = {
    "least": (of.Min("t"), naive.aggregate("min", "t")),
    "most": (of.Max("y"), naive.aggregate("max", "y")),
    "first": (of.First("c"), naive.aggregate("first", "c")),
    "last": (of.Last("t"), naive.aggregate("last", "t")),
    "text_at": (of.ArgMax("t", "x"), naive.aggregate("argmax", "t", "ts", "x")),
    "number_at": (of.ArgMin("x", "t"), naive.aggregate("argmin", "x", "ts", "t")),
    "lows": (of.MinCount("c"), naive.aggregate("mincount", "c")),
    "four": (of.M4("t"), naive.aggregate("m4", "t")),
    "mode": (of.Mode("c"), oracle.mode("c")),
    "some": (of.Collect("t", most=2), oracle.collected("t", 2)),
    "sample": (of.TopK("t", 2, most=2), oracle.sampled(oracle.top("t", 2), "t", 2, text_hash)),
    "about": (of.ApproxQuantile("x", 0.7, 0.05), oracle.approx_quantile("x", 0.7, 0.05)),
    "differ": (of.ApproxCountDistinct("t"), oracle.distinct("t")),  # few values: exact
}
ASKED = {name: aggregate for name, (aggregate, _) in WANTED.items()}
FUNCTIONS = {name: function for name, (_, function) in WANTED.items()}
FEW = {name: ASKED[name] for name in ("last", "some", "sample", "about")}
OF_FEW = {name: FUNCTIONS[name] for name in FEW}


def _of(function: Callable[[list[Row]], list[Row]]) -> Callable[[list[list[Row]]], list[Row]]:
    return lambda inputs: function(inputs[0])


CASES = [
    Case(
        "kept-sliding", WindowAggregate(Sliding(20, 10), ASKED, ("k",)), (SCHEMA,),
        _of(lambda rows: naive.sliding(rows, "ts", ("k",), FUNCTIONS, 20, 10)), DOMAINS,
    ),
    Case(
        "kept-sessions", WindowAggregate(Session(3), FEW, ("k",)), (SCHEMA,),
        _of(lambda rows: sessions(rows, "ts", ("k",), OF_FEW, 3)), DOMAINS,
    ),
]  # fmt: skip
