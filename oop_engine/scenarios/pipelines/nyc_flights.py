"""Flights and mean delay per carrier, RANGE 3 h SLIDE 15 min, over the airports: the query of the scenario."""

from __future__ import annotations

from collections.abc import Mapping

from oop_engine import Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.operators.aggregates import Avg, Count
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.meld import Meld
from oop_engine.operators.policies.running_bound import Policy
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding

__all__ = ["graph"]


def graph(schemas: Mapping[str, Schema], policies: Mapping[str, Policy]) -> Graph:
    """Return the query over a source for each airport."""
    query = Graph("flights per carrier")
    airports = [
        query.add(
            f"{name}-progress", Punctuate(policies[name], granularity="15 min"), query.source(name, schema)
        )
        for name, schema in schemas.items()
    ]
    union = query.add("airports", Meld(len(airports)), *airports)
    delays = WindowAggregate(
        Sliding("3 h", "15 min"), {"flights": Count(), "mean_delay": Avg("dep_delay")}, by=("carrier",)
    )
    query.sink("delays", query.add("per-carrier", delays, union))
    return query
