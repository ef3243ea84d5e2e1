"""Usual mistakes in calls of the public classes: each raises an ``EngineError`` in words, none a ``TypeError``.

Every parameter of every class gets values that people write by mistake; so does each class with an argument too few,
too many, and one of a wrong name.  A call that is taken must work in a graph, or be refused when the graph is built.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import EngineError, Graph, Operator, Page, Schema, replay
from oop_engine.extend import Aggregation, Policy, Trigger
from oop_engine.operators import (
    Band,
    BoundedDisorder,
    Count,
    Emit,
    Late,
    Ordered,
    Punctuate,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.policies import Flush
from oop_engine.testing.case import typed
from oop_engine.triggers import AfterCount
from tests.shelves import OF_GRAPHS, on_shelves

SCHEMA = Schema(
    {"ts": pa.timestamp("ms"), "k": pa.string(), "v": pa.int64(), "x": pa.float64(), "on": pa.bool_()}, "ts"
)
ONE, COUNT = {"n": Count()}, {"aggregates": {"n": Count()}}
RIGHT: dict[str, dict[str, Any]] = {
    "AfterChange": {"name": "n", "by": 1.0},
    "AfterCount": {"n": 1},
    "AfterDelay": {"length": "1 s"},
    "AfterFraction": {"share": 0.5},
    "AfterMatch": {"predicate": pc.field("v") > 1},
    "Aggregate": {"windows": Tumbling(10), **COUNT, "by": ("k",)},
    "WithColumns": {"columns": {"w": pc.field("v")}},
    "ApproxCountDistinct": {"column": "k", "error": 0.02},
    "ApproxQuantile": {"column": "x", "q": 0.5, "error": 0.02},
    "ArgMax": {"of": "k", "at": "v"},
    "ArgMin": {"of": "k", "at": "v"},
    "AsOf": {"within": "1 s"},
    "Band": {"before": "1 s", "after": "1 s"},
    "BoundedCount": {"n": 3},
    "BoundedDisorder": {"slack": "1 s"},
    "Bucket": {"windows": Tumbling(10), "by": ("k",)},
    "BufferingAggregate": {"windows": Tumbling(10), **COUNT, "by": ("k",), "stamp": "end"},
    "ByQuantile": {"share": 0.9, "rows": 100},
    "Collect": {"column": "v", "most": 3},
    "Delimited": {"marker": "on", "scope": "group"},
    "PrunePunctuation": {"granularity": "1 s", "keep": ("linear",), "attributes": ("k",)},
    "Distinct": {"by": ("k",)},
    "Emit": {"early": AfterCount(1), "late": AfterCount(1), "mode": "retracting", "on_time": True, "repeat": False},
    "Expire": {"range": "1 s", "at": "at", "weight": "weight"},
    "FixedBand": {"start": 0, "length": "1 s"},
    "Flush": {"within": 1, "every": 1},
    "Frames": {"enter": "on", "leave": "on", "most": "1 min", "unfinished": True, "tie": ("k",)},
    "FrequentItems": {"column": "k", "share": 0.1, "size": 64},
    "Guard": {"limit": "1 min", "late": Late.DROP, "patience": 10},
    "Heartbeat": {"policy": BoundedDisorder(1), "threshold": "1 s", "slack": "1 s", "every": "1 s"},
    "HeavyHitters": {"column": "k", "share": 0.5},
    "IfNone": {"row": {"v": 0}},
    "Intervals": {"extents": [(0, 10)]},
    "Kll": {"column": "x", "q": 0.5, "k": 200},
    "Landmark": {"slide": "1 s", "origin": 0, "lulls": False},
    "LastRows": {"rows": 2, "every": "1 s", "tie": ("k",)},
    "Latest": {"by": ("k",), "where": "on", "at": "at", "weight": "w"},
    "Lazy": {"within": 1},
    "LowLevelAggregate": {"windows": Tumbling(10), **COUNT, "by": ("k",), "slots": 4},
    "Median": {"column": "v"},
    "Meld": {"n_inputs": 2},
    "Merge": {"n_inputs": 2},
    "MultiJoin": {"anchor": "a", "bands": {"b": Band(1, 1), "c": Band(1, 1)}, "keys": [("k", "k", "k")]},
    "OAJoin": {"keys": [("k", "k")], "band": Band(1, 1), "how": "inner", "suffix": "_right", "punctuation": "joint"},
    "OPIBJoin": {"keys": [("k", "k")], "band": Band(1, 1), "how": "inner", "suffix": "_right"},
    "OPOBJoin": {"keys": [("k", "k")], "band": Band(1, 1), "how": "inner", "suffix": "_right"},
    "Once": {"of": AfterCount(1)},
    "OrFinally": {"of": AfterCount(1), "last": AfterCount(2)},
    "PartialAggregate": {"windows": Tumbling(10), **COUNT, "by": ("k",)},
    "PartitionedTupleBased": {"range": 2, "slide": 1, "order": "arrival", "tie": ()},
    "PerGroup": {"policy": BoundedDisorder(1), "by": ("k",)},
    "Project": {"columns": ("ts", "k")},
    "Punctuate": {"policy": Ordered(), "granularity": "1 s", "late": Late.DROP},
    "Quantile": {"column": "v", "q": 0.5, "method": "lower"},
    "Filter": {"predicate": "on"},
    "RowsBetween": {"first": -2, "last": 0, "carry": (), "tie": ("k",)},
    "Session": {"gap": "1 s", "most": "1 min"},
    "Shed": {"one_in": 2, "by": ("k",), "weight": "w"},
    "SlideByTuple": {"range": "1 s", "every": 1, "of": "tuple", "carry": (), "own": True},
    "Sliding": {"range": "2 s", "slide": "1 s", "origin": 0},
    "Slow": {"every": 1, "within": 1},
    "Sort": {"policy": Ordered(), "granularity": "1 s"},
    "Split": {"predicates": {"a": "on"}, "rest": "rest"},
    "ArrivalTime": {"column": "arrived"},
    "Stddev": {"column": "v", "ddof": 1},
    "TDigest": {"column": "x", "q": 0.5, "k": 100},
    "Timer": {"policy": BoundedDisorder(1), "every": "1 s"},
    "TopN": {"n": 2, "order": ("v",), "by": ("k",), "timed": True, "rank": "place", "ties": "rank"},
    "TopK": {"column": "k", "k": 2},
    "Tumbling": {"range": "1 s", "origin": 0},
    "TumblingBand": {"range": "1 s", "origin": 0},
    "TupleBased": {"range": 2, "slide": 1, "order": "arrival", "tie": ()},
    "Var": {"column": "v", "ddof": 1},
    "WeightedAvg": {"column": "v", "weight": "x"},
    "WindowAggregate": {
        "windows": Tumbling(10), **COUNT, "by": ("k",), "stamp": "end", "empty": False, "strategy": "auto",
        "assembly": "auto", "emit": Emit(), "changing": False,
    },
    "WindowIdBand": {"range_left": "1 s", "range_right": "1 s", "slide": "1 s", "origin": 0},
    **{
        name: {"column": "v"}
        for name in (
            "Avg", "CountDistinct", "First", "GeometricMean", "Last", "M4", "Max", "MaxCount", "Min", "MinCount",
            "Mode", "Product", "Sum", "Count",
        )
    },
    "All": {"column": "on"},
    "Any": {"column": "on"},
}  # fmt: skip
WITHOUT = {
    "AfterAll", "AfterAny", "AfterEach", "AtOnce", "Finalize", "Global", "InOrder", "OnRequest", "Ordered", "Upstream",
    "UserDefined", "UserWindows", "Consolidate", "Ahead", "Lag", "Late", "Slack",
}  # fmt: skip
"""Classes without parameters, of functions, or to derive from; ``Consolidate`` stands behind a ``PartialAggregate``."""
WRONG: list[Any] = [
    None,
    "",
    "no such thing",
    1.5,
    -1,
    0,
    True,
    [],
    ["k", 1],
    {},
    {"a": 1},
    object(),
    b"k",
    Sum,
    pa.int64(),
    2**70,
]


library: Any = SimpleNamespace(**on_shelves(*OF_GRAPHS))  # no checker of types lets wrong calls pass


def used(value: Any) -> None:
    """Build and run a graph with a value."""
    graph = Graph("g")
    of: Any = value
    if isinstance(value, Policy) or hasattr(value, "running"):
        of = Punctuate(value)
    elif isinstance(value, Trigger):
        of = WindowAggregate(Tumbling(10), ONE, emit=Emit(early=value))
    elif isinstance(value, Emit):
        of = WindowAggregate(Tumbling(10), ONE, emit=value)
    elif isinstance(value, Flush):
        of = library.LowLevelAggregate(Tumbling(10), ONE, slots=4, flush=value)
    elif isinstance(value, Aggregation):
        of = WindowAggregate(Tumbling(10), {"n": value})
    elif type(value).__name__ in ("Band", "TumblingBand", "WindowIdBand", "AsOf"):
        of = library.OAJoin([("k", "k")], value)
    elif not isinstance(value, Operator):
        of = WindowAggregate(value, ONE, "k")
    schema = SCHEMA
    if isinstance(of, library.Aggregate):
        schema = library.Bucket(Tumbling(10)).output_schemas((SCHEMA,))[0]
    inputs = [graph.source(f"in{at}", schema) for at, _ in enumerate(of.inputs)]
    if isinstance(of, library.Guard | library.ArrivalTime):  # which read arrivals
        node, of = of, Punctuate(Ordered())
        stream = graph.add("edge", of, graph.add("node", node, *inputs))
    else:
        edges = [graph.add(f"edge{at}", Punctuate(Ordered()), one) for at, one in enumerate(inputs)]
        stream = graph.add("node", of, *edges)
    for at, name in enumerate(of.outputs):
        graph.sink(f"sink-{at}", stream if len(of.outputs) == 1 else stream[name])
    columns: dict[str, Any] = {
        "ts": pa.array([1, 20], pa.timestamp("ms")),
        "k": ["a", "b"],
        "v": [1, 2],
        "x": [1.0, 2.0],
        "on": [True, False],
    }
    columns |= {name: typed([1, 2], schema.type_of(name)) for name in schema.names if name not in columns}
    page = Page.of(schema, columns, arrival=[1, 20])
    replay(graph, {f"in{at}": page for at, _ in enumerate(of.inputs)})


def tried(make: Callable[[], Any]) -> str | None:
    """Return what else than an ``EngineError`` was raised; an error names the class or the node, and the value."""
    try:
        used(make())
    except EngineError as error:
        return None if len(str(error)) > 20 else f"too short: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def test_the_table_has_all_classes() -> None:
    public = {name for name, thing in vars(library).items() if inspect.isclass(thing)}
    assert public == {*RIGHT, *WITHOUT}, "put its parameters into RIGHT, or its name into WITHOUT"


@pytest.mark.parametrize("name", RIGHT)
def test_wrong_values_names_and_numbers_of_arguments(name: str) -> None:
    of, right = getattr(library, name), RIGHT[name]
    if name not in ("Merge", "Sort", "BufferingAggregate", "OPIBJoin", "OPOBJoin"):
        used(of(**right))
    calls: dict[str, Callable[[], Any]] = {
        f"{parameter}={value!r}": partial(of, **{**right, parameter: value})
        for parameter in right
        for value in WRONG
    }
    for parameter in right:
        fewer = {key: value for key, value in right.items() if key != parameter}
        calls[f"without {parameter}"] = partial(of, **fewer)
    calls["nonsense=1"] = partial(of, **right, nonsense=1)
    calls["20 more"] = partial(of, *right.values(), *range(20))
    wrong = {call: found for call, make in calls.items() if (found := tried(make))}
    assert not wrong, "\n" + "\n".join(f"{call}: {found}" for call, found in wrong.items())


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "a name for by": (lambda: WindowAggregate(Tumbling(10), ONE, by="k").by == ("k",), ""),
    "a list for by": (lambda: library.Distinct(["k"]).by == ("k",), ""),
    "names for keys": (lambda: library.OAJoin(keys=["k"], band=Band(0, 1)).keys == (("k", "k"),), ""),
    "a name for keys": (lambda: library.OPIBJoin("k", Band(0, 1)).terms.keys == (("k", "k"),), ""),
    "a name of several streams": (
        lambda: library.MultiJoin("a", {"b": Band(1, 1), "c": Band(1, 1)}, "k").keys == (("k", "k", "k"),), ""
    ),
    "pairs for keys": (lambda: library.OAJoin([("k", "h")], Band(0, 1)).keys == (("k", "h"),), ""),
    "late as a text": (lambda: library.Punctuate(Ordered(), late="divert"), "Punctuate: late .*Late.DIVERT"),
    "a column is missing": (lambda: library.Sum(), "Sum: needs column; got no arguments: write Sum.column"),
    "another word for an option": (lambda: library.WindowAggregate(Tumbling(1), ONE, keys=["k"]), "did you mean by"),
    "another word for a length": (lambda: library.Tumbling(size="1 min"), "no option 'size'.*did you mean range"),
    "an option is wrong": (lambda: library.Sum(colum="v"), "Sum: .*'colum'.*did you mean column"),
    "a float for a number of rows": (lambda: library.AfterCount(2.0), "n must be an integer; got 2.0: write 2"),
    "a class for a value": (lambda: library.WindowAggregate(Tumbling, ONE).opened(SCHEMA), "windows must be a value"),
    "an aggregate that is a text": (lambda: library.WindowAggregate(Tumbling(1), {"n": "count"}), "must be an agg"),
    "a column that is not there": (
        lambda: WindowAggregate(Tumbling(1), {"n": Sum("vv")}).opened(SCHEMA), "no column 'vv'.*did you mean v"
    ),
    "a trigger that is none": (lambda: library.Emit(early=5), "Emit: early must be an? Trigger"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_usual_forms(name: str) -> None:
    make, message = CASES[name]
    if not message:
        assert make()
        return
    with pytest.raises(EngineError, match=message):
        make()


def test_outputs_of_a_node_by_their_names() -> None:
    graph = Graph("g")
    edge = graph.add("edge", library.Punctuate(Ordered(), late=Late.DIVERT), graph.source("in", SCHEMA))
    assert edge.late == edge["late"]
    with pytest.raises(EngineError, match="no output 'lat'; there are out, late; did you mean late"):
        edge.lat  # noqa: B018
    assert not hasattr(edge, "bound")
    graph.sink("late", edge.late)
    graph.sink("out", "egde")
    with pytest.raises(
        EngineError, match=r"'egde' is not in graph 'g'; there are in, edge.*did you mean edge"
    ):
        graph.plan()
