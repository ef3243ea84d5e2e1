"""Waiting: which operators of a graph depend on punctuation that the feed itself has to carry.

``Punctuate`` makes progress out of tuples.  Where none stands between a source and an operator that waits for
punctuation, the feed has to carry it.  If it does not, results wait for the feed's end, and an endless feed has
none.  A graph cannot know that, so it is logged and is no error.
"""

from __future__ import annotations

import logging

from oop_engine.core.graphs.graph import Plan, Stream
from oop_engine.core.operator import Message
from oop_engine.core.page import Page

__all__ = ["MissingPunctuation", "waiting"]

_TUPLES, _PAGES = 100_000, 100


def waiting(plan: Plan) -> dict[str, str]:
    """Return for each source that has to carry punctuation a line: which nodes wait for it.  O(edges x sources)."""
    bare: dict[Stream, dict[str, None]] = {}
    by_source: dict[str, list[str]] = {}
    for node in plan.nodes:
        sources = {name: None for port in range(len(node.inputs)) for name in bare[plan.input(node, port)]}
        if node.kind == "source":
            sources = {node.name: None}
        if node.operator is not None:
            for source in sources if node.operator.waits else ():
                by_source.setdefault(source, []).append(f"{node.name!r} ({node.operator.waits})")
            sources = {} if node.operator.makes_progress else sources
        bare |= {Stream(node.name, port): sources for port in node.ports}
    return {source: _line(plan.name, source, nodes) for source, nodes in by_source.items()}


class MissingPunctuation:
    """Watches the feeds of a graph, and logs (``oop_engine``) a warning for each that lacks the punctuation it needs.

    That is after 100,000 tuples or 100 pages without punctuation; a shorter feed may wait for its end.
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
        f"graph {graph!r}: no Punctuate follows source {source!r}, so unless its feed carries punctuation, "
        f"these wait for its end: {', '.join(nodes)}; put a Punctuate behind it"
    )
