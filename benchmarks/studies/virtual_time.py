"""Virtual time: CPU of a replay that answers at each punctuation, and of one that takes whole pages; small joins.

    python -m benchmarks.studies.virtual_time ROWS [SCENARIO ...]

A replay in virtual time cuts pages at every punctuation, so state and delay are those of the real thing.  Of each plan
of the scenarios (default: three joins): CPU milliseconds of both, their ratio, and how many pages and punctuations went
along the edges.  Then microseconds a tuple of W4 over ROWS tuples, in pages of several sizes, each answered before the
next.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from benchmarks.ours import run_graph
from benchmarks.workloads import WORKLOADS
from oop_engine.core.graphs.graph import Graph
from oop_engine.lab.scenario import Scenario, find
from oop_engine.runners.replay import replay

__all__ = ["joins", "virtual_time"]

TURNS = 3
SCENARIOS = ("late_join", "union_join", "packet_join")
PAGES = (1, 16, 256, 65_536)


def virtual_time(scenario: Scenario, settings: dict[str, str] | None = None) -> dict[str, dict[str, float]]:
    """Return the figures of each plan, the least of three turns."""
    values = scenario.values(settings)
    return {one.name: _of_plan(scenario, values, one.graph) for one in scenario.variants(values)}


def joins(rows: int) -> dict[str, float]:
    """Return CPU microseconds a tuple of W4, by the size of its pages; small ones over fewer tuples."""
    w4 = WORKLOADS["W4"]
    found = {}
    for page in PAGES:
        feed = list(w4.feed(w4.data(min(rows, 2000 * page)), page))
        tuples = sum(len(cut) for _, cut in feed)
        found[f"pages of {page}"] = 1e6 * min(_cpu_s(w4.graph(), feed) for _ in range(TURNS)) / tuples
    return found


def _of_plan(scenario: Scenario, values: dict[str, Any], graph: Graph) -> dict[str, float]:
    spent = {True: float("inf"), False: float("inf")}
    edges = {}
    for flat_out in [True, False] * TURNS:
        outcome = replay(graph, scenario.feeds(values), flat_out=flat_out)
        spent[flat_out] = min(spent[flat_out], outcome.cpu_s)
        edges = outcome.statistics.edges
    return {
        "flat_out_ms": 1e3 * spent[True],
        "virtual_ms": 1e3 * spent[False],
        "ratio": spent[False] / spent[True],
        "messages": sum(edge.pages + edge.punctuations for edge in edges.values()),
    }


def _cpu_s(graph: Graph, feed: list[tuple[str, Any]]) -> float:
    began = time.process_time()
    run_graph(graph, feed, lambda _: None)
    return time.process_time() - began


if __name__ == "__main__":
    rows, *names = sys.argv[1:]
    print(
        json.dumps(
            {name: virtual_time(find(name)) for name in names or SCENARIOS} | {"W4": joins(int(rows))},
            indent=1,
        )
    )
