"""Windows that slide by the tuple: a sorted fold on the bound, bins, and a sort (thesis 5.1.5, fig. 6-5 to 6-7).

For each tuple the count and the sum of those of the last ``RANGE`` milliseconds.  A late tuple adds a window, and is in
those of tuples behind it.  Swept is the share of tuples that are late.

    fold       tuples that no bound has passed are held; then they are sorted and folded in time order, and two
               stacks over their times make the windows
    bins       two bins a tuple, where it comes and where it goes; a tuple is added to all bins in its reach, and gone
    sorted     the stream is sorted first, as an engine in order has to: the same fold, whose tuples wait in the sort

The thesis leaves open how bins compare with keeping tuples.  Bins hold no tuple, but a partial aggregate for each end
of all tuples from the bound on to a RANGE behind the newest: more of them than the fold has tuples and partial
aggregates together.  A tuple costs as many additions as there are bins in a RANGE, the fold one and at most three
combinations.  CPU times are of the operator alone, the best of three in turns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from oop_engine import Linear, Page, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.operator import Operator
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import COMPLETE_AT, Claim, Parameter, Scenario, Sweep, Timed, Values, Variant
from oop_engine.operators.aggregates import Count, Sum
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import Strategy, WindowAggregate
from oop_engine.operators.windows import SlideByTuple
from oop_engine.scenarios.measured import cpu_s
from oop_engine.scenarios.thesis import SOURCE

__all__ = ["SCENARIO"]

SCHEMA = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "ms")
STEP, LATE_BY, EVERY, PAGE = 10, 1000, 500, 4096  # ms between tuples, of lateness and granularity; tuples
FOLD, BINS, SORTED = "fold", "bins", "sorted"
RANGES = 500, 2000, 8000  # ms, whose times are compared


def given(values: Values) -> pa.Table:
    """Return the tuples as they arrive; no two have one time."""
    draw, number = np.random.default_rng(values["seed"]), values["tuples"]
    ts = np.arange(number) * STEP + draw.integers(0, STEP, (number,))
    late = np.where(draw.random(number) < values["late"] / 100, draw.integers(0, LATE_BY, (number,)), 0)
    order = np.argsort(ts + late, kind="stable")
    return pa.table({"ts": ts[order], "v": draw.integers(0, 100, (number,)), "arrival": (ts + late)[order]})


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return the tuples in pages."""
    found = given(values)
    columns = {name: found.column(name).to_numpy() for name in SCHEMA.names}
    whole = Page.of(SCHEMA, columns, arrival=found.column("arrival").to_numpy())
    return {"tuples": [whole.slice(at, min(at + PAGE, len(whole))) for at in range(0, len(whole), PAGE)]}


def query(range_: int, name: str) -> WindowAggregate:
    """Return the operator of a plan."""
    strategy: Strategy = "bins" if name == BINS else "auto"
    return WindowAggregate(SlideByTuple(range_), {"n": Count(), "total": Sum("v")}, strategy=strategy)


def variants(values: Values) -> list[Variant]:
    """Return the plans."""
    fold, bins = (_plan(values, name) for name in (FOLD, BINS))
    return [Variant(SORTED, "in", in_order(fold)), Variant(FOLD, "out", fold), Variant(BINS, "out", bins)]


def _plan(values: Values, name: str) -> Graph:
    graph = Graph(name)
    edge = Punctuate(BoundedDisorder(LATE_BY), granularity=EVERY)
    tuples = graph.add("progress", edge, graph.source("tuples", SCHEMA))
    graph.sink("results", graph.add("windows", query(values["range"], name), tuples))
    return graph


