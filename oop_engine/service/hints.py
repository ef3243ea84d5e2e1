"""Hints, before a service starts: why results could never leave, lengths to doubt, and data that a crash would lose."""

from __future__ import annotations

from collections.abc import Mapping

from oop_engine.connectors.source import LiveSource
from oop_engine.core.graphs.graph import Plan
from oop_engine.core.graphs.leading import leading_to
from oop_engine.core.graphs.lengths import doubtful_lengths
from oop_engine.core.graphs.waiting import waiting
from oop_engine.core.operator import Operator

__all__ = ["hints", "lost_in_a_crash"]


def hints(plan: Plan, operators: Mapping[str, Operator]) -> list[str]:
    """Return a line for each source that must carry punctuation, or must not fall silent, and each length to doubt.

    ``operators``: those of the plan, opened, by name.

    >>> from oop_engine import Graph
    >>> hints(Graph("empty").plan(), {})
    Traceback (most recent call last):
    oop_engine.core.errors.GraphError: graph 'empty': there is no source
    """
    return [*waiting(plan).values(), *_silent(plan, operators), *doubtful_lengths(plan)]


def lost_in_a_crash(plan: Plan, sources: Mapping[str, LiveSource]) -> list[str]:
    """Return a line for each source of which a checkpoint does not bring back the data behind it."""
    return [
        f"graph {plan.name!r}, source {name!r}: {type(source).__name__} cannot be read again, so a crash loses "
        "the data since the last checkpoint; Journal(source, folder), or ?journal=DIR, keeps them"
        for name, source in sources.items()
        if not source.replayable and type(source).acknowledge is LiveSource.acknowledge
    ]


def _silent(plan: Plan, operators: Mapping[str, Operator]) -> list[str]:
    """Return a line for each source beside others, behind which nothing goes by the arrival clock."""
    sources = {node.name for node in plan.of_kind("source")}
    before = {name: sources & leading_to(plan, name) for name in operators}
    lines = []
    for source in plan.of_kind("source"):
        downstream = [name for name in operators if source.name in before[name]]
        shared = [name for name in downstream if operators[name].waits and len(before[name]) > 1]
        if shared and not any(operators[name].clock_every for name in downstream):
            lines.append(
                f"graph {plan.name!r}: while source {source.name!r} is silent, {', '.join(map(repr, shared))} "
                f"wait{'s' * (len(shared) == 1)} for it; Punctuate(Heartbeat(...)) behind it goes by the clock then"
            )
    return lines
