"""Fusion: which operators run together, and by which columns they are divided.

A *component* is a set of operators that run side by side in one task, over the key groups of
the columns that all of them can be divided by (Enorm, 4.4: the intersection of partition
attributes).  Between components tuples are shuffled, inside one they are not.

Operators are fused greedily, best score first (Enorm, algorithm 1).  Two scores:

components      how many partition attributes they have in common: few components, and so few shuffles
communication   how many tuples pass between them in a trial run
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from graphlib import CycleError, TopologicalSorter
from typing import Literal, TypeAlias

from oop_engine.core.graphs.graph import Plan, Stream

__all__ = ["Division", "Inlet", "Score", "division", "fused", "repeats"]

Inlet: TypeAlias = tuple[str, int]
"""Where a component is fed: a node and the number of its input port."""
Key: TypeAlias = dict[Inlet, str]
"""One partition attribute: the column that has it on each inlet."""
Nodes: TypeAlias = frozenset[str]
Score: TypeAlias = Literal["components", "communication"]


@dataclass(frozen=True)
class Division:
    """How a component can be divided.

    ``anyhow``: nothing is kept of tuples, so any division will do.  Else by ``keys``; none: it
    has to stay whole.
    """

    anyhow: bool
    keys: tuple[Key, ...] = ()


def fused(plan: Plan, nodes: list[str], score: Score, rates: Mapping[Stream, int]) -> list[Nodes]:
    """Return ``nodes`` (in topological order) as components; ``rates``: tuples by stream, if known.

    Operators that need order are never cut off from the operators before them: a shuffle keeps none.
    O(nodes^2 x edges); graphs are small.
    """
    return [part for island in _islands(plan, nodes) for part in _fused(_Parts(plan, island), score, rates)]


def _fused(parts: _Parts, score: Score, rates: Mapping[Stream, int]) -> list[Nodes]:
    for name in parts.order:
        if parts.plan.operator(name).needs_order:
            while before := parts.before(parts.of[name]):  # the operators between keep order, if they get it
                parts.join({name, *before})
    while (best := max(parts.moves(score, rates), key=lambda move: move[0], default=None)) is not None:
        parts.join(best[1])
    return parts.all()


def _islands(plan: Plan, nodes: list[str]) -> list[list[str]]:
    """Return the nodes in sets that are not connected with each other, in order."""
    island_of = {name: {name} for name in nodes}
    for name in nodes:
        for stream in plan.node(name).inputs:
            if stream.node in island_of and island_of[stream.node] is not island_of[name]:
                island_of[name] |= island_of[stream.node]
                island_of.update(dict.fromkeys(island_of[name], island_of[name]))
    distinct = {id(island): island for island in island_of.values()}
    return [[name for name in nodes if name in island] for island in distinct.values()]


def division(plan: Plan, nodes: Nodes) -> Division | None:
    """Return how ``nodes`` can be divided together; None: not by the same columns."""
    by_operator: list[list[Key]] = []
    for name in sorted(nodes):
        operator, inputs = plan.operator(name), plan.inputs(name)
        keys = operator.partition_keys(inputs)
        if keys is None:
            continue
        traced = [_merged([_trace(plan, nodes, name, p, c) for p, c in enumerate(key)]) for key in keys]
        by_operator.append([key for key in traced if key])
    if not by_operator:
        return Division(anyhow=True)
    common = reduce(lambda a, b: [m for x in a for y in b if (m := _merged([x, y]))], by_operator)
    if common:
        return Division(False, tuple(common))
    return Division(False) if len(by_operator) == 1 or not any(by_operator) else None


def repeats(plan: Plan, nodes: Nodes, stream: Stream, keys: tuple[Key, ...]) -> tuple[str, ...] | None:
    """Return the columns of an output that repeat the partition attributes; None: not all are there."""
    columns = []
    for key in keys:
        column = next(
            (c for c in plan.schema(stream).names if _is_of(key, _origin(plan, nodes, stream, c))), None
        )
        if column is None:
            return None
        columns.append(column)
    return tuple(columns)


def _is_of(key: Key, origin: Key | None) -> bool:
    return bool(origin) and origin is not None and origin.items() <= key.items()


def _trace(plan: Plan, nodes: Nodes, name: str, port: int, column: str) -> Key | None:
    """Follow a column of an input back to the inlets of the component."""
    stream = plan.node(name).inputs[port]
    if stream.node not in nodes:
        return {(name, port): column}
    return _origin(plan, nodes, stream, column)


def _origin(plan: Plan, nodes: Nodes, stream: Stream, column: str) -> Key | None:
    name = stream.node
    sources = plan.operator(name).lineage(column, plan.inputs(name))
    known = [(port, source) for port, source in enumerate(sources) if source is not None]
    return _merged([_trace(plan, nodes, name, *at) for at in known]) if known else None


def _merged(keys: list[Key | None]) -> Key | None:
    """Return one key of the columns of all; None if they are not of one value."""
    together: Key = {}
    for key in keys:
        if key is None or any(together.get(inlet, column) != column for inlet, column in key.items()):
            return None
        together |= key
    return together


class _Parts:
    """The components while they are being fused."""

    def __init__(self, plan: Plan, nodes: list[str]) -> None:
        self.plan = plan
        self.order = nodes
        self.of: dict[str, Nodes] = {name: frozenset([name]) for name in nodes}

    def all(self) -> list[Nodes]:
        return list(dict.fromkeys(self.of[name] for name in self.order))

    def join(self, names: set[str]) -> None:
        together: Nodes = frozenset().union(*(self.of[name] for name in names))
        self.of.update(dict.fromkeys(together, together))

    def before(self, part: Nodes) -> set[str]:
        """Return the nodes outside that feed ``part``."""
        return {s.node for name in part for s in self.plan.node(name).inputs if s.node in self.of} - part

    def moves(self, score: Score, rates: Mapping[Stream, int]) -> Iterator[tuple[int, set[str]]]:
        """Yield the fusions that are possible: a part with all that feed it, or a stateless part with one it feeds."""
        for part in self.all():
            for name in self.before(part):
                feeds = self.of[name]
                candidates = [{*part, *self.before(part)}]
                if (own := division(self.plan, feeds)) is not None and own.anyhow:
                    candidates.append({*part, *feeds})
                for names in candidates:
                    if (worth := self._worth(names, score, rates)) is not None:
                        yield worth, names

    def _worth(self, names: set[str], score: Score, rates: Mapping[Stream, int]) -> int | None:
        together: Nodes = frozenset().union(*(self.of[name] for name in names))
        how = division(self.plan, together)
        if how is None or not self._acyclic(together):
            return None
        if score == "communication":
            return 1 + sum(rates.get(s, 0) for s in self._between(together))
        return 1 + len(how.keys)

    def _between(self, together: Nodes) -> set[Stream]:
        return {
            s for name in together for s in self.plan.node(name).inputs
            if s.node in self.of and self.of[s.node] != self.of[name]
        } & {s for name in together for s in self.plan.node(name).inputs if s.node in together}  # fmt: skip

    def _acyclic(self, together: Nodes) -> bool:
        part_of = self.of | dict.fromkeys(together, together)
        edges: dict[Nodes, set[Nodes]] = {}
        for name in self.order:
            inputs = {part_of[s.node] for s in self.plan.node(name).inputs if s.node in part_of}
            edges.setdefault(part_of[name], set()).update(inputs - {part_of[name]})
        try:
            TopologicalSorter(edges).prepare()
        except CycleError:
            return False
        return True
