"""A guessed slack, or punctuation from the source (thesis 6.1.5, fig. 6-11 and 6-12).

Two traces, as the thesis made them.  ``band``: a packet arrives up to 3.2 s after its time;
mean length, RANGE 64 s SLIDE 6.4 s.  ``block``: a router sends the flows of 490 s in random
order, over the next 490 s, and then a punctuation; count, RANGE 600 s SLIDE 60 s.
In order, a Sort guesses a slack, and a tuple behind it is dropped from all of its windows
(consistent) or from those that have closed (generous; as in the thesis only for ``band``).
Out of order, the count waits for the punctuation that the trace carries.

Where our figures differ from the thesis, and why.  It ran files at full speed and measured
latency as wall time from the punctuation to the results that it covers.  We measure when an
answer comes on the clock of the arrivals.  So (1) a slack that is too small is *sooner* than
the punctuation: it does not wait for tuples that it is going to miss.  The punctuation is
sooner than every slack that loses nothing.  (2) For blocks, delay grows with the slack
from the start.  The thesis's latency hardly depends on it: the time from the
punctuation to the result, and nothing if the result was there before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from oop_engine import Page
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.units import to_units
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Values, Variant
from oop_engine.operators.aggregates import Aggregation, Avg, Count
from oop_engine.operators.edge.prune_punctuation import PrunePunctuation
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.policies.late import Slack
from oop_engine.operators.policies.policies import BoundedDisorder, Upstream
from oop_engine.operators.policies.running_bound import Policy
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding
from oop_engine.scenarios.enough import every
from oop_engine.scenarios.thesis import SOURCE
from oop_engine.scenarios.truth import mean_error, windows, wrong_results
from oop_engine.traces.disorder import Disorder, Link

__all__ = ["SCENARIO"]

PUNCTUATION, CONSISTENT, GENEROUS = "punctuation", "consistent slack", "generous slack"


@dataclass(frozen=True)
class Setting:
    """A trace of one kind of disorder, and the query over it.  Lengths in ms."""

    disorder: str
    rate: int  # tuples per second
    worst: int  # slack that loses nothing
    range: int
    slide: int
    result: str
    aggregate: Aggregation
    arrow: str  # the same aggregate, of Arrow
    slacks: tuple[Slack, ...]

    def trace(self, tuples: int, seed: int) -> Disorder:
        """Return the trace; it has punctuation at the ends of blocks, or of windows."""
        link, duration = (Link("netflow", self.rate),), tuples * 1000 // self.rate
        if self.disorder == "band":
            return Disorder(link, duration, band=self.worst, punctuate=self.slide, seed=seed)
        # One block has arrived before the next one begins to.
        return Disorder(
            link, duration, block=self.worst, band=self.worst - 1, punctuate=self.worst, seed=seed
        )


CASES = {
    "band": Setting("band", 100, 3_200, 64_000, 6_400, "mean_len", Avg("len"), "mean", tuple(Slack)),
    "block": Setting("block", 20, 490_000, 600_000, 60_000, "flows", Count(), "count", (Slack.CONSISTENT,)),
}
SWEEP = Sweep(
    "slack",
    (
        *(f"band {ms} ms" for ms in (0, 320, 640, 1280, 2560, 3200)),
        *(f"block {s} s" for s in (0, 54.4, 109.1, 218.2, 327.3, 434.2, 490.9, 600)),
    ),
)


def case_of(values: Values) -> tuple[Setting, int]:
    """Return the case, and the slack in ms.  Raises ``EngineError`` if the text cannot be read."""
    disorder, _, slack = values["slack"].strip().partition(" ")
    if disorder not in CASES:
        msg = f"netflow: slack must read like 'band 320 ms' or 'block 54.4 s'; got {values['slack']!r}"
        raise UsageError(msg)
    return CASES[disorder], to_units(slack, "ms", "netflow: slack")


def trace(values: Values) -> Disorder:
    """Return the trace of the case."""
    return case_of(values)[0].trace(values["tuples"], values["seed"])


def feeds(values: Values) -> dict[str, Iterator[Message]]:
    """Return the flows as they arrive, with the punctuation of their router."""
    return {"netflow": trace(values).messages()}


def plan(name: str, policy: Policy, values: Values) -> Graph:
    """Return the query.  Only ``Upstream`` uses the punctuation of the trace."""
    case, _ = case_of(values)
    graph = Graph(name)
    stream = graph.source("netflow", trace(values).schema)
    if policy != Upstream():
        stream = graph.add("without-punctuation", PrunePunctuation(keep=()), stream)
    stream = graph.add("progress", Punctuate(policy, granularity=case.slide), stream)
    query = WindowAggregate(Sliding(case.range, case.slide), {case.result: case.aggregate})
    graph.sink("results", graph.add("aggregate", query, stream))
    return graph


def variants(values: Values) -> list[Variant]:
    """Return the plans.

    The granularity is the slide, so that a tuple is late when an extent it is in has closed.
    """
    case, slack = case_of(values)
    guess = BoundedDisorder(slack)
    guessed = [
        Variant(name, "in", in_order(plan(name, guess, values), slack=kind), exact=slack >= case.worst)
        for name, kind in ((CONSISTENT, Slack.CONSISTENT), (GENEROUS, Slack.GENEROUS))
        if kind in case.slacks
    ]
    return [*guessed, Variant(PUNCTUATION, "out", plan(PUNCTUATION, Upstream(), values))]


def truth(values: Values) -> pa.Table:
    """Return the answer by brute force."""
    case, _ = case_of(values)
    pages = [page for page in feeds(values)["netflow"] if isinstance(page, Page)]
    return windows(
        pa.Table.from_batches([page.batch for page in pages]),
        time="ts",
        arrival=np.concatenate([page.arrival for page in pages if page.arrival is not None]),
        range_=case.range,
        slide=case.slide,
        aggregates={case.result: ("len", case.arrow)},
    )


@dataclass(frozen=True)
class Timing:
    """One run: how far off it was and how long it took.

    ``error`` in percent, by the measure of its figure.  ``delay_s``: mean of emission minus
    window end; ``lag_s``: mean of emission minus that of the punctuation's plan, 0 where it
    was before: the latency of the thesis, on the clock of arrivals.
    """

    slack: int
    error: float
    delay_s: float
    lag_s: float
    late: int


Curves = dict[str, list[Timing]]


def curves(runs: list[Run], case: Setting) -> Curves:
    """Return for each plan its points, by slack."""
    mine = [run for run in runs if case_of(run.parameters)[0] == case]
    punctuated = {run.parameters["slack"]: _delays(run, case) for run in mine if run.variant == PUNCTUATION}
    found: Curves = {}
    for run in sorted(mine, key=lambda run: case_of(run.parameters)[1]):
        point = _point(run, case, punctuated[run.parameters["slack"]])
        found.setdefault(run.variant, []).append(point)
    return found


def _point(run: Run, case: Setting, punctuated: dict[int, float]) -> Timing:
    delays = _delays(run, case)
    lags = [max(delay - punctuated[end], 0.0) for end, delay in delays.items()]
    measure = mean_error if case.disorder == "band" else wrong_results
    error = measure(run.table, run.truth, case.result)
    return Timing(
        case_of(run.parameters)[1], error, float(np.mean([*delays.values()])), float(np.mean(lags)), run.late
    )


def _delays(run: Run, case: Setting) -> dict[int, float]:
    """Return the delay of each window that is not waiting for the end of the trace.

    Windows leave in order, so those whose delay is not known, as the end flushed them, are last.
    """
    ends = run.table["window_end"].to_numpy()
    last = run.truth["window_end"].to_numpy().max() - case.range - 2 * case.worst
    known = zip(ends.tolist(), run.all_delays_s.tolist(), strict=False)
    return {end: delay for end, delay in known if end <= last}


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on each figure of whose trace there are runs."""
    found = []
    if band := curves(runs, CASES["band"]):
        found += [_traded(band), _generous(band), _best(band, "band"), _sooner(band, "band")]
    if block := curves(runs, CASES["block"]):
        found += [_optimum(block), _flat(block), _best(block, "block")]
        found += [_sooner(block, "block"), _rises(block)]
    return found


