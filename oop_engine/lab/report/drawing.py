"""A graph as a picture: SVG that needs nothing else, readable by day and by night.

Colours are CSS variables with a value to fall back on, so that a page can set them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from oop_engine.core.graphs.graph import Graph, Node, Plan
from oop_engine.lab.report.layout import Layout, layered
from oop_engine.lab.scenario import Variant

__all__ = ["draw", "punctuated"]

_GAP = (28.0, 46.0)
_PAD = 14.0
_LETTER, _SMALL, _LINE = 8.1, 6.7, 16.0
_WRAP, _LINES = 28, 6
_BETWEEN = 60.0
_PIECES = re.compile(r"[^\s(,;]*[(,;]?\s*(?=.)|.+")
_STYLE = """
.g-box{fill:var(--card,#fff);stroke:var(--line,#c3c9d1);stroke-width:1.25}
.g-end{fill:var(--soft,#eef1f4)}
.g-in{stroke:var(--in,#b4510b)}.g-out{stroke:var(--out,#0b62a8)}
.g-name{font:600 13.5px system-ui,sans-serif;fill:var(--ink,#1b1f24);text-anchor:middle}
.g-what{font:11.5px ui-monospace,monospace;fill:var(--faint,#59636e);text-anchor:middle}
.g-head{font:600 15px system-ui,sans-serif;fill:var(--ink,#1b1f24)}
.g-port{font:italic 11px system-ui,sans-serif;fill:var(--faint,#59636e)}
.g-edge{fill:none;stroke:var(--mute,#8b949e);stroke-width:1.5}
.g-tip{fill:var(--mute,#8b949e)}
.g-mark-in{fill:var(--in,#b4510b)}.g-mark-out{fill:var(--out,#0b62a8)}
"""


@dataclass(frozen=True)
class _Box:
    """The text of a node: its name, and its parameters in a few short lines."""

    node: Node
    lines: list[str]

    @classmethod
    def of(cls, node: Node) -> _Box:
        lines = _folded(node.describe())
        if len(lines) > _LINES:
            lines = [*lines[: _LINES - 1], f"{lines[_LINES - 1][: _WRAP - 1]}…"]
        return cls(node, lines)

    @property
    def name(self) -> str:
        return self.node.name if len(self.node.name) <= _WRAP else f"{self.node.name[: _WRAP - 1]}…"

    @property
    def size(self) -> tuple[float, float]:
        letters = max(_LETTER * len(self.name), *(_SMALL * len(line) for line in self.lines))
        return max(110.0, letters + 2 * _PAD), (1 + len(self.lines)) * _LINE + 1.2 * _PAD


def draw(variants: Sequence[Variant], *, heading: bool = True) -> str:
    """Return the plans of ``variants`` side by side, as one SVG document.

    A diamond on an edge marks punctuation.  Raises ``GraphError`` if a
    graph is not sound.
    """
    pictures = [_picture(variant) for variant in variants]
    top = 34.0 if heading else 2.0
    width = sum(p.width for p in pictures) + _BETWEEN * (len(pictures) - 1) + 4
    height = max(p.height for p in pictures) + top + 4
    parts, left = [], 2.0
    for variant, picture in zip(variants, pictures, strict=True):
        if heading:
            parts.append(f'<text class="g-head" x="{left:.0f}" y="16">{escape(_heading(variant))}</text>')
        parts.append(f'<g transform="translate({left:.0f},{top:.0f})">{picture.body}</g>')
        left += picture.width + _BETWEEN
    label = escape("; ".join(_told(variant) for variant in variants), quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'role="img" aria-label="{label}"><style>{_STYLE}</style>{"".join(parts)}</svg>'
    )


def punctuated(plan: Plan) -> set[str]:
    """Return the nodes whose outputs carry punctuation: generators and all that follows them."""
    names: set[str] = set()
    for node in plan.nodes:
        makes = node.operator is not None and node.operator.makes_progress
        if makes or any(stream.node in names for stream in node.inputs):
            names.add(node.name)
    return names


@dataclass(frozen=True)
class _Picture:
    body: str
    width: float
    height: float


def _folded(text: str) -> list[str]:
    """Break a line at spaces and behind brackets and commas; a word too long for a line is cut."""
    pieces = [word[i : i + _WRAP] for word in _PIECES.findall(text) for i in range(0, len(word), _WRAP)]
    lines = [""]
    for piece in pieces:
        if len(lines[-1] + piece.rstrip()) > _WRAP:
            lines.append("")
        lines[-1] += piece
    return [line.strip() for line in lines]


def _heading(variant: Variant) -> str:
    return f"{'In order' if variant.order == 'in' else 'Out of order'}: {variant.name}"


def _told(variant: Variant) -> str:
    nodes = ", ".join(f"{node.name} ({node.describe()})" for node in variant.graph.plan().nodes)
    return f"{_heading(variant)}, from sources to sink: {nodes}"


def _picture(variant: Variant) -> _Picture:
    plan = variant.graph.plan()
    boxes = {node.name: _Box.of(node) for node in plan.nodes}
    edges = [(stream.node, node) for stream, node, _ in plan.edges()]
    layout = layered({name: box.size for name, box in boxes.items()}, edges, _GAP)
    parts = [*_edges(variant.graph, plan, boxes, layout, variant.order)]
    parts += [_node(box, layout, variant.order) for box in boxes.values()]
    return _Picture("".join(parts), max(layout.width, _LETTER * len(_heading(variant))), layout.height)


def _node(box: _Box, layout: Layout, order: str) -> str:
    (width, height), x, y = box.size, layout.x[box.node.name], _top(box, layout)
    inner = box.node.kind == "operator"
    frame = f"g-box g-{order}" if inner else "g-box g-end"
    radius = 7 if inner else height / 2
    title = f"{box.node.name}: {box.node.describe()}"
    lines = [
        f'<text class="g-what" x="{x:.1f}" y="{y + 0.85 * _PAD + _LINE * (1.7 + i):.1f}">{escape(line)}</text>'
        for i, line in enumerate(box.lines)
    ]
    return (
        f"<g><title>{escape(title)}</title>"
        f'<rect class="{frame}" x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{radius:.1f}"/>'
        f'<text class="g-name" x="{x:.1f}" y="{y + 0.85 * _PAD + 0.7 * _LINE:.1f}">{escape(box.name)}</text>'
        f"{''.join(lines)}</g>"
    )


def _top(box: _Box, layout: Layout) -> float:
    depth = layout.layer[box.node.name]
    return layout.tops[depth] + (layout.heights[depth] - box.size[1]) / 2


def _edges(graph: Graph, plan: Plan, boxes: dict[str, _Box], layout: Layout, order: str) -> list[str]:
    carrying = punctuated(plan)
    parts = []
    edges = list(plan.edges())
    starts = _ends_apart([s.node for s, _, _ in edges], [route[1] for route in layout.routes], layout, boxes)
    ends = _ends_apart([node for _, node, _ in edges], [route[-2] for route in layout.routes], layout, boxes)
    for (stream, node, _), route, start, end in zip(edges, layout.routes, starts, ends, strict=True):
        points = _points(boxes[stream.node], boxes[node], layout, [start, *route[1:-1], end])
        title = f"{stream.node} → {node}: {plan.schema(stream)}"
        mark = _mark(points, order) if stream.node in carrying else ""
        port = graph.nodes[stream.node].ports
        name = _port_name(points[0], stream.port) if len(port) > 1 else ""
        parts.append(f"<g><title>{escape(title)}</title>{_path(points)}{mark}{name}</g>")
    return parts


def _ends_apart(
    names: list[str], towards: list[float], layout: Layout, boxes: dict[str, _Box]
) -> list[float]:
    """Where edges meet their boxes: side by side, in the order of where they come from or go."""
    xs = [0.0] * len(names)
    for name in set(names):
        mine = sorted((i for i, other in enumerate(names) if other == name), key=lambda i: towards[i])
        step = min(26.0, boxes[name].size[0] / (len(mine) + 1))
        for place, i in enumerate(mine):
            xs[i] = layout.x[name] + (place - (len(mine) - 1) / 2) * step
    return xs


def _points(box: _Box, other: _Box, layout: Layout, xs: list[float]) -> list[tuple[float, float]]:
    """From the lower side of a box, through the layers between, to the upper side of another."""
    first = layout.layer[box.node.name]
    points = [(xs[0], _top(box, layout) + box.size[1])]
    for depth, x in enumerate(xs[1:-1], start=first + 1):
        points += [(x, layout.tops[depth]), (x, layout.tops[depth] + layout.heights[depth])]
    return [*points, (xs[-1], _top(other, layout) - 2)]


def _path(points: list[tuple[float, float]]) -> str:
    way = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        way += f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"
    x, y = points[-1]
    tip = f"M{x:.1f} {y:.1f}l-4.5 -8h9z"
    return f'<path class="g-edge" d="{way}"/><path class="g-tip" d="{tip}"/>'


def _mark(points: list[tuple[float, float]], order: str) -> str:
    (x, y), (to_x, to_y) = points[0], points[1]
    return (
        f'<path class="g-mark-{order}" d="M{(x + to_x) / 2:.1f} {(y + to_y) / 2 - 6:.1f}l5 6l-5 6l-5 -6z"/>'
    )


def _port_name(start: tuple[float, float], port: str) -> str:
    return f'<text class="g-port" x="{start[0] + 6:.1f}" y="{start[1] + 13:.1f}">{escape(port)}</text>'
