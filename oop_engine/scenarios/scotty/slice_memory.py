"""Memory of a window by its slices and by its tuples, over time and over numbers of tuples (Scotty, figure 15).

A count and a sum of one window of many slices, a twentieth of the tuples late.  Swept are the slices at 20,000 tuples
a window, and the tuples at 500 slices; ``time 50/20000`` are windows of time of 50 slices and 20,000 tuples.

    time     windows of time; by slices, a partial aggregate each and no tuple, or in order with a buffer of tuples
    count    windows of numbers of tuples, in order of time; by slices, and the tuples that no bound has passed

As in the paper, slices of time take as many bytes as there are slices, whatever the tuples, and a buffer takes as many
as there are tuples.  Not as in the paper: its slices of counts keep all tuples, for a late one shifts those behind it
from slice to slice; ours are folded once the bound has passed them, so they keep the tuples of the disorder only.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from oop_engine import Page, Schema
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Graph
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Values, Variant
from oop_engine.operators.aggregates import Count, Sum
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import Strategy, WindowAggregate
from oop_engine.operators.windows import Sliding, TupleBased, Windows
from oop_engine.scenarios.scotty import SOURCE

__all__ = ["SCENARIO", "shape_of"]

SCHEMA = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "ms")
STEP = 20  # ms from a tuple to the next
LATE, LATE_BY = 0.05, 200  # share of the tuples, and by how many tuples' time at most
ASKED = {"n": Count(), "total": Sum("v")}
SLICES, BUFFER = "slices", "buffer"
PAGE = 1024
POINTS = ("50/20000", "500/20000", "5000/20000", "500/1000", "500/50000")


def shape_of(values: Values) -> tuple[str, int, int]:
    """Return the measure, and slices and tuples of a window.  Raises ``UsageError`` if the text cannot be read."""
    found = re.fullmatch(r"\s*(time|count) ([1-9]\d*)/([1-9]\d*)\s*", values["window"])
    if not found or int(found[3]) % int(found[2]):
        msg = (
            "slice_memory: window must read like 'time 500/50000' or 'count 500/50000', slices and tuples of a window, "
            f"the second a multiple of the first; got {values['window']!r}"
        )
        raise UsageError(msg)
    return found[1], int(found[2]), int(found[3])


def given(values: Values) -> pa.Table:
    """Return the tuples of two windows as they arrive; the time of each is its rank times ``STEP``."""
    _, _, tuples = shape_of(values)
    draw = np.random.default_rng(values["seed"])
    ts = np.arange(2 * tuples) * STEP
    late = np.where(draw.random(ts.size) < LATE, draw.integers(0, LATE_BY * STEP, ts.size), 0)
    order = np.argsort(ts + late, kind="stable")
    v = draw.integers(0, 1000, (ts.size,))
    return pa.table({"ts": ts[order], "v": v[order], "arrival": (ts + late)[order]})


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return the tuples in pages."""
    found = given(values)
    columns = {name: found.column(name).to_numpy() for name in SCHEMA.names}
    whole = Page.of(SCHEMA, columns, arrival=found.column("arrival").to_numpy())
    return {"tuples": [whole.slice(at, min(at + PAGE, len(whole))) for at in range(0, len(whole), PAGE)]}


def variants(values: Values) -> list[Variant]:
    """Return the plans: in order there are windows of time only."""
    measure, slices, tuples = shape_of(values)
    slide = tuples // slices
    if measure == "count":
        return [Variant(SLICES, "out", _plan(TupleBased(tuples, slide, order="time")))]
    timed = _plan(Sliding(tuples * STEP, slide * STEP))
    return [Variant(BUFFER, "in", in_order(timed)), Variant(SLICES, "out", timed)]


def _plan(windows: Windows) -> Graph:
    graph = Graph(SLICES)
    progress = Punctuate(BoundedDisorder(LATE_BY * STEP), granularity=LATE_BY * STEP)
    tuples = graph.add("progress", progress, graph.source("tuples", SCHEMA))
    strategy: Strategy = "auto" if isinstance(windows, TupleBased) else "panes"
    graph.sink("results", graph.add("windows", WindowAggregate(windows, ASKED, strategy=strategy), tuples))
    return graph


