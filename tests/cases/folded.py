"""Windows that are folded on the bound, for the contract suite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.aggregates import UserDefined
from oop_engine.extend import Windows
from oop_engine.operators import Count, Sliding, Sum, WindowAggregate
from oop_engine.windows import (
    Delimited,
    Frames,
    Global,
    Intervals,
    Landmark,
    LastRows,
    PartitionedTupleBased,
    RowsBetween,
    SlideByTuple,
    TupleBased,
    UserWindows,
)
from tests.cases import Case, Row
from tests.cases.windows import ARRIVALS, COUNT, DOMAINS, FUNCTIONS, MANY, SCHEMA, SUM
from tests.naive import folded as naive
from tests.naive.sessions import whole
from tests.naive.windows import aggregate, landmark, result, sliding
from tests.naive.windows import number as number_of

__all__ = ["CASES"]

SOME = {"n": Count(), "s": Sum("v")}
ALL = ("k", "j", "v", "x")
SHIFTS = [(-10, 20), (15, 40), (15, 18), (60, 61), (-30, 90), (40, 55)]
TIES = {"order": "of tuples of one time, and no column to tell them apart, the first to arrive is the first"}


def _of(function: Callable[[list[Row]], list[Row]]) -> Callable[[list[list[Row]]], list[Row]]:
    return lambda inputs: function(inputs[0])


def zero(row: Row) -> bool:
    return bool(row["j"] == 0)


def seven(row: Row) -> bool:
    return bool(row["v"] == 7)


def negative(row: Row) -> bool:
    return row["v"] is not None and row["v"] < 0


def since_sevens(times: Any, columns: Any, begin: int, bound: int, ended: bool) -> tuple[Any, Any]:
    """The 4 before each 7, and 6 from there on."""
    ends = np.unique(times[pc.fill_null(pc.equal(columns["v"], 7), False).to_numpy(zero_copy_only=False)]) + 6
    ends = ends[(ends > begin) & (ends <= bound)]
    return ends - 10, ends


def hourly(times: Any, columns: Any, begin: int, bound: int, ended: bool) -> tuple[Any, Any]:
    """Windows that lie on a grid, but not evenly: those of odd tens are shorter."""
    if not times.size:
        return times, times
    tens = np.arange(times[0] // 10, times[-1] // 10 + 1)
    ends = 10 * tens + np.where(tens % 2 == 1, 6, 10)
    some = (ends > begin) & (ends <= bound)
    return 10 * tens[some], ends[some]


def _around_sevens(of: list[Row]) -> list[Row]:
    found = []
    for key, rows in naive.groups_of(of, ("k",)).items():
        for end in {row["ts"] + 6 for row in rows if seven(row)}:
            inside = [row for row in rows if end - 10 <= row["ts"] < end]
            found.append(result(("k",), key, (end - 10, end), FUNCTIONS, inside))
    return found


def _hourly(of: list[Row]) -> list[Row]:
    found = []
    for ten in {row["ts"] // 10 for row in of}:
        start, end = 10 * ten, 10 * ten + (6 if ten % 2 else 10)
        if inside := [row for row in of if start <= row["ts"] < end]:
            found.append(result((), (), (start, end), COUNT | SUM, inside))
    return found


ZERO, SEVEN, NEGATIVE = pc.field("j") == 0, pc.field("v") == 7, pc.field("v") < 0


def digits(v: pa.Array) -> tuple[Any, ...]:
    return v.fill_null(3).to_numpy(zero_copy_only=False) % 1009, np.full(len(v), 31)


def behind(a: Any, b: Any) -> tuple[Any, ...]:
    return (a[0] * b[1] + b[0]) % 1009, a[1] * b[1] % 1009


def number(state: Any) -> Any:
    return state[0]


# The number that values spell in order of time, those of one time by value: it is associative, and does not commute.
SPELT = UserDefined(
    digits,
    behind,
    number,
    reads=("v",),
    state_types=("int64", "int64"),
    returns=pa.int64(),
    commutative=False,
    tie=("v",),
)


def spelt(rows: list[Row]) -> int:
    found = 0
    for row in sorted(rows, key=lambda row: (row["ts"], row["v"] is None, row["v"] or 0)):
        found = (found * 31 + (3 if row["v"] is None else row["v"]) % 1009) % 1009
    return found


def spelt_as_they_came(rows: list[Row]) -> int:
    return spelt([{**row, "ts": row["row"]} for row in rows])


BY_ROW = {"r": spelt_as_they_came, "n": aggregate("count")}


# Those that hold tuples together, one that holds its own, and one that holds none.
TOGETHER: dict[str, Windows] = {
    "last": LastRows(3, 10, 4, tie=ALL), "each": SlideByTuple(20), "shifts": Intervals(SHIFTS),
    "marks": Delimited(ZERO), "ten": Sliding(10, 10),
}  # fmt: skip


def _together(of: list[Row]) -> list[Row]:
    found = {
        "last": naive.last_rows(of, ("k",), COUNT | SUM, 3, 10, 4, ALL),
        "each": naive.slide_by_tuple(of, ("k",), COUNT | SUM, 20),
        "shifts": naive.intervals(of, ("k",), COUNT | SUM, SHIFTS),
        "marks": naive.delimited(of, ("k",), COUNT | SUM, zero, "group"),
        "ten": sliding(of, "ts", ("k",), COUNT | SUM, 10, 10),
    }
    return [{**row, "window": name} for name, rows in found.items() for row in rows]


CASES = [
    Case(
        "folded-user-global", WindowAggregate(Global(), {"r": SPELT, "n": Count()}, ("k",)), (SCHEMA,),
        _of(lambda of: whole(of, "ts", ("k",), {"r": spelt, "n": aggregate("count")})), DOMAINS,
    ),
    Case(
        "folded-user-landmark", WindowAggregate(Landmark(15, -20), {"r": SPELT, "n": Count()}, ("k",)), (SCHEMA,),
        _of(lambda of: landmark(of, "ts", ("k",), {"r": spelt, "n": aggregate("count")}, 15, -20)), DOMAINS,
    ),
    Case(
        "folded-user-landmark-of-stream", WindowAggregate(Landmark(15, -20), {"r": SPELT, "n": Count()}), (SCHEMA,),
        _of(lambda of: landmark(of, "ts", (), {"r": spelt, "n": aggregate("count")}, 15, -20)), DOMAINS,
    ),
    Case(
        "folded-user-rows", WindowAggregate(TupleBased(5, 2), {"r": SPELT, "n": Count()}, ("k",)), (SCHEMA,),
        _of(lambda of: sliding(number_of(of), "row", ("k",), BY_ROW, 5, 2)), DOMAINS, ARRIVALS,
    ),
    Case(
        "folded-user-rows-of-group", WindowAggregate(PartitionedTupleBased(4, 6), {"r": SPELT, "n": Count()}, ("k",)),
        (SCHEMA,), _of(lambda of: sliding(number_of(of, ("k",)), "row", ("k",), BY_ROW, 4, 6)), DOMAINS, ARRIVALS,
    ),
    Case(
        "folded-user-grid", WindowAggregate(Sliding(17, 5), {"r": SPELT, "n": Count()}, ("k",)), (SCHEMA,),
        _of(lambda of: sliding(of, "ts", ("k",), {"r": spelt, "n": aggregate("count")}, 17, 5)), DOMAINS,
    ),
    Case(
        "intervals", WindowAggregate(Intervals(SHIFTS), MANY, ("k",)), (SCHEMA,),
        _of(lambda of: naive.intervals(of, ("k",), FUNCTIONS, SHIFTS)), DOMAINS,
    ),
    Case(
        "delimited", WindowAggregate(Delimited(ZERO), MANY, ("k",)), (SCHEMA,),
        _of(lambda of: naive.delimited(of, ("k",), FUNCTIONS, zero, "group")), DOMAINS,
    ),
    Case(
        "delimited-by-the-stream", WindowAggregate(Delimited(SEVEN, scope="stream"), SOME, ("k", "j"), stamp="start"),
        (SCHEMA,), _of(lambda of: naive.delimited(of, ("k", "j"), COUNT | SUM, seven, "stream")), DOMAINS,
    ),
    Case(
        "slide-by-tuple", WindowAggregate(SlideByTuple(20, carry=("j", "x")), MANY, ("k",)), (SCHEMA,),
        _of(lambda of: naive.slide_by_tuple(of, ("k",), FUNCTIONS, 20, carry=("j", "x"))), DOMAINS,
    ),
    Case(
        "slide-by-tuple-of-its-own", WindowAggregate(SlideByTuple(20, own=True), SOME, ("k",), stamp="start"),
        (SCHEMA,), _of(lambda of: naive.slide_by_tuple(of, ("k",), COUNT | SUM, 20, own=True)), DOMAINS,
    ),
    Case(
        "slide-by-tuple-in-bins", WindowAggregate(SlideByTuple(20), MANY, ("k",), strategy="bins"), (SCHEMA,),
        _of(lambda of: naive.slide_by_tuple(of, ("k",), FUNCTIONS, 20)), DOMAINS,
    ),
    Case(
        "folded-together", WindowAggregate(TOGETHER, SOME, ("k",)), (SCHEMA,), _of(_together), DOMAINS,
        {"purge": "a tuple is kept once for all definitions, and a partial aggregate once for each"},
    ),
    Case(
        "slide-by-rank", WindowAggregate(SlideByTuple(30, 3, of="rank"), SOME, stamp="start"), (SCHEMA,),
        _of(lambda of: naive.slide_by_tuple(of, (), COUNT | SUM, 30, 3, "rank")), DOMAINS,
    ),
    Case(
        "slide-by-arrival", WindowAggregate(SlideByTuple(15, 2, of="arrival"), SOME, ("k",)), (SCHEMA,),
        _of(lambda of: naive.slide_by_tuple(of, ("k",), COUNT | SUM, 15, 2, "arrival")), DOMAINS,
        {"order": "which tuples ask for a window follows from their order of arrival"},
    ),
    Case(
        "last-rows", WindowAggregate(LastRows(3, 10, 4, tie=ALL), MANY, ("k",)), (SCHEMA,),
        _of(lambda of: naive.last_rows(of, ("k",), FUNCTIONS, 3, 10, 4, ALL)), DOMAINS,
    ),
    Case(
        "last-rows-start", WindowAggregate(LastRows(2, 15, tie=ALL), SOME, stamp="start"), (SCHEMA,),
        _of(lambda of: naive.last_rows(of, (), COUNT | SUM, 2, 15, 0, ALL)), DOMAINS,
    ),
    Case(
        "rows-between", WindowAggregate(RowsBetween(-2, 1, carry=("j", "x"), tie=ALL), MANY, ("k",)), (SCHEMA,),
        _of(lambda of: naive.rows_between(of, ("k",), FUNCTIONS, -2, 1, ALL, ("j", "x"))), DOMAINS,
    ),
    Case(
        "rows-before", WindowAggregate(RowsBetween(-3, -2, tie=ALL), MANY, ("k",)), (SCHEMA,),
        _of(lambda of: naive.rows_between(of, ("k",), FUNCTIONS, -3, -2, ALL)), DOMAINS,
    ),
    Case(
        "rows-behind", WindowAggregate(RowsBetween(2, 2, carry=("v",), tie=ALL), SOME, stamp="start"), (SCHEMA,),
        _of(lambda of: naive.rows_between(of, (), COUNT | SUM, 2, 2, ALL, ("v",))), DOMAINS,
    ),
    Case(
        "frames", WindowAggregate(Frames(SEVEN, NEGATIVE, tie=ALL), MANY, ("k",)), (SCHEMA,),
        _of(lambda of: naive.frames(of, ("k",), FUNCTIONS, seven, negative, ALL)), DOMAINS,
    ),
    Case(
        "frames-of-a-length", WindowAggregate(Frames(SEVEN, NEGATIVE, most=25, tie=ALL), SOME, ("k",)), (SCHEMA,),
        _of(lambda of: naive.frames(of, ("k",), COUNT | SUM, seven, negative, ALL, 25)), DOMAINS,
    ),
    Case(
        "frames-unfinished", WindowAggregate(Frames(ZERO, ZERO, unfinished=True, tie=ALL), SOME, stamp="start"),
        (SCHEMA,), _of(lambda of: naive.frames(of, (), COUNT | SUM, zero, zero, ALL, unfinished=True)), DOMAINS,
    ),
    Case(
        "windows-of-a-function", WindowAggregate(UserWindows(since_sevens, reads=("v",), back=10), MANY, ("k",)),
        (SCHEMA,), _of(_around_sevens), DOMAINS,
    ),
    Case(
        "windows-of-a-function-alone", WindowAggregate(UserWindows(hourly, back=10), SOME, stamp="start"),
        (SCHEMA,), _of(_hourly), DOMAINS,
    ),
    Case(
        "ranked", WindowAggregate(TupleBased(5, 2, order="time", tie=ALL), MANY), (SCHEMA,),
        _of(lambda of: naive.ranked(of, (), FUNCTIONS, 5, 2, ALL, grouped=False)), DOMAINS,
    ),
    Case(
        "ranked-by", WindowAggregate(TupleBased(4, 6, order="time", tie=ALL), SOME, ("k",), stamp="start"), (SCHEMA,),
        _of(lambda of: naive.ranked(of, ("k",), COUNT | SUM, 4, 6, ALL, grouped=False)), DOMAINS,
    ),
    Case(
        "ranked-of-group", WindowAggregate(PartitionedTupleBased(3, 1, order="time", tie=ALL), MANY, ("k",)), (SCHEMA,),
        _of(lambda of: naive.ranked(of, ("k",), FUNCTIONS, 3, 1, ALL, grouped=True)), DOMAINS,
    ),
    Case(
        "ranked-as-they-came", WindowAggregate(PartitionedTupleBased(2, 5, order="time"), SOME, ("k", "j")), (SCHEMA,),
        _of(lambda of: naive.ranked(of, ("k", "j"), COUNT | SUM, 2, 5, grouped=True)), DOMAINS, TIES,
    ),
]  # fmt: skip
