"""A band join of a late link with a punctual one: the tuples that are held, and where (thesis 8.3.2, fig. 8-4, 8-5).

S0 and S1 are joined on a connection within ``band`` minutes either way, and the pairs counted per minute of S0's time.
Some tuples of S0 are late by up to ``late`` minutes; S1 is sorted.

In order, S0 is sorted before the join: ``late`` minutes of it wait there.  So the join sees S0 that much behind, and
keeps S1 for ``band + late`` minutes.  Out of order S1 is kept as long, for late tuples may come; but S0 goes to the
join at once, and is purged there by S1's punctuation, which is on time: ``band`` minutes of it.  The difference is
``late - band`` minutes of S0: 3 of 12 in the thesis's example, whose text counts 5 minutes of S1 instead of 7.

Where both links are punctual, an in-order join whose output is sorted by S0's time holds results instead (fig. 8-5):
those with S0 times from min(bL, bR - after) on.
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
from oop_engine.operators.joining.bands import Band
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Tumbling
from oop_engine.scenarios.thesis import SOURCE

__all__ = ["SCENARIO"]

SCHEMA = Schema({"ts": pa.int64(), "connection": pa.int64()}, "ts", "ms")
MINUTE = 60_000
KEYS = (("connection", "connection"),)
OA, OPOB = "OA-Join", "Sort, OPOB-Join"
Integers = NDArray[np.int64]


@lru_cache(maxsize=4)
def connections(rate: int, minutes: int, band: int, late: int, share: int, seed: int) -> tuple[Integers, ...]:
    """Return of each connection the times on S0 and on S1, at most ``band`` minutes apart, and the arrival on S0."""
    draw = np.random.default_rng(seed)
    s0 = draw.integers(0, minutes * MINUTE, rate * minutes)
    s1 = np.clip(s0 + draw.integers(-band * MINUTE, band * MINUTE + 1, s0.size), 0, minutes * MINUTE - 1)
    is_late = draw.random(s0.size) < share / 100
    return s0, s1, s0 + is_late * draw.integers(0, late * MINUTE + 1, s0.size)


def given(values: Values) -> tuple[Integers, ...]:
    """Return the connections of a trace."""
    names = ("rate", "minutes", "band", "late", "share", "seed")
    return connections(*(values[name] for name in names))


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return both links in the order of arrival."""
    s0, s1, arrival = given(values)
    return {"S0": [_page(s0, arrival)], "S1": [_page(s1, s1)]}


def _page(times: Integers, arrival: Integers) -> Page:
    order = np.argsort(arrival, kind="stable")
    return Page.of(SCHEMA, {"ts": times[order], "connection": order}, arrival=arrival[order])


def variants(values: Values) -> list[Variant]:
    """Return both plans; the count is the same, for the joins are compared."""
    query = _plan(values)
    return [Variant(OPOB, "in", in_order(query, windows="reduce")), Variant(OA, "out", query)]


def _plan(values: Values) -> Graph:
    graph = Graph(OA)
    band = Band(f"{values['band']} min", f"{values['band']} min")
    slack = {"S0": f"{values['late']} min", "S1": "0 min"}
    links = [
        graph.add(
            f"{link}-progress",
            Punctuate(BoundedDisorder(slack[link]), values["every"]),
            graph.source(link, SCHEMA),
        )
        for link in slack
    ]
    pairs = graph.add("pairs", OAJoin(KEYS, band), *links)
    graph.sink("counts", graph.add("per-minute", WindowAggregate(Tumbling("1 min"), {"n": Count()}), pairs))
    return graph


def truth(values: Values) -> pa.Table:
    """Return the answer from the definition: each connection is one pair."""
    s0, s1, arrival = given(values)
    pairs = pa.table({"window_start": s0 // MINUTE * MINUTE, COMPLETE_AT: np.maximum(arrival, s1)})
    found = pairs.group_by("window_start").aggregate([([], "count_all"), (COMPLETE_AT, "max")])
    found = found.rename_columns(["window_start", "n", COMPLETE_AT])
    return found.append_column("window_end", pa.array(found.column("window_start").to_numpy() + MINUTE))


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on minutes held, and on results held."""
    by_late: dict[int, dict[str, Run]] = {}
    for run in runs:
        by_late.setdefault(run.parameters["late"], {})[run.variant] = run
    late = {minutes: of for minutes, of in by_late.items() if minutes > of[OA].parameters["band"]}
    punctual = by_late.get(0)
    return [*([_minutes(late)] if late else []), *([_results(punctual)] if punctual else [])]


def held(run: Run) -> float:
    """Return the most tuples that a plan held, in minutes of one link."""
    return run.peak_tuples / float(run.parameters["rate"])


def _minutes(by_late: dict[int, dict[str, Run]]) -> Claim:
    figures = {late: {name: round(held(of[name]), 2) for name in (OPOB, OA)} for late, of in by_late.items()}
    band = {late: of[OA].parameters["band"] for late, of in by_late.items()}
    return Claim(
        "in order 2 late + band minutes of one link are held, out of order late + 2 band, to half a minute "
        "and the distance of two punctuations; the difference is late - band, to 0.3",
        all(
            abs(of[OPOB] - (2 * late + band[late] + 0.5)) <= 0.5
            and abs(of[OA] - (late + 2 * band[late] + 0.5)) <= 0.5
            and abs(of[OPOB] - of[OA] - (late - band[late])) <= 0.3
            for late, of in figures.items()
        ),
        {f"late by {late} min": of for late, of in figures.items()},
    )


def _results(of: dict[str, Run]) -> Claim:
    s0, s1, _ = given(of[OA].parameters)
    after, end = of[OA].parameters["band"] * MINUTE, of[OA].parameters["minutes"] * MINUTE
    # A result is held from when it is found until S1 has come ``after`` past its S0 time; at the end times are cut off.
    found, let_go = np.sort(np.maximum(s0, s1)), np.sort(s0 + after)
    there = np.arange(1, found.size + 1) - np.searchsorted(let_go, found, "right")
    most = int(there[found < end - after].max())
    more = of[OPOB].peak_tuples - of[OA].peak_tuples
    return Claim(
        "with both links punctual, the in-order join holds as many tuples more as there are results with S0 times "
        "that S1 has not passed by the band, to a tenth",
        abs(more - most) <= 0.1 * most,
        {"tuples more": more, "results, by definition": most},
    )


SCENARIO = Scenario(
    name="late_join",
    source=SOURCE,
    title="Pairs of a late and a punctual link per minute, by a band join in order and out of order",
    about=__doc__,
    parameters={
        "late": Parameter(5, "how late tuples of S0 are at most, min", least=0),
        "band": Parameter(2, "how far apart the two packets are at most, min", least=1),
        "share": Parameter(5, "tuples of S0 that are late, %", least=0),
        "rate": Parameter(600, "connections a minute", least=10, enough=300),
        "minutes": Parameter(25, "length of the trace", least=5, enough=11),
        "every": Parameter("1 s", "how often a link sends punctuation"),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end",),
    claims=claims,
    sweep=Sweep("late", (0, 3, 5), "min"),
)
