"""Brute force gives what the definitions say, and says so where it cannot tell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import oop_engine.operators.aggregates as every
from oop_engine import Graph, Page, Schema
from oop_engine.aggregates import (
    M4,
    ApproxQuantile,
    ArgMax,
    ArgMin,
    Collect,
    CountDistinct,
    First,
    GeometricMean,
    HeavyHitters,
    Last,
    MaxCount,
    Median,
    MinCount,
    Mode,
    Product,
    Quantile,
    Stddev,
    TopK,
    Var,
    WeightedAvg,
)
from oop_engine.core.graphs.graph import Stream
from oop_engine.extend import Aggregation, Message
from oop_engine.lab.answers import missing_and_wrong
from oop_engine.lab.brute_force.true_answer import NoTruthError, true_answer
from oop_engine.lab.scenario import COMPLETE_AT
from oop_engine.operators import (
    Avg,
    BoundedDisorder,
    Count,
    Distinct,
    Filter,
    Max,
    Meld,
    Min,
    Project,
    Punctuate,
    Session,
    Sliding,
    Sum,
    Tumbling,
    WindowAggregate,
    WithColumns,
)
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.runners.replay import replay
from oop_engine.windows import (
    Delimited,
    FixedBand,
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
from tests.naive import folded, values
from tests.naive import windows as naive
from tests.naive.sessions import sessions, whole

SCHEMA = Schema({"ts": pa.timestamp("s", "UTC"), "k": pa.string(), "x": pa.float64(), "n": pa.int32()}, "ts")
KINDS = (Count, Sum, Avg, Min, Max, First, Last, Var, Stddev)
ASKED: dict[str, Aggregation] = {"rows": Count()}
ASKED |= {f"{kind.__name__.lower()}_{c}": kind(c) for kind in KINDS for c in ("x", "n")}
ASKED |= {f"{kind.__name__.lower()}_{c}": kind(c) for kind in (MinCount, MaxCount, M4) for c in ("x", "n")}
ASKED |= {f"{kind.__name__.lower()}_n": kind("n") for kind in (Product, GeometricMean)}
TWO: dict[str, Aggregation] = {
    f"{kind.__name__.lower()}_{a}_{b}": kind(a, b) for kind in (ArgMin, ArgMax) for a, b in ("xn", "nx")
}
TWO |= {"weightedavg_n_x": WeightedAvg("n", "x")}
for spread in ("var_x", "stddev_x"):  # of NaN: not even the oracle can tell
    del ASKED[spread]


def page(rows: int, seed: int) -> Page:
    rng = np.random.default_rng(seed)
    ts = rng.integers(-50, 60, rows)
    x = [None if v > 9 else math.nan if v > 8 else float(v) for v in rng.integers(-4, 11, rows)]
    k = [("a", "b", None)[i] for i in rng.integers(0, 3, rows)]
    n = [None if v > 7 else int(v) for v in rng.integers(-9, 9, rows)]
    return Page.of(
        SCHEMA, {"ts": pa.array(ts, SCHEMA.type_of("ts")), "k": k, "x": x, "n": n}, np.arange(rows) + 100
    )


def one(operator: Any, *before: Any) -> Graph:
    graph = Graph("asked")
    stream = graph.add("edge", Punctuate(BoundedDisorder("200 s")), graph.source("source", SCHEMA))
    for number, step in enumerate(before):
        stream = graph.add(f"step{number}", step, stream)
    graph.sink("answers", graph.add("query", operator, stream))
    return graph


def spelt(rows: list[dict[str, Any]], names: list[str]) -> list[str]:
    """Return rows that compare as the definitions do: NaN equals NaN, 1 equals 1.0."""

    def one(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: one(inside) for name, inside in value.items()}
        return round(float(value), 9) + 0.0 if isinstance(value, int | float) else value

    return sorted(str([one(row[name]) for name in names]) for row in rows)


def as_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows with instants as integers."""
    names = table.column_names
    return pa.table(
        {n: table[n].cast(pa.int64()) if n.startswith(("window", "time")) else table[n] for n in names}
    ).to_pylist()


