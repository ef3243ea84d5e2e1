"""Toy operators and graphs, small enough to see that they are right, for the tests of runners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine import FOREVER, NEVER, Linear, Operator, Page, Punctuation, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.extend import Emission, Progress, State

SCHEMA = Schema({"ts": pa.int64(), "id": pa.int64()}, "ts", "s")


class Promise(Operator):
    """A generator: no tuple is more than ``slack`` behind; promises at multiples of ``every``.

    With ``clock_every`` it also promises that nothing is older than the clock minus ``lull``.
    """

    makes_progress = True

    def __init__(self, slack: int, every: int = 10, clock_every: int | None = None, lull: int = 0) -> None:
        self.slack, self.every, self.lull = slack, every, lull
        self.clock_every = clock_every

    def open(self) -> None:
        self.below, self.ticks = NEVER, []  # type: ignore[var-annotated]

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        bounds = (np.maximum.accumulate(page.times) - self.slack) // self.every * self.every
        start = 0
        for row in np.flatnonzero(np.diff(bounds, prepend=self.below)).tolist():
            if bounds[row] > self.below:
                yield 0, page.slice(start, row + 1)
                start, self.below = row + 1, int(bounds[row])
                yield 0, Linear(self.below)
        yield 0, page.slice(start, len(page))

    def on_clock(self, now: int) -> Iterator[Emission]:
        self.ticks.append(now)
        yield from self._promise((now - self.lull) // self.every * self.every)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if isinstance(punctuation, Linear):
            yield from self._promise(punctuation.below)

    def _promise(self, below: int) -> Iterator[Emission]:
        if below > self.below:
            self.below = below
            yield 0, Linear(below)


class Union(Operator):
    """Pages of two inputs at once; the minimum of what they promise."""

    inputs = ("left", "right")

    def open(self) -> None:
        self.progress = Progress(2)

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        yield 0, page

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        for said in self.progress.advance(port, punctuation):
            yield 0, said


class Hold(Operator):
    """Keeps every tuple until it is behind a promise: emission times are those of promises."""

    def open(self) -> None:
        self.rows: list[tuple[int, int]] = []
        self.counted, self.below = 0, NEVER

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        self.rows += zip(page.times.tolist(), page.column("id").to_pylist(), strict=True)
        self.counted += len(page)
        yield from ()

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        assert isinstance(punctuation, Linear)
        if punctuation.below <= self.below:
            return
        self.below = punctuation.below
        due = sorted(row for row in self.rows if row[0] < punctuation.below)
        self.rows = [row for row in self.rows if row[0] >= punctuation.below]
        yield 0, page_of(due)
        yield 0, punctuation

    def state(self) -> State:
        return State(tuples=len(self.rows), nbytes=16 * len(self.rows))

    def counts(self) -> dict[str, int]:
        return {"held": self.counted}

    def save(self) -> dict[str, Any]:
        return {"rows": self.rows, "counted": self.counted, "below": self.below}

    def load(self, state: dict[str, Any]) -> None:
        self.rows = [(ts, number) for ts, number in state["rows"]]
        self.counted, self.below = state["counted"], state["below"]


class Fork(Operator):
    """Even ids to one side, odd ones to the other."""

    outputs = ("even", "odd")

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        odd = page.column("id").to_numpy() % 2 == 1
        yield 0, page.filter(~odd)
        yield 1, page.filter(odd)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        yield 0, punctuation
        yield 1, punctuation


class Fail(Operator):
    """Goes wrong at the tuple with a certain id."""

    def __init__(self, at: int) -> None:
        self.at = at

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if self.at in page.column("id").to_pylist():
            msg = f"no {self.at}"
            raise ZeroDivisionError(msg)
        yield 0, page

    def on_end(self, port: int) -> Iterator[Emission]:
        if self.at == FOREVER:
            msg = "no end"
            raise ZeroDivisionError(msg)
        yield from ()


def page_of(rows: list[tuple[int, int]], arrival: list[int] | None = None) -> Page:
    return Page.of(SCHEMA, {"ts": [r[0] for r in rows], "id": [r[1] for r in rows]}, arrival)


def chain(*operators: Operator) -> Graph:
    """source -> o0 -> o1 ... -> sink"""
    graph = Graph("chain")
    stream = graph.source("source", SCHEMA)
    for number, operator in enumerate(operators):
        stream = graph.add(f"o{number}", operator, stream)
    graph.sink("sink", stream)
    return graph


def merged(slack: int, every: int = 10, clock_every: int | None = None, lull: int = 0) -> Graph:
    """Two sources, each with its own promises, united and held until promised."""
    graph = Graph("merged")
    a, b = graph.source("a", SCHEMA), graph.source("b", SCHEMA)
    left = graph.add("left", Promise(slack, every, clock_every, lull), a)
    right = graph.add("right", Promise(slack, every, clock_every, lull), b)
    graph.sink("sink", graph.add("hold", Hold(), graph.add("union", Union(), left, right)))
    return graph


def diamond() -> Graph:
    """A fork whose halves are united again, with a second sink on one of them."""
    graph = Graph("diamond")
    fork = graph.add("fork", Fork(), graph.add("promise", Promise(5), graph.source("source", SCHEMA)))
    even, odd = graph.add("even", Hold(), fork), graph.add("odd", Operator(), fork["odd"])
    graph.sink("sink", graph.add("hold", Hold(), graph.add("union", Union(), even, odd)))
    graph.sink("odds", odd)
    return graph
