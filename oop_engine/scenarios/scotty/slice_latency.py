"""Time from a punctuation to the results it releases, by the number of slices of a window (Scotty, figure 16).

The greatest value of the last ``slices`` slices, a tuple each, and a punctuation that closes one window at a time.

    slices    a ring of slices, which two stacks go through whenever windows close (lazy)
    tree      the same ring, and slices combined by twos, by fours... (eager)
    panes     two stacks that are kept: a turn of them goes through all slices of a window, once in as many windows
    WID       a partial aggregate for each window: a result is there when its window closes, and a tuple costs as much
              as there are windows

Beside them sums, as differences of running sums (prefix), and the median, whose slices are lists of values.

As in the paper a result put together from all slices takes longer the more there are, some 20 times as long from 1000
to 100,000, and one from a tree hardly.  Not as there: stacks that are kept take as long at any number of slices, as WID
does, without the tree's memory; and the median takes longer than the greatest value by a factor only, for it merges
lists.  Below 1000 slices there is little to see, for a punctuation costs 0.1 to 0.2 ms whatever it closes.  WID stays
out above 10,000 slices: each tuple would go into more windows than that.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from oop_engine import Linear, Page, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Timed, Values, Variant
from oop_engine.operators.aggregates import Max, Median, Sum
from oop_engine.operators.window_aggregate import Assembly, Strategy, WindowAggregate
from oop_engine.operators.windows import Sliding
from oop_engine.scenarios.enough import every
from oop_engine.scenarios.measured import TURNS
from oop_engine.scenarios.scotty import SOURCE
from oop_engine.system import stopwatch

__all__ = ["SCENARIO"]

SCHEMA = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "ms")
WAYS: dict[str, tuple[Strategy, Assembly]] = {
    "slices": ("auto", "stacks"), "tree": ("auto", "tree"), "panes": ("panes", "auto"), "WID": ("windows", "auto"),
}  # fmt: skip
DEEP = 10_000  # slices from which on stacks take longer than all that a punctuation costs
FAR, APART = 1000, 100  # slices, and how many times as many they are compared with
MOST = 10_000  # windows that a tuple goes into, where it goes into each
MEDIAN = 1000  # slices that it is taken of, at most
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
    strategy, assembly = WAYS[name]
    windows = Sliding(values["slices"], 1)
    return WindowAggregate(windows, {"most": Max("v")}, strategy=strategy, assembly=assembly)


def ways(values: Values) -> list[str]:
    """Return the names of the ways."""
    return [name for name in WAYS if name != "WID" or values["slices"] <= MOST]


def others(values: Values) -> dict[str, WindowAggregate]:
    """Return queries for other aggregates, each by its own way."""
    windows = Sliding(values["slices"], 1)
    found = {"prefix, of sums": WindowAggregate(windows, {"sum": Sum("v")}, assembly="prefix")}
    if values["slices"] <= MEDIAN:
        found["median"] = WindowAggregate(windows, {"median": Median("v")})
    return found


def variants(values: Values) -> list[Variant]:
    """Return the plans."""
    found = []
    for name in ways(values):
        graph = Graph(name)
        graph.sink("results", graph.add("most", query(name, values), graph.source("tuples", SCHEMA)))
        found.append(Variant(name, "out", graph))
    return found


def truth(values: Values) -> pa.Table:
    """Return the answer from the definition: windows at an end grow by a tuple, others are cut out of the column."""
    found, range_ = given(values), values["slices"]
    ends = np.arange(1, found.size + range_)
    first, last = np.maximum.accumulate(found), np.maximum.accumulate(found[::-1])[::-1]
    full = [int(found[end - range_ : end].max()) for end in range(range_, found.size)]
    most = [*first[: range_ - 1].tolist(), *full, *last[found.size - range_ :].tolist()]
    return pa.table({"window_start": ends - range_, "window_end": ends, "most": most})


def waits(values: Values) -> dict[str, float]:
    """Return the median microseconds from a punctuation to the one result that it releases."""
    return {name: float(np.median(each)) for name, each in each_wait(values).items()}


def each_wait(values: Values) -> dict[str, list[float]]:
    """Return the microseconds from each punctuation to its result: the least of ``TURNS``, which go round by name.

    The same bound makes the same result in each turn, so work that only some results wait for stays in it; other work
    on the machine does not.
    """
    page, *bounds = feeds(values)["tuples"]
    queries = {name: query(name, values) for name in ways(values)} | others(values)
    turns = [{name: _waits(of, page, bounds) for name, of in queries.items()} for _ in range(TURNS)]
    return {name: np.min([turn[name] for turn in turns], axis=0).tolist() for name in queries}


def _waits(of: WindowAggregate, page: Message, bounds: list[Message]) -> list[float]:
    operator = of.opened(SCHEMA)
    assert isinstance(page, Page)
    list(operator.on_page(0, page))
    spent = []
    for bound in bounds:
        assert isinstance(bound, Linear)
        start = stopwatch.cpu()
        list(operator.on_punctuation(0, bound))
        spent.append(stopwatch.cpu() - start)
    return [seconds * 1e6 for seconds in spent[1:]]  # the first one closes all windows before


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on the time to a result."""
    points = {run.parameters["slices"]: run.parameters for run in runs}
    each = {slices: each_wait(values) for slices, values in sorted(points.items())}
    found = {slices: {name: float(np.median(us)) for name, us in of.items()} for slices, of in each.items()}
    figures = {
        f"{slices} slices": {name: f"{us:.0f} us" for name, us in of.items()} for slices, of in found.items()
    }
    grows = {name: _growth(name, found) for name in WAYS}
    claimed: list[Claim] = [
        Timed(
            "from the fewest slices to the most the median result takes at most 4 times as long by a tree, by panes "
            "and by WID",
            all(grows[name] <= 4 for name in ("tree", "panes", "WID")) if len(found) > 1 else None,
            figures,
        ),
        _medians(found),
        _turns(each),
    ]
    if max(found) >= DEEP:
        claimed.append(
            Timed(
                "as in the paper: by stacks over all slices it grows at least twice as much as by the tree, and takes "
                "longer",
                grows["slices"] >= 2 * grows["tree"]
                and found[max(found)]["tree"] < found[max(found)]["slices"],
                {name: f"{ratio:.1f}" for name, ratio in grows.items()},
            )
        )
    if {FAR, FAR * APART} <= found.keys():
        far = {name: found[FAR * APART][name] / found[FAR][name] for name in ("slices", "tree", "panes")}
        claimed.append(
            Timed(
                f"from {FAR} slices to {APART} times as many it grows at least 12 times by stacks over all slices, at "
                "most 4 times by the tree",
                far["slices"] >= 12 and far["tree"] <= 4,
                {name: f"{ratio:.1f}" for name, ratio in far.items()},
            )
        )
    return claimed