@pytest.mark.parametrize(("range_", "slide", "origin"), [(20, 10, 0), (25, 10, 3), (7, 10, -4), (30, 30, 0)])
@pytest.mark.parametrize("by", [(), ("k",)])
def test_windows_are_those_of_the_definition(
    range_: int, slide: int, origin: int, by: tuple[str, ...]
) -> None:
    tuples = page(150, seed=range_ + slide)
    query = WindowAggregate(Sliding(range_, slide, origin), ASKED | TWO, by=by)
    found = true_answer(one(query), {"source": [tuples]})
    told = zip(tuples.to_pylist(), tuples.times.tolist(), range(100, 250), strict=True)  # as they arrive
    rows = [{**row, "ts": time, "at": arrival} for row, time, arrival in told]
    functions = {name: naive.aggregate(*name.split("_", 1)) for name in ASKED if name != "rows"}
    functions |= {name: naive.aggregate(name[:-4], name[-3], other=name[-1]) for name in TWO}
    functions |= {"rows": naive.aggregate("count"), COMPLETE_AT: lambda of: max(row["at"] for row in of)}
    wanted = naive.sliding(rows, "ts", by, functions, range_, slide, origin)
    names = [*by, "window_start", "window_end", *ASKED, *TWO, COMPLETE_AT]
    assert spelt(as_rows(found), names) == spelt(wanted, names)


def test_what_stands_before_a_window_is_evaluated_too() -> None:
    graph = Graph("both")
    edges = [
        graph.add(f"e{i}", Punctuate(BoundedDisorder(200)), graph.source(f"s{i}", SCHEMA)) for i in (0, 1)
    ]
    some = graph.add("some", Filter(pc.field("n") > 0), graph.add("meld", Meld(2), *edges))
    twice = graph.add("twice", WithColumns({"y": pc.field("n") * 2}), some)
    short = graph.add("short", Project({"t": "ts", "who": "k", "y": "y"}), twice)
    minutes = graph.add(
        "count", WindowAggregate(Tumbling(30), {"y": Sum("y"), "n": Count()}, by=("who",)), short
    )
    graph.sink("answers", graph.add("many", Filter(pc.field("n") > 3), minutes))
    feeds: dict[str, list[Message]] = {f"s{i}": [page(200, seed=i)] for i in (0, 1)}
    truth = true_answer(graph, feeds)
    done = replay(graph, feeds).results["answers"]
    assert done.num_rows > 3
    assert missing_and_wrong(done, truth, ("who", "window_end")) == (0, 0)
    twin = in_order(graph)
    assert missing_and_wrong(true_answer(twin, feeds), truth, ("who", "window_end")) == (0, 0)


def test_keys_of_floats_and_of_dictionaries_are_those_of_the_engine() -> None:
    schema = Schema(
        {"ts": pa.int64(), "f": pa.float64(), "d": pa.dictionary(pa.int8(), pa.string())}, "ts", "s"
    )
    rows = {"ts": [1, 2, 3, 4], "f": [0.0, -0.0, math.nan, math.nan], "d": ["a", "a", "b", "b"]}
    graph = Graph("keys")
    edge = graph.add("edge", Punctuate(BoundedDisorder(5)), graph.source("source", schema))
    graph.sink(
        "answers", graph.add("query", WindowAggregate(Tumbling(10), {"n": Count()}, by=("f", "d")), edge)
    )
    truth = true_answer(graph, {"source": [Page.of(schema, rows)]})
    assert truth["n"].to_pylist() == [2, 2]
    assert COMPLETE_AT not in truth.column_names  # no arrivals, so nobody knows
    done = replay(graph, {"source": [Page.of(schema, rows)]}).results["answers"]
    assert missing_and_wrong(done, truth, ("f", "d", "window_end")) == (0, 0)


WIDE = Schema(
    {
        "ts": pa.int64(), "d": pa.decimal128(20, 2), "u": pa.uint64(), "i": pa.duration("us"), "b": pa.bool_(),
        "t": pa.timestamp("ns"), "f": pa.float64(),
    }, "ts", "s",
)  # fmt: skip
OF_ALL = (Min, Max, First, Last, MinCount, MaxCount, M4, Count)
WIDE_ASKED: Mapping[str, Aggregation] = {
    **{f"{kind.__name__}_{c}": kind(c) for kind in OF_ALL for c in "duibtf"},
    **{f"{kind.__name__}_{c}": kind(c) for kind in (Sum, Avg) for c in "duif"},
    **{f"{kind.__name__}_b": kind("b") for kind in (every.Any, every.All)},
    **{f"{kind.__name__}_f": kind("f", ddof=0) for kind in (Var, Stddev)},
    **{f"{kind.__name__}_{c}": kind(c, "d") for kind in (ArgMin, ArgMax) for c in "uibt"},
    "product": Product("f"),
}


