"""A cut graph in words: its source chains, its stages, the shuffles between, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oop_engine.spark.plan.fusion import Division, Nodes, division
from oop_engine.spark.plan.pieces import SHARDS, Component, Cut, Edge

__all__ = ["explained", "plain"]


def explained(cut: Cut) -> str:
    """Return the operators of each stage and the reasons for its shuffle, a paragraph a stage."""
    shards = [SHARDS] if cut.at(SHARDS) else []
    lines = [f"{cut.plan.name}: {_number(cut.levels + len(shards), 'shuffle')}"]
    for chain in cut.chains:
        does = " + ".join(chain.nodes) or "nothing, tuples go on as they are"
        lines.append(f"  where {chain.source!r} is read: {does}")
        lines += [f"    -> {_goes(cut, cut.edges[n])}" for numbers in chain.outlets.values() for n in numbers]
    for level in [*shards, *range(1, cut.levels + 1)]:
        lines.append(f"  {'shards' if level == SHARDS else f'stage {level}'}, behind a shuffle")
        for component in cut.at(level):
            lines.append(f"    {component.name}")
            lines.append(f"      {_spread(component)}")
            lines += [f"      why a shuffle: {why}" for why in reasons(cut, component)]
            outlets = [n for numbers in component.outlets.values() for n in numbers]
            lines += [f"      -> {_goes(cut, cut.edges[n])}" for n in outlets]
    return "\n".join(lines)


def reasons(cut: Cut, component: Component) -> Iterator[str]:
    """Yield for each component or source before why this one is not fused with it."""
    edges = [cut.edges[number] for number in component.inlets]
    before = [next((c for c in cut.components if e.stream.node in c.nodes), None) for e in edges]
    read: dict[str, list[str]] = {}
    for edge in (edge for edge, sender in zip(edges, before, strict=True) if sender is None):
        read.setdefault(_by(edge), []).append(repr(_stream(edge)))
    for by, streams in read.items():
        where = "is read in one place, and is" if len(streams) == 1 else "are each read in one place, and are"
        yield f"{', '.join(streams)} {where} wanted {by}"
    for other in {sender.number: sender for sender in before if sender is not None}.values():
        if other.level == SHARDS:
            yield f"{other.name} is in shards, so tuples of one group may be in any of them"
            continue
        together: Nodes = frozenset([*other.nodes, *component.nodes])
        why = _why(division(cut.plan, together))
        yield f"{other.name} is divided {_attributes(other)}, {component.name} {_attributes(component)}: {why}"


def plain(cut: Cut) -> dict[str, Any]:
    """Return the same as plain values, for JSON."""
    chains = [{"source": chain.source, "operators": list(chain.nodes)} for chain in cut.chains]
    stages = [
        [
            {
                "operators": list(c.nodes),
                "by": list(c.attributes),
                "key_groups": c.groups,
                "inputs": [
                    {"stream": _stream(cut.edges[n]), "by": list(cut.edges[n].keys)} for n in c.inlets
                ],
                "why": list(reasons(cut, c)),
            }
            for c in cut.at(level)
        ]
        for level in range(SHARDS if cut.at(SHARDS) else 1, cut.levels + 1)
    ]
    return {"shuffles": len(stages), "heads": chains, "stages": stages}


def _why(how: Division | None) -> str:
    if how is None:
        return "no column divides both"
    return (
        "both at once would have to stay whole"
        if not how.keys
        else "fused, one would wait for the other's source"
    )


def _spread(component: Component) -> str:
    if component.level == SHARDS:
        by = ", ".join(component.attributes)
        return f"in {_number(component.groups, 'shard')}, which keep nothing; key groups of {by} move between them"
    if component.groups == 1:
        return "in one subtask: nothing divides it"
    by = "anyhow" if component.anyhow else f"by {', '.join(component.attributes)}"
    return f"in {_number(component.groups, 'key group')}, divided {by}"


def _attributes(component: Component) -> str:
    if component.anyhow:
        return "anyhow"
    return f"by {', '.join(component.attributes)}" if component.attributes else "by nothing"


def _stream(edge: Edge) -> str:
    return edge.stream.node if edge.stream.port == "out" else str(edge.stream)


def _by(edge: Edge) -> str:
    return f"by {', '.join(edge.keys)}" if edge.keys else "together"


def _goes(cut: Cut, edge: Edge) -> str:
    if edge.component is None:
        return f"sink {edge.sink!r}"
    return f"{cut.components[edge.component].name}, {_by(edge)}"


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
