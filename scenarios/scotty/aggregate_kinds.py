"""Aggregates of all kinds, in windows of time and of counts (Scotty, figures 18 and 20).

One aggregate at a time, over windows of 20,000 tuples that slide by 1000, a twentieth of the tuples late.
``time`` are windows of time, whose panes are folded as tuples come; ``count`` are windows of numbers of tuples in order
of time, folded once a bound has passed their tuples.

As in the paper aggregates of fixed size cost much the same, whether they are distributive (sums, extremes) or algebraic
(means, variances).  Not as in the paper: invertible or not makes no difference for windows of counts, for no tuple is
shifted from slice to slice, so none has to be taken out of one.  CPU times are those of the operators alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine import Message, Operator, Page, Schema
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Graph
from oop_engine.lab.compare import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Values, Variant
from oop_engine.operators.aggregates import (
    Aggregation,
    Avg,
    Count,
    First,
    Last,
    Max,
    MaxCount,
    Min,
    Stddev,
    Sum,
    Var,
)  # fmt: skip
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.punctuate import Punctuate
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding, TupleBased, Windows
from oop_engine.scenarios.measured import cpu_s
from oop_engine.scenarios.scotty import SOURCE
from oop_engine.scenarios.truth import cut_out

__all__ = ["KINDS", "SCENARIO", "kind_of"]

SCHEMA = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "ms")
LATE, LATE_BY, EVERY, PAGE = 0.05, 1000, 2000, 8192  # a share, ms, ms, tuples
RANGE, SLIDE = 20_000, 1000  # ms, of which each has one tuple; so tuples as well
TIMED = 100_000  # tuples that aggregates are timed over, whatever the length of the trace
Cut = NDArray[Any]

KINDS: dict[str, tuple[Aggregation, Callable[[Cut], Any]]] = {
    "count": (Count(), np.size),
    "sum": (Sum("v"), np.sum),
    "min": (Min("v"), np.min),
    "max": (Max("v"), np.max),
    "max_count": (MaxCount("v"), lambda v: np.count_nonzero(v == v.max())),
    "first": (First("v"), lambda v: v[0]),
    "last": (Last("v"), lambda v: v[-1]),
    "avg": (Avg("v"), np.mean),
    "var": (Var("v"), lambda v: np.var(v, ddof=1) if v.size > 1 else np.nan),
    "stddev": (Stddev("v"), lambda v: np.std(v, ddof=1) if v.size > 1 else np.nan),
}
INVERTIBLE, OTHERS = ("count", "sum", "avg", "var"), ("min", "max", "first", "last")


def kind_of(values: Values) -> tuple[Aggregation, Callable[[Cut], Any]]:
    """Return the aggregate, and a function of an array that is its definition."""
    if values["kind"] not in KINDS:
        msg = f"aggregate_kinds: kind must be one of {', '.join(KINDS)}; got {values['kind']!r}"
        raise UsageError(msg)
    return KINDS[values["kind"]]


def given(values: Values) -> pa.Table:
    """Return the tuples as they arrive."""
    draw, number = np.random.default_rng(values["seed"]), values["tuples"]
    ts = np.arange(number)
    late = np.where(draw.random(number) < LATE, draw.integers(0, LATE_BY, (number,)), 0)
    order = np.argsort(ts + late, kind="stable")
    return pa.table({"ts": ts[order], "v": draw.integers(0, 1000, (number,)), "arrival": (ts + late)[order]})


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return the tuples in pages."""
    found = given(values)
    columns = {name: found.column(name).to_numpy() for name in SCHEMA.names}
    whole = Page.of(SCHEMA, columns, arrival=found.column("arrival").to_numpy())
    return {"tuples": [whole.slice(at, min(at + PAGE, len(whole))) for at in range(0, len(whole), PAGE)]}


WINDOWS: dict[str, Windows] = {"time": Sliding(RANGE, SLIDE), "count": TupleBased(RANGE, SLIDE, order="time")}


def variants(values: Values) -> list[Variant]:
    """Return the plans: windows of time and of counts are the same ones, for each ms has one tuple."""
    timed, counted = (_plan(name, kind_of(values)[0]) for name in WINDOWS)
    return [
        Variant("buffer", "in", in_order(timed)),
        Variant("time", "out", timed),
        Variant("count", "out", counted),
    ]


