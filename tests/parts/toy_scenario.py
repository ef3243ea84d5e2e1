"""A scenario of a user: tuples a minute, by an operator that knows promises and by one that buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine.core.graphs.graph import Graph
from oop_engine.core.operator import Emission, Message, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Linear, Punctuation
from oop_engine.core.schema import Schema
from oop_engine.lab.scenario import COMPLETE_AT, Claim, Parameter, Scenario, Sweep, Values, Variant

PACKETS = Schema({"ts": pa.int64(), "len": pa.int32()}, "ts", "s")
COUNTS = Schema({"end": pa.int64(), "n": pa.int64()}, "end", "s")
RANGE = 60


class Promise(Operator):
    """Promises that no tuple is more than ``slack`` behind the largest one."""

    makes_progress = True

    def __init__(self, slack: int) -> None:
        self.slack = slack

    def open(self) -> None:
        """Start with no promise."""
        self.below = 0

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        """Pass the page on, then promise."""
        yield 0, page
        if (below := int(page.times.max()) - self.slack) > self.below:
            self.below = below
            yield 0, Linear(below)

    def describe(self) -> str:
        """Name the slack."""
        return f"Promise(slack={self.slack} s)"


class CountMinutes(Operator):
    """Counts per minute: keeps a partial a minute, or (``buffer``) every tuple until it is due."""

    def __init__(self, buffer: bool) -> None:
        self.buffer = buffer

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        """One count a minute."""
        return (COUNTS,)

    def open(self) -> None:
        """Start with no minute open."""
        self.counts_of: dict[int, int] = {}

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        """Count."""
        for end, n in zip(*np.unique(page.times // RANGE * RANGE + RANGE, return_counts=True), strict=True):
            self.counts_of[int(end)] = self.counts_of.get(int(end), 0) + int(n)
        yield from ()

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        """Close the minutes that are complete."""
        assert isinstance(punctuation, Linear)
        ends = sorted(end for end in self.counts_of if end <= punctuation.below)
        yield 0, Page.of(COUNTS, {"end": ends, "n": [self.counts_of.pop(end) for end in ends]})
        yield 0, punctuation

    def state(self) -> State:
        """Count tuples or partials."""
        if self.buffer:
            tuples = sum(self.counts_of.values())
            return State(tuples=tuples, nbytes=12 * tuples)
        return State(partials=len(self.counts_of), nbytes=16 * len(self.counts_of))

    def describe(self) -> str:
        """Name the way."""
        return f"CountMinutes({'buffering' if self.buffer else 'partials'})"


def trace(values: Values) -> pa.Table:
    rng = np.random.default_rng(7)
    arrival = np.arange(values["tuples"], dtype=np.int64)
    ts = np.maximum(arrival - rng.integers(0, values["skew"] + 1, arrival.size), 0)
    return pa.table({"ts": ts, "len": rng.integers(40, 1500, arrival.size).astype("i4"), "arrival": arrival})


def feeds(values: Values) -> dict[str, Iterator[Message]]:
    return {"packets": pages(trace(values))}


def pages(table: pa.Table) -> Iterator[Message]:
    for start in range(0, table.num_rows, 50):
        part = table.slice(start, 50)
        columns: dict[str, Any] = {name: part.column(name).to_pylist() for name in ("ts", "len")}
        yield Page.of(PACKETS, columns, part.column("arrival").to_numpy())


def variants(values: Values) -> list[Variant]:
    return [
        Variant("buffer", "in", plan("in order", values["skew"], buffer=True)),
        Variant("partials", "out", plan("out of order", values["skew"], buffer=False)),
    ]


def plan(name: str, slack: int, buffer: bool) -> Graph:
    graph = Graph(name)
    packets = graph.source("packets", PACKETS)
    progress = graph.add("progress", Promise(slack), packets)
    graph.sink("counts", graph.add("count", CountMinutes(buffer), progress))
    return graph


def truth(values: Values) -> pa.Table:
    table = trace(values)
    ends = table.column("ts").to_numpy() // RANGE * RANGE + RANGE
    keys, n = np.unique(ends, return_counts=True)
    complete = [int(table.column("arrival").to_numpy()[ends == key].max()) for key in keys]
    return pa.table({"end": keys, "n": n, COMPLETE_AT: complete})


def claims(runs: list[Any]) -> list[Claim]:
    kept = {order: max(run.peak_state_bytes for run in runs if run.order == order) for order in ("in", "out")}
    demand = max(run.parameters["demand"] for run in runs)
    figures = {
        **kept,
        "ratio": float("nan") if not kept["out"] else kept["in"] / kept["out"],
        "peak": np.int64(3),
    }
    return [Claim("out of order keeps less", kept["out"] * demand < kept["in"], figures)]


SCENARIO = Scenario(
    name="toy",
    title="Packets a minute",
    about="How many packets came each minute, when some come late?",
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("end",),
    claims=claims,
    parameters={
        "skew": Parameter(20, "how late a packet can be, in seconds", least=0),
        "tuples": Parameter(1000, "how many packets", least=1),
        "demand": Parameter(2.0, "how many times less must be kept"),
    },
    sweep=Sweep("skew", (0, 20, 60), "s"),
)
