"""Waiting: who in a graph can only go on when a source itself promises something.

A generator of promises at the edge makes progress out of tuples.  Where there is none between a source and an operator
that waits for promises, all depends on the feed: it may carry punctuation.  If it does not, results wait for its
end, and an endless one has none.  A graph cannot know, so this is told and is no error.
"""

from __future__ import annotations

import logging

from oop_engine.core.graph import Plan, Stream
from oop_engine.core.operator import Message
from oop_engine.core.page import Page

__all__ = ["Unpromised", "waiting"]

_TUPLES, _PAGES = 100_000, 100


def waiting(plan: Plan) -> dict[str, str]:
    """Return for each source that has to carry punctuation itself, in a line, who waits for it.  O(edges x sources)."""
    bare: dict[Stream, dict[str, None]] = {}
    found: dict[str, list[str]] = {}
    for node in plan.nodes:
        sources = {name: None for port in range(len(node.inputs)) for name in bare[plan.input(node, port)]}
        if node.kind == "source":
            sources = {node.name: None}
        if node.operator is not None:
            for source in sources if node.operator.waits else ():
                found.setdefault(source, []).append(f"{node.name!r} ({node.operator.waits})")
            sources = {} if node.operator.makes_progress else sources
        bare |= {Stream(node.name, port): sources for port in node.ports}
    return {source: _line(plan.name, source, nodes) for source, nodes in found.items()}


class Unpromised:
    """Watches what the sources of a graph bring, and tells the logger ``oop_engine`` of those that only bring tuples.

    That is after 100,000 tuples or 100 pages without a promise; less may wait for its end.
    """

    def __init__(self, plan: Plan) -> None:
        self._lines = waiting(plan)
        self._seen = {source: [0, 0] for source in self._lines}

    def see(self, source: str, message: Message) -> None:
        """Note a message of a source."""
        if source not in self._seen:
            return
        if not isinstance(message, Page):
            del self._seen[source]
            return
        seen = self._seen[source]
        seen[0] += len(message)
        seen[1] += 1
        if seen[0] >= _TUPLES or seen[1] >= _PAGES:
            del self._seen[source]
            logging.getLogger("oop_engine").warning("%s", self._lines[source])


def _line(graph: str, source: str, nodes: list[str]) -> str:
    return (
        f"graph {graph!r}: nothing makes promises of the tuples of {source!r}, so unless its feed carries punctuation, "
        f"all waits for its end: {', '.join(nodes)}; put a Punctuate behind it"
    )
