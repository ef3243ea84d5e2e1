"""Where the boxes of a graph go: layers from the sources down, few crossings, no overlap.

The usual way (Sugiyama): a node stands one layer below its lowest input; an edge that
spans layers gets a waypoint in each; then rows are sorted by the middle of their neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Layout", "layered"]

_SWEEPS = 4


@dataclass(frozen=True)
class Layout:
    """Centres of the nodes (x) and tops of the layers (y), in pixels; ways as waypoints.

    ``routes``: for each edge, in the order given, the x of its waypoint in each layer that
    it crosses, from the upper end down, both ends included.
    """

    layer: dict[str, int]
    x: dict[str, float]
    tops: list[float]
    heights: list[float]
    routes: list[list[float]]
    width: float
    height: float


def layered(
    sizes: Mapping[str, tuple[float, float]], edges: list[tuple[str, str]], gap: tuple[float, float]
) -> Layout:
    """Lay out nodes of ``sizes`` (width, height), given so that inputs come first.

    ``gap``: the least distance between two boxes, and between two layers.
    O((nodes + edges x layers) log) for a few sweeps.
    """
    layer = _layers(sizes, edges)
    chains = [_chain(edge, number, layer) for number, edge in enumerate(edges)]
    boxes = {**{point: (0.0, 0.0) for chain in chains for point in chain}, **sizes}
    rows: list[list[str]] = [[] for _ in range(max(layer.values()) + 1)]
    for name in sizes:
        rows[layer[name]].append(name)
    for chain in chains:
        for depth, point in enumerate(chain[1:-1], start=layer[chain[0]] + 1):
            rows[depth].append(point)
    links = [pair for chain in chains for pair in pairwise(chain)]
    x = _placed(rows, boxes, links, gap[0])
    heights = [max(boxes[name][1] for name in row) for row in rows]
    tops = [sum(heights[:i]) + gap[1] * i for i in range(len(rows))]
    width = max(x[name] + boxes[name][0] / 2 for name in x)
    routes = [[x[point] for point in chain] for chain in chains]
    return Layout(layer, {n: x[n] for n in sizes}, tops, heights, routes, width, tops[-1] + heights[-1])


def _layers(nodes: Mapping[str, object], edges: list[tuple[str, str]]) -> dict[str, int]:
    layer = dict.fromkeys(nodes, 0)
    for name in nodes:
        layer[name] = max((layer[source] + 1 for source, target in edges if target == name), default=0)
    return layer


def _chain(edge: tuple[str, str], number: int, layer: dict[str, int]) -> list[str]:
    between = range(layer[edge[0]] + 1, layer[edge[1]])
    return [edge[0], *(f"{number}/{depth}" for depth in between), edge[1]]


def _placed(
    rows: list[list[str]],
    boxes: Mapping[str, tuple[float, float]],
    links: list[tuple[str, str]],
    gap: float,
) -> dict[str, float]:
    above: dict[str, list[str]] = {name: [] for row in rows for name in row}
    below: dict[str, list[str]] = {name: [] for row in rows for name in row}
    for source, target in links:
        below[source].append(target)
        above[target].append(source)
    x: dict[str, float] = {}
    for row in rows:
        _spread(row, boxes, dict.fromkeys(row, 0.0), gap, x)
    for _ in range(_SWEEPS):
        for order, near in ((rows, above), (rows[::-1], below)):
            for row in order:
                wished = {n: sum(x[m] for m in near[n]) / len(near[n]) if near[n] else x[n] for n in row}
                row.sort(key=lambda name, wished=wished: wished[name])  # type: ignore[misc]
                _spread(row, boxes, wished, gap, x)
    left = min(x[name] - boxes[name][0] / 2 for name in x)
    return {name: value - left for name, value in x.items()}


def _spread(
    row: list[str],
    boxes: Mapping[str, tuple[float, float]],
    wished: Mapping[str, float],
    gap: float,
    x: dict[str, float],
) -> None:
    """Put a row as near to its wishes as it goes: pushed apart, then moved back by the mean."""
    edge = float("-inf")
    for name in row:
        half = boxes[name][0] / 2
        x[name] = max(wished[name], edge + half)
        edge = x[name] + half + gap
    moved = sum(x[name] - wished[name] for name in row) / len(row)
    for name in row:
        x[name] -= moved
