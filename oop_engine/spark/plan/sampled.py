"""Sampled: which aggregates with ``by`` get first halves where their sources are read, by the first rows of these.

A first half pays where a page has far fewer groups than tuples: then only partial aggregates are shuffled.  Else its
rows are as many as the tuples, and wider.  Neither the graph nor its schemas tell which it is, so the first rows are
run through the first halves at the driver, once: the checkpoint stores the decision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from oop_engine.core.change import Change
from oop_engine.core.errors import EngineError
from oop_engine.core.graphs.graph import Graph, Stream
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.runners.inline import Inline, Result
from oop_engine.spark.io.segments import Segments
from oop_engine.spark.plan.cut import cut
from oop_engine.spark.plan.pieces import SourceChain
from oop_engine.spark.plan.two_level import scaled, splittable

__all__ = ["worth_halves"]

_LEAST_ROWS = 1 << 12
"""Rows of a source from which on a sample tells something."""
_MOST_ROWS = 1 << 16
_TIMES = 4
"""Of this many times fewer bytes a first half pays: it takes the time of an aggregate, and the second half as well."""


def worth_halves(graph: Graph, sources: Mapping[str, Segments], unordered: Collection[str] = ()) -> list[str]:
    """Return the aggregates of ``graph`` with ``by`` whose first halves are to stand where ``sources`` are read.

    ``unordered``: sources that are not read in one place.  Reads up to 65,536 rows of each source; O(these).
    """
    names = list(splittable(graph, unordered))
    if not names:
        return []
    twin, _ = scaled(graph, unordered, split=False, halves=names)
    before, after = Counter[str](), Counter[str]()
    for chain in cut(twin, groups=2, unordered=unordered).chains:
        halves = {half: name for name in names for half in chain.nodes if _is_half(half, name)}
        if halves and chain.source in sources:
            for name, given, made in _sampled(chain, halves, sources[chain.source]):
                before[name] += given
                after[name] += made
    return [name for name in names if after[name] * _TIMES <= before[name] and before[name]]


def _is_half(node: str, name: str) -> bool:
    return node == f"{name}-partial" or node.startswith(f"{name}-partial-")


def _sampled(
    chain: SourceChain, halves: Mapping[str, str], segments: Segments
) -> Iterator[tuple[str, int, int]]:
    """Yield for each aggregate the bytes of pages in front of its first half, and of those behind it."""
    graph = Graph("sample")
    graph.source(chain.source, segments.schema)
    for name in chain.nodes:
        node = chain.graph.nodes[name]
        assert node.operator is not None
        graph.add(name, node.operator, *node.inputs)
    for half in halves:
        graph.sink(f"before-{half}", chain.graph.nodes[half].inputs[0])
        graph.sink(f"behind-{half}", half)
    used = {graph.resolve(stream) for node in graph.nodes.values() for stream in node.inputs}
    for stream in [Stream(name, port) for name in chain.nodes for port in graph.nodes[name].ports]:
        if stream not in used:
            graph.sink(f"end-{stream.node}-{stream.port}", stream)
    sizes = Counter[str]()

    def count(result: Result) -> None:
        if isinstance(result.message, Page):
            sizes[result.sink] += result.message.nbytes

    rows = _run(Inline(graph, count), chain.source, segments)
    if rows >= _LEAST_ROWS:
        yield from ((name, sizes[f"before-{half}"], sizes[f"behind-{half}"]) for half, name in halves.items())


def _run(inline: Inline, source: str, segments: Segments) -> int:
    """Run the first rows of a source; return how many; none if they are wrong, which the query will tell."""
    rows = 0
    try:
        for message in _messages(segments):
            page = message.without_arrival() if isinstance(message, Page) else message
            inline.push(source, page)
            inline.drain()
            rows += len(message) if isinstance(message, Page) else 0
            if rows >= _MOST_ROWS:
                break
    except (EngineError, OSError):
        return 0
    return rows


def _messages(segments: Segments) -> Iterator[Message]:
    for number in range(segments.count()):
        yield from (message for message in segments.read(number) if not isinstance(message, Change))
