"""The pieces of a graph that is cut up: source chains, components, and the edges between."""

from __future__ import annotations

from dataclasses import dataclass

from oop_engine.core.graphs.graph import Graph, Plan, Stream
from oop_engine.core.schema import Schema

__all__ = ["SHARDS", "Component", "Cut", "Edge", "SourceChain"]

SHARDS = 0
"""The level of components that run in shards."""


@dataclass(frozen=True)
class Edge:
    """Where a stream goes to: a component, or a sink (``component`` None).

    ``keys``: the columns by which its tuples find their key group; none: any will do.
    ``channels``: how many subtasks before it write to it.  ``owner``: the columns by which those
    are divided, where the stream still has them: a bound for groups of these holds for all channels.
    ``unordered``: its tuples have no order of arrival, and no generator of punctuation has seen them yet.
    """

    number: int
    stream: Stream
    schema: Schema
    component: int | None
    sink: str = ""
    keys: tuple[str, ...] = ()
    channels: int = 1
    owner: tuple[str, ...] | None = None
    unordered: bool = False

    @property
    def name(self) -> str:
        """The name of the source that stands for this edge in the graph of its component."""
        return f"edge-{self.number}"


@dataclass(frozen=True)
class SourceChain:
    """The operators that run where source ``source`` is read; its sinks are named as ``outlets`` has them."""

    source: str
    nodes: tuple[str, ...]
    graph: Graph
    outlets: dict[str, tuple[int, ...]]  # sink of ``graph`` -> the edges its stream goes to


@dataclass(frozen=True)
class Component:
    """Operators that run together, in ``groups`` subtasks.

    ``attributes``: the columns that divide it, as its first operators name them; ``anyhow``: nothing is kept
    of tuples, so they may be anywhere; ``ordered``: tuples must stay in the order they were sent.
    At the level ``SHARDS`` the subtasks are shards, and an assignment maps keys to them.
    """

    number: int
    nodes: tuple[str, ...]
    level: int
    groups: int
    attributes: tuple[str, ...]
    anyhow: bool
    ordered: bool
    inlets: tuple[int, ...]
    graph: Graph
    outlets: dict[str, tuple[int, ...]]

    @property
    def name(self) -> str:
        """The names of its operators."""
        return " + ".join(self.nodes)


@dataclass(frozen=True)
class Cut:
    """A graph in source chains, components and the edges between."""

    plan: Plan
    chains: tuple[SourceChain, ...]
    components: tuple[Component, ...]
    edges: tuple[Edge, ...]
    clock_every: int | None = None

    @property
    def levels(self) -> int:
        """How many shuffles to operators with state there are, one behind the other."""
        return max((c.level for c in self.components), default=0)

    def at(self, level: int) -> list[Component]:
        """Return the components of a level (1 is the first with state)."""
        return [c for c in self.components if c.level == level]
