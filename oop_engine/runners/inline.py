"""Inline: the synchronous runner, for tests, replays in virtual time, and tasks of others.

It is a discrete-event simulation.  Every message has a moment of virtual time, and the
earliest one goes first, so when a promise releases results does not depend on how the trace
was cut into pages or on the number of sources.  (What leaves without a promise, such as a
match of a join, has the moment of its page's last tuple.)  Without arrival times it is
first come, first served.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from oop_engine.core.contract import EdgeContract
from oop_engine.core.errors import SnapshotError, UsageError
from oop_engine.core.fitted import fitted
from oop_engine.core.graph import Graph, Stream
from oop_engine.core.operator import Emission, Message, Operator
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.saved import Saved
from oop_engine.core.snapshot import pack, unpack
from oop_engine.core.statistics import EdgeStatistics, OperatorStatistics, Statistics
from oop_engine.runners.backlog import MOST
from oop_engine.runners.dispatch import Result, Signal, Watch, edge_name, source_stream
from oop_engine.runners.door import admitted
from oop_engine.runners.faults import deliver, handled
from oop_engine.system.memory import keep_freed
from oop_engine.system.stopwatch import wall

__all__ = ["Inline", "Result"]

_OWN, _OWN_NAME = "", "Inline"  # no node has an empty name


class _Event(NamedTuple):
    """One thing to do.  The heap orders by the first three; no two have the same ``serial``."""

    moment: int
    again: int  # a suspended generator goes on after all that has the same moment
    serial: int
    node: str
    port: int
    message: Message | Signal
    now: int
    born: float


class Inline:
    """Runs ``graph`` as messages are pushed; ``on_result`` gets everything that reaches a sink.

    ``on_end`` is told the name of a sink when its stream has ended.  ``check=True`` holds every
    edge against its promises (``contract``).  ``watch`` is told what passes and what is kept.
    """

    def __init__(
        self,
        graph: Graph,
        on_result: Callable[[Result], None],
        *,
        check: bool = False,
        on_end: Callable[[str], None] | None = None,
        watch: Watch | None = None,
    ) -> None:
        keep_freed()
        self.watch = watch
        self.plan = graph.plan()
        self.operators = self.plan.open()
        self.statistics = Statistics(
            edges={edge_name(s, node): EdgeStatistics() for s, node, _ in self.plan.edges()},
            operators={name: OperatorStatistics() for name in self.operators},
        )
        self._on_result = on_result
        self._on_end = on_end or (lambda sink: None)
        self._routes = {
            s: [_Route(s, n, p, self, check) for n, p in to] for s, to in self.plan.consumers().items()
        }
        self._streams = {name: [Stream(name, p) for p in op.outputs] for name, op in self.operators.items()}
        self._open_ports = {node.name: set(range(len(node.inputs))) for node in self.plan.nodes}
        self._last = {node.name: NEVER for node in self.plan.of_kind("source")}
        self._ended_sources: set[str] = set()
        self._heap: list[_Event] = []
        self._serial = itertools.count()
        self._suspended: dict[str, Iterator[Emission]] = {}
        self._in_hand: set[str] = set()
        self._fault: Exception | None = None

    @property
    def clock_every(self) -> int | None:
        """How often some operator wants ``clock``; None: never."""
        wishes = [op.clock_every for op in self.operators.values() if op.clock_every]
        return min(wishes, default=None)

    def push(self, source: str, message: Message, now: int | None = None) -> None:
        """Queue a message of a source.

        A page's moments are its arrivals; a promise of the source itself came at ``now``
        (default: with the page before it).
        """
        stream = source_stream(self.plan.name, source, self._last, self._ended_sources)
        message = admitted(f"graph {self.plan.name!r}, source {source!r}", self.plan.schemas[stream], message)
        if isinstance(message, Page) and not len(message):
            return
        moment = self._last[source] if now is None else now
        if isinstance(message, Page) and message.arrival is not None and len(message):
            moment, now = int(message.arrival[0]), int(message.arrival[-1])
        self._last[source] = max(self._last[source], moment if now is None else now)
        for route in self._routes[stream]:
            route.send(message, moment, self._last[source], wall())

    def end(self, source: str, now: int | None = None) -> None:
        """Queue the end of a source."""
        stream = source_stream(self.plan.name, source, self._last, self._ended_sources)
        self._ended_sources.add(source)
        moment = max(self._last[source], NEVER if now is None else now)
        for route in self._routes[stream]:
            route.send(Signal.END, moment, moment, wall())

    def clock(self, now: int) -> None:
        """Queue a tick of the arrival clock, for the operators that want it."""
        for name, operator in self.operators.items():
            if operator.clock_every:
                self._queue(_Event(now, 0, next(self._serial), name, 0, Signal.TICK, now, wall()))

    def drain(self, before: int | None = None) -> None:
        """Do all that is to be done (at moments before ``before``).

        After an error the graph cannot go on, for part of a message is lost: then this raises the same error again.
        """
        if self._fault is not None:
            raise self._fault
        try:
            while self._heap and (before is None or self._heap[0].moment < before):
                self._do(heapq.heappop(self._heap))
        except Exception as error:
            self._fault = error
            raise

    def snapshot(self) -> dict[str, bytes]:
        """Return the state of every operator, and of the runner; nothing may be queued (``drain`` first)."""
        if self._heap:
            msg = f"graph {self.plan.name!r}: {len(self._heap)} messages are queued; drain before a snapshot"
            raise UsageError(msg)
        states = {name: operator.snapshot() for name, operator in self.operators.items()}
        return states | {_OWN: pack(_OWN_NAME, self._save())}

    def restore(self, states: dict[str, bytes]) -> None:
        """Take over the state of the same graph; edge checks start anew.

        Raises ``SnapshotError`` if it is of another graph, or damaged; all operators are then as they were opened.
        """
        try:
            if missing := {*self.operators, _OWN} - states.keys():
                msg = f"graph {self.plan.name!r}: a snapshot must have the states of {sorted(missing)}"
                raise SnapshotError(msg)
            for name, operator in self.operators.items():
                operator.restore(states[name])
            self._load(unpack(_OWN_NAME, states[_OWN]))
        except SnapshotError:
            for operator in self.operators.values():
                operator.open()
            raise

    def _save(self) -> dict[str, Any]:
        """Return what has ended, and when each source was last heard of."""
        open_ports = {name: sorted(ports) for name, ports in self._open_ports.items()}
        return {"open_ports": open_ports, "last": self._last, "ended": sorted(self._ended_sources)}

    def _load(self, saved: Saved) -> None:
        ports, last, ended = saved.part("open_ports"), saved.part("last"), saved.part("ended")
        still = {node.name: ports.part(node.name) for node in self.plan.nodes}
        open_ports = {
            node.name: {
                still[node.name].integer(i, least=0, most=len(node.inputs) - 1) for i in still[node.name]
            }
            for node in self.plan.nodes
        }
        times = {name: last.integer(name) for name in self._last}
        self._open_ports, self._last = open_ports, times
        self._ended_sources = set(ended.values()) & set(times)

    def _queue(self, event: _Event) -> None:
        heapq.heappush(self._heap, event)

    def _do(self, event: _Event) -> None:
        if event.node not in self.operators:
            self._deliver_to_sink(event)
            return
        operator = self.operators[event.node]
        if event.message is Signal.GO_ON:
            if event.node in self._suspended:
                self._step(operator, event)
            return
        if event.node in self._suspended:  # it must be done with the last message first
            self._exhaust(operator, event, self._suspended.pop(event.node))
        if event.message is Signal.TICK and not self._open_ports[event.node]:
            return  # it has ended
        emissions = handled(self.plan.name, event.node, operator, event.port, event.message, event.now)
        if operator.makes_progress and _takes_time(event.message):
            self._suspended[event.node] = emissions
            self._step(operator, event)
        else:
            self._exhaust(operator, event, emissions)
            if event.message is Signal.END:
                self._ended(event)

    def _exhaust(self, operator: Operator, event: _Event, emissions: Iterator[Emission]) -> None:
        began = wall()
        if operator.makes_progress:
            event = event._replace(born=began)
        rows, busy_s = 0, 0.0
        for port, message in emissions:
            self._emit(operator, event, port, message)
            rows += len(message) if isinstance(message, Page) else 0
            if rows >= MOST:
                busy_s += wall() - began
                self._follow(event)
                rows, began = 0, wall()
        self._observe(operator, event, busy_s + wall() - began)

    def _follow(self, event: _Event) -> None:
        """Do what follows at once from a message that is not worked off yet, so that its output does not pile up.

        What waits for an operator that is in the middle of a message stays where it is.
        """
        self._in_hand.add(event.node)
        waiting: list[_Event] = []
        while self._heap and self._heap[0][:2] <= (event.moment, 0):
            found = heapq.heappop(self._heap)
            if found.node in self._in_hand:
                waiting.append(found)
            else:
                self._do(found)
        self._in_hand.discard(event.node)
        for found in waiting:
            self._queue(found)

    def _step(self, operator: Operator, event: _Event) -> None:
        """Take one emission of a generator, and go on when all that follows from it is done."""
        born, moment = wall(), event.moment
        found = next(self._suspended[event.node], None)
        if found is None:
            del self._suspended[event.node]
        else:
            moment = self._emit(operator, event._replace(born=born), *found)
            again = event._replace(moment=moment, again=1, serial=next(self._serial), message=Signal.GO_ON)
            self._queue(again)
        self._observe(
            operator, event._replace(now=moment), wall() - born
        )  # the rest of the page is yet to come

    def _emit(self, operator: Operator, event: _Event, port: int, message: Message) -> int:
        """Queue an output; return its moment."""
        moment, now = event.moment if operator.makes_progress else event.now, event.now
        if isinstance(message, Page):
            if not len(message):
                return moment
            if message.arrival is not None:
                now = int(message.arrival[-1])
                moment = now if operator.makes_progress else int(message.arrival[0])
            if operator.makes_progress:
                message = message.without_arrival()
        if operator.makes_progress:
            now = moment = moment if operator.moment is None else max(moment, operator.moment)
        for route in self._routes[self._streams[event.node][port]]:
            route.send(message, moment, now, event.born)
        return moment

    def _observe(self, operator: Operator, event: _Event, busy_s: float) -> None:
        self.statistics.observe(event.node, operator.state(), event.now, busy_s)
        if self.watch is not None:
            self.watch.kept(event.now, self.statistics.state)

    def _ended(self, event: _Event) -> None:
        ports = self._open_ports[event.node]
        ports.discard(event.port)
        if ports:
            return
        self.statistics.operators[event.node].counts = self.operators[event.node].counts()
        for stream in self._streams[event.node]:
            for route in self._routes[stream]:
                route.send(Signal.END, event.moment, event.now, event.born)

    def _deliver_to_sink(self, event: _Event) -> None:
        if event.message is Signal.END:
            self._on_end(event.node)
        elif not isinstance(event.message, Signal):
            result = Result(event.node, event.message, event.now, wall() - event.born)
            deliver(self.plan.name, self._on_result, result)


def _takes_time(message: Message | Signal) -> bool:
    """Tell whether an operator at the edge says at different moments what it has to say to a message."""
    return isinstance(message, Page) and message.arrival is not None


class _Route:
    """One edge: it counts, checks, and never lets a message overtake an earlier one."""

    def __init__(self, stream: Stream, node: str, port: int, runner: Inline, check: bool) -> None:
        name = edge_name(stream, node)
        self._stream, self._to, self._port, self._runner = stream, node, port, runner
        self._name, self._schema = name, runner.plan.schema(stream)
        self._count = runner.statistics.edges[name]
        self._contract = EdgeContract(name) if check else None
        self._latest = NEVER

    def send(self, message: Message | Signal, moment: int, now: int, born: float) -> None:
        if not isinstance(message, Signal):
            message = fitted(message, self._schema, self._name)
            self._count.count(message)
            if self._contract is not None:
                self._contract.check(message)
        self._latest = moment = max(self._latest, moment)
        runner = self._runner
        if runner.watch is not None and not isinstance(message, Signal):
            runner.watch.passed(self._stream, self._to, message, max(now, moment))
        runner._queue(
            _Event(moment, 0, next(runner._serial), self._to, self._port, message, max(now, moment), born)
        )
