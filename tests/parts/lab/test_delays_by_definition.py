"""Delays of first and of final answers against a simulation from the definition: punctuation between pages, lulls,
and two sources with arrivals of their own."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import Graph, Linear, Page, Schema
from oop_engine.lab.comparison import compare
from oop_engine.operators import Count, Emit, Meld, Punctuate, Tumbling, Upstream, WindowAggregate
from oop_engine.triggers import AfterCount

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")
LENGTH, COUNT = 30, 3  # of a window, and the tuples of its first answer
Event = tuple[int, int, str, int]
"""Moment; 0, 1 or 2 for a tuple, punctuation and the end; source; time or bound."""


def feed(rng: np.random.Generator, name: str) -> tuple[list[Any], list[Event]]:
    messages: list[Any] = []
    events: list[Event] = []
    now = bound = 0
    for _ in range(int(rng.integers(3, 10))):
        now += 90 if rng.random() < 0.2 else int(rng.integers(0, 15))  # a lull, sometimes
        came = np.sort(now + rng.integers(0, 10, int(rng.integers(1, 9))))
        times = np.maximum(bound, came - rng.integers(0, 30, came.size))
        messages.append(Page.of(SCHEMA, {"ts": times}, arrival=came))
        events += [(int(at), 0, name, int(ts)) for at, ts in zip(came, times, strict=True)]
        now = int(came[-1])
        if rng.random() < 0.7:
            now += int(rng.integers(0, 40))
            bound = max(bound, now - int(rng.integers(0, 25)))
            messages.append(Linear(bound, arrival=now))
            events.append((now, 1, name, bound))
    return messages, [*events, (now, 2, name, 2**60)]


def simulated(events: list[Event], *, early: bool) -> tuple[list[int], list[int]]:
    """Return the delays of the first and of the final answers, but for those that the end of the trace emits early."""
    bounds = {name: -1 for _, _, name, _ in events}
    counts, first, final = defaultdict[int, int](int), dict[int, int](), dict[int, int]()
    end = max(events)[0]
    for now, kind, name, value in sorted(events, key=lambda event: event[:2]):
        if kind == 0:
            window = value // LENGTH * LENGTH + LENGTH
            counts[window] += 1
            if early and counts[window] == COUNT:
                first.setdefault(window, now)
            continue
        bounds[name] = max(bounds[name], value)
        for window in [w for w in counts if w <= min(bounds.values()) and w not in final]:
            final[window] = now
            first.setdefault(window, now)
    return tuple(sorted(at - w for w, at in of.items() if at >= w or at < end) for of in (first, final))  # type: ignore[return-value]


@pytest.mark.parametrize("seed", range(6))
def test_delays_are_those_of_a_simulation(seed: int) -> None:
    rng, early = np.random.default_rng(seed), seed % 3 > 0
    graph, feeds, events = Graph("counts"), dict[str, list[Any]](), list[Event]()
    edges = []
    for name in "ab"[: 1 + seed % 2]:
        edges.append(graph.add(f"edge-{name}", Punctuate(Upstream()), graph.source(name, SCHEMA)))
        feeds[name], more = feed(rng, name)
        events += more
    merged = graph.add("all", Meld(2), *edges) if len(edges) == 2 else edges[0]
    emit = Emit(early=AfterCount(COUNT)) if early else None
    windows = WindowAggregate(Tumbling(LENGTH), {"n": Count()}, emit=emit)
    graph.sink("out", graph.add("windows", windows, merged))
    run = compare(graph, feeds).runs[-1]
    first, final = simulated(events, early=early)
    assert sorted(run.delays_s) == final
    assert sorted(run.first_delays_s) == first