def _traded(band: Curves) -> Claim:
    """The error of a mean is partly chance, so it may rise by a tenth from one slack to the next."""
    steps = [pair for name in (CONSISTENT, GENEROUS) for pair in pairwise(band[name])]
    return Claim(
        "band: as slack grows, error falls to nothing at the maximum disorder, and delay grows",
        every(
            b.error <= 1.1 * a.error
            and b.late <= a.late
            and b.delay_s > a.delay_s
            and (b.error == 0 or b.slack < CASES["band"].worst)
            for a, b in steps
        ),
        _figures(band, "error", "delay_s"),
    )


def _generous(band: Curves) -> Claim:
    pairs = list(zip(band[CONSISTENT], band[GENEROUS], strict=True))
    return Claim(
        "band: generous slack has less than half the error of consistent slack, at the same delay",
        every(g.error < c.error / 2 and g.delay_s == c.delay_s for c, g in pairs if c.error),
        _figures(band, "error"),
    )


def _best(found: Curves, disorder: str) -> Claim:
    exact = found[PUNCTUATION]
    guessed = [point for name, points in found.items() if name != PUNCTUATION for point in points]
    right = [point for point in guessed if not point.error]
    return Claim(
        f"{disorder}: punctuation is never wrong, and sooner than every slack that is not wrong either",
        all(p.error == 0 for p in exact) and every(p.delay_s > exact[0].delay_s for p in right),
        _figures(found, "error", "delay_s"),
    )