def test_values_of_all_types_are_those_of_the_operators() -> None:
    rng = np.random.default_rng(5)
    rows = 120
    columns = {
        "d": pa.array([Decimal(int(v)).scaleb(-2) for v in rng.integers(-9, 9, rows)], pa.decimal128(20, 2)),
        "u": pa.array(rng.integers(2**59, 2**59 + 4, rows), pa.uint64()),
        "i": pa.array(rng.integers(-3, 9, rows), pa.duration("us")),
        "b": pa.array(rng.integers(0, 2, rows).astype(bool)),
        "t": pa.array(rng.integers(10**18, 10**18 + 5, rows), pa.timestamp("ns")),
        "f": pa.array(rng.choice([1e300, 1e-300, -2.5], rows)),
    }
    known = pa.array(rng.integers(0, 4, rows) > 0)
    columns = {name: pc.if_else(known, values, None) for name, values in columns.items()}
    batch = pa.RecordBatch.from_pydict(
        {"ts": pa.array(rng.integers(0, 90, rows)), **columns}, schema=WIDE.fields
    )
    graph = Graph("wide")
    edge = graph.add("edge", Punctuate(BoundedDisorder(100)), graph.source("source", WIDE))
    graph.sink("answers", graph.add("query", WindowAggregate(Tumbling(3), WIDE_ASKED), edge))
    feeds = {"source": pa.Table.from_batches([batch])}
    truth = true_answer(graph, feeds)
    assert truth["product"].null_count
    assert missing_and_wrong(replay(graph, feeds).results["answers"], truth, ("window_end",)) == (0, 0)


def test_a_wrong_field_of_a_struct_is_wrong() -> None:
    right = pa.table({"k": [1, 2, 3], "m": [{"a": 1.0}, None, {"a": None}]})
    wrong = pa.table({"k": [1, 2, 3], "m": [{"a": 2.0}, {"a": None}, {"a": None}]})
    assert missing_and_wrong(right, right, ("k",)) == (0, 0)
    assert missing_and_wrong(wrong, right, ("k",)) == (0, 2)


def test_nothing_comes_of_nothing() -> None:
    assert true_answer(one(WindowAggregate(Tumbling(10), ASKED, by=("k",))), {"source": []}).num_rows == 0


class _NoDefinition(Count):
    """A count by another name."""


@pytest.mark.parametrize(
    ("graph", "why"),
    [
        (one(Distinct(("k",))), r"node 'query' \(Distinct\) is not evaluated"),
        (one(WindowAggregate(Tumbling(10), {"n": Count()}, empty=True)), "only windows with tuples"),
        *(
            (one(WindowAggregate(windows, {"n": Count()}, by=("k",))), why)
            for windows, why in (
                (Landmark(10, lulls=True), "are not evaluated by brute force"),
                (LastRows(4, 10, lulls=True), "windows that leave in lulls follow from punctuation"),
            )
        ),
        *(
            (one(WindowAggregate(windows, {"n": Count()}), WindowAggregate(Tumbling(1), {"n": Sum("n")}, by=("k",))),
             "windows by arrival behind a union or an aggregate")
            for windows in (TupleBased(4, 2), TupleBased(4, 2, order="time"), LastRows(2, 20))
        ),
        (one(WindowAggregate(Tumbling(10), {"n": ApproxQuantile("x", 0.5)})), "ApproxQuantile is an estimate"),
        (one(WindowAggregate(Tumbling(10), {"n": Median("x", most=9)})), "of a sample"),
        (one(WindowAggregate(Tumbling(10), {"n": _NoDefinition()})), "_NoDefinition is not evaluated"),
        (one(WindowAggregate(Sliding(10**7, 1), {"n": Count()})), "too many for brute force"),
    ],
)  # fmt: skip
def test_what_has_no_short_definition_has_no_truth(graph: Graph, why: str) -> None:
    with pytest.raises(NoTruthError, match=why):
        true_answer(graph, {"source": [page(10, seed=1)]})


