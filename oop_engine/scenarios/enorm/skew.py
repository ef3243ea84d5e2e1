"""Per-key windows where most tuples are of keys that meet in one place, and the effect of moving key groups.

Keys are Zipf distributed.  ``hot`` of all tuples are of keys whose key groups an even map puts on
the first of two shards; from the middle of the trace on others are frequent, and those are on the second.
A hash of the key, the usual first step, leaves one task with most of the work, and
the other waiting for it.

In this process the question is one of state and delay, as everywhere.  On Spark it is one of time::

    oop-engine replay skew --on spark --balance

moves key groups from the most to the least loaded shard after a micro-batch, and shows the tuples and the CPU
time of each shard before and after.  The claims on shards follow from counts of tuples alone.

Source: Flux: Shah, Hellerstein, Chandrasekaran, Franklin, ICDE 2003; instant migration: Madsen, Zhou,
Su, Enorm, DEBS 2016, section 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine import Page
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.units import to_units
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Values, Variant
from oop_engine.operators.aggregates import Avg, Count, Max
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding
from oop_engine.scenarios.enorm import SOURCE
from oop_engine.scenarios.enough import every
from oop_engine.scenarios.truth import windows
from oop_engine.spark.plan.balance import Balance, Balancer, even_assignment, unevenness
from oop_engine.spark.plan.key_groups import key_groups
from oop_engine.traces.disorder import Disorder, Link

__all__ = ["SCENARIO", "shares"]

RATE = 10_000  # tuples per second
BAND = "1 s"
SHARDS = 2
CHANCE = 0.05  # share of the tuples of a batch by which loads differ from those before it
BATCH = 1 << 16  # tuples of a micro-batch
Integers = NDArray[np.int64]


def trace(values: Values) -> Disorder:
    """Return the trace; its keys are ranks, 0 the most frequent."""
    duration = values["tuples"] * 1000 // RATE
    return Disorder(
        (Link("a", RATE),), duration, band=BAND, keys=values["keys"], zipf=values["zipf"], seed=values["seed"]
    )


def keys_by_rank(values: Values, hot_shard: int) -> Integers:
    """Return the key of each rank, so that ``hot`` of all tuples are for one shard.

    Rank after rank takes the next free key, of that shard as long as it has no more than its share.
    """
    ids = np.arange(4 * values["keys"])
    place = key_groups([pa.array(ids)], Balance().groups) % SHARDS
    free = [iter(ids[place == shard].tolist()) for shard in range(SHARDS)]
    chances = 1 / np.arange(1, values["keys"] + 1) ** values["zipf"]
    taken, found = 0.0, list[int]()
    for chance, total in zip(chances.tolist(), accumulate(chances.tolist()), strict=True):
        hot = taken + chance <= values["hot"] * total or not found
        taken += chance if hot else 0.0
        found.append(next(free[hot_shard if hot else 1 - hot_shard]))
    return np.array(found)


def feeds(values: Values) -> dict[str, Iterator[Message]]:
    """Return the tuples as they arrive."""
    return {"events": _messages(values)}


def _messages(values: Values) -> Iterator[Message]:
    half = values["tuples"] * 500 // RATE
    before, after = keys_by_rank(values, 0), keys_by_rank(values, 1)
    for message in trace(values).messages():
        if isinstance(message, Page):
            ranks = message.column("key").to_numpy()
            keys = pa.array(np.where(message.times < half, before[ranks], after[ranks]))
            at = message.batch.schema.get_field_index("key")
            batch = message.batch.set_column(at, message.batch.schema.field("key"), keys)
            message = message.with_batch(message.schema, batch)
        yield message


def plan(values: Values) -> Graph:
    """Return the query."""
    graph = Graph("skew")
    tuples = graph.add(
        "progress",
        Punctuate(BoundedDisorder(BAND), granularity=values["slide"]),
        graph.source("events", trace(values).schema),
    )
    asked = {"tuples": Count(), "mean_len": Avg("len"), "longest": Max("len")}
    by_key = WindowAggregate(Sliding(values["range"], values["slide"]), asked, by=("key",))
    graph.sink("per-key", graph.add("by-key", by_key, tuples))
    return graph


def variants(values: Values) -> list[Variant]:
    """Return the plans."""
    return [Variant("in order", "in", in_order(plan(values))), Variant("out of order", "out", plan(values))]


def truth(values: Values) -> pa.Table:
    """Return the answer by brute force."""
    pages = [page for page in feeds(values)["events"] if isinstance(page, Page)]
    return windows(
        pa.Table.from_batches([page.batch for page in pages]),
        time="ts",
        arrival=np.concatenate([page.arrival for page in pages if page.arrival is not None]),
        range_=to_units(values["range"], "ms"),
        slide=to_units(values["slide"], "ms"),
        by=("key",),
        aggregates={"tuples": ("len", "count"), "mean_len": ("len", "mean"), "longest": ("len", "max")},
    )


def shares(values: Values, *, balanced: bool) -> list[float]:
    """Return for each micro-batch the share of its tuples that the most loaded shard has.

    ``balanced``: under the maps that a ``Balancer`` gives, each from the micro-batch after; else under an even one.
    """
    pages = [page for page in feeds(values)["events"] if isinstance(page, Page)]
    of = key_groups([pa.concat_arrays([page.column("key") for page in pages])], Balance().groups)
    balancer = Balancer(Balance(), {0: even_assignment(Balance().groups, SHARDS)}, SHARDS)
    found = []
    for number, at in enumerate(range(0, of.size, BATCH)):
        loads = np.bincount(of[at : at + BATCH], minlength=Balance().groups)
        found.append(unevenness(balancer.assignments[0], loads, SHARDS) / SHARDS)
        if balanced:
            balancer.take(number, {0: loads.tolist()})
    return found


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on memory, and on the loads of shards."""
    out = [run for run in runs if run.variant == "out of order"]
    found = [_no_tuples(runs)]
    if out[0].parameters["tuples"] >= 8 * BATCH:
        values = [run.parameters for run in out]
        loads = {v["hot"]: (shares(v, balanced=False), shares(v, balanced=True)) for v in values}
        found += [_gained(loads), _evened(loads)]
    return found