def _plan(name: str, aggregate: Aggregation) -> Graph:
    graph = Graph(name)
    progress = Punctuate(BoundedDisorder(LATE_BY), granularity=EVERY)
    tuples = graph.add("progress", progress, graph.source("tuples", SCHEMA))
    graph.sink("results", graph.add("windows", WindowAggregate(WINDOWS[name], {"value": aggregate}), tuples))
    return graph


def truth(values: Values) -> pa.Table:
    """Return the answer from the definition: each window is cut out of the sorted tuples and looked at."""
    found, number = given(values).sort_by("ts"), values["tuples"]
    ends = np.arange(1, (number - 1 + RANGE) // SLIDE + 1) * SLIDE
    starts, stops = np.maximum(ends - RANGE, 0), np.minimum(ends, number)
    cut = cut_out(found, starts, stops, {"value": ("v", kind_of(values)[1])})
    return cut.append_column("window_start", pa.array(ends - RANGE)).append_column(
        "window_end", pa.array(ends)
    )


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on state, and on CPU times of the kinds there are runs of."""
    kinds = list(dict.fromkeys(run.parameters["kind"] for run in runs))
    found = [_state(runs)]
    if len(kinds) > 1:
        spent = {kind: _spent({**runs[0].parameters, "kind": kind, "tuples": TIMED}) for kind in kinds}
        found += [_alike(spent), _inverted(spent)]
    return found


def _state(runs: list[Run]) -> Claim:
    held = {f"{run.parameters['kind']}, {run.variant}": run.peak_tuples for run in runs}
    return Claim(
        "windows of time hold no tuple, those of counts at most the tuples that no bound has passed, whatever the kind",
        all(run.peak_tuples == 0 for run in runs if run.variant == "time")
        and all(run.peak_tuples <= LATE_BY + EVERY for run in runs if run.variant == "count"),
        held,
    )


def _spent(values: Values) -> dict[str, float]:
    edge = Punctuate(BoundedDisorder(LATE_BY), granularity=EVERY).opened(SCHEMA)
    pages = [page for page in feeds(values)["tuples"] if isinstance(page, Page)]
    messages = [message for page in pages for _, message in edge.on_page(0, page)]
    aggregate = kind_of(values)[0]
    return cpu_s({name: partial(_opened, one, aggregate) for name, one in WINDOWS.items()}, messages)


def _opened(windows: Windows, aggregate: Aggregation) -> list[Operator]:
    return [WindowAggregate(windows, {"value": aggregate}).opened(SCHEMA)]


def _alike(spent: dict[str, dict[str, float]]) -> Claim:
    ratios = {name: max(of := [s[name] for s in spent.values()]) / min(of) for name in WINDOWS}
    return Claim(
        "aggregates of fixed size take at most 5 times as long as each other, over time and over counts",
        all(ratio < 5 for ratio in ratios.values()),
        {
            "slowest over fastest": {name: round(ratio, 1) for name, ratio in ratios.items()},
            "ns a tuple": _in_ns(spent),
        },
    )


def _inverted(spent: dict[str, dict[str, float]]) -> Claim:
    """Means over the kinds of either sort, of windows of counts."""
    both = [[spent[kind]["count"] for kind in kinds if kind in spent] for kinds in (INVERTIBLE, OTHERS)]
    invertible, others = (float(np.mean(times)) if times else float("nan") for times in both)
    return Claim(
        "not as in the paper: over counts those that cannot be inverted take at most twice as long as the others",
        not others > 2 * invertible,
        {"not invertible over invertible": round(others / invertible, 2)},
    )


def _in_ns(spent: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {kind: {name: round(s / TIMED * 1e9, 1) for name, s in of.items()} for kind, of in spent.items()}


SCENARIO = Scenario(
    name="aggregate_kinds",
    source=SOURCE,
    title="Aggregates of all kinds, in windows of time and of counts",
    about=__doc__,
    parameters={
        "kind": Parameter("sum", f"the aggregate: {', '.join(KINDS)}"),
        "tuples": Parameter(100_000, "length of the trace, one in a millisecond", least=1000),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end",),
    claims=claims,
    sweep=Sweep("kind", tuple(KINDS)),
)