def truth(values: Values) -> pa.Table:
    """Return the answer from the definition: sums of the sorted tuples up to both ends of a window, subtracted."""
    measure, slices, tuples = shape_of(values)
    found = given(values).sort_by("ts")
    number, slide = found.num_rows, tuples // slices
    ends = np.arange(1, (number - 1 + tuples) // slide + 1) * slide
    starts, stops = np.maximum(ends - tuples, 0), np.minimum(ends, number)
    until = np.r_[0, np.cumsum(found.column("v").to_numpy())]
    scale = STEP if measure == "time" else 1
    columns = {"window_start": (ends - tuples) * scale, "window_end": ends * scale}
    if measure == "count":
        columns |= {"time_start": starts * STEP, "time_end": (stops - 1) * STEP + 1}
    return pa.table({**columns, "n": stops - starts, "total": until[stops] - until[starts]})


ByShape = dict[tuple[int, int], Run]
"""The run of each (slices, tuples)."""


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on bytes and tuples, as far as there are points to compare."""
    found: dict[tuple[str, str], ByShape] = {}
    for run in runs:
        measure, slices, tuples = shape_of(run.parameters)
        found.setdefault((measure, run.variant), {})[slices, tuples] = run
    timed, buffer, counted = (
        found.get(of, {}) for of in (("time", SLICES), ("time", BUFFER), ("count", SLICES))
    )
    claimed = [_partials(timed, counted)]
    if not timed:  # of one window, of counts
        return claimed
    few, many = _ends(timed)
    if many[1] > few[1]:
        claimed += [_flat(timed, few, many), _buffered(buffer, few, many)]
    if {few, many} <= counted.keys() and many[1] > few[1]:
        claimed.append(_late_only(counted, few, many))
    return claimed


def _ends(runs: ByShape) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the shapes of the fewest and of the most tuples, of the most frequent number of slices."""
    slices = [of for of, _ in runs]
    usual = max(slices, key=slices.count)
    tuples = sorted(n for of, n in runs if of == usual)
    return (usual, tuples[0]), (usual, tuples[-1])


def _partials(timed: ByShape, counted: ByShape) -> Claim:
    kept = {
        f"{measure} {_name(of)}": (run.peak_partials, _disorder(of))
        for measure, runs in (("time", timed), ("count", counted))
        for of, run in runs.items()
    }
    slices = {
        f"{measure} {_name(of)}": of[0]
        for measure, runs in (("time", timed), ("count", counted))
        for of in runs
    }
    return Claim(
        "partial aggregates kept are the slices of a window, and those of the disorder and of a page",
        all(slices[name] - 1 <= held <= slices[name] + more for name, (held, more) in kept.items()),
        {name: held for name, (held, _) in kept.items()},
    )


def _disorder(of: tuple[int, int]) -> int:
    """Return how many slices the tuples of the disorder, of a granule and of a page are in, and some at the ends."""
    slices, tuples = of
    return (2 * LATE_BY + PAGE) * slices // tuples + 4


def _flat(timed: ByShape, few: tuple[int, int], many: tuple[int, int]) -> Claim:
    ratio = timed[many].peak_state_bytes / timed[few].peak_state_bytes
    return Claim(
        f"bytes of slices of time do not grow with the tuples of a window, {few[1]} to {many[1]}",
        ratio <= 1,
        {_name(of): run.peak_state_bytes for of, run in timed.items()},
    )


def _buffered(buffer: ByShape, few: tuple[int, int], many: tuple[int, int]) -> Claim:
    each = {of: run.peak_state_bytes / (of[1] + 2 * LATE_BY) for of, run in buffer.items()}
    return Claim(
        "bytes of a buffer grow with the tuples: 24 for each of a window and of the disorder, to a fifth",
        all(0.8 * 24 <= bytes_ <= 1.2 * 24 for of, bytes_ in each.items() if of in (few, many)),
        {
            _name(of): {"bytes": run.peak_state_bytes, "a tuple": round(each[of], 1)}
            for of, run in buffer.items()
        },
    )


def _late_only(counted: ByShape, few: tuple[int, int], many: tuple[int, int]) -> Claim:
    return Claim(
        "not as in the paper: slices of counts hold only the tuples that no bound has passed, the same number at any "
        "length of a window, and take no more bytes",
        all(run.peak_tuples <= 2 * LATE_BY + PAGE for run in counted.values())
        and counted[many].peak_state_bytes <= 1.2 * counted[few].peak_state_bytes,
        {
            _name(of): {"tuples": run.peak_tuples, "bytes": run.peak_state_bytes}
            for of, run in counted.items()
        },
    )


def _name(of: tuple[int, int]) -> str:
    return f"{of[0]}/{of[1]}"


SCENARIO = Scenario(
    name="slice_memory",
    source=SOURCE,
    title="Memory of windows of many slices and many tuples, by time and by count",
    about=__doc__,
    parameters={
        "window": Parameter("time 500/20000", "measure, slices and tuples of a window"),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end",),
    claims=claims,
    sweep=Sweep("window", tuple(f"{measure} {point}" for measure in ("time", "count") for point in POINTS)),
)