OF_VALUES: dict[str, tuple[Aggregation, Any]] = {
    "n": (Count(), naive.aggregate("count")),
    "m": (Median("x"), values.quantile("x", 0.5)),
    "q": (Quantile("n", 0.7, "nearest"), values.quantile("n", 0.7, "nearest")),
    "l": (Quantile("k", 0.3, "lower"), values.quantile("k", 0.3, "lower")),
    "d": (CountDistinct("x"), values.distinct("x")),
    "mo": (Mode("k"), values.mode("k")),
    "top": (TopK("n", 2), values.top("n", 2)),
    "hh": (HeavyHitters("k", 0.4), values.heavy("k", 0.4)),
    "some": (Collect("n", most=3), values.collected("n", 3)),
    "last": (Last("k"), naive.aggregate("last", "k")),
}
EXTENTS = [(-20, 10), (-20, 45), (5, 6)]
KINDS_OF_WINDOWS: dict[str, tuple[Any, Any]] = {
    "landmark": (Landmark(25, -50), lambda rows, of: naive.landmark(rows, "ts", ("k",), of, 25, -50)),
    "session": (Session(2), lambda rows, of: sessions(rows, "ts", ("k",), of, 2)),
    "capped": (Session(2, most=9), lambda rows, of: sessions(rows, "ts", ("k",), of, 2, 9)),
    "global": (Global(), lambda rows, of: whole(rows, "ts", ("k",), of)),
    "intervals": (Intervals(EXTENTS), lambda rows, of: folded.intervals(rows, ("k",), of, EXTENTS)),
    "band": (FixedBand(0, 9), lambda rows, of: folded.intervals(rows, ("k",), of, [(0, 9)])),
}


@pytest.mark.parametrize("kind", KINDS_OF_WINDOWS)
def test_windows_of_other_kinds_and_lists_are_those_of_the_definition(kind: str) -> None:
    windows, oracle = KINDS_OF_WINDOWS[kind]
    tuples = page(90, seed=len(kind))
    asked = {name: aggregate for name, (aggregate, _) in OF_VALUES.items()}
    graph = one(WindowAggregate(windows, asked, by=("k",)))
    truth = true_answer(graph, {"source": [tuples]})
    rows = [{**row, "ts": time} for row, time in zip(tuples.to_pylist(), tuples.times.tolist(), strict=True)]
    wanted = oracle(rows, {name: of for name, (_, of) in OF_VALUES.items()})
    names = ["k", "window_start", "window_end", *asked]
    assert spelt(as_rows(truth), names) == spelt(wanted, names)
    found = replay(graph, {"source": [tuples]}).results["answers"]
    assert missing_and_wrong(found, truth, ("k", "window_start", "window_end")) == (0, 0)


def rising(times: Any, columns: Any, begin: int, bound: int, ended: bool) -> tuple[Any, Any]:
    """From each 5 to 12 behind it."""
    starts = np.unique(times[pc.fill_null(pc.equal(columns["n"], 5), False).to_numpy(zero_copy_only=False)])
    ends = starts + 12
    some = (ends > begin) & (ends <= bound)
    return starts[some], ends[some]


def high(row: dict[str, Any]) -> bool:
    return row["n"] is not None and row["n"] > 3


def low(row: dict[str, Any]) -> bool:
    return row["n"] is not None and row["n"] < 0


def after_fives(rows: list[dict[str, Any]], of: Any) -> list[dict[str, Any]]:
    found = []
    for key, some in folded.groups_of(rows, ("k",)).items():
        for start in {row["ts"] for row in some if row["n"] == 5}:
            inside = [row for row in some if start <= row["ts"] < start + 12]
            found.append(naive.result(("k",), key, (start, start + 12), of, inside))
    return found


