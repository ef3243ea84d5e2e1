"""A sliding maximum over the last 4000 rows of a stream in order: buffering, WID, panes (thesis 6.1.5, fig. 6-10).

The first experiment of table 6-1: max, RANGE 4000 rows, SLIDE between 1 and 4000 rows, and no disorder: the number of
the row is the windowing attribute.  SLIDE 1 takes as long as all others together, and is had by ``--set slide=1``.
Buffering keeps the tuples of a window and folds all of them when it is complete; WID folds a tuple into the partial
aggregates of its windows, and keeps none.  Both fold each tuple as often as it is in a window, RANGE / SLIDE times, so
all of the difference is in how that is done; panes fold it once, and three partial aggregates a slide at most.  A
maximum that counts its combinations shows that, on the first tuples, whatever else the machine does.

As in the thesis WID takes less CPU time than buffering wherever windows overlap, and the larger RANGE / SLIDE is the
more so.  Panes, which the thesis compares with WID only (fig. 6-15), take less than either.  Times are CPU times of
the operator alone, the least of three turns or more; the thesis took the median of eight runs of a whole query.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine import Linear, Page, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.operator import Operator
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import COMPLETE_AT, Claim, Parameter, Scenario, Sweep, Timed, Values, Variant
from oop_engine.operators.aggregates import Arrays, Max, UserDefined
from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import Strategy, WindowAggregate
from oop_engine.operators.windows import Sliding
from oop_engine.scenarios.enough import every
from oop_engine.scenarios.measured import cpu_s, given_all
from oop_engine.scenarios.thesis import SOURCE

__all__ = ["SCENARIO", "maximum"]

SCHEMA = Schema({"row": pa.int64(), "v": pa.int32()}, "row", "rows")
PAGE = 2000  # rows from one punctuation to the next
COUNTED = 1_000_000  # combinations that are counted, in some seconds
BUFFERING, WID, PANES = "buffering", "WID", "panes"


def given(values: Values) -> NDArray[np.int64]:
    """Return the values of the rows."""
    return np.random.default_rng(values["seed"]).integers(0, 1 << 30, (values["tuples"],))


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return the rows in order, punctuation behind each page."""
    rows = np.arange(values["tuples"])
    whole = Page.of(SCHEMA, {"row": rows, "v": given(values).astype(np.int32)}, arrival=rows)
    found: list[Message] = []
    for at in range(0, len(whole), PAGE):
        stop = min(at + PAGE, len(whole))
        found += [whole.slice(at, stop), Linear(stop)]
    return {"rows": found}


def maximum(values: Values) -> dict[str, Operator]:
    """Return the three operators."""
    return {variant.name: variant.graph.plan().operator("most") for variant in variants(values)}


def variants(values: Values) -> list[Variant]:
    """Return the plan of each strategy, and that in order."""
    free = {WID: _plan(values, "windows"), PANES: _plan(values, "panes")}
    return [
        Variant(BUFFERING, "in", in_order(free[WID])),
        *(Variant(name, "out", graph) for name, graph in free.items()),
    ]


def _plan(values: Values, strategy: Strategy) -> Graph:
    graph, windows = Graph(f"maximum by {strategy}"), Sliding(values["range"], values["slide"])
    most = WindowAggregate(windows, {"most": Max("v")}, strategy=strategy)
    graph.sink("results", graph.add("most", most, graph.source("rows", SCHEMA)))
    return graph


