"""Packets by pairs of addresses per minute over two links, one of them late (thesis Q8-2, fig. 8-8).

M2 arrives ``skew`` seconds after M1.  In order a Merge holds that much of M1; the count behind it keeps a number for
each group, as out of order.  Out of order the tuples go into the count at once: it keeps a number for each
group of the minute that is open, and of the one after it, which M1 has reached before M2 has left the other.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine import Message, Page, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.operator import Operator
from oop_engine.lab.compare import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Values, Variant
from oop_engine.operators.aggregates import Count
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.in_order.merge import Merge
from oop_engine.operators.meld import Meld
from oop_engine.operators.policies.policies import Ordered
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Tumbling
from oop_engine.scenarios.thesis import SOURCE
from oop_engine.scenarios.truth import windows

__all__ = ["SCENARIO"]

SCHEMA = Schema({name: pa.int64() for name in ("ts", "src", "dst", "length", "flags", "port")}, "ts", "ms")
MINUTE = 60_000
LINKS = ("M1", "M2")
MELD, MERGE = "Meld", "Merge"
Integers = NDArray[np.int64]


@lru_cache(maxsize=4)
def packets(groups: int, each: int, minutes: int, seed: int) -> tuple[Integers, Integers, Integers]:
    """Return the times, groups and links of packets, sorted by time: ``each`` of a group in a minute."""
    draw = np.random.default_rng(seed)
    times = np.sort(draw.integers(0, minutes * MINUTE, groups * each * minutes))
    return times, draw.integers(0, groups, times.size), draw.integers(0, 2, times.size)


def given(values: Values) -> tuple[Integers, Integers, Integers]:
    """Return the packets of a trace."""
    return packets(*(values[name] for name in ("groups", "each", "minutes", "seed")))


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return the packets of each link, sorted; those of M2 arrive late."""
    times, group, link = given(values)
    return {
        name: [_page(times[link == at], group[link == at], 1000 * values["skew"] * at)]
        for at, name in enumerate(LINKS)
    }


def _page(times: Integers, group: Integers, late: int) -> Page:
    addresses = {"src": group // 256, "dst": group % 256}
    others = dict.fromkeys(("length", "flags", "port"), group)
    return Page.of(SCHEMA, {"ts": times, **addresses, **others}, arrival=times + late)


def variants(values: Values) -> list[Variant]:
    """Return both plans; the count is the same, for it is the union that differs."""
    return [Variant(MERGE, "in", _plan(MERGE, Merge(2))), Variant(MELD, "out", _plan(MELD, Meld(2)))]


def _plan(name: str, union: Operator) -> Graph:
    graph = Graph(name)
    links = [
        graph.add(f"{link}-progress", Punctuate(Ordered(), "1 s"), graph.source(link, SCHEMA))
        for link in LINKS
    ]
    count = WindowAggregate(Tumbling("1 min"), {"n": Count()}, by=("src", "dst"))
    graph.sink("counts", graph.add("count", count, graph.add("union", union, *links)))
    return graph


def truth(values: Values) -> pa.Table:
    """Return the answer by brute force."""
    times, group, link = given(values)
    return windows(
        pa.table({"ts": times, "src": group // 256, "dst": group % 256}),
        time="ts",
        arrival=times + 1000 * values["skew"] * link,
        range_=MINUTE,
        slide=MINUTE,
        by=("src", "dst"),
        aggregates={"n": ("ts", "count")},
    )


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on the growth of state with the skew."""
    of = {
        name: {run.parameters["skew"]: run for run in runs if run.variant == name} for name in (MERGE, MELD)
    }
    skews = sorted(of[MELD])
    groups = of[MELD][skews[0]].parameters["groups"]
    held = {f"{skew} s": of[MERGE][skew].peak_tuples for skew in skews}
    a_second = [of[MERGE][skew].peak_tuples / skew for skew in skews if skew]
    nbytes = {f"{skew} s": {name: of[name][skew].peak_state_bytes for name in of} for skew in skews}
    found = [
        Claim(
            "out of order no tuple is held, and at most 3 numbers a group",
            all(run.peak_tuples == 0 and run.peak_partials <= 3 * groups for run in of[MELD].values()),
            {f"{skew} s": of[MELD][skew].peak_partials for skew in skews} | {"groups": groups},
        ),
    ]
    if len(a_second) > 1:
        claim = "in order the tuples held grow with the skew in a straight line, to a tenth"
        found.append(Claim(claim, max(a_second) <= 1.1 * min(a_second), held))
    if skews[-1] >= 40:
        claim, last = "at 40 s out of order takes less than half of the bytes", nbytes[f"{skews[-1]} s"]
        found.append(Claim(claim, last[MELD] < last[MERGE] / 2, nbytes))
    return found


SCENARIO = Scenario(
    name="union_count",
    source=SOURCE,
    title="Packets by pairs of addresses per minute over two links that arrive apart",
    about=__doc__,
    parameters={
        "skew": Parameter(40, "how late M2 arrives, s", least=0),
        "groups": Parameter(500, "pairs of addresses", least=1),
        "each": Parameter(200, "packets of a group in a minute", least=1),
        "minutes": Parameter(3, "length of the trace", least=2),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end", "src", "dst"),
    claims=claims,
    sweep=Sweep("skew", (0, 10, 20, 40), "s"),
)