HIGH, LOW = pc.field("n") > 3, pc.field("n") < 0
FOLDED: dict[str, tuple[Any, Any]] = {
    "rows": (
        TupleBased(5, 2),
        lambda rows, of: naive.sliding(naive.number(rows), "row", ("k",), of, 5, 2),
    ),
    "rows_of_group": (
        PartitionedTupleBased(4, 6),
        lambda rows, of: naive.sliding(naive.number(rows, ("k",)), "row", ("k",), of, 4, 6),
    ),
    "ranks": (
        TupleBased(5, 2, order="time", tie=("n",)),
        lambda rows, of: folded.ranked(rows, ("k",), of, 5, 2, ("n",), grouped=False),
    ),
    "ranks_of_group": (
        PartitionedTupleBased(4, 6, order="time"),
        lambda rows, of: folded.ranked(rows, ("k",), of, 4, 6, grouped=True),
    ),
    "marks": (Delimited(HIGH), lambda rows, of: folded.delimited(rows, ("k",), of, high, "group")),
    "marks_of_all": (
        Delimited(HIGH, scope="stream"),
        lambda rows, of: folded.delimited(rows, ("k",), of, high, "stream"),
    ),
    "each": (
        SlideByTuple(9, carry=("x",)),
        lambda rows, of: folded.slide_by_tuple(rows, ("k",), of, 9, carry=("x",)),
    ),
    "each_of_its_own": (
        SlideByTuple(9, own=True),
        lambda rows, of: folded.slide_by_tuple(rows, ("k",), of, 9, own=True),
    ),
    "third": (
        SlideByTuple(9, 3, of="arrival"),
        lambda rows, of: folded.slide_by_tuple(rows, ("k",), of, 9, 3, "arrival"),
    ),
    "around": (
        RowsBetween(-2, 1, carry=("x",)),
        lambda rows, of: folded.rows_between(rows, ("k",), of, -2, 1, carry=("x",)),
    ),
    "last": (LastRows(4, 10, 3), lambda rows, of: folded.last_rows(rows, ("k",), of, 4, 10, 3)),
    "frames": (Frames(HIGH, LOW), lambda rows, of: folded.frames(rows, ("k",), of, high, low)),
    "short_frames": (
        Frames(HIGH, LOW, most=15),
        lambda rows, of: folded.frames(rows, ("k",), of, high, low, most=15),
    ),
    "cut": (UserWindows(rising, reads=("n",), back=12), after_fives),
}


@pytest.mark.parametrize("kind", FOLDED)
def test_windows_that_need_the_order_of_time_are_those_of_the_definition(kind: str) -> None:
    windows, oracle = FOLDED[kind]
    rng = np.random.default_rng(len(kind))
    tuples = page(90, seed=3)
    times = rng.permutation(np.arange(-60, 60))[:90]  # no two are equal
    columns = {name: tuples.column(name) for name in ("k", "x", "n")}
    tuples = Page.of(SCHEMA, {"ts": pa.array(times, SCHEMA.type_of("ts")), **columns}, np.arange(90) + 100)
    asked = {name: aggregate for name, (aggregate, _) in OF_VALUES.items()}
    of = {name: how for name, (_, how) in OF_VALUES.items()}
    if kind.startswith("rows"):  # there the last one is so by number
        del asked["last"], asked["some"]
    graph = one(WindowAggregate(windows, asked, by=("k",)))
    truth = true_answer(graph, {"source": [tuples]})
    rows = [{**row, "ts": time} for row, time in zip(tuples.to_pylist(), tuples.times.tolist(), strict=True)]
    names = graph.plan().schema(Stream("query")).names
    assert truth.num_rows >= 3
    assert spelt(as_rows(truth), names) == spelt(oracle(rows, {name: of[name] for name in asked}), names)
    put_out = replay(graph, {"source": [tuples]}).results["answers"]
    keys = ("k", *(name for name in names if name.endswith(("_start", "_end"))))
    assert missing_and_wrong(put_out, truth, keys) == (0, 0)
    if kind not in ("third", "rows", "rows_of_group"):
        twin = in_order(graph)
        assert missing_and_wrong(true_answer(twin, {"source": [tuples]}), truth, keys) == (0, 0)


def test_windows_by_name_have_the_truth_of_each() -> None:
    graph = one(WindowAggregate({"ten": Tumbling(10), "pause": Session(2)}, {"m": Median("x"), "n": Count()}))
    feeds = {"source": [page(90, seed=3)]}
    truth = true_answer(graph, feeds)
    assert set(truth["window"].to_pylist()) == {"ten", "pause"}
    found = replay(graph, feeds).results["answers"]
    assert missing_and_wrong(found, truth, ("window", "window_start", "window_end")) == (0, 0)


def test_a_feed_may_be_a_table_of_arrow() -> None:
    graph = one(WindowAggregate(Tumbling(10), {"n": Count()}))
    table = pa.Table.from_batches([page(50, seed=3).batch])
    truth = true_answer(graph, {"source": table})
    assert missing_and_wrong(replay(graph, {"source": table}).results["answers"], truth, ("window_end",)) == (
        0,
        0,
    )
