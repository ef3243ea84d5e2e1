"""Clocks: how far each node of a graph is under ``Local``: its open ports, the arrival clock, virtual time.

Inputs are not in step there, as they are under ``Inline``: each node has a time of its own, and no effect
precedes its cause.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from oop_engine.core.graphs.graph import Plan
from oop_engine.core.punctuation import NEVER
from oop_engine.core.saved import Saved
from oop_engine.runners.backlog import Envelope
from oop_engine.runners.dispatch import Signal

__all__ = ["Clocks"]


class Clocks:
    """The nodes of ``plan``, before anything has come.

    ``open_ports``: by node, the numbers of the inputs that have not ended.
    """

    def __init__(self, plan: Plan) -> None:
        self._inputs = {node.name: [stream.node for stream in node.inputs] for node in plan.nodes}
        self.open_ports = {name: set(range(len(inputs))) for name, inputs in self._inputs.items()}
        self._ticks = {node.name: [NEVER] * len(node.inputs) for node in plan.nodes}
        self._clock = dict.fromkeys(self._ticks, NEVER)
        self._latest = dict.fromkeys(self._ticks, NEVER)

    def in_time(self, node: str, envelope: Envelope) -> Envelope:
        """Return an envelope with the virtual time at ``node``, which never goes back; a tick stays as it is."""
        if envelope.message is Signal.TICK:
            return envelope
        now = self.moment(node, envelope.now)
        return envelope if now == envelope.now else envelope._replace(now=now)

    def moment(self, node: str, now: int) -> int:
        """Return the virtual time at ``node`` of a message of the moment ``now``."""
        if now <= (latest := self._latest[node]):
            return latest
        self._latest[node] = now
        return now

    def tick(self, node: str, envelope: Envelope) -> int | None:
        """Return the clock of ``node`` if a tick, or the end of a port, moves it; else None.

        It moves when it has on every open port, so no tick overtakes a page.
        """
        ticks = self._ticks[node]
        if envelope.message is Signal.TICK:
            ticks[envelope.port] = envelope.now
        now = min((ticks[port] for port in self.open_ports[node]), default=NEVER)
        if now <= self._clock[node]:
            return None
        self._clock[node] = now
        return now

    def save(self) -> dict[str, Any]:
        """Return everything for a snapshot."""
        return {
            "open_ports": {name: sorted(ports) for name, ports in self.open_ports.items()},
            "ticks": self._ticks,
            "clock": self._clock,
            "latest": self._latest,
        }

    def load(self, saved: Saved, fresh: Collection[str] = (), ended: Collection[str] = ()) -> None:
        """Restore a snapshot; raises ``SnapshotError`` if it is of other nodes, and changes nothing then.

        Nodes that are ``fresh`` begin anew: of their ports those are open that no stream feeds that has ``ended``.
        ``ended``: the sources that have.
        """
        ports, ticks = saved.part("open_ports"), saved.part("ticks")
        clock, latest = saved.part("clock"), saved.part("latest")
        over, open_ports, each_tick = set(ended), dict[str, set[int]](), dict[str, list[int]]()
        clocks, latests = dict[str, int](), dict[str, int]()
        for name, inputs in self._inputs.items():
            count = len(inputs)
            if name in fresh:
                open_ports[name] = {port for port, node in enumerate(inputs) if node not in over}
                each_tick[name], clocks[name], latests[name] = [NEVER] * count, NEVER, NEVER
            else:
                still, ticked = ports.part(name), ticks.part(name)
                open_ports[name] = {still.integer(i, least=0, most=count - 1) for i in still}
                each_tick[name] = [ticked.integer(i) for i in range(count)]
                clocks[name], latests[name] = clock.integer(name), latest.integer(name)
            if inputs and not open_ports[name]:
                over.add(name)
        self.open_ports, self._ticks, self._clock, self._latest = open_ports, each_tick, clocks, latests
