"""Packets of the last five minutes over two fast links and a nearly silent one (thesis Q8-5, fig. 8-11).

M1 and M2 are fast, C sends a packet every other second, arrives ``skew`` later than it
should, and has lulls.  Each link is sorted; their union is not.  In order, a Merge holds
M1 and M2 back until C has caught up, and only a heartbeat moves it on while C is silent.  Out of
order, a Meld lets them pass, and the count keeps a number for each open window.

The state of the Merge grows with the skew.  The plan "reduce" shows it by itself: its
count keeps one number for each open window, as the one out of order does.  The usual
in-order count, "keep extents", holds five minutes of packets besides, and beside those the
growth is some per cent; so the steep curve of fig. 8-11 must be that of a count that reduces.

Not in the thesis: "reduce links" counts each link by itself, and merges counts of panes.  A count without groups can be
divided so, and then the Merge holds a row for each pane: in order keeps no more than out of order, and answers as soon.
Q1-2, the same over tumbling windows, is ``--set range="1 min"``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from oop_engine import Page
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.units import to_seconds, to_units
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Values, Variant
from oop_engine.operators.aggregates import Count
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.meld import Meld
from oop_engine.operators.policies.policies import Heartbeat, Ordered
from oop_engine.operators.policies.running_bound import Policy
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding
from oop_engine.scenarios.thesis import SOURCE
from oop_engine.scenarios.truth import windows
from oop_engine.traces.disorder import Disorder, Link

__all__ = ["SCENARIO"]

LINKS = ("M1", "M2", "C")
QUIET = 0.5  # packets per second of C
ENOUGH = 300  # packets of a window, from which on they take more bytes than empty operators
KEPT, REDUCED, EARLY, MELD = "keep extents", "reduce", "reduce links", "meld"
WAITING = ", no heartbeat"


def traces(values: Values) -> dict[str, Disorder]:
    """Return the packets of each link: the same whatever the skew."""
    duration = _duration(values)
    links = {
        "M1": Link("M1", values["rate"]),
        "M2": Link("M2", values["rate"]),
        "C": Link("C", QUIET, skew=_skew(values), lulls=lulls(values, duration)),
    }
    return {
        name: Disorder((link,), duration, keys=1, seed=values["seed"] + at)
        for at, (name, link) in enumerate(links.items())
    }


def lulls(values: Values, duration: int) -> tuple[tuple[int, int], ...]:
    """Return the two lulls of C, each round an end of a window, in ms."""
    slide, lull = (
        to_units(values["slide"], "ms", "links: slide"),
        to_units(values["lull"], "ms", "links: lull"),
    )
    middles = (duration * part // 3 // slide * slide for part in (1, 2))
    return tuple((max(middle - lull // 2, 0), middle + lull - lull // 2) for middle in middles)


def _duration(values: Values) -> int:
    return max(int(values["tuples"] * 1000 / (2 * values["rate"] + QUIET)), 1)


def _skew(values: Values) -> int:
    return to_units(f"{values['skew']} s", "ms", "links: skew")


def feeds(values: Values) -> dict[str, Iterator[Message]]:
    """Return the packets of each link as they arrive, made while they are read."""
    return {name: trace.messages() for name, trace in traces(values).items()}


def policy(link: str, values: Values, heartbeat: bool) -> Policy:
    """Return the policy of a link: it is sorted, and C's packets are ``skew`` under way."""
    if link != "C" or not heartbeat:
        return Ordered()
    return Heartbeat(Ordered(), threshold=values["heartbeat"], slack=_skew(values))


def plan(name: str, every: str, values: Values) -> Graph:
    """Return the query; ``every``: the granularity of punctuation behind a link."""
    graph = Graph(name)
    schema = traces(values)["C"].schema
    heartbeat = not name.endswith(WAITING)
    links = [
        graph.add(
            f"{link}-edge", Punctuate(policy(link, values, heartbeat), every), graph.source(link, schema)
        )
        for link in LINKS
    ]
    windows = Sliding(values["range"], values["slide"])
    count = WindowAggregate(windows, {"packets": Count()}, strategy="windows")  # as in the thesis
    graph.sink("packets", graph.add("count", count, graph.add("union", Meld(3), *links)))
    return graph


