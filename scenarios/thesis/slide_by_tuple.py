"""Windows that slide by the tuple: a sorted fold on the bound, bins, and a sort (thesis 5.1.5, fig. 6-5 to 6-7).

For each tuple the count and the sum of those of the last ``RANGE`` milliseconds.  A late tuple adds a window, and is in
those of tuples behind it.  Swept is the share of tuples that are late.

    fold       tuples that no bound has passed are held; then they are sorted and folded in time order, and two
               stacks over their times make the windows
    sorted     the stream is sorted first, as an engine in order has to: the same fold, whose tuples wait in the sort

The thesis keeps two bins a tuple, where a window may begin and end, and adds a tuple to all bins in its reach: no tuple
is held, but the work is as many bins a tuple as a window has.  It leaves open how that compares with keeping tuples.
Here bins are counted, by the algorithm: at 100 tuples a window it takes about 100 additions a tuple, the fold one
and at most three combinations.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from oop_engine import Message, Page, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.lab.compare import Run
from oop_engine.lab.scenario import COMPLETE_AT, Claim, Parameter, Scenario, Sweep, Values, Variant
from oop_engine.operators.aggregates import Count, Sum
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import SlideByTuple
from oop_engine.scenarios.thesis import SOURCE

__all__ = ["SCENARIO", "bins"]

SCHEMA = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "ms")
STEP, LATE_BY, EVERY, PAGE = 10, 1000, 500, 4096  # ms between tuples, of lateness and granularity; tuples
FOLD, SORTED = "fold", "sorted"


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


def variants(values: Values) -> list[Variant]:
    """Return the plans."""
    graph = Graph(FOLD)
    edge = Punctuate(BoundedDisorder(LATE_BY), granularity=EVERY)
    tuples = graph.add("progress", edge, graph.source("tuples", SCHEMA))
    query = WindowAggregate(SlideByTuple(values["range"]), {"n": Count(), "total": Sum("v")})
    graph.sink("results", graph.add("windows", query, tuples))
    return [Variant(SORTED, "in", in_order(graph)), Variant(FOLD, "out", graph)]


def truth(values: Values) -> pa.Table:
    """Return the answer from the definition: sums of the sorted tuples up to both ends of a window, subtracted."""
    found = given(values).sort_by("ts")
    ts, until = found.column("ts").to_numpy(), np.r_[0, np.cumsum(found.column("v").to_numpy())]
    high = np.arange(1, ts.size + 1)
    low = np.searchsorted(ts, ts - values["range"], "right")
    columns = {"window_start": ts + 1 - values["range"], "window_end": ts + 1}
    arrived = np.maximum.accumulate(found.column("arrival").to_numpy())
    return pa.table({**columns, "n": high - low, "total": until[high] - until[low], COMPLETE_AT: arrived})


def bins(values: Values) -> dict[str, float]:
    """Return by the algorithm of figure 6-7 how many bins are kept at most, and added to for each tuple.

    A tuple has a bin where its window ends, and one where it leaves the windows of others.  Those go that the
    bound has passed.  Counted over the first tuples.
    """
    found = given(values).slice(0, min(values["tuples"], 5000))
    ts, range_ = found.column("ts").to_numpy(), values["range"]
    kept, most, added = np.empty(0, np.int64), 0, 0
    newest = np.maximum.accumulate(ts)
    for time, latest in zip(ts.tolist(), newest.tolist(), strict=True):
        low, high = np.searchsorted(kept, [time, time + range_])
        added += int(high - low) + 1
        kept = np.sort(np.append(kept, [time, time + range_]))
        kept = kept[np.searchsorted(kept, latest - LATE_BY) :]
        most = max(most, kept.size)
    return {"kept": most, "a tuple": added / ts.size}


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on state and on work."""
    fold, sorted_ = ([run for run in runs if run.variant == name] for name in (FOLD, SORTED))
    return [_held(fold, sorted_), _work(fold)]


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


def _work(fold: list[Run]) -> Claim:
    counted = {run.parameters["late"]: bins(run.parameters) for run in fold}
    figures = {
        f"late {run.parameters['late']} %": {
            "bins kept": counted[run.parameters["late"]]["kept"],
            "bins a tuple": round(counted[run.parameters["late"]]["a tuple"], 1),
            "partial aggregates of the fold": run.peak_partials,
        }
        for run in fold
    }
    return Claim(
        "bins hold no tuple, but each is added to nearly as many bins as a window has tuples; the fold keeps fewer "
        "partial aggregates and tuples together than there are bins",
        all(of["a tuple"] > 0.9 * fold[0].parameters["range"] / STEP for of in counted.values())
        and all(
            run.peak_partials + run.peak_tuples < counted[run.parameters["late"]]["kept"] for run in fold
        ),
        figures,
    )


SCENARIO = Scenario(
    name="slide_by_tuple",
    source=SOURCE,
    title="A window for each tuple, over tuples of which some are late: fold on the bound, and sort",
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
