"""Warm: compile the kernels that most graphs use, before somebody waits for them.

A kernel is compiled for the types it is first called with.  So a few thousand tuples go through graphs of the usual
operators; Numba compiles the kernels and keeps them in its cache.

Out of the cache a kernel is loaded with its first call, for which all other tasks of an event loop wait.  So an
application lets its own graph run over invented rows first, on a thread.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from oop_engine.core.graphs.graph import Graph, Stream
from oop_engine.core.operator import Operator
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.lab.invented import invented_runs
from oop_engine.lab.own.without_own import without_own
from oop_engine.runners.replay import replay
from oop_engine.system.kernel import COMPILES, numba
from oop_engine.system.on_thread import on_thread
from oop_engine.system.stopwatch import COMPILED
from oop_engine.traces.formats.alike import json_lines

if TYPE_CHECKING:
    from oop_engine.operators.aggregates import Aggregation

__all__ = ["Warmed", "cache_folder", "warm", "warm_all"]

_COLUMNS = {
    "ts": pa.int64(), "k": pa.int64(), "name": pa.string(), "x": pa.float64(), "n": pa.int64(),
    "price": pa.decimal128(21, 2), "u": pa.uint64(), "i": pa.int32(),
}  # fmt: skip
_SCHEMA = Schema(_COLUMNS, "ts", "s")
_LOG = logging.getLogger("oop_engine")
_ROWS = 2000
_FEW, _MANY = 9, 1000  # keys


@dataclass(frozen=True)
class Warmed:
    """The kernels compiled for one kind of graph: how many, and in how many wall seconds."""

    what: str
    kernels: int
    wall_s: float


def warm_all() -> Iterator[Warmed]:
    """Run a graph of each kind, and yield the kernels compiled; none where all are in the cache."""
    for kind, graph, keys in _graphs():
        kernels, wall_s = COMPILED.kernels, COMPILED.wall_s
        feeds = {node.name: _pages(seed, keys) for seed, node in enumerate(graph.plan().of_kind("source"))}
        replay(graph, feeds, on_result=lambda _: None)
        yield Warmed(kind, COMPILED.kernels - kernels, COMPILED.wall_s - wall_s)
    kernels, wall_s = COMPILED.kernels, COMPILED.wall_s
    json_lines.load()
    yield Warmed("files of text", COMPILED.kernels - kernels, COMPILED.wall_s - wall_s)


async def warm(graph: Graph, *, own: bool = False) -> None:
    """Load the kernels of ``graph`` on a thread, so that its first rows hold up no other task of the event loop.

    Another instance of the graph runs over a thousand invented rows.  No function of yours gets one: an operator that
    is yours, or has a function, policy, aggregate or window of yours, is left out, and those behind it get invented
    rows of their own.  ``own``: yours are called, too, so that their kernels are loaded; a line of the log tells if one
    fails on such rows.  For the start of an application, before ``Local`` or ``serve``::

        await warm(graph)
        async with Local(graph, on_result) as local:
            ...
    """
    await on_thread(_load, graph, own)


def _load(graph: Graph, own: bool = False) -> None:
    if COMPILES:
        numba()  # else it would be imported later, when kernels have been called often
    tried = graph if own else without_own(graph.plan())
    plan = tried.plan()
    try:
        schemas = {node.name: plan.schema(Stream(node.name)) for node in plan.of_kind("source")}
        for make in invented_runs():
            replay(
                tried, {name: [*make(schema)] for name, schema in schemas.items()}, on_result=lambda _: None
            )
    except Exception as error:  # functions of the user may raise anything
        words = "graph %r: is not warm behind an operator that fails on invented rows: %s"
        _LOG.warning(words, graph.name, " ".join(str(error).split()))


def cache_folder() -> str:
    """Return the folder in which compiled kernels are kept."""
    from oop_engine.operators.kernels.time_order import time_order

    return str(time_order.stats.cache_path)


def _graphs() -> Iterator[tuple[str, Graph, int]]:
    """Yield graphs, with how many keys their tuples are to have."""
    for kind, graph in _of_few_keys():
        yield kind, graph, _FEW
    for kind, graph in _of_many_keys():
        yield kind, graph, _MANY


def _of_many_keys() -> Iterator[tuple[str, Graph]]:
    """Yield graphs in which most groups have something in most panes, so that windows are put together in a sweep."""
    from oop_engine.operators.edge.punctuate import Punctuate
    from oop_engine.operators.policies.policies import BoundedDisorder
    from oop_engine.operators.window_aggregate import WindowAggregate
    from oop_engine.operators.windows import Sliding, Tumbling

    edge = Punctuate(BoundedDisorder(9), 10 * _ROWS)  # all windows at once
    for kind, windows in (("windows", Tumbling(300, -20)), ("sliding windows", Sliding(600, 300, -20))):
        yield f"{kind} of many groups", _chain(edge, WindowAggregate(windows, _aggregates(), ("k",)))


def _aggregates() -> dict[str, Aggregation]:
    from oop_engine.operators.aggregates import Avg, Count, First, Last, Max, Min, Stddev, Sum

    aggregates: dict[str, Aggregation] = {
        "n": Count(),
        "s": Sum("n"),
        "x": Sum("x"),
        "a": Avg("x"),
        "d": Stddev("x"),
    }
    aggregates |= {"f": First("x"), "l": Last("n")}
    return aggregates | {f"{kind.__name__}_{name}": kind(name) for kind in (Min, Max) for name in ("x", "n")}


def _more() -> dict[str, Aggregation]:
    from oop_engine.operators.aggregates import (
        ArgMax,
        ArgMin,
        GeometricMean,
        MaxCount,
        MinCount,
        Product,
        WeightedAvg,
    )

    aggregates: dict[str, Aggregation] = {
        "least": ArgMin("x", "n"),
        "most": ArgMax("x", "n"),
        "centre": WeightedAvg("x", "n"),
    }
    return aggregates | {kind.__name__: kind("x") for kind in (GeometricMean, MaxCount, MinCount, Product)}


def _wide() -> dict[str, Aggregation]:
    """Return aggregates whose states are numbers of 128 bits."""
    from oop_engine.operators.aggregates import Avg, Max, Min, Sum, Var

    aggregates: dict[str, Aggregation] = {"var": Var("i")}
    for column in ("price", "u"):
        aggregates |= {f"{kind.__name__}_{column}": kind(column) for kind in (Sum, Avg, Min, Max)}
    return aggregates | {"mean": Avg("n"), "sum": Sum("i")}


def _lists() -> dict[str, Aggregation]:
    """Return aggregates whose states are lists, or sketches."""
    from oop_engine.operators.aggregates import (
        ApproxCountDistinct,
        ApproxQuantile,
        Collect,
        CountDistinct,
        HeavyHitters,
        Median,
        Mode,
        TopK,
    )

    aggregates: dict[str, Aggregation] = {
        "middle": Median("n"), "tail": ApproxQuantile("x", 0.9), "different": CountDistinct("name"),
        "about": ApproxCountDistinct("n"), "names": ApproxCountDistinct("name"), "mode": Mode("n"),
        "top": TopK("n", 3), "heavy": HeavyHitters("n", 0.1), "all": Collect("x", 1000),
    }  # fmt: skip
    return aggregates


def _of_few_keys() -> Iterator[tuple[str, Graph]]:
    from oop_engine.operators.aggregates import Count, Sum
    from oop_engine.operators.distinct import Distinct
    from oop_engine.operators.edge.punctuate import Punctuate
    from oop_engine.operators.joining.bands import AsOf, Band
    from oop_engine.operators.levels.low_level_aggregate import LowLevelAggregate
    from oop_engine.operators.oa_join import OAJoin
    from oop_engine.operators.policies.policies import BoundedDisorder, PerGroup
    from oop_engine.operators.rewrites.in_order import in_order
    from oop_engine.operators.window_aggregate import WindowAggregate
    from oop_engine.operators.windows import Session, SlideByTuple, Sliding, Tumbling, TupleBased

    edge, sums = Punctuate(BoundedDisorder(9), 5), {"n": Count(), "s": Sum("n"), "x": Sum("x")}
    all_of = _aggregates()
    for words, by in (("", ()), (", by an integer", ("k",)), (", by a text", ("name",))):
        yield f"windows{words}", _chain(edge, WindowAggregate(Tumbling(10), all_of, by))
        yield f"sliding windows{words}", _chain(edge, WindowAggregate(Sliding(60, 10), all_of, by))
        several = WindowAggregate({"ten": Tumbling(10), "sixty": Sliding(60, 20)}, all_of, by)
        yield f"windows of several definitions{words}", _chain(edge, several)
        for halved, windows in (("windows", Sliding(60, 10)), ("sessions", Session(5))):
            halves = WindowAggregate(windows, all_of, by).halves((_SCHEMA,))
            yield f"{halved} in two halves{words}", _chain(edge, *(halves or ()))
        low = LowLevelAggregate(Tumbling(10), all_of, by, slots=4)
        yield f"windows in two levels{words}", _chain(edge, low)
    kinds = (
        ("sessions", Session(5)),
        ("long sessions", Session(100)),
        ("sessions that end", Session(5, most=20)),
    )
    for words, windows in kinds:
        yield words, _chain(edge, WindowAggregate(windows, sums, ("k",)))
    for words, aggregates in (("more aggregates", _more()), ("wide numbers", _wide()), ("lists", _lists())):
        for by in ((), ("k",)):
            yield (
                f"windows of {words}{', by an integer' * len(by)}",
                _chain(edge, WindowAggregate(Sliding(20, 10), aggregates, by)),
            )
    many = {f"{length} s": Sliding(length, 10) for length in range(10, 200, 10)}
    counted = {"n": Count(), "s": Sum("n")}
    for words, by in (("", ()), (", by an integer", ("k",))):
        yield f"windows of very many definitions{words}", _chain(edge, WindowAggregate(many, counted, by))
    yield "windows of tuples", _chain(edge, WindowAggregate(TupleBased(40, 10), all_of))
    by_time = {"ranks": TupleBased(40, 10, order="time"), "forty": TupleBased(40, 40, order="time")}
    yield "windows of tuples by time", _chain(edge, WindowAggregate(by_time, all_of))
    yield "windows for each tuple", _chain(edge, WindowAggregate(SlideByTuple(20), all_of, ("k",)))
    by_key = Punctuate(PerGroup(BoundedDisorder(9), ("k",)), 5)
    yield "punctuation by key", _chain(by_key, WindowAggregate(Tumbling(10), sums, ("k",)))
    yield "distinct values", _chain(edge, Distinct(("k", "ts")))
    for words, keys in (("an integer", ["k"]), ("a text", ["name"]), ("several columns", ["k", "name"])):
        graph = Graph("join")
        sides = [graph.add(f"{side}-edge", edge, graph.source(side, _SCHEMA)) for side in ("left", "right")]
        bands: list[Band | AsOf] = [Band(5, 5), AsOf()]
        for number, band in enumerate(bands):
            join = OAJoin([(key, key) for key in keys], band, how="left")
            graph.sink(f"out{number}", graph.add(f"join{number}", join, *sides))
        yield f"joins by {words}", graph
        yield f"joins by {words}, in order", in_order(graph)
    yield "windows in order", in_order(_chain(edge, WindowAggregate(Sliding(60, 10), sums, ("k",))))


def _chain(*operators: Operator) -> Graph:
    graph = Graph("chain")
    stream = graph.source("in", _SCHEMA)
    for number, operator in enumerate(operators):
        stream = graph.add(f"o{number}", operator, stream)
    graph.sink("out", stream)
    return graph


def _pages(seed: int, most: int) -> list[Page]:
    """Return tuples a little out of order, of ``most`` keys, close together in the first half and not in the second."""
    chance = np.random.default_rng(seed)
    keys = chance.integers(0, most, 2 * _ROWS)
    keys[_ROWS:] *= 1_000_003
    times = np.arange(2 * _ROWS) // 4 - chance.integers(0, 9, 2 * _ROWS)
    columns = {"ts": times, "k": keys, "name": [f"name {key}" for key in keys], "x": keys / 3, "n": keys}
    columns |= {"price": pa.array(keys).cast(_COLUMNS["price"], safe=False), "u": keys.astype(np.uint64)}
    columns["i"] = (keys % 1000).astype(np.int32)
    whole = Page.of(_SCHEMA, columns)
    return [whole.slice(start, start + 500) for start in range(0, len(whole), 500)]
