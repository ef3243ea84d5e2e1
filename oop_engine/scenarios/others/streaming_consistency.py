"""Transfers between accounts: the total of all balances is 0 in every output (J. Brandon, 2021).

Each transfer takes money from one account and gives it to another, and comes up to 10 s out of order.  Credits and
debits of each account are summed up separately, joined to balances, and added up to a total once a second.  No transfer
makes or loses money, so each total must be 0.  A system that joins sums of different moments emits totals that never
were: in the author's test Flink's tables and ksqlDB did.

    in order        the transfers are sorted first, and then summed up as below
    out of order    sums take transfers as they come; the sums of one moment leave when punctuation has passed it, and
                    only these meet in the join
    too short       the source is trusted to be 1 s out of order: late transfers are lost, with both of their sides, so
                    totals are still 0, of fewer transfers

Source of the test: "Internal consistency in streaming systems", scattered-thoughts.net.
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
from oop_engine.operators.aggregates import Sum
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.joining.bands import Band
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.project import Project
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Landmark, Tumbling

__all__ = ["SCENARIO", "graph_of", "transfers"]

SCHEMA = Schema(
    {"ts": pa.int64(), "source": pa.int64(), "target": pa.int64(), "amount": pa.int64()}, "ts", "ms"
)
SECOND, PAGE = 1000, 4096
ENOUGH = 5000  # transfers, from which on some come later than a source is trusted
IN, OUT, SHORT = "in order", "out of order", "too short"
Integers = NDArray[np.int64]


@lru_cache(maxsize=4)
def transfers(tuples: int, accounts: int, late: int, seed: int) -> pa.Table:
    """Return the transfers as they arrive: ``ts``, ``source``, ``target``, ``amount``, ``arrival``; one each ms."""
    draw = np.random.default_rng(seed)
    ts = np.arange(tuples, dtype=np.int64)
    source = draw.integers(0, accounts, tuples)
    target = (source + draw.integers(1, accounts, tuples)) % accounts
    arrival = ts + draw.integers(0, late * SECOND + 1, tuples)
    columns = {"ts": ts, "source": source, "target": target, "amount": draw.integers(1, 1000, tuples)}
    return pa.table({**columns, "arrival": arrival}).take(np.argsort(arrival, kind="stable"))


def _given(values: Values) -> pa.Table:
    return transfers(values["tuples"], values["accounts"], values["late"], values["seed"])


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return the transfers in pages."""
    found = _given(values)
    columns = {name: found[name].to_numpy() for name in SCHEMA.names}
    whole = Page.of(SCHEMA, columns, arrival=found["arrival"].to_numpy())
    return {"transfers": [whole.slice(at, min(at + PAGE, len(whole))) for at in range(0, len(whole), PAGE)]}


def graph_of(name: str, late: int) -> Graph:
    """Return the plan for transfers that come at most ``late`` seconds out of order."""
    graph = Graph(name)
    source = graph.source("transfers", SCHEMA)
    moves = graph.add("progress", Punctuate(BoundedDisorder(late * SECOND), SECOND), source)
    sums = [
        graph.add(
            name,
            WindowAggregate(Landmark(SECOND), {name: Sum("amount")}, by=("account",)),
            graph.add(f"{name}s", Project({"ts": "ts", "account": account, "amount": "amount"}), moves),
        )
        for name, account in (("credit", "target"), ("debit", "source"))
    ]
    sides = graph.add("balances", OAJoin("account", Band(0, 0), how="full"), *sums)
    balance = pc.subtract(pc.coalesce(pc.field("credit"), 0), pc.coalesce(pc.field("debit"), 0))
    found = graph.add("balance", Project({"time": "time", "balance": balance}), sides)
    total = WindowAggregate(Tumbling(SECOND, origin=1), {"total": Sum("balance")})  # of one moment each
    graph.sink("totals", graph.add("total", total, found))
    return graph


def variants(values: Values) -> list[Variant]:
    """Return the plans."""
    return [
        Variant(IN, "in", in_order(graph_of(IN, values["late"]), windows="reduce")),
        Variant(OUT, "out", graph_of(OUT, values["late"])),
        Variant(SHORT, "out", graph_of(SHORT, 1), exact=values["late"] <= 1),
    ]


def truth(values: Values) -> pa.Table:
    """Return the answer from the definition: one total a second, 0, complete with the last transfer before it."""
    found = _given(values).sort_by("ts")
    latest = np.maximum.accumulate(found["arrival"].to_numpy())
    times = found["ts"].to_numpy()
    ends = np.arange(SECOND, times[-1] + SECOND + 1, SECOND)
    complete = latest[np.searchsorted(times, ends) - 1]
    nothing = np.zeros(ends.size, np.int64)
    columns = {"window_start": ends + 1 - SECOND, "window_end": ends + 1, "total": nothing}
    return pa.table({**columns, COMPLETE_AT: complete})


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims."""
    wrong = {_name(run): pc.sum(pc.not_equal(run.table["total"], 0)).as_py() or 0 for run in runs}
    outputs = {_name(run): run.results for run in runs}
    seconds = {_name(run): -(-run.tuples // SECOND) for run in runs}
    lost = {_name(run): run.late for run in runs if not run.exact}
    found = [
        Claim("every total of every plan is 0", not any(wrong.values()), wrong),
        Claim("every plan has a total for each second", outputs == seconds, outputs),
    ]
    if lost:
        enough = runs[0].parameters["tuples"] >= ENOUGH
        loses = min(lost.values()) > 0 if enough else None
        found.append(Claim("a source that is trusted too much loses transfers", loses, lost))
    return found


def _name(run: Run) -> str:
    return f"{run.variant}, {run.parameters['late']} s"


SCENARIO = Scenario(
    name="streaming_consistency",
    source="J. Brandon, Internal consistency in streaming systems, 2021",
    title="The total of all balances, once a second, by a join of credits and debits",
    about=__doc__,
    parameters={
        "tuples": Parameter(60_000, "transfers, one each ms", least=2000),
        "accounts": Parameter(100, "how many", least=2),
        "late": Parameter(10, "how far out of order a transfer comes at most, s", least=0),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    claims=claims,
    keys=("window_end",),
    sweep=Sweep("late", (0, 2, 5, 10), "s"),
)
