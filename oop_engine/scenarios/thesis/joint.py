"""Counts of pairs by both their times, with individual and with joint punctuation of a join (thesis 7.2, fig. 7-5).

Q7-1 joins SYN packets of link S0 with SYN_ACK packets of link S1, at most ``band`` seconds apart either way, and
counts the pairs of each two times (S0.ts, S1.ts).  Both links are in order and in step.  Individual punctuation of
the join bounds one of the two times: a slab of the plane, which waits for partners up to a band away.  Joint
punctuation bounds both together: a box, which is complete as soon as both links have passed its corner.

So a pair (l, r) is answered at max(l, r) instead of min(l, r) + band: sooner by band − |l − r|, as the figure has it.
The count holds a group for as much shorter a time.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
from oop_engine.operators.policies.policies import Ordered
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Tumbling
from oop_engine.scenarios.enough import every
from oop_engine.scenarios.thesis import SOURCE

__all__ = ["SCENARIO", "connections"]

SCHEMA = Schema({"ts": pa.int64(), "connection": pa.int64()}, "ts", "s")
LINKS = ("S0", "S1")
INDIVIDUAL, JOINT = "individual", "joint"
PAGE = 1024
LONG, TENTH = 600, 0.1  # s; share of groups
SHORT = 15  # s of a band, from which on many groups wait for it
Integers = NDArray[np.int64]


@lru_cache(maxsize=4)
def connections(rate: int, seconds: int, band: int, seed: int) -> tuple[Integers, Integers]:
    """Return the times of SYN and SYN_ACK of each connection, (connections,) each, any two at most ``band`` apart."""
    draw = np.random.default_rng(seed)
    syn = draw.integers(0, seconds, rate * seconds)
    return syn, np.clip(syn + draw.integers(-band, band + 1, syn.size), 0, seconds - 1)


def given(values: Values) -> tuple[Integers, Integers]:
    """Return the times of both packets of each connection."""
    return connections(values["rate"], values["seconds"], values["band"], values["seed"])


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return the packets of each link, in order; a packet arrives at its time."""
    return {link: _pages(times) for link, times in zip(LINKS, given(values), strict=True)}


def _pages(times: Integers) -> list[Message]:
    order = np.argsort(times, kind="stable")
    whole = Page.of(SCHEMA, {"ts": times[order], "connection": order}, arrival=times[order])
    return [whole.slice(at, min(at + PAGE, len(whole))) for at in range(0, len(whole), PAGE)]


def variants(values: Values) -> list[Variant]:
    """Return the query with each kind of punctuation."""
    return [Variant(kind, "out", _plan(kind, values["band"])) for kind in (INDIVIDUAL, JOINT)]


def _plan(kind: str, band: int) -> Graph:
    graph = Graph(kind)
    links = [
        graph.add(f"{link}-progress", Punctuate(Ordered(), granularity=1), graph.source(link, SCHEMA))
        for link in LINKS
    ]
    pairs = graph.add(
        "pairs", OAJoin([("connection", "connection")], Band(band, band), punctuation=kind), *links
    )
    graph.sink(
        "results", graph.add("count", WindowAggregate(Tumbling(1), {"n": Count()}, by=("ts_right",)), pairs)
    )
    return graph


def truth(values: Values) -> pa.Table:
    """Return the answer from the definition: each connection has one packet on either link."""
    syn, ack = given(values)
    pairs = pa.table({"window_start": syn, "ts_right": ack, COMPLETE_AT: np.maximum(syn, ack)})
    found = pairs.group_by(["window_start", "ts_right"]).aggregate([([], "count_all"), (COMPLETE_AT, "max")])
    found = found.rename_columns(["window_start", "ts_right", "n", COMPLETE_AT])
    return found.append_column("window_end", pc.add(found.column("window_start"), 1))


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on delay and on open groups, for each band."""
    by_band: dict[int, dict[str, Run]] = {}
    for run in runs:
        by_band.setdefault(run.parameters["band"], {})[run.variant] = run
    return [_sooner(by_band), _open(by_band)]


def saving(of: dict[str, Run]) -> tuple[float, float]:
    """Return how much sooner joint punctuation answers in the mean, and by the formula; not of the last groups."""
    joint, individual = (
        of[kind].table.append_column("emitted", pa.array(of[kind].emitted)) for kind in (JOINT, INDIVIDUAL)
    )
    keys = ["window_end", "ts_right"]
    both = joint.select([*keys, "emitted"]).join(
        individual.select([*keys, "emitted"]), keys, right_suffix="_individual", join_type="inner"
    )
    end, right, soon, late = (
        both.column(name).to_numpy() for name in (*keys, "emitted", "emitted_individual")
    )
    values = of[JOINT].parameters
    left, band = end - 1, values["band"]
    known = np.minimum(left, right) + band + 2 < values["seconds"]
    return float((late - soon)[known].mean()), float((band - np.abs(left - right))[known].mean())


def _sooner(by_band: dict[int, dict[str, Run]]) -> Claim:
    savings = {band: saving(of) for band, of in by_band.items()}
    return Claim(
        "joint punctuation answers sooner by the band less the distance of the pair's times, in the mean within 2 %",
        every(
            abs(got - expected) <= 0.02 * expected
            for got, expected in savings.values()
            if not np.isnan(expected)  # of a band as long as the trace
        ),
        {
            f"band {band} s": {"sooner by, s": round(got, 2), "by formula": round(expected, 2)}
            for band, (got, expected) in savings.items()
        },
    )


def _open(by_band: dict[int, dict[str, Run]]) -> Claim:
    shortest = min(run.parameters["seconds"] for of in by_band.values() for run in of.values())
    share = TENTH if shortest >= LONG else 2 * TENTH  # the fewer there are, the more of them are at the ends
    held = {
        f"band {band} s": {kind: run.peak_partials for kind, run in of.items()}
        for band, of in by_band.items()
    }
    words = "tenth" if share == TENTH else "fifth"
    return Claim(
        f"with joint punctuation less than a {words} as many groups of the count are open",
        every(
            held[f"band {band} s"][JOINT] < held[f"band {band} s"][INDIVIDUAL] * share
            for band in by_band
            if (2 * SHORT if share == TENTH else SHORT) <= band <= shortest / 4
        ),
        held,
    )


SCENARIO = Scenario(
    name="joint",
    source=SOURCE,
    title="Pairs of packets counted by both their times: individual and joint punctuation of a join",
    about=__doc__,
    parameters={
        "band": Parameter(120, "how far apart the two packets are at most, s", least=1),
        "rate": Parameter(20, "connections a second", least=1, enough=20),
        "seconds": Parameter(900, "length of the trace", least=10, enough=200),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end", "ts_right"),
    claims=claims,
    sweep=Sweep("band", (30, 60, 120), "s"),
)