def truth(values: Values) -> pa.Table:
    """Return the answer from the definition: sums of the sorted tuples up to both ends of a window, subtracted."""
    found = given(values).sort_by("ts")
    ts, until = found.column("ts").to_numpy(), np.r_[0, np.cumsum(found.column("v").to_numpy())]
    high = np.arange(1, ts.size + 1)
    low = np.searchsorted(ts, ts - values["range"], "right")
    columns = {"window_start": ts + 1 - values["range"], "window_end": ts + 1}
    arrived = np.maximum.accumulate(found.column("arrival").to_numpy())
    return pa.table({**columns, "n": high - low, "total": until[high] - until[low], COMPLETE_AT: arrived})


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on state and on work."""
    fold, bins, sorted_ = ([run for run in runs if run.variant == name] for name in (FOLD, BINS, SORTED))
    return [_held(fold, sorted_), _binned(fold, bins), _work(fold[0].parameters)]


def _held(fold: list[Run], sorted_: list[Run]) -> Claim:
    most = (LATE_BY + EVERY) // STEP + 20
    held = {
        f"late {run.parameters['late']} %": {FOLD: run.peak_tuples, SORTED: other.peak_tuples}
        for run, other in zip(fold, sorted_, strict=True)
    }
    return Claim(
        f"tuples held are at most {most}, those that no bound has passed, at any share of late ones; of a sort as well",
        all(max(of.values()) <= most for of in held.values()),
        held,
    )


def _binned(fold: list[Run], bins: list[Run]) -> Claim:
    """A tuple's bins are there from its time to a range behind it, and until a bound has passed them."""
    range_ = fold[0].parameters["range"]
    most = 2 * (range_ + LATE_BY + EVERY) // STEP + 40
    figures = {
        f"late {run.parameters['late']} %": {
            "bins": other.peak_partials,
            "tuples and partial aggregates of the fold": run.peak_tuples + run.peak_partials,
        }
        for run, other in zip(fold, bins, strict=True)
    }
    return Claim(
        f"bins hold no tuple, and at most {most} partial aggregates, two a tuple of a range and of the disorder; "
        "the fold holds fewer tuples and partial aggregates together",
        all(run.peak_tuples == 0 for run in bins)
        and all(
            run.peak_tuples + run.peak_partials < other.peak_partials <= most
            for run, other in zip(fold, bins, strict=True)
        ),
        figures,
    )


def _work(values: Values) -> Claim:
    messages: list[Message] = []
    for page in feeds({**values, "tuples": 10_000})["tuples"]:
        assert isinstance(page, Page)
        messages += [page, Linear(int(page.times.max()) - LATE_BY)]
    made = {(name, range_): _opened(range_, name) for name in (FOLD, BINS) for range_ in RANGES}
    spent = cpu_s({str(key): of for key, of in made.items()}, messages)
    figures = {
        name: {range_: round(spent[str((name, range_))] * 1e9 / 10_000) for range_ in RANGES}
        for name in (FOLD, BINS)
    }
    grown = {name: of[RANGES[-1]] / of[RANGES[0]] for name, of in figures.items()}
    return Timed(
        f"from a range of {RANGES[0]} ms to one of {RANGES[-1]} ms the time of bins grows 5 times or more, that of the "
        "fold less than 3 times; at the longest the fold is 10 times as fast",
        grown[BINS] >= 5 and grown[FOLD] < 3 and figures[BINS][RANGES[-1]] >= 10 * figures[FOLD][RANGES[-1]],
        {"ns a tuple by range": figures},
    )


def _opened(range_: int, name: str) -> Callable[[], list[Operator]]:
    return lambda: [query(range_, name).opened(SCHEMA)]


SCENARIO = Scenario(
    name="slide_by_tuple",
    source=SOURCE,
    title="A window for each tuple, over tuples of which some are late: fold on the bound, bins, and sort",
    about=__doc__,
    parameters={
        "late": Parameter(5, "percent of the tuples that are late, by up to a second", least=0),
        "range": Parameter(1000, "length of a window, ms", least=10),
        "tuples": Parameter(20_000, "length of the trace, one in 10 ms", least=1000),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end",),
    claims=claims,
    sweep=Sweep("late", (0, 2, 5, 10), "%"),
)
