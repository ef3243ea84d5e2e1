"""One clock for all keys, or punctuation per key, where half of the keys lag (keyed watermarks, FGCS 2025).

Sensors of two networks send a value each second; those of one network come ``lag`` seconds later.  Asked are the
number and the sum of values of each sensor and minute.  A system with one watermark has to choose:

    one short clock    trust the usual disorder: values of the slow network come behind the watermark, and those whose
                       window has closed are lost
    one long clock     wait for the slow network: nothing is lost, and all results are late
    in order           the same, sorted
    per key            punctuation per sensor: nothing is lost, and a fast sensor's results do not wait for slow ones

Source of the idea: keyed watermarks for Apache Flink, Future Generation Computer Systems, 2025; there about a third of
the records is lost by one clock.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from oop_engine import Page, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Values, Variant
from oop_engine.operators.aggregates import Count, Sum
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.policies.policies import BoundedDisorder, PerGroup
from oop_engine.operators.policies.running_bound import Policy
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Tumbling
from oop_engine.scenarios.truth import windows

__all__ = ["SCENARIO", "graph_of", "values_of"]

SCHEMA = Schema({"ts": pa.int64(), "sensor": pa.int64(), "value": pa.int64()}, "ts", "ms")
SECOND, MINUTE, PAGE = 1000, 60_000, 2048
JITTER = 2 * SECOND
APART, WINDOWS = (
    30,
    4,
)  # s of lag and windows from which on claims compare the clocks; the last window is never late
PROMPT = 4.0  # s: the disorder, a granule, and a value each second that tells of the time
IN, SHORT, LONG, PER_KEY = "in order", "one short clock", "one long clock", "per key"


@lru_cache(maxsize=4)
def values_of(sensors: int, minutes: int, lag: int, seed: int) -> pa.Table:
    """Return the values as they arrive: ``ts``, ``sensor``, ``value``, ``arrival``; odd sensors lag."""
    draw = np.random.default_rng(seed)
    seconds = minutes * 60
    sensor = np.tile(np.arange(sensors), seconds)
    ts = np.repeat(np.arange(seconds) * SECOND, sensors) + draw.integers(0, SECOND, sensor.size)
    arrival = ts + draw.integers(0, JITTER, ts.size) + sensor % 2 * lag * SECOND
    columns = {"ts": ts, "sensor": sensor, "value": draw.integers(0, 1000, ts.size), "arrival": arrival}
    return pa.table(columns).take(np.argsort(arrival, kind="stable"))


def _given(values: Values) -> pa.Table:
    return values_of(values["sensors"], values["minutes"], values["lag"], values["seed"])


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return the values in pages."""
    found = _given(values)
    columns = {name: found[name].to_numpy() for name in SCHEMA.names}
    whole = Page.of(SCHEMA, columns, arrival=found["arrival"].to_numpy())
    return {"values": [whole.slice(at, min(at + PAGE, len(whole))) for at in range(0, len(whole), PAGE)]}


def graph_of(name: str, policy: Policy, granularity: int = SECOND) -> Graph:
    """Return the plan with a policy of punctuation."""
    graph = Graph(name)
    edge = graph.add("progress", Punctuate(policy, granularity), graph.source("values", SCHEMA))
    count = WindowAggregate(Tumbling(MINUTE), {"n": Count(), "sum": Sum("value")}, by=("sensor",))
    graph.sink("per-minute", graph.add("count", count, edge))
    return graph


def variants(values: Values) -> list[Variant]:
    """Return the plans; the short clock closes windows and nothing between, as a watermark does."""
    short, long = BoundedDisorder(JITTER), BoundedDisorder(JITTER + values["lag"] * SECOND)
    return [
        Variant(IN, "in", in_order(graph_of(IN, long))),
        Variant(SHORT, "out", graph_of(SHORT, short, MINUTE), exact=values["lag"] == 0),
        Variant(LONG, "out", graph_of(LONG, long)),
        Variant(PER_KEY, "out", graph_of(PER_KEY, PerGroup(short, ("sensor",)))),
    ]


def truth(values: Values) -> pa.Table:
    """Return the answer from the definition."""
    found = _given(values)
    return windows(
        found,
        time="ts",
        arrival=found["arrival"].to_numpy(),
        range_=MINUTE,
        slide=MINUTE,
        by=("sensor",),
        aggregates={"n": ("ts", "count"), "sum": ("value", "sum")},
    )


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims."""
    most = max(run.parameters["lag"] for run in runs)
    last = {run.variant: run for run in runs if run.parameters["lag"] == most}
    apart = most >= APART and runs[0].parameters["minutes"] >= WINDOWS
    lost = {name: run.late for name, run in last.items()}
    share = lost[SHORT] / last[SHORT].tuples
    excess = {name: round(last[name].excess_delay_p50_s, 1) for name in (IN, LONG, PER_KEY)}
    return [
        Claim(
            "one short clock loses a fifth of all values, or more",
            share >= 0.2 if apart else None,
            {"lost": round(share, 3)},
        ),
        Claim("punctuation per key loses none", lost[PER_KEY] == 0, lost),
        Claim(
            "the median excess, which is the wait beyond a result's last value, is at least twice as long with one "
            "long clock as with punctuation per key",
            excess[LONG] >= 2 * excess[PER_KEY] and excess[IN] >= 2 * excess[PER_KEY] if apart else None,
            {"median excess, s": excess},
        ),
        Claim(
            f"with punctuation per key the median excess is at most {PROMPT:g} s: for values under way",
            excess[PER_KEY] <= PROMPT,
            {"median excess, s": excess},
        ),
    ]


SCENARIO = Scenario(
    name="keyed_watermarks",
    source="Keyed watermarks in Apache Flink, Future Generation Computer Systems, 2025",
    title="Values of each sensor and minute, where half of the sensors lag",
    about=__doc__,
    parameters={
        "sensors": Parameter(20, "how many; every other one lags", least=2),
        "minutes": Parameter(20, "length of the trace", least=2),
        "lag": Parameter(40, "how much later the slow network is, s", least=0),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    claims=claims,
    keys=("sensor", "window_end"),
    sweep=Sweep("lag", (0, 10, 20, 40), "s"),
)
