"""A tumbling join in which one link of a union is late (thesis Q8-4, fig. 8-10).

M1 is joined with the union of M2 and C, on a connection within each minute; C arrives ``late`` seconds late.  The
pairs are counted per minute.

In order, a Merge holds M2 back until C has caught up, and the join keeps M1 as long.  Out of order M2 goes to the
join at once, and is purged there by M1's punctuation, which is on time; M1 waits for C in both.  So the state grows
more slowly with the delay.  Of six columns only time and key travel; beside them the out-of-order join has an index, so
it takes more bytes than in order at every delay of the sweep, the fewer more the longer the delay is.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine import Page, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import COMPLETE_AT, Claim, Parameter, Scenario, Sweep, Values, Variant
from oop_engine.operators.aggregates import Count
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.joining.bands import TumblingBand
from oop_engine.operators.meld import Meld
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.policies.policies import Ordered
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Tumbling
from oop_engine.scenarios.thesis import SOURCE

__all__ = ["SCENARIO", "counted", "packets", "page_of"]

COLUMNS = ("ts", "connection", "src", "dst", "length", "flags")
SCHEMA = Schema({name: pa.int64() for name in COLUMNS}, "ts", "ms")
MINUTE = 60_000
KEYS = (("connection", "connection"),)
OA, MERGE = "Meld, OA-Join", "Merge, OPIB-Join"
LATE = 5  # s that delays must be apart, to have something to compare
Integers = NDArray[np.int64]


@lru_cache(maxsize=4)
def packets(rate: int, windows: int, length: int, seed: int) -> tuple[Integers, ...]:
    """Return of each connection the times of both packets, ms, in one window, and of either its link, 0 or 1.

    ``rate`` connections a second in ``windows`` of ``length`` ms.
    """
    draw = np.random.default_rng(seed)
    first = draw.integers(0, windows * length, rate * windows * length // 1000)
    second = first // length * length + draw.integers(0, length, first.size)
    return first, second, draw.integers(0, 2, first.size), draw.integers(0, 2, first.size)


def given(values: Values) -> tuple[Integers, Integers, NDArray[np.bool_]]:
    """Return the times of both packets of each connection, and whether the second is C's."""
    first, second, _, link = packets(values["rate"], values["minutes"], MINUTE, values["seed"])
    return first, second, link == 1


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return the packets of each link, sorted; those of C arrive late."""
    first, second, of_c = given(values)
    number = np.arange(first.size)
    return {
        "M1": [page_of(first, number, 0)],
        "M2": [page_of(second[~of_c], number[~of_c], 0)],
        "C": [page_of(second[of_c], number[of_c], 1000 * values["late"])],
    }


def page_of(times: Integers, connection: Integers, late: int) -> Page:
    """Return packets of six columns, in order of time; they arrive ``late`` ms later."""
    order = np.argsort(times, kind="stable")
    times, connection = times[order], connection[order]
    others = {name: connection % (10 + at) for at, name in enumerate(COLUMNS[2:])}
    return Page.of(SCHEMA, {"ts": times, "connection": connection, **others}, arrival=times + late)


def variants(values: Values) -> list[Variant]:
    """Return both plans; the count is the same, for the joins are compared."""
    query = _plan(values)
    merged = in_order(query, join="input", windows="reduce", sorted_sources=True)
    return [Variant(MERGE, "in", merged), Variant(OA, "out", query)]


def _plan(values: Values) -> Graph:
    join, union = OAJoin(KEYS, TumblingBand("1 min")), Meld(2)
    graph = Graph(OA)
    m1, *others = (
        graph.add(f"{link}-progress", Punctuate(Ordered(), values["every"]), graph.source(link, SCHEMA))
        for link in ("M1", "M2", "C")
    )
    pairs = graph.add("pairs", join, m1, graph.add("union", union, *others))
    graph.sink("counts", graph.add("per-minute", WindowAggregate(Tumbling("1 min"), {"n": Count()}), pairs))
    return graph


def truth(values: Values) -> pa.Table:
    """Return the answer from the definition: each connection is one pair."""
    first, second, of_c = given(values)
    return counted(first, np.maximum(first, second + of_c * 1000 * values["late"]), MINUTE)


def counted(times: Integers, complete: Integers, length: int) -> pa.Table:
    """Return the pairs in each window of ``length`` ms, by their times and when they were complete."""
    pairs = pa.table({"window_start": times // length * length, COMPLETE_AT: complete})
    found = pairs.group_by("window_start").aggregate([([], "count_all"), (COMPLETE_AT, "max")])
    found = found.rename_columns(["window_start", "n", COMPLETE_AT])
    return found.append_column("window_end", pa.array(found.column("window_start").to_numpy() + length))


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on growth with the delay."""
    of = {name: {run.parameters["late"]: run for run in runs if run.variant == name} for name in (MERGE, OA)}
    tuples = {name: {late: run.peak_tuples for late, run in by.items()} for name, by in of.items()}
    nbytes = {name: {late: run.peak_state_bytes for late, run in by.items()} for name, by in of.items()}
    return [
        Claim(
            "with the delay of C more tuples are held in order, a twentieth or more, and out of order no more",
            _apart(tuples, 1.05),
            tuples,
        ),
        Claim("so are bytes: more of them in order, and out of order no more", _apart(nbytes, 1.02), nbytes),
    ]


def _apart(held: dict[str, dict[int, int]], grown: float) -> bool | None:
    """Return whether the most delay takes ``grown`` times as much as the least in order, and out of order no more."""
    least, most = min(held[OA]), max(held[OA])
    if most - least < LATE:
        return None
    return held[MERGE][most] >= grown * held[MERGE][least] and held[OA][most] <= 1.01 * held[OA][least]


SCENARIO = Scenario(
    name="late_tumbling_join",
    source=SOURCE,
    title="Pairs per minute of a link and a union with a late one, by a tumbling join",
    about=__doc__,
    parameters={
        "late": Parameter(10, "how late C arrives, s", least=0),
        "rate": Parameter(200, "connections a second", least=1, enough=40),
        "minutes": Parameter(3, "length of the trace", least=2),
        "every": Parameter("500 ms", "how often a link sends punctuation"),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end",),
    claims=claims,
    sweep=Sweep("late", (0, 5, 10), "s"),
)