Loads = dict[float, tuple[list[float], list[float]]]


def _no_tuples(runs: list[Run]) -> Claim:
    return Claim(
        "out of order keeps no tuple, in order it does",
        all((run.peak_tuples == 0) == (run.order == "out") for run in runs),
        {run.variant: run.peak_tuples for run in runs},
    )


def _gained(loads: Loads) -> Claim:
    """See by how much the most loaded shard has less to do, which is how much sooner a batch is done."""
    means = {hot: tuple(float(np.mean(_steady(of))) for of in both) for hot, both in loads.items()}
    return Claim(
        "balanced, the most loaded of two shards has at most 0.85 of the tuples that it has under an even map, where "
        "0.7 of them are hot, and at most 0.73 where 0.8 are",
        every(
            moved <= (0.73 if hot >= 0.8 else 0.85) * even
            for hot, (even, moved) in means.items()
            if hot >= 0.7
        ),
        {f"hot {hot:g}": {"even": round(e, 3), "balanced": round(m, 3)} for hot, (e, m) in means.items()},
    )


def _evened(loads: Loads) -> Claim:
    """See that behind the start and behind the change no shard has more than the threshold and chance allow."""
    limit = Balance().threshold / SHARDS + CHANCE
    return Claim(
        "balanced, the most loaded of two shards has at most 0.65 of the tuples, soon after each change",
        all(share <= limit for _, moved in loads.values() for share in _steady(moved)),
        {f"hot {hot:g}, most": round(max(_steady(moved)), 3) for hot, (_, moved) in loads.items()},
    )


def _steady(by_batch: list[float]) -> list[float]:
    """Leave out the first two micro-batches, those around the change, and the last, a small one."""
    half = len(by_batch) // 2
    return [share for at, share in enumerate(by_batch[:-1]) if at >= 2 and not half - 1 <= at <= half + 2]


SCENARIO = Scenario(
    name="skew",
    source=SOURCE,
    title="Counts and lengths by key, RANGE 10 s SLIDE 5 s, where most tuples are of a few key groups",
    about=__doc__,
    parameters={
        "hot": Parameter(0.8, "share of tuples whose keys an even map puts on one of two shards", least=0.5),
        "tuples": Parameter(1_000_000, f"length of the trace, {RATE} a second", least=1000),
        "keys": Parameter(2000, "how many keys there are", least=10),
        "zipf": Parameter(1.0, "a key of rank r comes with probability 1 / r ** zipf", least=0),
        "range": Parameter("10 s", "length of a window"),
        "slide": Parameter("5 s", "how often a window ends"),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("key", "window_end"),
    claims=claims,
    sweep=Sweep("hot", (0.7, 0.8, 0.85)),
)
