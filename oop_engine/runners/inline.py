"""Inline: the synchronous runner, for tests, replays in virtual time, and tasks of others.

It is a discrete-event simulation.  Every message has a moment of virtual time, and the
earliest one goes first, so when a punctuation releases results does not depend on how the trace
was cut into pages or on the number of sources.  (Output that no punctuation releases, such as a
match of a join, has the moment of its page's last tuple.)  Without arrival times it is
first come, first served.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any

from oop_engine.core.change import Change
from oop_engine.core.errors import ContractError, UsageError
from oop_engine.core.graphs.graph import Graph, Stream
from oop_engine.core.graphs.statistics import Statistics
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.saved import Saved
from oop_engine.runners import states
from oop_engine.runners.dispatch import Result, Signal, Watch, not_open, statistics_of
from oop_engine.runners.door import RowLane, admitted
from oop_engine.runners.faults import counts_of, place_of
from oop_engine.runners.feeds.far_times import FarTimes
from oop_engine.runners.feeds.forms import Intake
from oop_engine.runners.feeds.kinds import MESSAGES
from oop_engine.runners.worker import Agenda, Delivery, InlineRoute, Worker
from oop_engine.system.memory import keep_freed
from oop_engine.system.stopwatch import wall

__all__ = ["Inline", "Result"]

_OWN_NAME = "Inline"


class Inline:
    """Runs ``graph`` as messages are pushed; ``on_result`` gets everything that reaches a sink.

    ``on_end`` is called with the name of a sink when its stream has ended.  ``on_change``: the graph is a part of
    another, whose runner has admitted changes; it is called with the name of a sink behind which one goes on.
    ``check=True`` checks every edge against its bounds (``contract``).  ``watch`` sees messages and states.
    ``exact``: the state of an operator is read after each message, as it is for a ``watch``, so no peak is missed; else
    it is before a bound behind a page, every 64 messages, and when ``statistics`` is read.
    """

    def __init__(
        self,
        graph: Graph,
        on_result: Callable[[Result], None],
        *,
        check: bool = False,
        on_end: Callable[[str], None] | None = None,
        on_change: Callable[[str, Change], None] | None = None,
        watch: Watch | None = None,
        exact: bool = False,
    ) -> None:
        keep_freed()
        self.plan = plan = graph.plan()
        self.operators = plan.open()
        self._agenda = agenda = Agenda(plan, statistics_of(plan), watch, exact=exact or watch is not None)
        self._workers = {name: Worker(name, op, agenda) for name, op in self.operators.items()}
        sinks = {
            node.name: Delivery(node.name, plan.name, on_result, on_end, on_change)
            for node in plan.of_kind("sink")
        }
        takers: dict[str, Worker | Delivery] = {**self._workers, **sinks}
        routes = {
            stream: [InlineRoute(stream, takers[node], port, agenda, check) for node, port in to]
            for stream, to in plan.consumers().items()
        }
        for name, worker in self._workers.items():
            worker.routes = [routes[Stream(name, port)] for port in worker.operator.outputs]
        self._routes = {node.name: routes[Stream(node.name, "out")] for node in plan.of_kind("source")}
        self._schemas = {name: plan.schema(Stream(name)) for name in self._routes}
        self._far = FarTimes(plan.name, self._schemas)
        self._with_rows = set[str]()  # sources with rows that wait
        self._lanes = {
            name: RowLane(f"graph {plan.name!r}, source {name!r}", schema)
            for name, schema in self._schemas.items()
        }
        self._last = dict.fromkeys(self._routes, NEVER)
        self._ended: set[str] = set()
        self._fault: Exception | None = None
        self._changes, self._part, self._draining = agenda.changes, on_change is not None, False

    @property
    def statistics(self) -> Statistics:
        """The figures of the run so far; after an error, those of the last look at an operator."""
        for worker in self._workers.values() if self._fault is None else ():
            if not worker.in_hand:
                worker.read_state()
                worker.read_counts()
        return self._agenda.statistics

    @property
    def clock_every(self) -> int | None:
        """How often some operator wants ``clock``; None: never."""
        wishes = [op.clock_every for op in self.operators.values() if op.clock_every]
        return min(wishes, default=None)

    @property
    def reached(self) -> int:
        """The largest time that has passed any edge to an operator that takes changes."""
        return self._changes.largest

    def push(self, source: str, message: Any, now: int | None = None) -> None:
        """Queue a message of a source, or rows in any form of ``feeds.forms``.

        A page's moments are its arrivals; a punctuation of the source itself came at ``now``
        (default: with the page before it).
        """
        if source not in self._last or source in self._ended:
            raise not_open(self.plan.name, source, self._last)
        if source in self._with_rows:
            self._rows_in(source)
        if isinstance(message, Change):
            self._push_change(source, message, now)
            return
        schema = self._schemas[source]
        if not isinstance(message, Page) or message.schema is not schema:
            place = f"graph {self.plan.name!r}, source {source!r}"
            if not isinstance(message, MESSAGES):
                for made in Intake(place, schema, "push").messages(message):
                    self.push(source, made, now)
                return
            message = admitted(place, schema, message)
        last = self._last[source]
        moment = until = last if now is None else now
        if isinstance(message, Page):
            if not message.rows:
                return
            self._far.see(source, message)
            if message.arrival is not None:
                moment, until = int(message.arrival[0]), int(message.arrival[-1])
        self._send(source, message, moment, until)

    def push_row(self, source: str, row: Any, arrival: int | None = None) -> None:
        """Queue one row of a source: a dictionary, dataclass, named tuple, or the values in the order of its columns.

        Rows wait until ``drain``, until there are ``RING`` of them, or until another message of their source; they are
        one page then.  A microsecond a row.  Raises ``ContractError`` if it is no row of the columns (``feeds.rows``);
        a value of a wrong type is an error when the page is made.
        """
        lane = self._lanes.get(source)
        if lane is None or source in self._ended:
            raise not_open(self.plan.name, source, self._last)
        full = lane.add(row, arrival)
        self._with_rows.add(source)
        if full:
            self._rows_in(source)

    def _rows_in(self, source: str) -> None:
        """Queue the rows of a source that wait."""
        if source not in self._with_rows:
            return
        self._with_rows.discard(source)
        try:
            page = self._lanes[source].take()
        except ContractError as error:  # its rows are lost
            self._fault = error
            raise
        self.push(source, page)

    def _all_rows_in(self) -> None:
        for source in self._lanes:
            self._rows_in(source)

    def change(self, operator: str, change: Change, now: int | None = None) -> None:
        """Queue a change of an operator (empty: the only one that changes), behind every source that leads there.

        The change came at ``now``, as in ``push``; earlier messages are handled first, for bounds may follow from them.
        Raises ``UsageError``, ``GraphError`` or ``ContractError`` if it cannot be; then nothing has changed.
        """
        self._all_rows_in()
        if not self._draining:
            self.drain(before=1 + max([*self._last.values(), NEVER if now is None else now]))
        admitted, sources = self._changes.admitted(replace(change, operator=operator), self._ended)
        for source in sources:
            moment = self._last[source] if now is None else now
            self._send(source, admitted, moment, moment)

    def _push_change(self, source: str, change: Change, now: int | None) -> None:
        if not self._part:
            self.change(change.operator, change, now)
            return
        moment = self._last[source] if now is None else now
        self._send(source, change, moment, moment)

    def _send(self, source: str, message: Message, moment: int, until: int) -> None:
        self._last[source] = last = max(self._last[source], until)
        born = wall()
        for route in self._routes[source]:
            route.send(message, moment, last, born)

    def end(self, source: str, now: int | None = None) -> None:
        """Queue the end of a source."""
        if source not in self._last or source in self._ended:
            raise not_open(self.plan.name, source, self._last)
        self._rows_in(source)
        self._ended.add(source)
        moment = max(self._last[source], NEVER if now is None else now)
        for route in self._routes[source]:
            route.send(Signal.END, moment, moment, wall())

    def clock(self, now: int) -> None:
        """Queue a tick of the arrival clock, for the operators that want it."""
        self._all_rows_in()
        agenda = self._agenda
        for worker in self._workers.values():
            if worker.operator.clock_every:
                heappush(agenda.heap, (now, 0, next(agenda.serial), worker, 0, Signal.TICK, now, wall()))

    def drain(self, before: int | None = None) -> None:
        """Do all that is to be done (at moments before ``before``).

        After an error the graph cannot go on, for part of a message is lost: then this raises the same error again.
        """
        if self._fault is not None:
            raise self._fault
        heap, began = self._agenda.heap, wall()
        self._draining = True
        try:
            if self._with_rows:
                self._all_rows_in()
            while heap and (before is None or heap[0][0] < before):
                event = heappop(heap)
                began = event[3].take(event, began)
                if not heap and self._with_rows:
                    self._all_rows_in()  # who takes results may push, too
        except Exception as error:
            self._fault = error
            raise
        finally:
            self._draining = False

    def snapshot(self) -> dict[str, bytes]:
        """Return the state of every operator, and of the runner; nothing may be queued (``drain`` first)."""
        if waiting := len(self._agenda.heap) + sum(map(len, self._lanes.values())):
            msg = f"graph {self.plan.name!r}: {waiting} messages are queued; drain before a snapshot"
            raise UsageError(msg)
        return states.snapshot(_OWN_NAME, self.operators, self._save())

    def restore(self, saved: dict[str, bytes]) -> None:
        """Take over the state of the same graph; edge checks start anew.

        Raises ``SnapshotError`` if it is of another graph, or damaged; all operators are then as they were opened.
        """
        states.restore(self.plan.name, _OWN_NAME, self.operators, saved, self._load)
        for name, operator in self.operators.items():
            place = place_of(self.plan.name, name, operator)
            self._agenda.statistics.operators[name].before = counts_of(place, operator)

    def _save(self) -> dict[str, Any]:
        """Return which sources have ended, and the last moment of each."""
        open_ports = {name: sorted(worker.open_ports) for name, worker in self._workers.items()}
        own = {"open_ports": open_ports, "last": self._last, "ended": sorted(self._ended)}
        return own | ({"changes": self._changes.save()} if self._changes else {})

    def _load(self, saved: Saved) -> None:
        ports, last, ended = saved.part("open_ports"), saved.part("last"), saved.part("ended")
        still = {name: ports.part(name) for name in self._workers}
        open_ports = {
            name: {still[name].integer(i, least=0, most=len(op.inputs) - 1) for i in still[name]}
            for name, op in self.operators.items()
        }
        times = {name: last.integer(name) for name in self._last}
        for name, worker in self._workers.items():
            worker.open_ports = open_ports[name]
        self._last, self._ended = times, set(ended.values()) & set(times)
        if self._changes:
            self._changes.load(saved.part("changes"), self.operators)