def _sooner(found: Curves, disorder: str) -> Claim:
    exact = found[PUNCTUATION][0].delay_s
    lossy = [p for p in found[CONSISTENT] if p.slack < CASES[disorder].worst]
    return Claim(
        f"{disorder}, not as in the thesis: a slack that loses tuples answers sooner than the punctuation, wrongly",
        every(p.delay_s < exact and p.error > 0 for p in lossy),
        _figures(found, "delay_s"),
    )


def _rises(block: Curves) -> Claim:
    return Claim(
        "block, not as in the thesis: delay grows with the slack from the start, not only above a block",
        every(b.delay_s > a.delay_s for a, b in pairwise(block[CONSISTENT])),
        _figures(block, "delay_s"),
    )


def _optimum(block: Curves) -> Claim:
    worst, points = CASES["block"].worst, block[CONSISTENT]
    both = {p.slack >= worst for p in points} == {False, True}
    return Claim(
        "block: the least slack with all results right is the length of a block",
        all((p.error == 0) == (p.slack >= worst) for p in points) if both else None,
        {"block_s": worst / 1000, **_figures(block, "error")},
    )


def _flat(block: Curves) -> Claim:
    worst, points = CASES["block"].worst, block[CONSISTENT]
    below = [p.lag_s for p in points if p.slack < worst]
    above = [p.lag_s for p in points if p.slack >= worst]
    return Claim(
        "block: the time from the punctuation to the result hardly depends on slack below a block, and grows above",
        max(below) - min(below) < 0.05 * worst / 1000
        and all(b > a for a, b in pairwise(above))
        and min(above) > max(below)
        if below and above
        else None,
        _figures(block, "lag_s"),
    )


def _figures(found: Curves, *names: str) -> dict[str, dict[str, float]]:
    """Return figures over slack, in seconds, for each plan."""
    return {
        f"{plan}, {name}": {f"{point.slack / 1000:g} s": round(getattr(point, name), 3) for point in points}
        for name in names
        for plan, points in found.items()
    }


SCENARIO = Scenario(
    name="netflow",
    source=SOURCE,
    title="Slack against punctuation, for band disorder and block-sorted disorder",
    about=__doc__,
    parameters={
        "slack": Parameter("band 1280 ms", "kind of disorder, and the slack of the plans that guess"),
        "tuples": Parameter(
            120_000, "length of the trace (100 a second for band, 20 for block)", least=40_000
        ),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end",),
    claims=claims,
    sweep=SWEEP,
)