def variants(values: Values) -> list[Variant]:
    """Return the plans.

    Out of order only the end of a window is worth a punctuation; in order tuples wait for
    each of them, so there are more.
    """
    often, slide = values["heartbeat"], values["slide"]
    plans = [
        Variant(KEPT, "in", in_order(plan(KEPT, often, values), sorted_sources=True)),
        Variant(EARLY, "in", in_order(plan(EARLY, often, values), windows="early", sorted_sources=True)),
    ]
    for waiting in ("", WAITING):
        reduced = in_order(plan(REDUCED + waiting, often, values), windows="reduce", sorted_sources=True)
        meld = plan(MELD + waiting, slide, values)
        plans += [Variant(REDUCED + waiting, "in", reduced), Variant(MELD + waiting, "out", meld)]
    return plans


def truth(values: Values) -> pa.Table:
    """Return the answer by brute force."""
    pages = [page for feed in feeds(values).values() for page in feed if isinstance(page, Page)]
    return windows(
        pa.table({"ts": np.concatenate([page.times for page in pages])}),
        time="ts",
        arrival=np.concatenate([page.arrival for page in pages if page.arrival is not None]),
        range_=to_units(values["range"], "ms"),
        slide=to_units(values["slide"], "ms"),
        aggregates={"packets": ("ts", "count")},
    )


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on memory over the skew, on lulls and on delay."""
    values = runs[0].parameters
    by_plan = {
        name: sorted((run for run in runs if run.variant == name), key=lambda run: run.parameters["skew"])
        for name in dict.fromkeys(run.variant for run in runs)
    }
    found = [_keeps_less(by_plan), _early(by_plan), _no_later(by_plan)]
    if len(by_plan[MELD]) > 1 and _duration(values) >= 2 * _skew(by_plan[MELD][-1].parameters):
        found = [_grows(by_plan[REDUCED]), _flat(by_plan[MELD]), *found]
    if _duration(values) >= 3 * to_units(values["slide"], "ms"):
        found += [_lull_held(by_plan), _lull_waited(by_plan)]
    return found


def _grows(reduced: list[Run]) -> Claim:
    kept = [run.peak_state_bytes for run in reduced]
    straight = float(np.corrcoef([run.parameters["skew"] for run in reduced], kept)[0, 1])
    skewed = reduced[-1].parameters["skew"] - reduced[0].parameters["skew"]
    return Claim(
        "in order, memory grows with the skew of C, in a straight line, by 8 bytes or more for each packet of the fast "
        "links in it",
        straight > 0.98 and kept[-1] - kept[0] >= 8 * 2 * reduced[0].parameters["rate"] * skewed * 0.9,
        {"bytes": _over_skew(reduced, "peak_state_bytes"), "correlation": straight},
    )


def _flat(meld: list[Run]) -> Claim:
    kept = [run.peak_state_bytes for run in meld]
    return Claim(
        "out of order, memory is nearly the same at every skew",
        max(kept) <= 1.5 * min(kept),
        {"bytes": _over_skew(meld, "peak_state_bytes"), "partials": _over_skew(meld, "peak_partials")},
    )


def _keeps_less(by_plan: dict[str, list[Run]]) -> Claim:
    pairs = _pairs(by_plan)
    values = pairs[0][0].parameters
    packets = 2 * values["rate"] * to_seconds(to_units(values["range"], "ms"), "ms")
    return Claim(
        "at every skew, out of order keeps less than in order where links are merged first, and no tuple",
        all(out.peak_state_bytes < run.peak_state_bytes and out.peak_tuples == 0 for out, run in pairs)
        if packets >= ENOUGH
        else None,
        {name: _over_skew(by_plan[name], "peak_state_bytes") for name in (KEPT, REDUCED, MELD)},
    )


def _early(by_plan: dict[str, list[Run]]) -> Claim:
    pairs = list(zip(by_plan[MELD], by_plan[EARLY], strict=True))
    return Claim(
        "not in the thesis: where each link is counted before the merge, a row or two of each link wait in it, and one "
        "for each slide of the skew, so in order keeps no more than out of order, and answers at the same time",
        all(
            early.peak_state_bytes <= out.peak_state_bytes
            and early.peak_tuples
            <= len(LINKS) * (2 + _skew(early.parameters) // to_units(early.parameters["slide"], "ms"))
            and _same(early.delay_p50_s, out.delay_p50_s)
            for out, early in pairs
        ),
        {
            "bytes": _over_skew(by_plan[EARLY], "peak_state_bytes"),
            "rows": _over_skew(by_plan[EARLY], "peak_tuples"),
        },
    )


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def _no_later(by_plan: dict[str, list[Run]]) -> Claim:
    pairs = _pairs(by_plan)
    known = all(math.isfinite(run.delay_p99_s) for pair in pairs for run in pair) and all(
        _duration(run.parameters) >= 3 * to_units(run.parameters["slide"], "ms") + _skew(run.parameters)
        for run in by_plan[MELD]
    )  # of a shorter trace, its end flushes most results
    no_later = all(
        out.delay_p50_s <= run.delay_p50_s and out.delay_p99_s <= run.delay_p99_s for out, run in pairs
    ) and all(
        run.parameters["skew"] <= run.delay_p50_s < run.parameters["skew"] + 1 / QUIET
        for run in by_plan[MELD]
    )
    return Claim(
        "at every skew, out of order answers no later than in order: in the median the skew later, and less than "
        "two packets of C are apart after that",
        no_later if known else None,
        {f"{name}, p99 s": _over_skew(by_plan[name], "delay_p99_s") for name in (KEPT, REDUCED, MELD)},
    )


def _lull_held(by_plan: dict[str, list[Run]]) -> Claim:
    """Return the claims on the Merge while C is silent: it holds the fast links' packets of the whole lull.

    With a heartbeat, those of the skew and of the time to notice the lull: the threshold, a
    tick of the clock, and the granularity.
    """
    values = by_plan[MELD][0].parameters
    fast, lull = 2 * values["rate"], _lull_s(values)
    beating, waiting = by_plan[REDUCED], by_plan[REDUCED + WAITING]
    return Claim(
        "in order, a lull of C is held in memory as a whole, unless there is a heartbeat",
        all(run.peak_tuples <= 1.1 * fast * _noticed_s(run.parameters) for run in beating)
        and all(run.peak_tuples >= 0.9 * fast * lull for run in waiting)
        and all(run.peak_tuples == 0 for run in by_plan[MELD + WAITING]),
        {run.variant: _over_skew(by_plan[run.variant], "peak_tuples") for run in (beating[0], waiting[0])},
    )


def _lull_waited(by_plan: dict[str, list[Run]]) -> Claim:
    beating, waiting = by_plan[MELD], by_plan[MELD + WAITING]
    return Claim(
        "out of order, a lull costs no memory, but without a heartbeat its answers wait for its end",
        all(_longest_s(run) <= _noticed_s(run.parameters) for run in beating)
        and all(_longest_s(run) >= _lull_s(run.parameters) / 2 for run in waiting)
        and all(w.peak_state_bytes <= 2 * t.peak_state_bytes for t, w in zip(beating, waiting, strict=True)),
        {
            f"{runs[0].variant}, max s": {run.parameters["skew"]: _longest_s(run) for run in runs}
            for runs in (beating, waiting)
        },
    )


def _pairs(by_plan: dict[str, list[Run]]) -> list[tuple[Run, Run]]:
    """Return at each skew the plan out of order beside each of those in order."""
    return [pair for name in (KEPT, REDUCED) for pair in zip(by_plan[MELD], by_plan[name], strict=True)]


def _over_skew(runs: list[Run], figure: str) -> dict[int, float]:
    return {run.parameters["skew"]: getattr(run, figure) for run in runs}


def _longest_s(run: Run) -> float:
    """Return the longest delay of a right result, NaN if there is none."""
    return float(run.delays_s.max()) if run.delays_of else math.nan


def _lull_s(values: Values) -> float:
    return to_seconds(to_units(values["lull"], "ms"), "ms")


def _noticed_s(values: Values) -> float:
    return float(values["skew"] + 3 * to_seconds(to_units(values["heartbeat"], "ms"), "ms"))


SCENARIO = Scenario(
    name="links",
    source=SOURCE,
    title="Packets over two fast links and a nearly silent one, RANGE 5 min SLIDE 1 min",
    about=__doc__,
    parameters={
        "skew": Parameter(5, "how much later the packets of C arrive, s", least=0),
        "rate": Parameter(500, "packets per second of M1, and of M2 (thesis: about 4000)", least=1),
        "tuples": Parameter(600_000, "packets of all links; with rate, how long the trace is", least=1000),
        "range": Parameter("5 min", "length of a window"),
        "slide": Parameter("1 min", "how often a window ends"),
        "lull": Parameter("30 s", "length of each of the two lulls of C"),
        "heartbeat": Parameter("1 s", "silence of C that is noticed, and granularity of the plans in order"),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end",),
    claims=claims,
    sweep=Sweep("skew", (0, 2, 4, 6, 8, 10), "s"),
)
