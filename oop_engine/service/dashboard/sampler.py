"""Sampler: the counters of a service, copied now and then into one value of JSON, which all who look are given.

A visitor asks no operator anything: he gets the last sample.  Twice a second while somebody looks, every five
seconds else, so that plots have a past, and one knows since when a source is silent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

from oop_engine.core.graphs.graph import Stream
from oop_engine.core.operator import Operator, State
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.schema import Schema
from oop_engine.core.units import TIME_UNITS, dated, lasting, to_seconds
from oop_engine.service.service import Service
from oop_engine.service.why import Reason, Standing, held_back, slowest, standing

__all__ = ["Sampler"]

_OFTEN_S, _SELDOM_S = 0.5, 5.0
_POINTS = 600
_SILENT_S = 3.0
"""Seconds after which a source is called silent in sentences."""
_DEFINITIONS = 20
"""Definitions of windows that are listed of an operator."""
_A_CLOCK_S = 7 * 86_400.0
"""Bounds that are closer than this to now are taken for moments of this clock."""

Sample = dict[str, Any]


class Sampler:
    """Samples of ``service``; ``clock``: seconds since 1970.

    ``last``: the newest one, plain values.  ``points``: of each sample its moment, throughput, lag by source, bytes by
    operator.
    """

    def __init__(self, service: Service, clock: Callable[[], float] = time.time) -> None:
        self._service, self._clock = service, clock
        self._began = clock()
        self._described = {name: operator.describe() for name, operator in service.local.operators.items()}
        self._tuples, self._at = 0, self._began
        self._busy = dict[str, float]()
        self._counts = dict[str, int]()
        self._seen = dict[tuple[str, str], tuple[int, float]]()
        self._changed, self._visited = asyncio.Event(), asyncio.Event()
        self.points = deque[Sample](maxlen=_POINTS)
        self.looking = 0
        self.last: Sample = {}
        self.take()

    async def run(self) -> None:
        """Take samples for ever; an error here is logged, and nothing else."""
        try:
            while True:
                self._visited.clear()
                waiting = asyncio.create_task(self._visited.wait())
                try:
                    await asyncio.wait([waiting], timeout=_OFTEN_S if self.looking else _SELDOM_S)
                finally:
                    waiting.cancel()
                self.take()
        except Exception:
            logging.getLogger("oop_engine").exception(
                "the page of the service has stopped; the service continues"
            )

    async def following(self) -> Sample:
        """Return the next sample."""
        await self._changed.wait()
        return self.last

    def look(self, more: int) -> None:
        """Count viewers: one more (1), or one less (-1)."""
        self.looking += more
        self._visited.set()

    def fresh(self) -> Sample:
        """Return a sample that is no older than half a second."""
        if self._clock() - self.last["at"] > _OFTEN_S:
            self.take()
        return self.last

    def take(self) -> None:
        """Copy all counters.  O(edges), and O(groups) where groups have bounds of their own."""
        now, service = self._clock(), self._service
        state = standing(service.local)
        apart = max(now - self._at, 1e-3)
        messages = self._messages(state)
        silent = {name: self._since("messages", name, messages[name], now) for name in service.inlets}
        quiet = {
            name: since
            for name, since in silent.items()
            if since >= _SILENT_S and not service.inlets[name].ended
        }
        reasons = held_back(state, quiet)
        sources = [self._source(state, name, silent[name], apart, now) for name in service.inlets]
        _behind(sources)
        self.last = {
            "graph": service.plan.name,
            "at": now,
            "up_s": now - self._began,
            "paused": service.gate.paused,
            "nodes": [*self._nodes(state, reasons, sources, apart)],
            "edges": [*self._edges(state, now)],
            "sources": sources,
            "sinks": [
                {"name": name, "away": link.away, "losses": link.losses}
                for name, link in service.outlets.links.items()
            ],
            "why": [
                {"node": r.node, "holder": r.holder, "way": r.way, "text": r.text} for r in reasons.values()
            ],
            "checkpoints": self._checkpoints(now),
            "rate": (self._all() - self._tuples) / apart,
        }
        self._tuples, self._at = self._all(), now
        self._point(sources)
        self._changed.set()
        self._changed = asyncio.Event()

    def _all(self) -> int:
        return sum(inlet.tuples for inlet in self._service.inlets.values())

    def _messages(self, state: Standing) -> Counter[str]:
        """Return how many messages of each source there were: punctuation is a sign of life, too."""
        edges, messages = self._service.local.statistics.edges, Counter[str]()
        for inputs in state.inputs.values():
            for edge, origin in inputs:
                messages[origin] += edges[edge].pages + edges[edge].punctuations
        return messages

    def _since(self, kind: str, name: str, value: int, now: float) -> float:
        """Return for how many seconds a value has been as it is now."""
        before = self._seen.get((kind, name))
        if before is None or before[0] != value:
            self._seen[kind, name] = (value, now)
            return 0.0
        return now - before[1]

    def _source(self, state: Standing, name: str, silent_s: float, apart: float, now: float) -> Sample:
        inlet, dead = self._service.inlets[name], self._service.dead
        below, edge = _bound_of(state, name)
        before, self._counts[name] = self._counts.get(name, inlet.tuples), inlet.tuples
        return {
            "name": name,
            "tuples": inlet.tuples,
            "rate": (inlet.tuples - before) / apart,
            "unreadable": sum(dead.counts.get(name, {}).values()),
            "reasons": dict(dead.counts.get(name, {})),
            "nulls": dict(inlet.nulls),
            "unknown": dict(inlet.unknown),
            "away": inlet.source.link.away,
            "losses": inlet.source.link.losses,
            "silent_s": silent_s,
            "ended": inlet.ended,
            **_bound(state, edge, below, now),
            "unit": state.units.get(edge, ""),
        }

    def _edges(self, state: Standing, now: float) -> list[Sample]:
        edges, known = [], self._service.local.statistics.edges
        for node, inputs in state.inputs.items():
            for edge, origin in inputs:
                count = known[edge]
                edges.append(
                    {
                        "name": edge,
                        "from": origin,
                        "to": node,
                        "input": slowest(state, origin)[0],
                        "pages": count.pages,
                        "tuples": count.tuples,
                        "punctuations": count.punctuations,
                        "still_s": self._since("bound", edge, count.below, now),
                        **_bound(state, edge, count.below, now),
                    }
                )
        return edges

    def _nodes(
        self, state: Standing, reasons: Mapping[str, Reason], sources: list[Sample], apart: float
    ) -> list[Sample]:
        plan, nodes = self._service.plan, []
        for node in plan.nodes:
            shown: Sample = {"name": node.name, "kind": node.kind, "class": node.kind, "why": None}
            if node.kind == "operator":
                operator = self._service.local.operators[node.name]
                busy = self._service.local.statistics.operators[node.name].busy_s
                before, self._busy[node.name] = self._busy.get(node.name, busy), busy
                schema = plan.schema(Stream(node.name, node.ports[0]))
                shown |= {
                    "class": type(operator).__name__,
                    "describe": self._described[node.name],
                    "state": State(*state.state[node.name])._asdict(),
                    "counts": operator.counts(),
                    "busy_s": busy,
                    "busy": min((busy - before) / apart, 1.0),
                    "groups": [
                        {"group": name, "bound": None if below == NEVER else schema.moment(below)}
                        for name, below in state.groups.get(node.name, ())
                    ],
                    "windows": _windows(operator, schema),
                }
            if node.name in reasons:
                shown |= {"why": reasons[node.name].text, "holder": reasons[node.name].holder}
            nodes.append(shown)
        return nodes

    def _checkpoints(self, now: float) -> Sample:
        taken = self._service.kept
        last = taken[-1] if taken else None
        return {
            "count": self._service.epochs,
            "durable": self._service.place is not None,
            "age_s": None if last is None else now - last.at,
            "last": [
                {"epoch": k.epoch, "at": k.at, "still_s": k.still_s, "took_s": k.took_s, "bytes": k.nbytes}
                for k in reversed(taken)
            ],
        }

    def _point(self, sources: list[Sample]) -> None:
        nodes = self.last["nodes"]
        self.points.append(
            {
                "at": self.last["at"],
                "rate": self.last["rate"],
                "lag": {source["name"]: source["lag"] for source in sources},
                "state": {node["name"]: node["state"]["nbytes"] for node in nodes if "state" in node},
            }
        )


def _windows(operator: Operator, schema: Schema) -> list[Sample]:
    """Return the open windows of an operator, by definition, in words."""

    def words(span: tuple[int, int] | None) -> list[str] | None:
        return None if span is None else [schema.moment(at) for at in span]

    return [
        {
            "window": window.name,
            "number": window.number,
            "oldest": words(window.oldest),
            "newest": words(window.newest),
        }
        for window in operator.open_windows(_DEFINITIONS)
    ]


def _bound_of(state: Standing, source: str) -> tuple[int, str]:
    """Return the bound of a source, and its edge: the first on its way, before it meets others or is in windows."""
    ways = {origin: (node, edge) for node, inputs in state.inputs.items() for edge, origin in inputs}
    at, edge = source, ""
    while at in ways:
        node, edge = ways[at]
        if state.bounds.get(edge, NEVER) != NEVER or len(state.inputs[node]) > 1 or node in state.waits:
            return state.bounds.get(edge, NEVER), edge
        at = node
    return NEVER, edge


def _bound(state: Standing, edge: str, below: int, now: float) -> Sample:
    """Return a bound in words, and in seconds how far it is behind the clock, if it is a moment of a clock."""
    if below in (NEVER, FOREVER):
        return {
            "below": None,
            "moment": None,
            "bound": "ended" if below == FOREVER else None,
            "clock_s": None,
        }
    unit = state.units[edge]
    lag_s = now - to_seconds(below, unit) if unit in TIME_UNITS else None
    clock_s = lag_s if lag_s is not None and abs(lag_s) < _A_CLOCK_S else None
    moment = dated(below, unit, state.clocks[edge])
    return {"below": below, "moment": moment, "bound": state.moment(edge, below), "clock_s": clock_s}


def _behind(sources: list[Sample]) -> None:
    """Add to each source how far its bound is behind that of the source ahead of all, and its lag for the plot."""
    known = [source["clock_s"] for source in sources if source["below"] is not None]
    by_clock = bool(known) and None not in known
    for source in sources:
        alike = [s["below"] for s in sources if s["unit"] == source["unit"] and s["below"] is not None]
        gap = None if source["below"] is None else max(alike) - source["below"]
        source["behind"] = None if gap is None else lasting(gap, source["unit"])
        source["gap_s"] = None if gap is None else to_seconds(gap, source["unit"])
        source["lag"] = source["clock_s"] if by_clock else source["gap_s"]
        source["lag_of"] = "clock" if by_clock else "sources"
