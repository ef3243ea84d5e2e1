"""Workers: the nodes of a graph under ``Inline``, and their handling of events.

The way of a small page is a few calls a hop: who takes an event is in the event, and where it goes from there was
looked up when the graph was opened.  An operator that takes pages as ``Operator`` does (``Meld``) passes them on, so
it is not asked at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from heapq import heappop, heappush

from oop_engine.core.change import Change
from oop_engine.core.graphs.graph import Plan, Stream
from oop_engine.core.graphs.statistics import Statistics
from oop_engine.core.operator import Emission, Message, Operator
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER, Linear
from oop_engine.runners.changes import Changes
from oop_engine.runners.dispatch import (
    DONE,
    EMITTED,
    Foresight,
    Result,
    Route,
    Signal,
    Watch,
    check_emission,
    handle,
)
from oop_engine.runners.faults import blame, counts_of, deliver, faults, place_of
from oop_engine.system.knobs import knob
from oop_engine.system.stopwatch import wall

__all__ = ["Agenda", "Delivery", "Event", "InlineRoute", "Worker"]

Event = tuple[int, int, int, "Worker | Delivery", int, Message | Signal, int, float]
"""An event to handle: moment, again, serial; worker, port, message; the clock then, and when (wall) the punctuation
that released it was made.  A plain tuple: each hop of a message makes one.

