"""The mean of the last 64 seconds of a spiky stream, by slide (Hammer Slide, figure 11).

The load of a cluster: from nothing to thousands of events a second, made.  Windows of 64 seconds slide by 1 to 64.

    recompute    the tuples of a window are kept, in order, and looked at when it is complete: not incremental
    WID          a tuple goes into the partial aggregates of all windows that it is in
    two stacks   a tuple goes into a pane as long as a slide, and two stacks make windows of panes

As in the paper two stacks are sooner than recomputing wherever windows overlap, and the more they do the more; in the
paper by 1.2 to 4.3 times.  Not as there: WID and recomputing are no sooner than two stacks at any slide, for
panes are reduced page by page whatever the spikes.  CPU times are those of the operators alone.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from oop_engine import Linear, Operator, Page, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Timed, Values, Variant
from oop_engine.operators.aggregates import Avg, Count
from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding
from oop_engine.scenarios.enough import every
from oop_engine.scenarios.hammer import SOURCE
from oop_engine.scenarios.measured import cpu_s
from oop_engine.scenarios.truth import windows

__all__ = ["SCENARIO"]

SCHEMA = Schema({"ts": pa.int64(), "cpu": pa.int32()}, "ts", "ms")
RANGE, SECOND = 64_000, 1000
RECOMPUTE, WID, STACKS = "recompute", "WID", "two stacks"
ASKED = {"mean": Avg("cpu"), "n": Count()}
MEASURED = 100_000  # tuples from which on CPU times mean something


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return a page a second, whose size is that of a spike or nearly nothing, and its punctuation."""
    draw, found = np.random.default_rng(values["seed"]), list[Message]()
    sizes = np.minimum(draw.pareto(1.2, values["seconds"]) * values["rate"] / 4, 20 * values["rate"]).astype(
        int
    )
    for second, size in enumerate(sizes.tolist()):
        ts = np.sort(draw.integers(second * SECOND, (second + 1) * SECOND, (size,)))
        columns = {"ts": ts, "cpu": draw.integers(0, 1000, (size,)).astype(np.int32)}
        arrival = np.full(size, (second + 1) * SECOND)
        found += [Page.of(SCHEMA, columns, arrival), Linear((second + 1) * SECOND)]
    return {"events": found}


def operators(values: Values) -> dict[str, Operator]:
    """Return the operators."""
    asked = Sliding(RANGE, values["slide"] * SECOND)
    return {
        RECOMPUTE: BufferingAggregate(asked, ASKED),
        WID: WindowAggregate(asked, ASKED, strategy="windows"),
        STACKS: WindowAggregate(asked, ASKED, strategy="panes"),
    }


def variants(values: Values) -> list[Variant]:
    """Return a plan for each operator."""
    found = []
    for name, operator in operators(values).items():
        graph = Graph(name)
        graph.sink("results", graph.add("mean", operator, graph.source("events", SCHEMA)))
        found.append(Variant(name, "in" if name == RECOMPUTE else "out", graph))
    return found


def truth(values: Values) -> pa.Table:
    """Return the answer by brute force."""
    pages = [message for message in feeds(values)["events"] if isinstance(message, Page)]
    return windows(
        pa.Table.from_batches([page.batch for page in pages]),
        time="ts",
        arrival=np.concatenate([page.arrival for page in pages if page.arrival is not None]),
        range_=RANGE,
        slide=values["slide"] * SECOND,
        aggregates={"mean": ("cpu", "mean"), "n": ("ts", "count")},
    )


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on state, and on CPU times where the trace is long enough."""
    found = [_state(runs)]
    if runs[0].tuples >= MEASURED:
        found += _times({run.parameters["slide"]: run.parameters for run in runs})
    return found


def _state(runs: list[Run]) -> Claim:
    held = {f"{run.variant}, slide {run.parameters['slide']} s": run.peak_partials for run in runs}
    panes = {run.parameters["slide"]: run.peak_partials for run in runs if run.variant == STACKS}
    return Claim(
        "two stacks hold no tuple at any spike: a partial aggregate for each slide of a window, and at most one",
        all(kept <= RANGE // (slide * SECOND) + 1 for slide, kept in panes.items())
        and all(run.peak_tuples == 0 for run in runs if run.order == "out"),
        held,
    )


def _times(points: dict[int, Values]) -> list[Claim]:
    spent = {slide: _spent(values) for slide, values in sorted(points.items())}
    ratios = {
        name: {slide: round(of[name] / of[STACKS], 2) for slide, of in spent.items()}
        for name in (RECOMPUTE, WID)
    }
    figures = {f"{name} over two stacks": of for name, of in ratios.items()}
    overlapping = [slide for slide in spent if slide * SECOND <= RANGE // 4]
    return [
        Timed(
            "where windows overlap four times or more, two stacks are at least 1.2 times as fast as recomputing",
            every(ratios[RECOMPUTE][slide] > 1.2 for slide in overlapping),
            figures,
        ),
        Timed(
            "nothing is more than a tenth faster than two stacks at any slide, tumbling windows included",
            all(ratio > 0.9 for of in ratios.values() for ratio in of.values()),
            figures,
        ),
    ]


def _spent(values: Values) -> dict[str, float]:
    return cpu_s(
        {name: partial(_opened, values, name) for name in (RECOMPUTE, WID, STACKS)}, feeds(values)["events"]
    )


def _opened(values: Values, name: str) -> list[Operator]:
    return [operators(values)[name].opened(SCHEMA)]


SCENARIO = Scenario(
    name="hammer_time",
    source=SOURCE,
    title="The mean of the last 64 s of a spiky stream: recompute, WID and two stacks",
    about=__doc__,
    parameters={
        "slide": Parameter(4, "how often a window ends, s", least=1),
        "rate": Parameter(1000, "events a second, about, in the mean", least=1),
        "seconds": Parameter(300, "length of the trace", least=64),
        "seed": Parameter(3, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end",),
    claims=claims,
    sweep=Sweep("slide", (1, 4, 16, 64), "s"),
)
