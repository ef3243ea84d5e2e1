"""Speculation: answers at the delay of a guess, that are right in the end (thesis fig. 6-11, and ch. 9).

The trace of ``netflow`` with band disorder: a packet arrives up to 3.2 s after its time; mean length, RANGE 64 s SLIDE
6.4 s.  In figure 6-11 a guessed slack S is a bargain: the sooner the answer, the further off it is, for good.  Here
the guess is a watermark, and 3.2 s, which loses nothing, the punctuation: a first answer leaves on the guess, and
a wrong one is taken back when punctuation passes it.  Beside it are the plans of ``netflow``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from oop_engine.core.graphs.graph import Graph
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Values, Variant
from oop_engine.operators.edge.prune_punctuation import PrunePunctuation
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.triggers import Emit
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding
from oop_engine.scenarios.enough import every
from oop_engine.scenarios.thesis import SOURCE, netflow
from oop_engine.scenarios.thesis.netflow import CASES, CONSISTENT, GENEROUS, PUNCTUATION
from oop_engine.scenarios.truth import mean_error

__all__ = ["SCENARIO"]

DISORDER_MS = 3200  # a guess as long is never wrong
CORRECTED = "corrected guess"
_CASE = CASES["band"]


def flows(values: Values) -> Values:
    """Return the parameters of ``netflow``."""
    return {**values, "slack": f"band {values['slack']} ms"}


def feeds(values: Values) -> dict[str, Iterator[Message]]:
    """Return the flows as they arrive, with the punctuation of their router."""
    return netflow.feeds(flows(values))


def speculating(values: Values) -> Graph:
    """Return the query with two versions of each result: on the guess, and final."""
    graph = Graph(CORRECTED)
    stream = graph.source("netflow", netflow.trace(flows(values)).schema)
    stream = graph.add("without-punctuation", PrunePunctuation(keep=()), stream)
    guess = BoundedDisorder(values["slack"])
    edge = Punctuate(BoundedDisorder(_CASE.worst), granularity=_CASE.slide, watermark=guess)
    windows, asked = Sliding(_CASE.range, _CASE.slide), {_CASE.result: _CASE.aggregate}
    query = WindowAggregate(windows, asked, emit=Emit(late=None))
    graph.sink("results", graph.add("aggregate", query, graph.add("progress", edge, stream)))
    return graph


def variants(values: Values) -> list[Variant]:
    """Return the plans of ``netflow``, and the one that corrects its guess."""
    return [*netflow.variants(flows(values)), Variant(CORRECTED, "out", speculating(values))]


def truth(values: Values) -> pa.Table:
    """Return the answer by brute force."""
    return netflow.truth(flows(values))


class Figures(NamedTuple):
    """One plan at one slack: errors in percent, mean delays in seconds, the figures that are counted."""

    first_error: float
    final_error: float
    first_s: float
    final_s: float
    first_wrong: int
    revised: int


BySlack = dict[int, dict[str, Figures]]


def points(runs: list[Run]) -> BySlack:
    """Return the figures by slack in ms, then by plan."""
    found: BySlack = {}
    for run in sorted(runs, key=lambda run: run.parameters["slack"]):
        found.setdefault(run.parameters["slack"], {})[run.variant] = _point(run)
    return found


def _point(run: Run) -> Figures:
    assert run.first is not None
    first, final = (mean_error(table, run.truth, _CASE.result) for table in (run.first, run.table))
    delays = float(np.mean(run.first_delays_s)), float(np.mean(run.all_delays_s))
    return Figures(first, final, *delays, run.first_wrong or 0, run.revised)


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on the runs, at all slacks."""
    found = points(runs)
    guessed = {
        slack: at for slack, at in found.items() if slack < DISORDER_MS
    }  # with more no first answer is wrong
    return [
        _soon(guessed), _generous(guessed), _right(guessed), _taken_back(guessed), _sure(found), _alone(guessed),
    ]  # fmt: skip


def _soon(found: BySlack) -> Claim:
    return Claim(
        "first answers come at the delay of a slack of that length",
        every(abs(at[CORRECTED].first_s - at[CONSISTENT].final_s) < 0.01 for at in found.values()),
        _figures(found, "first_s", CORRECTED, CONSISTENT),
    )


def _generous(found: BySlack) -> Claim:
    pairs = [(at[CORRECTED].first_error, at[GENEROUS].final_error) for at in found.values()]
    return Claim(
        "first answers are as far off as those of a generous slack, within a tenth",
        every(abs(first - generous) <= 0.1 * generous for first, generous in pairs if generous),
        _figures(found, "first_error", CORRECTED, GENEROUS),
    )


def _right(found: BySlack) -> Claim:
    return Claim(
        "final answers are right whatever the guess, where a slack stays wrong",
        every(at[CORRECTED].final_error == 0 < at[GENEROUS].final_error for at in found.values()),
        _figures(found, "final_error", CORRECTED, GENEROUS, CONSISTENT),
    )


def _taken_back(found: BySlack) -> Claim:
    return Claim(
        "the rows taken back are the first answers that were wrong",
        every(at[CORRECTED].revised == at[CORRECTED].first_wrong > 0 for at in found.values()),
        {**_figures(found, "revised", CORRECTED), **_figures(found, "first_wrong", CORRECTED)},
    )


def _sure(found: BySlack) -> Claim:
    return Claim(
        "final answers come with punctuation, from 3.2 to 3.6 s after the window, for the disorder is 3.2 s, and "
        "less than 0.6 s after that of the router",
        all(
            3.2 <= at[CORRECTED].final_s < 3.6 and 0 <= at[CORRECTED].final_s - at[PUNCTUATION].final_s < 0.6
            for at in found.values()
        ),
        _figures(found, "final_s", CORRECTED, PUNCTUATION),
    )


def _alone(found: BySlack) -> Claim:
    finals = [at[CORRECTED].final_s for at in found.values()]
    slower = every(b[CORRECTED].first_s > a[CORRECTED].first_s for a, b in pairwise(found.values()))
    return Claim(
        "the guess moves the first answer alone: the larger it is the later, and the final one not",
        slower and max(finals) - min(finals) < 0.01 if slower is not None else None,
        _figures(found, "first_s", CORRECTED) | _figures(found, "final_s", CORRECTED),
    )


def _figures(found: BySlack, figure: str, *plans: str) -> dict[str, Any]:
    """Return a figure of some plans over the slack."""
    return {
        f"{plan}, {figure}": {
            f"{slack} ms": round(getattr(at[plan], figure), 3) for slack, at in found.items()
        }
        for plan in plans
    }


SCENARIO = Scenario(
    name="speculation",
    source=SOURCE,
    title="A guess that is corrected, against a slack and against punctuation",
    about=__doc__,
    parameters={
        "slack": Parameter(
            1280, "the guess, ms: a slack of plans in order, a watermark of the others", least=0
        ),
        "tuples": Parameter(120_000, "length of the trace, 100 a second", least=40_000),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end",),
    claims=claims,
    sweep=Sweep("slack", (0, 320, 640, 1280, 2560), "ms"),
)
