"""Bytes per key, RANGE 10 s SLIDE 1 s, over all links."""

from __future__ import annotations

from collections.abc import Mapping

from oop_engine import Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.operators.aggregates import Count, Sum
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.meld import Meld
from oop_engine.operators.policies.running_bound import Policy
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding

__all__ = ["graph"]


def graph(schemas: Mapping[str, Schema], policies: Mapping[str, Policy]) -> Graph:
    """Return the query over a source for each link."""
    query = Graph("bytes per key")
    links = [
        query.add(
            f"{name}-progress", Punctuate(policies[name], granularity="1 s"), query.source(name, schema)
        )
        for name, schema in schemas.items()
    ]
    union = query.add("links", Meld(len(links)), *links)
    sums = WindowAggregate(Sliding("10 s", "1 s"), {"packets": Count(), "bytes": Sum("len")}, by=("key",))
    query.sink("bytes", query.add("per-key", sums, union))
    return query
