"""At rest: a graph over sources that are all there, in no order of arrival: none of their rows is late.

A DataFrame that is read in a batch comes in the order of its partitions, whatever their times.  So generators of
punctuation behind it emit no bound of their own; the end of the stream is one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from oop_engine.core.graphs.graph import Graph

__all__ = ["at_rest"]


def at_rest(graph: Graph, sources: Collection[str]) -> Graph:
    """Return ``graph`` with each generator that rows of ``sources`` reach as its ``at_rest()`` is; O(edges)."""
    reached = set(sources)
    nodes = dict(graph.nodes)
    for node in graph.plan().nodes:
        if reached.isdisjoint(stream.node for stream in node.inputs):
            continue
        reached.add(node.name)
        if (generator := getattr(node.operator, "at_rest", None)) is not None:
            nodes[node.name] = replace(graph.nodes[node.name], operator=generator())
    return Graph(graph.name, nodes)
