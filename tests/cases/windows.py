"""Window operators for the contract suite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from oop_engine import Schema
from oop_engine.operators.aggregate import Aggregate
from oop_engine.operators.aggregates import Avg, Count, First, Last, Max, Min, Stddev, Sum
from oop_engine.operators.bucket import Bucket
from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate
from oop_engine.operators.values.flush import Slow
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import (
    Global,
    Landmark,
    PartitionedTupleBased,
    Session,
    Sliding,
    Tumbling,
    TupleBased,
    Windows,
)
from tests.cases import Case, Row
from tests.naive import windows as naive
from tests.naive.many_windows import many
from tests.naive.sessions import sessions, whole

__all__ = ["CASES"]

SCHEMA = Schema(
    {"ts": pa.int64(), "k": pa.string(), "j": pa.int32(), "v": pa.int64(), "x": pa.float64()}, "ts", "s"
)
TAGGED = Bucket(Sliding(20, 10)).opened(SCHEMA).schemas_out[0]
DOMAINS: dict[str, list[Any]] = {
    "ts": list(range(-30, 90)),
    "k": ["a", "b", "c", None],
    "j": [0, 1, 2],
    "v": [-5, 0, 1, 7, None],
    "x": [-1.5, 0.0, 0.25, 3.0, None],
}
ARRIVALS = {"order": "its windows are on the order of arrival"}
# Window ids are columns like others to Aggregate: here they lie ahead of every time.
IDS: dict[str, list[Any]] = {**DOMAINS, "first_wid": [20, 21], "last_wid": [20, 21, 22]}


def _of(function: Callable[[list[Row]], list[Row]]) -> Callable[[list[list[Row]]], list[Row]]:
    return lambda inputs: function(inputs[0])


def _many(of: list[Row]) -> list[Row]:
    return naive.sliding(of, "ts", ("k", "j"), FUNCTIONS, 20, 10)


def _tagged(of: list[Row]) -> list[Row]:
    """Every tuple with the windows whose extents cover it."""
    tagged = []
    for row in of:
        wids = [w for w in naive.candidates(row["ts"], 25, 10, 3) if _covers(w, row["ts"])]
        tagged.append({**row, "first_wid": min(wids), "last_wid": max(wids)})
    return tagged


def _covers(wid: int, time: int) -> bool:
    start, end = naive.extent(wid, 25, 10, 3)
    return start <= time < end


def _by_ids(of: list[Row]) -> list[Row]:
    at_ids = [{**row, "at": 10 * wid} for row in of for wid in range(row["first_wid"], row["last_wid"] + 1)]
    return naive.sliding(at_ids, "at", ("k",), COUNT | SUM, 10, 10)


def _numbered(of: list[Row]) -> list[Row]:
    numbered = naive.number(of)
    return [{**row, "first_wid": row["row"] // 2, "last_wid": (row["row"] + 4) // 2 - 1} for row in numbered]


def _rows(of: list[Row]) -> list[Row]:
    functions = {
        name: naive.aggregate(kind, column)
        for name, kind, column in [
            ("n", "count", "v"),
            ("s", "sum", "v"),
            ("lo", "min", "x"),
            ("avg", "avg", "x"),
        ]
    }
    return naive.sliding(naive.number(of), "row", (), functions, 5, 2)


FUNCTIONS = {
    name: naive.aggregate(kind, column)
    for name, kind, column in [
        ("n", "count", None), ("nv", "count", "v"), ("s", "sum", "v"), ("avg", "avg", "x"),
        ("sd", "stddev", "v"), ("lo", "min", "x"), ("hi", "max", "v"), ("first", "first", "v"),
        ("last", "last", "x"),
    ]
}  # fmt: skip
COUNT = {"n": naive.aggregate("count")}
SUM = {"s": naive.aggregate("sum", "v")}
VALUES = {"n": naive.aggregate("count", "v"), "s": naive.aggregate("count", "x")}
SOME = {"n": Count("v"), "s": Sum("v"), "lo": Min("x"), "avg": Avg("x")}
MANY = {
    "n": Count(), "nv": Count("v"), "s": Sum("v"), "avg": Avg("x"), "sd": Stddev("v"), "lo": Min("x"),
    "hi": Max("v"), "first": First("v"), "last": Last("x"),
}  # fmt: skip

THREE: dict[str, Windows] = {"ten": Tumbling(10), "fifteen": Sliding(15, 10), "thirty": Sliding(30, 5, 3)}
SPELT = {"ten": (10, 10, 0), "fifteen": (15, 10, 0), "thirty": (30, 5, 3)}
# Windows as long as the stream: what one promise closes is still part of what the next ones close.
LONG: dict[str, Windows] = {"short": Sliding(20, 10), "long": Sliding(120, 60), "most": Sliding(90, 15, 5)}
SPELT_LONG = {"short": (20, 10, 0), "long": (120, 60, 0), "most": (90, 15, 5)}

MIXED: dict[str, Windows] = {
    "four": Session(4), "ten": Tumbling(10), "nine": Session(9), "since": Landmark(20, -40), "all": Sliding(20, 10),
    "whole": Global(),
}  # fmt: skip


def _mixed(of: list[Row]) -> list[Row]:
    """The windows of each definition by itself."""
    found = {
        "four": sessions(of, "ts", ("k",), FUNCTIONS, 4),
        "ten": naive.sliding(of, "ts", ("k",), FUNCTIONS, 10, 10),
        "nine": sessions(of, "ts", ("k",), FUNCTIONS, 9),
        "since": naive.landmark(of, "ts", ("k",), FUNCTIONS, 20, -40),
        "all": naive.sliding(of, "ts", ("k",), FUNCTIONS, 20, 10),
        "whole": whole(of, "ts", ("k",), FUNCTIONS),
    }
    return [{**row, "window": name} for name, rows in found.items() for row in rows]


CASES = [
    Case(
        "tumbling-slow",
        WindowAggregate(Tumbling(7), MANY, ("k", "j"), flush=Slow(every=2, within=2)), (SCHEMA,),
        _of(lambda of: naive.sliding(of, "ts", ("k", "j"), FUNCTIONS, 7, 7)), DOMAINS,
    ),
    Case(
        "sessions-slow", WindowAggregate(Session(7), MANY, ("k", "j"), stamp="start", flush=Slow(every=9)), (SCHEMA,),
        _of(lambda of: sessions(of, "ts", ("k", "j"), FUNCTIONS, 7)), DOMAINS,
    ),
    Case(
        "sessions", WindowAggregate(Session(7), MANY, ("k", "j")), (SCHEMA,),
        _of(lambda of: sessions(of, "ts", ("k", "j"), FUNCTIONS, 7)), DOMAINS,
    ),
    Case(
        "sessions-cut", WindowAggregate(Session(9, most=20), MANY, ("k",)), (SCHEMA,),
        _of(lambda of: sessions(of, "ts", ("k",), FUNCTIONS, 9, 20)), DOMAINS,
    ),
    Case(
        "sessions-of-the-stream", WindowAggregate(Session(2), {"n": Count(), "s": Sum("v")}, stamp="start"), (SCHEMA,),
        _of(lambda of: sessions(of, "ts", (), COUNT | SUM, 2)), DOMAINS,
    ),
    Case(
        "all-kinds-of-windows", WindowAggregate(MIXED, MANY, ("k",)), (SCHEMA,), _of(_mixed), DOMAINS,
    ),
    Case(
        "wid-empty-panes", WindowAggregate(Sliding(20, 5), {"n": Count()}, ("k",), empty=True, strategy="panes"),
        (SCHEMA,), _of(lambda of: naive.sliding(of, "ts", ("k",), COUNT, 20, 5, empty=True)), DOMAINS,
    ),
    Case(
        "wid-empty-adaptive", WindowAggregate(Sliding(20, 5), {"n": Count()}, ("k",), empty=True, strategy="adaptive"),
        (SCHEMA,), _of(lambda of: naive.sliding(of, "ts", ("k",), COUNT, 20, 5, empty=True)), DOMAINS,
    ),
    Case(
        "bucket-sliding", Bucket(Sliding(25, 10, 3)), (SCHEMA,), _of(_tagged), DOMAINS,
    ),
    Case(
        "bucket-rows", Bucket(TupleBased(4, 2)), (SCHEMA,), _of(_numbered), DOMAINS, ARRIVALS,
    ),
    Case(
        "aggregate-ids", Aggregate(Tumbling(10), {"n": Count(), "s": Sum("v")}, ("k",)), (TAGGED,), _of(_by_ids), IDS,
    ),
    Case(
        "wid-sliding-many", WindowAggregate(Sliding(20, 10), MANY, ("k", "j")), (SCHEMA,), _of(_many), DOMAINS,
    ),
    Case(
        "wid-sliding-windows", WindowAggregate(Sliding(20, 10), MANY, ("k", "j"), strategy="windows"), (SCHEMA,),
        _of(_many), DOMAINS,
    ),
    Case(
        "wid-sliding-adaptive", WindowAggregate(Sliding(20, 10), MANY, ("k", "j"), strategy="adaptive"), (SCHEMA,),
        _of(_many), DOMAINS,
    ),
    Case(  # two values a tuple, and little of them kept: groups change sides after three tuples
        "wid-tumbling-adaptive",
        WindowAggregate(Tumbling(15), {"n": Count("v"), "s": Count("x")}, ("j",), strategy="adaptive"), (SCHEMA,),
        _of(lambda of: naive.sliding(of, "ts", ("j",), VALUES, 15, 15)), DOMAINS,
    ),
    Case(
        "wid-overlapping-adaptive",
        WindowAggregate(Sliding(25, 10, 3), {"n": Count("v"), "s": Count("x")}, ("j",), strategy="adaptive"), (SCHEMA,),
        _of(lambda of: naive.sliding(of, "ts", ("j",), VALUES, 25, 10, 3)), DOMAINS,
    ),
    Case(
        "wid-gaps-windows", WindowAggregate(Sliding(7, 12, 2), {"n": Count()}, ("k",), strategy="windows"), (SCHEMA,),
        _of(lambda of: naive.sliding(of, "ts", ("k",), COUNT, 7, 12, 2)), DOMAINS,
    ),
    Case(
        "wid-gaps", WindowAggregate(Sliding(7, 12, 2), {"n": Count()}, ("k",)), (SCHEMA,),
        _of(lambda of: naive.sliding(of, "ts", ("k",), COUNT, 7, 12, 2)), DOMAINS,
    ),
    Case(
        "wid-tumbling-start", WindowAggregate(Tumbling(15), {"s": Sum("v")}, stamp="start"), (SCHEMA,),
        _of(lambda of: naive.sliding(of, "ts", (), SUM, 15, 15)), DOMAINS,
    ),
    Case(
        "wid-empty", WindowAggregate(Sliding(10, 5), {"n": Count(), "s": Sum("v")}, ("k",), empty=True), (SCHEMA,),
        _of(lambda of: naive.sliding(of, "ts", ("k",), COUNT | SUM, 10, 5, empty=True)), DOMAINS,
    ),
    Case(
        "wid-landmark", WindowAggregate(Landmark(10, -20), {"s": Sum("v")}, ("k",)), (SCHEMA,),
        _of(lambda of: naive.landmark(of, "ts", ("k",), SUM, 10, -20)), DOMAINS,
    ),
    Case(
        "wid-rows", WindowAggregate(TupleBased(5, 2), {"n": Count()}, ("k",)), (SCHEMA,),
        _of(lambda of: naive.sliding(naive.number(of), "row", ("k",), COUNT, 5, 2)), DOMAINS, ARRIVALS,
    ),
    Case(
        "rows-stacks", WindowAggregate(TupleBased(5, 2), SOME, strategy="stacks"),
        (SCHEMA,), _of(_rows), DOMAINS, ARRIVALS,
    ),
    Case(
        "rows-windows",
        WindowAggregate(TupleBased(5, 2), SOME, strategy="windows"),
        (SCHEMA,), _of(_rows), DOMAINS, ARRIVALS,
    ),
    Case(
        "wid-rows-of-group", WindowAggregate(PartitionedTupleBased(3, 1), {"s": Sum("v")}, ("k",)), (SCHEMA,),
        _of(lambda of: naive.sliding(naive.number(of, ("k",)), "row", ("k",), SUM, 3, 1)), DOMAINS, ARRIVALS,
    ),
    Case(
        "sliced-many", WindowAggregate(THREE, MANY, ("k", "j")), (SCHEMA,),
        _of(lambda of: many(of, "ts", ("k", "j"), FUNCTIONS, SPELT)), DOMAINS,
    ),
    Case(
        "sliced-changing", WindowAggregate(THREE, {"n": Count(), "s": Sum("v")}, ("k",), changing=True), (SCHEMA,),
        _of(lambda of: many(of, "ts", ("k",), COUNT | SUM, SPELT)), DOMAINS,
    ),
    Case(
        "sliced-long", WindowAggregate(LONG, {"n": Count(), "s": Sum("v")}, ("k",)), (SCHEMA,),
        _of(lambda of: many(of, "ts", ("k",), COUNT | SUM, SPELT_LONG)), DOMAINS,
    ),
    Case(
        "wid-long", WindowAggregate(Sliding(90, 15, 5), {"n": Count(), "s": Sum("v")}, ("k",)), (SCHEMA,),
        _of(lambda of: naive.sliding(of, "ts", ("k",), COUNT | SUM, 90, 15, 5)), DOMAINS,
    ),
    Case(
        "sliced-start", WindowAggregate(THREE, {"n": Count(), "s": Sum("v")}, stamp="start"), (SCHEMA,),
        _of(lambda of: many(of, "ts", (), COUNT | SUM, SPELT)), DOMAINS,
    ),
    Case(
        "sliced-apart", WindowAggregate({"a": Tumbling(10007), "b": Sliding(7, 12, 2)}, {"n": Count()}, ("k",)),
        (SCHEMA,), _of(lambda of: many(of, "ts", ("k",), COUNT, {"a": (10007, 10007, 0), "b": (7, 12, 2)})), DOMAINS,
    ),
    Case(
        "buffering-sliding", BufferingAggregate(Sliding(20, 10), MANY, ("k", "j")), (SCHEMA,), _of(_many), DOMAINS,
    ),
    Case(
        "buffering-empty", BufferingAggregate(Tumbling(5), {"n": Count()}, empty=True), (SCHEMA,),
        _of(lambda of: naive.sliding(of, "ts", (), COUNT, 5, 5, empty=True)), DOMAINS,
    ),
    Case(
        "buffering-landmark", BufferingAggregate(Landmark(10, -20), {"s": Sum("v")}, ("k",)), (SCHEMA,),
        _of(lambda of: naive.landmark(of, "ts", ("k",), SUM, 10, -20)), DOMAINS,
    ),
]  # fmt: skip
