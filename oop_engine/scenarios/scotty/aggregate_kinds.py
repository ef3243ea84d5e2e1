"""Aggregates of all kinds, in windows of time and of counts (Scotty, figures 18 to 20).

One aggregate at a time, over windows of 20,000 tuples that slide by 1000, a twentieth of the tuples late.
``time`` are windows of time, whose panes are folded as tuples come; ``count`` are windows of numbers of tuples in order
of time, folded once a bound has passed their tuples.

As in the paper aggregates of fixed size cost much the same, whether they are distributive (sums, extremes) or algebraic
(means, variances).  The median, which needs all values, takes longer, and the longer the more values differ: the
columns of the paper have 37 and 84,232.  Folding takes time in proportion to the tuples that a bound passes.

Not as in the paper: invertible or not makes no difference for windows of counts, for no tuple is shifted from slice to
slice, so none has to be taken out of one.  And the median by slices takes about as long as by buffering, not a fifth:
here a buffer puts the 20,000 tuples of a window in order by one radix sort, which costs as much as to merge the sorted
lists of its 20 slices.  Slices gain in memory: they hold different values, not tuples.  CPU times are those of the
operators alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine import Operator, Page, Schema
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Graph
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Timed, Values, Variant
from oop_engine.operators.aggregates import (
    Aggregation,
    Avg,
    Count,
    First,
    Last,
    Max,
    MaxCount,
    Median,
    Min,
    Stddev,
    Sum,
    Var,
)  # fmt: skip
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate
from oop_engine.operators.in_order.sort import Sort
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding, TupleBased, Windows
from oop_engine.scenarios.measured import cpu_s, given_all, least_cpu_s
from oop_engine.scenarios.scotty import SOURCE
from oop_engine.scenarios.truth import cut_out

__all__ = ["KINDS", "SCENARIO", "kind_of"]

SCHEMA = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "ms")
LATE, LATE_BY, EVERY, PAGE = 0.05, 1000, 2000, 8192  # a share, ms, ms, tuples
RANGE, SLIDE = 20_000, 1000  # ms, of which each has one tuple; so tuples as well
TIMED = 100_000  # tuples that aggregates are timed over, whatever the length of the trace
TURNS = 7  # each aggregate is timed so often, and the least time counts
FEW, MANY = 37, 84_232  # different values of the columns in the paper
FOLDED = (1000, 10_000, 100_000)  # tuples of a slice that one bound passes
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
    "median": (Median("v"), np.median),
}
HOLISTIC = ("median",)
INVERTIBLE, OTHERS = ("count", "sum", "avg", "var"), ("min", "max", "first", "last")


def kind_of(values: Values) -> tuple[Aggregation, Callable[[Cut], Any]]:
    """Return the aggregate, and a function of an array that is its definition."""
    if values["kind"] not in KINDS:
        msg = f"aggregate_kinds: kind must be one of {', '.join(KINDS)}; got {values['kind']!r}"
        msg += did_you_mean(values["kind"], KINDS)
        raise UsageError(msg)
    return KINDS[values["kind"]]


def given(values: Values) -> pa.Table:
    """Return the tuples as they arrive."""
    draw, number = np.random.default_rng(values["seed"]), values["tuples"]
    ts = np.arange(number)
    late = np.where(draw.random(number) < LATE, draw.integers(0, LATE_BY, (number,)), 0)
    order = np.argsort(ts + late, kind="stable")
    return pa.table(
        {"ts": ts[order], "v": draw.integers(0, values["values"], (number,)), "arrival": (ts + late)[order]}
    )


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
    found = [_state(runs), _bytes(runs)]
    if len(kinds) > 1:
        spent = _spent({kind: {**runs[0].parameters, "kind": kind, "tuples": TIMED} for kind in kinds})
        found += [_alike(spent), _inverted(spent)]
        if set(HOLISTIC) & set(kinds):
            timed = {**runs[0].parameters, "kind": "median", "tuples": TIMED}
            found += [_holistic(spent), _by_values(timed), _buffered(timed, runs), _folded(timed)]
    return found


def _holistic(spent: dict[str, dict[str, float]]) -> Claim:
    fixed = max(of["time"] for kind, of in spent.items() if kind not in HOLISTIC)
    return Timed(
        "the median takes twice as long as any aggregate of fixed size, or more, over time",
        spent["median"]["time"] >= 2 * fixed,
        {"median over the slowest of fixed size": round(spent["median"]["time"] / fixed, 1)},
    )


def _by_values(values: Values) -> Claim:
    few, many = _spent({f"{number}": {**values, "values": number} for number in (FEW, MANY)}).values()
    return Timed(
        f"the median of {FEW} different values takes at most 0.6 of that of {MANY:,} over time, and less over counts",
        few["time"] <= 0.6 * many["time"] and few["count"] < many["count"],
        {"few over many": {name: round(few[name] / many[name], 2) for name in WINDOWS}},
    )


def _buffered(values: Values, runs: list[Run]) -> Claim:
    """CPU times with 20 windows at once; bytes of the runs."""
    sort = Sort(BoundedDisorder(LATE_BY), EVERY).opened(SCHEMA)
    ordered = [message for page in feeds(values)["tuples"] for _, message in sort.on_page(0, page)]  # type: ignore[arg-type]
    spent = least_cpu_s(
        {
            "buffer": lambda: given_all([_buffering().opened(SCHEMA)], ordered),
            "slices": partial(_once, WINDOWS["time"], values, _messages(values)),
        },
        TURNS,
    )
    buffer, slices = spent["buffer"], spent["slices"]
    held = {run.variant: run.peak_state_bytes for run in runs if run.parameters["kind"] == "median"}
    return Timed(
        "not as in the paper: the median by slices takes from half to twice the time of buffering, and less memory",
        0.5 * buffer < slices < 2 * buffer and held["time"] < held["buffer"],
        {"slices over buffering": round(slices / buffer, 2), "bytes": held},
    )


def _folded(values: Values) -> Claim:
    """One bound passes all tuples of one slice: of an aggregate that can be inverted, and of one that cannot."""
    spent = {}
    for number in FOLDED:
        [page] = [feeds({**values, "tuples": number})["tuples"]]
        window = TupleBased(number, number, order="time")
        made = {kind: partial(_opened, window, {"kind": kind}) for kind in ("sum", "min")}
        spent[number] = cpu_s(made, page)
    _, some, most = FOLDED
    return Timed(
        f"folding is linear: {most:,} tuples take at most 20 times as long as {some:,}, and a minimum at most twice as "
        "long as a sum",
        all(spent[most][kind] < 20 * spent[some][kind] for kind in ("sum", "min"))
        and spent[most]["min"] < 2 * spent[most]["sum"],
        {
            f"{number:,} tuples, ns each": {k: round(s / number * 1e9) for k, s in of.items()}
            for number, of in spent.items()
        },
    )


def _state(runs: list[Run]) -> Claim:
    held = {f"{run.parameters['kind']}, {run.variant}": run.peak_tuples for run in runs}
    return Claim(
        "windows of time hold no tuple, those of counts at most the tuples that no bound has passed, whatever the kind",
        all(run.peak_tuples == 0 for run in runs if run.variant == "time")
        and all(run.peak_tuples <= LATE_BY + EVERY for run in runs if run.variant == "count"),
        held,
    )


def _bytes(runs: list[Run]) -> Claim:
    """See how much a tuple takes that waits: a cell of each column read, and in a buffer the number of its group."""
    of = {run.parameters["kind"]: run for run in runs if run.variant == "buffer"}
    taken = {kind: run.peak_state_bytes / run.peak_tuples for kind, run in of.items()}
    asked = {kind: 8 * (2 + len(kind_of(run.parameters)[0].columns)) for kind, run in of.items()}
    return Claim(
        "a buffered tuple takes 8 bytes for its time, its group and, if it is read, its value, to a tenth",
        all(0.9 * asked[kind] <= each <= 1.1 * asked[kind] for kind, each in taken.items()),
        {kind: round(each, 1) for kind, each in taken.items()},
    )


def _spent(cases: Mapping[str, Values]) -> dict[str, dict[str, float]]:
    """Return the CPU seconds of cases by windows of time and of counts.

    Turns go round by case, so other work of the machine slows all of them alike.
    """
    made = dict[str, Callable[[], None]]()
    for name, values in cases.items():
        messages = _messages(values)
        made |= {f"{name}, {of}": partial(_once, one, values, messages) for of, one in WINDOWS.items()}
    spent = least_cpu_s(made, TURNS)
    return {name: {of: spent[f"{name}, {of}"] for of in WINDOWS} for name in cases}


def _messages(values: Values) -> list[Message]:
    """Return the tuples and their punctuation."""
    edge = Punctuate(BoundedDisorder(LATE_BY), granularity=EVERY).opened(SCHEMA)
    pages = [page for page in feeds(values)["tuples"] if isinstance(page, Page)]
    return [message for page in pages for _, message in edge.on_page(0, page)]


def _once(windows: Windows, values: Values, messages: Sequence[Message]) -> None:
    given_all(_opened(windows, values), messages)


def _opened(windows: Windows, values: Values) -> list[Operator]:
    return [WindowAggregate(windows, {"value": kind_of(values)[0]}).opened(SCHEMA)]


def _buffering() -> BufferingAggregate:
    return BufferingAggregate(WINDOWS["time"], {"value": Median("v")})


def _alike(spent: dict[str, dict[str, float]]) -> Claim:
    fixed = [of for kind, of in spent.items() if kind not in HOLISTIC]
    ratios = {name: max(of := [s[name] for s in fixed]) / min(of) for name in WINDOWS}
    return Timed(
        "aggregates of fixed size take at most 2.5 times as long as each other, over time and over counts",
        all(ratio <= 2.5 for ratio in ratios.values()) if len(fixed) > 1 else None,
        {
            "slowest over fastest": {name: round(ratio, 1) for name, ratio in ratios.items()},
            "ns a tuple": _in_ns(spent),
        },
    )


def _inverted(spent: dict[str, dict[str, float]]) -> Claim:
    """Means over the kinds of either sort, of windows of counts."""
    both = [[spent[kind]["count"] for kind in kinds if kind in spent] for kinds in (INVERTIBLE, OTHERS)]
    invertible, others = (float(np.mean(times)) if times else float("nan") for times in both)
    return Timed(
        "not as in the paper: over counts those that cannot be inverted take at most 1.5 times as long as the others",
        others <= 1.5 * invertible if others > 0 and invertible > 0 else None,
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
        "values": Parameter(1000, "how many different values there are", least=1),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end",),
    claims=claims,
    sweep=Sweep("kind", tuple(KINDS)),
)
