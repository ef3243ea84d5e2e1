"""Packets by pairs of addresses per minute, aggregated in two levels (thesis 8.3.3, Q8-1, fig. 8-7, table 8-1).

The first level is a table of fixed size near the source; partial aggregates that leave it are put together by the
second.  In order, all of a minute must have left before any of the next may: so when two groups of a new minute want
one place, which is soon, the table is emptied while packets wait in a ring, and are lost when that is full.  Out of
order an entry leaves when its place is needed (lazy), or for each 160 packets as well (slow), and two minutes later at
the latest: nothing ever waits.

How much each bears is found by bisection in virtual time (``surge.py``): a packet costs one unit of work, a row out
two.  The table has half as many places as there are groups, as many, or twice as many.  A unit of groups is thought of
as 65,000, as in the thesis; a window has a hundred packets a group at 8 units, and the ring takes as many packets as
two units have groups.

As in the thesis the rates are about equal with few groups, and fall to a third in order with many and a large table,
while the mean use of the CPU falls to a quarter: it is idle but for the surges.  Not as there: with 8 units of groups
out of order bears 3.2 times the rate with twice as many places as groups, but 2.3 to 2.5 times with as many, and 1.6
times with half as many.  Groups want each other's places here, so a table holds 0.39, 0.55 and 0.74 of the groups when
it must be emptied: the fewer places, the shorter the surge in order, and the more rows leave in between out of order.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine import Page, Schema
from oop_engine.core.graphs.graph import Graph, Stream
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Values, Variant
from oop_engine.operators.aggregates import Count
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.levels.consolidate import Consolidate
from oop_engine.operators.levels.low_level_aggregate import LowLevelAggregate
from oop_engine.operators.policies.policies import Ordered
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.values.flush import Flush, InOrder, Lazy, Slow
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Tumbling
from oop_engine.scenarios.thesis import SOURCE
from oop_engine.scenarios.thesis.surge import Borne, FixedTable, largest_rate
from oop_engine.scenarios.truth import windows

__all__ = ["SCENARIO"]

SCHEMA = Schema({name: pa.int64() for name in ("ts", "src", "dst")}, "ts", "ms")
MINUTE = 60_000
IN_ORDER, LAZY, SLOW = "in order", "lazy", "slow"
FLUSHES: dict[str, Flush] = {IN_ORDER: InOrder(), LAZY: Lazy(2), SLOW: Slow(every=160, within=2)}
SHARES = {"half as many places": 0.5, "as many": 1, "twice as many": 2}
WINDOW, RING = 800, 2  # of a unit of groups: work in a window, places of the ring
Integers = NDArray[np.int64]
QUERY = Tumbling("1 min"), {"n": Count()}, ("src", "dst")
MANY = 8  # units of groups from which on the plans lie far apart
FEW = 100  # groups, with fewer of which chance decides how soon a table is full
BY_ROUNDING = 0.02  # of a rate: bisection has an end


def packets(values: Values) -> tuple[Integers, Integers]:
    """Return the times and groups of the packets, sorted by time."""
    draw, groups = np.random.default_rng(values["seed"]), values["units"] * values["unit"]
    times = np.sort(draw.integers(0, values["minutes"] * MINUTE, groups * values["each"] * values["minutes"]))
    return times, draw.integers(0, groups, times.size)


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return the packets."""
    times, group = packets(values)
    return {"main": [Page.of(SCHEMA, {"ts": times, "src": group // 256, "dst": group % 256}, arrival=times)]}


def variants(values: Values) -> list[Variant]:
    """Return a plan of two levels for each way to let go, and one of a single level."""
    slots = values["units"] * values["unit"]
    free = {name: _two_levels(name, flush, slots) for name, flush in FLUSHES.items() if not flush.ordered}
    one = Graph("one level")
    one.sink("counts", one.add("count", WindowAggregate(*QUERY), _edge(one)))
    return [
        Variant(IN_ORDER, "in", in_order(free[LAZY])),
        *(Variant(name, "out", graph) for name, graph in free.items()),
        Variant("one level", "out", one),
    ]


def _two_levels(name: str, flush: Flush, slots: int) -> Graph:
    graph = Graph(name)
    low = graph.add("low", LowLevelAggregate(*QUERY, slots=slots, flush=flush), _edge(graph))
    graph.sink("counts", graph.add("high", Consolidate(*QUERY, tuples=SCHEMA), low))
    return graph


def _edge(graph: Graph) -> Stream:
    return graph.add("progress", Punctuate(Ordered(), "1 s"), graph.source("main", SCHEMA))


def truth(values: Values) -> pa.Table:
    """Return the answer by brute force."""
    times, group = packets(values)
    return windows(
        pa.table({"ts": times, "src": group // 256, "dst": group % 256}),
        time="ts",
        arrival=times,
        range_=MINUTE,
        slide=MINUTE,
        by=("src", "dst"),
        aggregates={"n": ("ts", "count")},
    )


@lru_cache(maxsize=64)
def borne(units: int, unit: int, seed: int) -> dict[str, dict[str, Borne]]:
    """Return the largest rate of each plan, by the size of the table."""
    groups = units * unit
    tables = {
        size: FixedTable(groups, max(int(share * groups), 1), WINDOW * unit, RING * unit, seed)
        for size, share in SHARES.items()
    }
    return {
        size: {name: largest_rate(table, flush) for name, flush in FLUSHES.items()}
        for size, table in tables.items()
    }


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on the largest rates, the use of the CPU, and bursts."""
    points = {run.parameters["units"]: run.parameters for run in runs}
    found = {units: borne(units, of["unit"], of["seed"]) for units, of in sorted(points.items())}
    claimed = [_bursts(found), _alike(found)]
    if len(found) > 1:
        claimed.append(_steady(found, min(of["units"] * of["unit"] for of in points.values())))
    if max(found) >= MANY:
        claimed += [_rates(found[max(found)]), _use(found[max(found)])]
    return claimed


Found = dict[int, dict[str, dict[str, Borne]]]


def _bursts(found: Found) -> Claim:
    bursts = {
        size: {units: {name: one.burst for name, one in of[size].items()} for units, of in found.items()}
        for size in SHARES
    }
    in_order = [[at[IN_ORDER] for at in of.values()] for of in bursts.values()]
    return Claim(
        "the largest burst of rows in order grows with the groups; out of order at most two rows leave for a packet",
        all(of == sorted(of) for of in in_order)
        and all(at[name] <= 2 for of in bursts.values() for at in of.values() for name in (LAZY, SLOW)),
        bursts,
    )


def _alike(found: Found) -> Claim:
    rates = {
        f"{units} units, {size}": {name: round(one.rate, 3) for name, one in at.items()}
        for units, of in found.items()
        for size, at in of.items()
    }
    return Claim(
        "lazy and slow bear the same rate, to 5 %, and no less than in order",
        all(
            abs(of[LAZY] - of[SLOW]) <= 0.05 * of[LAZY]
            and min(of[LAZY], of[SLOW]) >= (1 - BY_ROUNDING) * of[IN_ORDER]
            for of in rates.values()
        ),
        rates,
    )


def _steady(found: Found, fewest: int) -> Claim:
    """See it where a table has so many groups that chance does not count."""
    rates = {size: [of[size][LAZY].rate for of in found.values()] for size in SHARES}
    return Claim(
        "out of order the rate changes by less than a third over all numbers of groups",
        all(min(of) > 2 / 3 * max(of) for of in rates.values()) if fewest >= FEW else None,
        {size: [round(rate, 3) for rate in of] for size, of in rates.items()},
    )


def _rates(of: dict[str, dict[str, Borne]]) -> Claim:
    ratios = {size: round(at[LAZY].rate / at[IN_ORDER].rate, 2) for size, at in of.items()}
    return Claim(
        "with most groups, out of order bears 1.4 times the rate of in order with half as many places as groups, "
        "2.2 times with as many, 2.7 times with twice as many",
        all(ratios[size] >= least for size, least in zip(SHARES, (1.4, 2.2, 2.7), strict=True)),
        ratios,
    )


def _use(of: dict[str, dict[str, Borne]]) -> Claim:
    busy = {size: {name: round(one.busy, 2) for name, one in at.items()} for size, at in of.items()}
    return Claim(
        "there the CPU is idle more than half of the time in order with as many places as groups or more, and out of "
        "order less than two fifths of it",
        all(busy[size][IN_ORDER] < 0.5 for size in list(SHARES)[1:])
        and all(at[name] > 3 / 5 for at in busy.values() for name in (LAZY, SLOW)),
        busy,
    )


SCENARIO = Scenario(
    name="two_level",
    source=SOURCE,
    title="Packets by pairs of addresses per minute in two levels: the largest rate without loss",
    about=__doc__,
    parameters={
        "units": Parameter(8, "groups, in units", least=1),
        "unit": Parameter(250, "groups of a unit", least=20),
        "each": Parameter(10, "packets of a group in a minute, in the plans that are run", least=1),
        "minutes": Parameter(4, "length of the trace", least=2),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end", "src", "dst"),
    claims=claims,
    sweep=Sweep("units", (1, 2, 4, 8)),
)
