"""Packets by pairs of addresses per minute over two links, one of them late (thesis Q8-2, fig. 8-8).

M2 arrives ``skew`` seconds after M1.  In order a Merge holds that much of M1; the count behind it keeps a number for
each group, as out of order.  Out of order the tuples go into the count at once: it keeps a number for each
group of the minute that is open, and of the one after it, which M1 has reached before M2 has left the other.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine import Page, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Values, Variant
from oop_engine.operators.aggregates import Count
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.meld import Meld
from oop_engine.operators.policies.policies import Ordered
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Tumbling
from oop_engine.scenarios.enough import every
from oop_engine.scenarios.thesis import SOURCE
from oop_engine.scenarios.truth import windows

__all__ = ["SCENARIO"]

SCHEMA = Schema({name: pa.int64() for name in ("ts", "src", "dst", "length", "flags", "port")}, "ts", "ms")
MINUTE = 60_000
LINKS = ("M1", "M2")
MELD, MERGE = "Meld", "Merge"
FEW = 8  # packets right behind the end of a minute, before punctuation passes it
ENOUGH = 6000  # packets a minute, from which on chance moves their number by less than a tenth
OF_A_GROUP = (
    100  # packets of a group in a minute, from which on its two numbers take less than a fifth of them
)
QUERY = (Tumbling("1 min"), {"n": Count()}, ("src", "dst"))
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
    merged = in_order(plan(), windows="reduce", sorted_sources=True)
    return [Variant(MERGE, "in", merged), Variant(MELD, "out", plan())]


def plan() -> Graph:
    """Return the query."""
    graph = Graph(MELD)
    links = [
        graph.add(f"{link}-progress", Punctuate(Ordered(), "1 s"), graph.source(link, SCHEMA))
        for link in LINKS
    ]
    graph.sink("counts", graph.add("count", WindowAggregate(*QUERY), graph.add("union", Meld(2), *links)))
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
    values = of[MELD][skews[0]].parameters
    groups, each = values["groups"], values["each"]
    enough = groups * each >= ENOUGH
    nbytes = {f"{skew} s": {name: of[name][skew].peak_state_bytes for name in of} for skew in skews}
    last = nbytes[f"{skews[-1]} s"]
    melded = [bytes_of[MELD] for bytes_of in nbytes.values()]
    return [
        Claim(
            "out of order no tuple is held, and a number for each group and minute that the links are in: two, while "
            "the skew is less than a minute",
            all(
                run.peak_tuples == 0 and run.peak_partials <= groups * (2 + skew // 60) + FEW
                for skew, run in of[MELD].items()
            ),
            {f"{skew} s": of[MELD][skew].peak_partials for skew in skews} | {"groups": groups},
        ),
        _straight({skew: of[MERGE][skew].peak_tuples for skew in skews}, enough=enough),
        Claim(
            "at 40 s of skew and more out of order takes less than a fifth of the bytes; they are the same at every "
            "skew below a minute, to a tenth",
            last[MELD] < last[MERGE] / 5 and max(melded) <= 1.1 * min(melded)
            if 40 <= skews[-1] < 60 and len(skews) > 1 and enough and each >= OF_A_GROUP
            else None,
            nbytes,
        ),
        _answered(of, enough=enough),
    ]


def _straight(held: dict[int, int], *, enough: bool) -> Claim:
    slopes = [(held[b] - held[a]) / (b - a) for a, b in pairwise(held)]
    return Claim(
        "in order the tuples held grow with the skew in a straight line, to a tenth",
        0 < max(slopes) <= 1.1 * min(slopes) if enough and len(slopes) > 1 else None,
        {f"{skew} s": tuples for skew, tuples in held.items()},
    )


def _answered(of: dict[str, dict[int, Run]], *, enough: bool) -> Claim:
    """See that answers wait for M2, and no longer: punctuation goes out by the second, where packets come as often."""
    delays = {
        name: {skew: float(run.delays_s.max()) for skew, run in by.items() if run.delays_of}
        for name, by in of.items()
    }
    return Claim(
        "both answer when M2 has passed the end of a minute: the skew later, and less than a second after that",
        every(skew <= delay < skew + 1 for of_skew in delays.values() for skew, delay in of_skew.items())
        if enough
        else None,
        {f"{name}, longest delay, s": of_skew for name, of_skew in delays.items()},
    )


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