def _medians(found: dict[int, dict[str, float]]) -> Claim:
    """Figure 16c: an aggregate that needs all values."""
    both = {slices: (of["median"], of["panes"]) for slices, of in found.items() if "median" in of}
    return Timed(
        "the median takes longer than the greatest value by panes, with any number of slices: twice or more",
        every(median >= 2 * greatest for median, greatest in both.values()),
        {
            f"{slices} slices": {"median": f"{m:.0f} us", "greatest": f"{g:.0f} us"}
            for slices, (m, g) in both.items()
        },
    )


def _turns(each: dict[int, dict[str, list[float]]]) -> Claim:
    """See the slow ones, which medians hide: by panes a front is made anew once a window, and one result waits."""
    worst = {
        slices: {
            name: float(np.percentile(of[name], 99)) / float(np.median(of[name]))
            for name in ("tree", "panes")
        }
        for slices, of in each.items()
    }
    return Timed(
        "of a hundred results the slowest but one takes at most 5 times as long as the median one, by a tree and by "
        "panes",
        all(ratio <= 5 for of in worst.values() for ratio in of.values()),
        {f"{s} slices": {name: round(ratio, 1) for name, ratio in of.items()} for s, of in worst.items()},
    )


def _growth(way: str, found: dict[int, dict[str, float]]) -> float:
    """Return how many times as long a result takes with the most slices that a way is tried with as with the fewest."""
    by_slices = [of[way] for of in found.values() if way in of]
    return by_slices[-1] / by_slices[0]


SCENARIO = Scenario(
    name="slice_latency",
    source=SOURCE,
    title="Time from a punctuation to a result, by the slices of a window: slices, tree, panes, WID",
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
    sweep=Sweep("slices", (100, 1000, 10_000, 100_000)),
)
