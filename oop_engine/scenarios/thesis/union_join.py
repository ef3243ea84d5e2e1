"""A tumbling join of two unions whose links arrive apart (thesis Q8-3, fig. 8-9).

A and B, and C and D, are united, and the unions joined on a connection within each 10 s; B and D arrive ``skew``
seconds late.  The pairs are counted per 10 s.

In order the tuples wait in the Merges, out of order in the join: as many of them, and they take up to two thirds more
there.  Of six columns only time and key travel, and the join has an index by key and time beside them.  Tuples that
are complete together lie together, so dead ones take next to nothing.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from oop_engine.core.graphs.graph import Graph
from oop_engine.core.units import to_units
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Values, Variant
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
from oop_engine.scenarios.thesis.late_tumbling_join import KEYS, SCHEMA, counted, packets, page_of

__all__ = ["SCENARIO"]

LENGTH = 10_000
LINKS = ("A", "B", "C", "D")
OA, MERGE = "Meld, OA-Join", "Merge, OPIB-Join"


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return the packets of each link, sorted; those of B and D arrive late."""
    *sides, left, right = packets(values["rate"], values["windows"], LENGTH, values["seed"])
    number = np.arange(sides[0].size)
    of_link = [
        (side, link == which) for side, link in zip(sides, (left, right), strict=True) for which in (0, 1)
    ]
    return {
        name: [page_of(times[mine], number[mine], 1000 * values["skew"] * (name in "BD"))]
        for name, (times, mine) in zip(LINKS, of_link, strict=True)
    }


def variants(values: Values) -> list[Variant]:
    """Return both plans; the count is the same, for the joins are compared."""
    query = _plan(values)
    merged = in_order(query, join="input", windows="reduce", sorted_sources=True)
    return [Variant(MERGE, "in", merged), Variant(OA, "out", query)]


def _plan(values: Values) -> Graph:
    join, union = OAJoin(KEYS, TumblingBand("10 s")), Meld(2)
    graph = Graph(OA)
    a, b, c, d = (
        graph.add(f"{link}-progress", Punctuate(Ordered(), values["every"]), graph.source(link, SCHEMA))
        for link in LINKS
    )
    pairs = graph.add("pairs", join, graph.add("A-B", union, a, b), graph.add("C-D", union, c, d))
    graph.sink("counts", graph.add("per-window", WindowAggregate(Tumbling("10 s"), {"n": Count()}), pairs))
    return graph


def truth(values: Values) -> pa.Table:
    """Return the answer from the definition: each connection is one pair."""
    first, second, left, right = packets(values["rate"], values["windows"], LENGTH, values["seed"])
    skew = 1000 * values["skew"]
    return counted(first, np.maximum(first + skew * left, second + skew * right), LENGTH)


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on tuples and on bytes."""
    by_skew: dict[int, dict[str, Run]] = {}
    for run in runs:
        by_skew.setdefault(run.parameters["skew"], {})[run.variant] = run
    tuples = {
        f"{skew} s": {name: of[name].peak_tuples for name in (MERGE, OA)} for skew, of in by_skew.items()
    }
    nbytes = {
        f"{skew} s": round(of[OA].peak_state_bytes / of[MERGE].peak_state_bytes, 2)
        for skew, of in by_skew.items()
    }
    every = to_units(runs[0].parameters["every"], SCHEMA.unit, "union_join: every")
    often = every <= LENGTH // 5  # else tuples wait for punctuation more than for links
    return [
        Claim(
            "out of order holds as many tuples as in order, to a tenth: in the join instead of the Merges",
            all(abs(of[OA] - of[MERGE]) <= 0.1 * of[MERGE] for of in tuples.values()) if often else None,
            tuples,
        ),
        Claim(
            "out of order takes more bytes, 1.7 times as many at most, for the join's index",
            all(1 < ratio <= 1.7 for ratio in nbytes.values()) if often else None,
            nbytes,
        ),
    ]


SCENARIO = Scenario(
    name="union_join",
    source=SOURCE,
    title="Pairs per 10 s of two unions of links that arrive apart, by a tumbling join",
    about=__doc__,
    parameters={
        "skew": Parameter(100, "how late B and D arrive, s", least=0),
        "rate": Parameter(100, "connections a second", least=1),
        "windows": Parameter(25, "length of the trace, in 10 s", least=2),
        "every": Parameter("500 ms", "how often a link sends punctuation"),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end",),
    claims=claims,
    sweep=Sweep("skew", (0, 20, 40, 100), "s"),
)
