"""Aggregates of all values of a window, for the contract suite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from oop_engine import Schema
from oop_engine.operators.aggregates import (
    Collect,
    Count,
    CountDistinct,
    HeavyHitters,
    Last,
    Median,
    Mode,
    Quantile,
    Sum,
    TopK,
)
from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate
from oop_engine.operators.levels.consolidate import Consolidate
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import (
    Landmark,
    Session,
    Sliding,
    Tumbling,
    TupleBased,
)
from tests.cases import Case, Row
from tests.cases.windows import ARRIVALS
from tests.naive import folded
from tests.naive import values as oracle
from tests.naive import windows as naive
from tests.naive.many_windows import many
from tests.naive.sessions import sessions

__all__ = ["CASES"]

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64(), "x": pa.float64()}, "ts", "s")
DOMAINS: dict[str, list[Any]] = {
    "ts": list(range(-30, 90)), "k": ["a", "b", "c", None], "v": [-5, 0, 1, 7, None], "x": [-1.5, 0.0, 3.0, None],
}  # fmt: skip
ASKED = {
    "m": Median("v"), "q": Quantile("x", 0.9, "lower"), "d": CountDistinct("x"), "mo": Mode("k"), "top": TopK("v", 2),
    "hh": HeavyHitters("k", 0.4), "n": Count(), "s": Sum("v"),
}  # fmt: skip
FUNCTIONS = {
    "m": oracle.quantile("v", 0.5), "q": oracle.quantile("x", 0.9, "lower"), "d": oracle.distinct("x"),
    "mo": oracle.mode("k"), "top": oracle.top("v", 2), "hh": oracle.heavy("k", 0.4), "n": naive.aggregate("count"),
    "s": naive.aggregate("sum", "v"),
}  # fmt: skip
FEW = {"m": Median("v"), "top": TopK("k", 2)}
OF_FEW = {"m": oracle.quantile("v", 0.5), "top": oracle.top("k", 2)}
KEPT = FEW | {"last": Last("k"), "some": Collect("k", most=2)}
OF_KEPT = OF_FEW | {"last": naive.aggregate("last", "k"), "some": oracle.collected("k", 2)}
SPELT = {"ten": (10, 10, 0), "thirty": (30, 5, 3)}


def _of(function: Callable[[list[Row]], list[Row]]) -> Callable[[list[list[Row]]], list[Row]]:
    return lambda inputs: function(inputs[0])


# A first half: lists of one or two values, each once or twice.
WINDOWS = Sliding(20, 10), {"m": Quantile("v", 0.5, "lower"), "d": CountDistinct("v")}, ()
ROWS: dict[str, list[Any]] = {
    "pane_start": list(range(-30, 90, 10)), "state0_values_0": [[1, 7]], "state0_values_1": [[1, 1], [1, 2], [2, 1]],
}  # fmt: skip
[HALF] = WindowAggregate(*WINDOWS).halves((SCHEMA,))[0].output_schemas((SCHEMA,))  # type: ignore[index]


def _merged(of: list[Row]) -> list[Row]:
    spread = [
        {"pane_start": row["pane_start"], "v": value}
        for row in of
        for value, count in zip(row["state0_values_0"], row["state0_values_1"], strict=True)
        for _ in range(count)
    ]
    functions = {"m": oracle.quantile("v", 0.5, "lower"), "d": oracle.distinct("v")}
    return naive.sliding(spread, "pane_start", (), functions, 20, 10)


CASES = [
    Case(
        "values-sliding", WindowAggregate(Sliding(20, 10), ASKED, ("k",)), (SCHEMA,),
        _of(lambda of: naive.sliding(of, "ts", ("k",), FUNCTIONS, 20, 10)), DOMAINS,
    ),
    Case(
        "values-gaps-empty", WindowAggregate(Sliding(7, 12, 2), FEW, ("k",), empty=True), (SCHEMA,),
        _of(lambda of: naive.sliding(of, "ts", ("k",), OF_FEW, 7, 12, 2, empty=True)), DOMAINS,
    ),
    Case(
        "values-sessions", WindowAggregate(Session(7), ASKED, ("k",)), (SCHEMA,),
        _of(lambda of: sessions(of, "ts", ("k",), FUNCTIONS, 7)), DOMAINS,
    ),
    Case(
        "values-landmark", WindowAggregate(Landmark(10, -20), FEW, ("k",)), (SCHEMA,),
        _of(lambda of: naive.landmark(of, "ts", ("k",), OF_FEW, 10, -20)), DOMAINS,
    ),
    Case(
        "values-many", WindowAggregate({"ten": Tumbling(10), "thirty": Sliding(30, 5, 3)}, FEW, ("k",)), (SCHEMA,),
        _of(lambda of: many(of, "ts", ("k",), OF_FEW, SPELT)), DOMAINS,
    ),
    Case(
        "values-rows", WindowAggregate(TupleBased(5, 2), FEW), (SCHEMA,),
        _of(lambda of: naive.sliding(naive.number(of), "row", (), OF_FEW, 5, 2)), DOMAINS, ARRIVALS,
    ),
    Case(
        "values-consolidate", Consolidate(*WINDOWS, tuples=SCHEMA), (HALF,), _of(_merged), ROWS,
    ),
    Case(
        "values-ranked", WindowAggregate(TupleBased(5, 2, order="time", tie=("k", "v", "x")), KEPT, ("k",)), (SCHEMA,),
        _of(lambda of: folded.ranked(of, ("k",), OF_KEPT, 5, 2, ("k", "v", "x"), grouped=False)), DOMAINS,
    ),
    Case(
        "values-buffering", BufferingAggregate(Sliding(20, 10), ASKED, ("k",)), (SCHEMA,),
        _of(lambda of: naive.sliding(of, "ts", ("k",), FUNCTIONS, 20, 10)), DOMAINS,
    ),
]  # fmt: skip