The heap orders by the first three, and no two have the same serial.  ``again`` is 1 where a handler that was left in
the middle goes on, which is after all else that has the same moment.
"""

_MOST = knob(__name__, "_MOST", 1 << 14)  # rows, about, that an operator emits before they are handed on
_READ_AFTER = knob(__name__, "_READ_AFTER", 64)  # messages between two looks at a state, where nobody asks
_NOTHING: Message | Signal = Signal.END


class Agenda:
    """The events to handle in a graph, the earliest moment first; the watch, and the figures of the run.

    ``exact``: the state of an operator is read after each message that it handles, so no peak is missed.
    """

    def __init__(self, plan: Plan, statistics: Statistics, watch: Watch | None, *, exact: bool) -> None:
        self.plan, self.statistics, self.watch, self.exact = plan, statistics, watch, exact
        self.changes = Changes(plan)
        self.heap: list[Event] = []
        self.serial = itertools.count()
        self.foreseen_s = 0.0  # spent on pages that were foreseen, while their generators were at work


class InlineRoute(Route):
    """One edge; no message overtakes an earlier one."""

    def __init__(self, stream: Stream, to: Worker | Delivery, port: int, agenda: Agenda, check: bool) -> None:
        super().__init__(stream, to.name, port, agenda.plan, agenda.statistics, agenda.changes, check)
        self._to, self._agenda, self._heap, self._serial = to, agenda, agenda.heap, agenda.serial
        self._latest = NEVER

    def send(self, message: Message | Signal, moment: int, now: int, born: float) -> None:
        """Queue a message for who is at the end of the edge."""
        plain = self.contract is None and self.reached is None
        if plain and isinstance(message, Page) and message.schema is self._seen:  # as mostly
            self.count.pages += 1
            self.count.tuples += message.rows
        elif (
            plain
            and message.__class__ is Linear
            and message.below.__class__ is int
            and NEVER <= message.below <= FOREVER
        ):  # likewise
            self.count.punctuations += 1
            self.count.below = message.below
        elif not isinstance(message, Signal):
            if isinstance(message, Change) and not self.takes(message):
                return
            message = self.noted(message)
        self._latest = moment = max(self._latest, moment)
        now = max(now, moment)
        if self._agenda.watch is not None and not isinstance(message, Signal):
            self._agenda.watch.passed(self.stream, self.node, message, now)
        heappush(self._heap, (moment, 0, next(self._serial), self._to, self.port, message, now, born))

    @property
    def foresees(self) -> bool:
        """Whether who is at the end of the edge wants to know which pages come."""
        return self._to.foresees

    def foresee(self, pages: Sequence[Page]) -> None:
        """Announce the pages that come next from one source."""
        self._to.foresee(self.port, pages)


class Delivery:
    """Where results are handed over."""

    in_hand = False
    foresees = False

    def __init__(
        self, name: str, graph: str, on_result: Callable[[Result], None], on_end: Callable[[str], None] | None,
        on_change: Callable[[str, Change], None] | None,
    ) -> None:  # fmt: skip
        self.name, self._graph, self._on_result, self._on_end = name, graph, on_result, on_end
        self._on_change = on_change

    def foresee(self, port: int, pages: Sequence[Page]) -> None:
        """Take no notice: results leave as they come."""

    def take(self, event: Event, began: float) -> float:
        """Hand over a result; return when (wall) that was done."""
        _, _, _, _, _, message, now, born = event
        if isinstance(message, Change):
            assert self._on_change is not None  # else it goes to its operator alone
            self._on_change(self.name, message)
        elif not isinstance(message, Signal):
            if isinstance(message, Page) and message.late:
                message = message.settled()
            deliver(self._graph, self._on_result, Result(self.name, message, now, began - born))
        elif self._on_end is not None:
            self._on_end(self.name)
        return wall()


class Worker:
    """An operator, and where its output goes."""

    def __init__(self, name: str, operator: Operator, agenda: Agenda) -> None:
        self.name, self.operator, self._agenda = name, operator, agenda
        self._statistics = agenda.statistics.operators[name]
        self.routes: list[list[InlineRoute]] = []  # by output port
        self.open_ports = set(range(len(operator.inputs)))
        self.in_hand = False
        self._passes = type(operator).on_page is Operator.on_page and not operator.makes_progress
        # Since its state was read: how many messages it handled, the moment of the last one, whether one was a page.
        self._unread, self._seen, self._fed = 0, NEVER, False
        self._emissions: Iterator[Emission] | None = None  # the rest of its output ...
        self._ahead: Foresight | None = None  # ... the same, if it is made ahead ...
        self._port, self._message = 0, _NOTHING  # ... to which message

    @cached_property
    def foresees(self) -> bool:
        """Whether it, or somebody to whom it passes pages on, wants to know which pages come."""
        return self.operator.foresees or (self._passes and any(route.foresees for route in self.routes[0]))

    def foresee(self, port: int, pages: Sequence[Page]) -> None:
        """Announce the pages that come next of one source on a port."""
        if self.operator.foresees:
            began = wall()
            self.operator.foresee(port, pages)
            self._statistics.busy_s += (spent := wall() - began)
            self._agenda.foreseen_s += spent
        elif self._passes:
            self._tell(0, pages)

    def _tell(self, port: int, pages: Sequence[Page]) -> None:
        """Announce the pages that an output port will emit."""
        for route in self.routes[port]:
            if route.foresees:
                route.foresee(pages)

    @cached_property
    def _tells(self) -> bool:
        return any(route.foresees for routes in self.routes for route in routes)

    def take(self, event: Event, began: float) -> float:
        """Handle an event; return when (wall) that was done."""
        moment, again, _, _, port, message, now, born = event
        if self._emissions is not None:  # it must be done with the last message first
            began = self._work(event, began, one=bool(again))
        if again or (message is Signal.TICK and not self.open_ports):
            return began
        self._port, self._message = port, message
        if not isinstance(message, Page):
            began = self._work(event, began)
            if message is Signal.END:
                self._end(event)
            return began
        if self._passes:  # and keeps nothing of it
            self._emit(0, message, moment, now, born)
            done = wall()
            self._statistics.busy_s += done - began
            return done
        return self._work(event, began, one=self.operator.makes_progress and message.arrival is not None)

    def _work(self, event: Event, began: float, *, one: bool = False) -> float:
        """Queue the emissions of the operator: all of them, or ``one`` and the rest of the work."""
        moment, _, _, _, _, _, now, born = event
        operator, agenda = self.operator, self._agenda
        seen, released = (moment if one else now), (began if operator.makes_progress else born)
        rows, left, busy_s, ports = 0, 0, agenda.foreseen_s, len(self.routes)
        is_page = isinstance(self._message, Page)
        if self._fed and not is_page and self._emissions is None:
            self.read_state()  # a bound may free most of it
        while True:
            try:
                if self._emissions is None:
                    self._emissions = handle(operator, self._port, self._message, now)
                    if one and self._tells:
                        self._emissions = self._ahead = Foresight(operator, self._emissions, self._tell)
                emission = next(self._emissions, DONE)
                if emission is not DONE and (
                    emission.__class__ is not tuple
                    or len(emission) != 2
                    or emission[1].__class__ not in EMITTED
                    or emission[0].__class__ is not int
                    or not 0 <= emission[0] < ports
                ):
                    check_emission(operator, emission, self._message)
            except faults() as error:
                blame(error, agenda.plan.name, self.name, operator, self._port, self._message)
            if emission is DONE:
                self._emissions = self._ahead = None
                break
            port, answer = emission
            sent = self._emit(port, answer, moment, now, released)
            if one:
                heappush(agenda.heap, (sent, 1, next(agenda.serial), self, *event[4:]))
                seen = sent
                break
            rows += emission[1].rows if isinstance(emission[1], Page) else 0
            if rows >= _MOST:
                busy_s += wall() - began
                self._follow(moment)
                rows, left, began = 0, left + rows, wall()
        if left + rows > self._statistics.burst:
            self._statistics.burst = left + rows
        self._unread, self._seen, self._fed = self._unread + 1, seen, is_page or self._fed
        if agenda.exact or self._unread >= _READ_AFTER:
            self.read_state()
        done = wall()
        self._statistics.busy_s += busy_s - agenda.foreseen_s + done - began
        return done

    def read_state(self) -> None:
        """Take the state of the operator into the statistics, if it handled a message since that was done."""
        agenda, operator = self._agenda, self.operator
        if not self._unread:
            return
        try:
            state = operator.state() if self._ahead is None else self._ahead.state
        except faults() as error:
            blame(error, agenda.plan.name, self.name, operator, self._port, self._message)
        self._unread, self._fed = 0, False
        agenda.statistics.observe(self.name, state, self._seen, 0.0)
        if agenda.watch is not None:
            agenda.watch.kept(self._seen, agenda.statistics.state)

    def read_counts(self) -> None:
        """Take the counts of the operator (late tuples...) into the statistics."""
        place = place_of(self._agenda.plan.name, self.name, self.operator)
        self._statistics.counts = counts_of(place, self.operator)

    def _emit(self, port: int, message: Message, moment: int, now: int, born: float) -> int:
        """Queue an output; return its moment."""
        operator = self.operator
        at_edge = operator.makes_progress
        moment = moment if at_edge else now
        if isinstance(message, Page):
            if not message.rows:
                return moment
            if message.arrival is not None:
                now = int(message.arrival[-1])
                moment = now if at_edge else int(message.arrival[0])
                message = message.without_arrival() if at_edge else message
        if at_edge:
            own = operator.moment if self._ahead is None else self._ahead.moment
            now = moment = moment if own is None else max(moment, own)
        for route in self.routes[port]:
            route.send(message, moment, now, born)
        return moment

    def _follow(self, moment: int) -> None:
        """Handle the events that follow at once from an unfinished message, so that its output does not pile up.

        Events for an operator that is in the middle of a message stay where they are.
        """
        heap, waiting, began = self._agenda.heap, list[Event](), wall()
        self.in_hand = True
        while heap and heap[0][:2] <= (moment, 0):
            event = heappop(heap)
            if event[3].in_hand:
                waiting.append(event)
            else:
                began = event[3].take(event, began)
        self.in_hand = False
        for event in waiting:
            heappush(heap, event)

    def _end(self, event: Event) -> None:
        moment, _, _, _, port, message, now, born = event
        self.open_ports.discard(port)
        if self.open_ports:
            return
        self.read_counts()
        for routes in self.routes:
            for route in routes:
                route.send(message, moment, now, born)
