"""Time from a punctuation to the results it releases, by the number of slices of a window (Scotty, figure 16).

The greatest value of the last ``slices`` slices, a tuple each, and a punctuation that closes one window at a time.

    stacks    panes in a ring; two stacks put windows together: a turn of the stacks goes through all slices of a
              window, once in as many windows (lazy)
    WID       a partial aggregate for each window: a result is there when its window closes, and a tuple costs as much
              as there are windows

As in the paper a result put together from all slices takes longer the more there are.  Not as there: that
happens once a window's length, for stacks keep the combined values; all other results take as long at any number of
slices, as those of WID do.  The engine has no tree.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from oop_engine import Linear, Message, Page, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.lab.compare import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Values, Variant
from oop_engine.operators.aggregates import Max
from oop_engine.operators.window_aggregate import Strategy, WindowAggregate
from oop_engine.operators.windows import Sliding
from oop_engine.scenarios.scotty import SOURCE

__all__ = ["SCENARIO"]

SCHEMA = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "ms")
WAYS: dict[str, Strategy] = {"stacks": "panes", "WID": "windows"}
CLOSED = 200  # windows that are closed one by one, at least


def given(values: Values) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the values of the slices, a tuple each."""
    return np.random.default_rng(values["seed"]).integers(0, 1 << 30, (values["slices"] + CLOSED,))


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return a page of all tuples, and a punctuation behind each of the last ones."""
    found = given(values)
    ts = np.arange(found.size)
    page = Page.of(SCHEMA, {"ts": ts, "v": found}, arrival=np.full(ts.size, ts.size))
    return {"tuples": [page, *(Linear(bound) for bound in range(values["slices"], found.size + 1))]}


def query(name: str, values: Values) -> WindowAggregate:
    """Return the query by one of the ways."""
    return WindowAggregate(Sliding(values["slices"], 1), {"most": Max("v")}, strategy=WAYS[name])


def variants(values: Values) -> list[Variant]:
    """Return the plans."""
    found = []
    for name in WAYS:
        graph = Graph(name)
        graph.sink("results", graph.add("most", query(name, values), graph.source("tuples", SCHEMA)))
        found.append(Variant(name, "out", graph))
    return found


def truth(values: Values) -> pa.Table:
    """Return the answer from the definition: each window is cut out of the column and looked at."""
    found, range_ = given(values), values["slices"]
    ends = np.arange(1, found.size + range_)
    cuts = zip(np.maximum(ends - range_, 0).tolist(), np.minimum(ends, found.size).tolist(), strict=True)
    most = [int(found[start:stop].max()) for start, stop in cuts]
    return pa.table({"window_start": ends - range_, "window_end": ends, "most": most})


def waits(values: Values) -> dict[str, float]:
    """Return the median microseconds from a punctuation to the one result that it releases."""
    page, *bounds = feeds(values)["tuples"]
    return {name: _wait(query(name, values), page, bounds) for name in WAYS}


def _wait(of: WindowAggregate, page: Message, bounds: list[Message]) -> float:
    operator = of.opened(SCHEMA)
    assert isinstance(page, Page)
    list(operator.on_page(0, page))
    spent = []
    for bound in bounds:
        assert isinstance(bound, Linear)
        start = time.perf_counter()
        list(operator.on_punctuation(0, bound))
        spent.append(time.perf_counter() - start)
    return float(np.median(spent[1:])) * 1e6  # the first one closes all windows before


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on the time to a result."""
    points = {run.parameters["slices"]: run.parameters for run in runs}
    found = {slices: waits(values) for slices, values in sorted(points.items())}
    medians = [of["stacks"] for of in found.values()]
    return [
        Claim(
            "not as in the paper: the median result takes at most 5 times as long at the most slices as at the fewest",
            medians[-1] <= 5 * medians[0],
            {
                f"{slices} slices": {name: f"{us:.0f} us" for name, us in of.items()}
                for slices, of in found.items()
            },
        )
    ]


SCENARIO = Scenario(
    name="slice_latency",
    source=SOURCE,
    title="Time from a punctuation to a result, by the slices of a window: two stacks and WID",
    about=__doc__,
    parameters={
        "slices": Parameter(1000, "slices of a window", least=1),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end",),
    claims=claims,
    sweep=Sweep("slices", (100, 1000, 3000)),
)