def truth(values: Values) -> pa.Table:
    """Return the answer from the definition: each window is cut out of the column and looked at."""
    found, range_, slide = given(values), values["range"], values["slide"]
    ends = np.arange(1, (found.size - 1 + range_) // slide + 1) * slide
    starts, stops = np.maximum(ends - range_, 0), np.minimum(ends, found.size)
    most = [int(found[start:stop].max()) for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
    columns = {"window_start": ends - range_, "window_end": ends, "most": pa.array(most, pa.int32())}
    return pa.table({**columns, COMPLETE_AT: stops - 1})


def combined(values: Values, way: str) -> float:
    """Return how often a way combines two values for the maximum, a tuple: a maximum that counts stands in for it."""
    count = 0

    def larger(a: Arrays, b: Arrays) -> Arrays:
        nonlocal count
        count += a[0].size
        return (np.maximum(a[0], b[0]),)

    most = UserDefined(
        lambda v: (v.to_numpy(),), larger, lambda state: state[0], ("v",), ("int32",), pa.int32()
    )
    windows = Sliding(values["range"], values["slide"])
    ways: dict[str, Operator] = {
        BUFFERING: BufferingAggregate(windows, {"most": most}),
        WID: WindowAggregate(windows, {"most": most}, strategy="windows"),
        PANES: WindowAggregate(windows, {"most": most}, strategy="panes"),
    }
    given_all([ways[way].opened(SCHEMA)], feeds(values)["rows"])
    tuples: int = values["tuples"]
    return count / tuples


BySlide = dict[int, dict[str, float]]


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on state, and on times by slide."""
    points = {run.parameters["slide"]: run.parameters for run in runs}
    spent = {slide: _spent(values) for slide, values in sorted(points.items())}
    range_ = runs[0].parameters["range"]
    found = [_state(runs), _folded(list(points.values())), _overlapping(spent, range_)]
    if len(spent) > 1:
        found.append(_rises(spent))
    return found


def _spent(values: Values) -> dict[str, float]:
    made = {
        name: lambda name=name: [maximum(values)[name].opened(SCHEMA)] for name in (BUFFERING, WID, PANES)
    }
    return cpu_s(made, feeds(values)["rows"])


def _state(runs: list[Run]) -> Claim:
    held = {
        name: max(run.peak_tuples for run in runs if run.variant == name) for name in (BUFFERING, WID, PANES)
    }
    range_, slide = runs[0].parameters["range"], min(run.parameters["slide"] for run in runs)
    return Claim(
        f"buffering keeps the tuples of a window, {range_} but for a slide, and those of a page; WID and panes keep "
        "none",
        range_ - slide <= held[BUFFERING] <= range_ + PAGE and held[WID] == held[PANES] == 0,
        held,
    )


def _folded(points: list[Values]) -> Claim:
    """Return the claim on work that is counted: the combinations of each way, in windows of which few overlap."""
    some = [{**values, "tuples": values["range"] + PAGE} for values in points]
    some = [values for values in some if values["range"] % values["slide"] == 0]
    few = [values for values in some if values["range"] // values["slide"] * values["tuples"] <= COUNTED]
    found = {
        values["slide"]: {way: round(combined(values, way), 3) for way in (BUFFERING, WID, PANES)}
        for values in few
    }
    pairs = {v["slide"]: (v["range"] - 1 - v["range"] / v["tuples"]) / v["slide"] for v in few}
    exact = [of[WID] == of[BUFFERING] and abs(of[WID] - pairs[slide]) < 0.01 for slide, of in found.items()]
    panes = [of[PANES] <= 1 + 3 / slide for slide, of in found.items()]
    return Claim(
        "buffering and WID combine RANGE / SLIDE times a tuple, but for the first of each window; panes at most once, "
        "and three times a slide",
        every([*exact, *panes]),
        {"combinations a tuple, by slide": found},
    )


def _overlapping(spent: BySlide, range_: int) -> Claim:
    ratios = _ratios(spent)
    return Timed(
        "where windows overlap WID takes at most 0.8 of the CPU time of buffering, and panes at most 0.8 of that",
        every(
            ratios[slide] < 0.8 and of[PANES] < 0.8 * of[WID] for slide, of in spent.items() if slide < range_
        ),
        {"WID over buffering": ratios, "panes over WID": _ratios(spent, PANES, WID)},
    )


def _rises(spent: BySlide) -> Claim:
    ratios = list(_ratios(spent).values())
    return Timed(
        "the ratio of WID to buffering falls as RANGE / SLIDE rises: from the largest slide to the smallest by half, "
        "and from each to the next, to a tenth",
        ratios[0] < ratios[-1] / 2 and all(a <= 1.1 * b for a, b in pairwise(ratios)),
        {"WID over buffering": _ratios(spent)},
    )


def _ratios(spent: BySlide, one: str = WID, other: str = BUFFERING) -> dict[int, float]:
    return {slide: round(of[one] / of[other], 2) for slide, of in spent.items()}


SCENARIO = Scenario(
    name="rows_wid",
    source=SOURCE,
    title="A sliding maximum of the last 4000 rows, in order: buffering, WID and panes",
    about=__doc__,
    parameters={
        "slide": Parameter(40, "after how many rows the next window ends", least=1),
        "range": Parameter(4000, "how many rows a window has", least=1),
        "tuples": Parameter(20_000, "length of the trace", least=4000),
        "seed": Parameter(0, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end",),
    claims=claims,
    sweep=Sweep("slide", (4, 40, 400, 4000), "rows"),
)
