"""Local: one asyncio task per operator, pushing pages through bounded queues.

A full queue makes its writers wait, back to the sources: memory stays bounded however
fast they are.  One inbox per operator means that a graph without cycles cannot block
itself.  An operator that is behind takes the messages that wait for it together (``backlog``); one that is not takes
each message as it comes.  A small message for an operator that is idle is handled by the task of the operator before
(``station``).  Rows that come one by one go in together (``door``).

The first error, or Ctrl-C, cancels every task before it is raised; who pushes from
another task has it too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from threading import get_ident
from types import TracebackType
from typing import Any, Self

from oop_engine.core.change import Change
from oop_engine.core.errors import ContractError, UsageError
from oop_engine.core.graphs.graph import Graph, Stream
from oop_engine.core.graphs.statistics import Statistics
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.saved import Saved
from oop_engine.runners import states
from oop_engine.runners.backlog import Envelope, leaves
from oop_engine.runners.changes import Changes
from oop_engine.runners.clocks import Clocks
from oop_engine.runners.dispatch import Result, Signal, not_open, statistics_of
from oop_engine.runners.door import RowLane, admitted
from oop_engine.runners.faults import cancelling, counts_of, faults, first_of, place_of
from oop_engine.runners.feeds.bad_rows import BadRows, Refusals, Refuse
from oop_engine.runners.feeds.far_times import FarTimes
from oop_engine.runners.feeds.forms import RING, Intake
from oop_engine.runners.feeds.kinds import MESSAGES
from oop_engine.runners.station import Inbox, LocalRoute, Station, Way
from oop_engine.system.memory import keep_freed
from oop_engine.system.stopwatch import wall
from oop_engine.system.turn import TURN_S, Turn

__all__ = ["Local"]


class Local:
    """Runs ``graph`` inside ``async with``; any number of tasks may push into it.

    ``capacity``: how many messages an operator's queue holds; of small ones it holds ``room`` bytes.  Leaving
    the block ends the sources that are still open and waits until everything has been worked off.
    ``exact``: messages of different moments are never combined, so the virtual time of results is that of ``Inline``;
    else it may be later.  ``max_delay_s``: rows that were pushed one by one go in when the first has waited for so
    long, even if there are more.
    ``bad_rows``: None or ``"refuse"``: a row that does not fit its columns is the error of its ``push``; but one of
    ``push_row``, which goes in later and together with those of others, ends the run.  ``"count"``, or a function of a
    ``BadRow``: such rows are left out, and counted in ``refused`` by source and reason.
    ``on_result`` may be asynchronous: while it waits, the operators before it wait too, back to the pusher::

        async with Local(graph, print) as local:
            await local.push("packets", page)
    """

    def __init__(
        self,
        graph: Graph,
        on_result: Callable[[Result], Awaitable[None] | None],
        *,
        check: bool = False,
        capacity: int = 16,
        room: int = 2**21,
        exact: bool = False,
        max_delay_s: float | None = None,
        bad_rows: BadRows | None = None,
    ) -> None:
        keep_freed()
        self.plan = graph.plan()
        self.operators = self.plan.open()
        self._statistics = statistics_of(self.plan)
        self._changes = Changes(self.plan)
        self._clocks = Clocks(self.plan)
        self.way = Way(self.plan, self._statistics, self._clocks, on_result, self._stop)
        leaving = leaves(self.plan, exact=exact)
        self._stations = {
            name: Station(name, operator, Inbox(operator, leaving[name], capacity, room))
            for name, operator in self.operators.items()
        }
        plan, stations, seen = self.plan, self._stations, self._statistics
        routes = {
            stream: [
                LocalRoute(stream, node, port, plan, seen, self._changes, check, stations.get(node))
                for node, port in to
            ]
            for stream, to in plan.consumers().items()
        }
        for node in plan.of_kind("operator"):
            stations[node.name].routes = [routes[Stream(node.name, port)] for port in node.ports]
        self._routes = {node.name: routes[Stream(node.name, "out")] for node in plan.of_kind("source")}
        self._rested = asyncio.Event()
        self._now = {node.name: NEVER for node in self.plan.of_kind("source")}
        self._schemas = {name: self.plan.schema(Stream(name)) for name in self._now}
        self._places = {name: f"graph {plan.name!r}, source {name!r}" for name in self._now}
        self._refusals = Refusals("Local", bad_rows)
        self._takes_bad = bad_rows not in (None, "refuse")
        self._far = FarTimes(self.plan.name, self._schemas)
        self._lanes = {
            name: RowLane(self._places[name], schema, max_delay_s, self._bad(name))
            for name, schema in self._schemas.items()
        }
        self._lines = {name: deque[asyncio.Future[None]]() for name in self._lanes}
        self._full = set[str]()  # sources whose next rows wait in line
        self._in_turn = {name: asyncio.Lock() for name in self._lanes}
        self._in_order = {name: asyncio.Lock() for name in self._lanes}
        self._soon: dict[str, asyncio.Task[None]] = {}
        self._endings: list[asyncio.Task[None]] = []
        self._open, self._ended = set(self._now), set[str]()
        self._pushing, self._pushed = dict.fromkeys(self._now, 0), asyncio.Event()
        self._turn = Turn()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: int | None = None  # of the block; None before it and after it
        self._fault: Exception | None = None
        self._gate = asyncio.Lock()
        self._tasks = asyncio.TaskGroup()
        self._workers = set[asyncio.Task[None] | None]()

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            msg = f"graph {self.plan.name!r}: a Local runs once: make another one"
            raise UsageError(msg)
        self._thread, self._loop = get_ident(), asyncio.get_running_loop()
        await self._tasks.__aenter__()
        for name, station in self._stations.items():
            self._workers.add(self._tasks.create_task(self._work(station), name=name))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._tasks.create_task(self._end_all())  # so that an error meanwhile is the group's
            await self._tasks.__aexit__(kind, error, trace)
            return
        except BaseExceptionGroup as group:
            failed = first_of(group)
        except BaseException as stopped:
            self._stop(stopped)
            raise
        finally:
            self._thread = None
        self._stop(failed)
        raise failed  # not while the group is handled: its cause would be forgotten

    @property
    def refused(self) -> dict[str, dict[str, int]]:
        """The bad rows that were left out, counted by source and reason; see ``bad_rows``."""
        return self._refusals.counts

    def _bad(self, source: str) -> Refuse | None:
        return self._refusals.of(source, self._places[source]) if self._takes_bad else None

    @property
    def clock_every(self) -> int | None:
        """How often some operator wants ``clock``; None: never."""
        return min((op.clock_every for op in self.operators.values() if op.clock_every), default=None)

    async def push(self, source: str, message: Any, now: int | None = None, *, at_once: bool = False) -> None:
        """Send a message of a source, or rows in any form of ``feeds.forms``; waits while the queues are full.

        ``at_once``: operators that are idle handle a small message before this returns, a turn of the event loop sooner
        than by their own tasks; who pushes so must not be cancelled meanwhile.
        """
        if self._gate.locked():
            await self._gate_open()
        self._check(source)
        if isinstance(message, Change):
            await self.change(message.operator, message, now)
            return
        if not at_once and self._turn.is_full():
            await self._counted(source, self._turn.wait())
        if self._lanes[source] or self._in_turn[source].locked():
            await self._counted(source, self._rows_sent(source))
        if isinstance(message, MESSAGES):
            await self._push(source, message, now, alone=at_once)
        else:
            await self._push_all(source, message, now, at_once)
        if not at_once and self._turn.is_long():
            await self._turn.end()

    async def _gate_open(self) -> None:
        """Wait for a change that is on its way in."""
        async with self._gate:
            pass

    async def _counted(self, source: str, wait: Awaitable[None]) -> None:
        """Wait as a push that has begun: the end of its source, and ``settle``, wait for it."""
        self._pushing[source] += 1
        try:
            await wait
        finally:
            self._pushed_one(source)
        self._check_running()

    async def _push_all(self, source: str, rows: Any, now: int | None, at_once: bool) -> None:
        """Send rows of any form; those of several pages by a task of the runner, which a caller cannot cancel."""
        intake = Intake(self._places[source], self._schemas[source], "push", refused=self._bad(source))
        pages = iter(intake.messages(rows))
        few = [*islice(pages, 1 if at_once else 2)]
        if len(few) < 2 or at_once:
            for number, made in enumerate(chain(few, pages)):
                if number or isinstance(made, Change):
                    await self.push(source, made, now, at_once=at_once)
                else:
                    await self._push(source, made, now, alone=at_once)
            return
        rest: list[Iterator[Message | Change]] = [chain(few, pages)]
        sending = self._tasks.create_task(self._pages_in(source, rest, now), name=f"pages of {source}")
        try:
            await self._shielded(sending)
        except asyncio.CancelledError:
            # all of a list goes in; of an iterator, which may have no end, nothing more
            rest[0] = iter([] if isinstance(rows, Iterator) else _read_now(rest[0]))
            raise
        if (refused := sending.result()) is not None:
            raise refused

    async def _pages_in(
        self, source: str, rest: list[Iterator[Message | Change]], now: int | None
    ) -> Exception | None:
        """Send the pages of one push, the next of ``rest[0]`` each time; return an error of its rows."""
        self._pushing[source] += 1  # so that the end waits for all of them
        try:
            while (made := next(rest[0], None)) is not None:
                if isinstance(made, Change):
                    await self._changed_within(source, made, now)
                    continue
                if self._turn.is_full():
                    await self._turn.wait()
                if self._lanes[source] or self._in_turn[source].locked():
                    await self._rows_sent(source)
                await self._push(source, made, now)
        except Exception as error:
            return error
        finally:
            self._pushed_one(source)
        return None

    async def _changed_within(self, source: str, change: Change, now: int | None) -> None:
        """Change an operator in the middle of a push, which does not count as one that is on its way meanwhile."""
        self._pushed_one(source)
        try:
            await self.change(change.operator, change, now)
        finally:
            self._pushing[source] += 1

    def push_threadsafe(self, source: str, message: Any, now: int | None = None) -> Future[None]:
        """Send a message from another thread; ``result()`` of the value waits until it is in.

        Raises ``UsageError`` outside the block.
        """
        if self._loop is None or self._thread is None:
            raise self._outside()
        return asyncio.run_coroutine_threadsafe(self.push(source, message, now), self._loop)

    async def push_row(self, source: str, row: Any, arrival: int | None = None) -> None:
        """Send one row of a source: a dictionary, dataclass, named tuple, or the values in the order of its columns.

        Rows wait for each other: all go in as one page when the pusher next waits for anything, when there are ``RING``
        of them, or before any other message of the source.  Pushers that come while so many wait stand in line: a turn
        of the event loop takes ``RING`` of them, however many there are.  A microsecond a row.  Raises
        ``ContractError`` if it is no row of the columns (``feeds.rows``); a value of a wrong type is an error of the
        run; but see ``bad_rows``.
        """
        if self._fault is not None or source not in self._open or get_ident() != self._thread:
            self._check(source)
        lane = self._lanes[source]
        if source in self._full:
            await self._counted(source, self._in_line(source))
        if lane.add(row, arrival):
            self._full.add(source)
            self._rows_soon(source)
            await self._counted(source, self._in_line(source, first=True))
        elif len(lane) == 1:
            self._rows_soon(source)

    async def _in_line(self, source: str, *, first: bool = False) -> None:
        """Wait until rows that were full are in; ``first``: as the one whose row made them full."""
        place, line = asyncio.get_running_loop().create_future(), self._lines[source]
        line.appendleft(place) if first else line.append(place)
        await place

    async def _rows_sent(self, source: str) -> None:
        """Wait until the rows that wait now are in: sent by a task of the runner, since other pushers own them too."""
        await self._shielded(self._rows_soon(source))
        if self._lanes[source]:  # they came while it was at work
            await self._shielded(self._rows_soon(source))

    async def _shielded(self, task: asyncio.Task[Any]) -> None:
        """Wait for a task of the runner; where that was cancelled, and not the caller, the block has been left."""
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and not cancelling():
                raise self._outside() from None
            raise

    def _rows_soon(self, source: str) -> asyncio.Task[None]:
        """Return the task that sends the rows that wait."""
        if (task := self._soon.get(source)) is None or task.done():
            task = self._tasks.create_task(self._send_rows(source), name=f"rows of {source}")
            self._soon[source] = task
        return task

    async def _send_rows(self, source: str) -> None:
        try:
            await self._rows_in(source)
        except Exception as error:
            self._stop(error)
            raise

    async def _rows_in(self, source: str) -> None:
        """Send the rows that wait, behind those that somebody is sending already."""
        lane, line = self._lanes[source], self._lines[source]
        async with self._in_turn[source]:
            while lane or line:
                page = lane.take() if lane else ()
                if isinstance(page, Page) and len(page):
                    await self._push(source, page, None)
                _wake(line, RING)
                if line:
                    await asyncio.sleep(0)  # those that were woken add their rows
                else:
                    self._full.discard(source)

    async def _all_rows_in(self) -> None:
        for source in self._lanes:
            if self._lanes[source] or self._in_turn[source].locked():
                await self._rows_sent(source)

    async def _push(self, source: str, message: Message, now: int | None, *, alone: bool = False) -> None:
        message = admitted(self._places[source], self._schemas[source], message)
        if isinstance(message, Page) and len(message):
            self._far.see(source, message)
            if message.arrival is not None:
                now = int(message.arrival[-1])
        routes, in_order = self._routes[source], self._in_order[source]
        self._pushing[source] += 1
        try:
            if not alone:
                await in_order.acquire()  # whoever waits for room is not overtaken
            try:
                if now is not None and now > self._now[source]:
                    self._now[source] = now
                if len(routes) > 1 and not alone:
                    await _room(routes)  # in all: one that is cancelled here has gone to none
                await self.way.send(routes, message, self._now[source], wall(), alone=alone)
            finally:
                if not alone:
                    in_order.release()
        finally:
            self._pushing[source] -= 1
            self._pushed.set()
            self._rested.set()

    def _pushed_one(self, source: str) -> None:
        """Wake the callers that wait until no message is on its way in."""
        self._pushing[source] -= 1
        self._pushed.set()
        self._rested.set()

    async def change(self, operator: str, change: Change, now: int | None = None) -> None:
        """Change an operator, as ``Inline.change``; pushes of other tasks wait until it is in.

        Called while a result is handled it does not wait for the messages before it: bounds that follow from these, and
        pass the time of the change, are an error of the run.
        """
        if asyncio.current_task() in self._workers:
            self._change(replace(change, operator=operator), now)
            return
        async with self._gate:
            await self.settle()  # rows that waited are in then
            self._change(replace(change, operator=operator), now)

    def _change(self, change: Change, now: int | None) -> None:
        if self._fault is not None:
            raise self._fault
        admitted, sources = self._changes.admitted(change, self._ended)
        for source in sources:
            for route in self._routes[source]:
                if route.station is not None and route.takes(admitted):
                    moment = self._now[source] if now is None else now
                    route.station.inbox.put(Envelope(route.port, route.noted(admitted), moment, wall()))

    async def end(self, source: str) -> None:
        """End a source, behind all that was pushed before; later pushes are refused, also if this is cancelled."""
        self._check(source)
        self._open.discard(source)
        ending = self._tasks.create_task(self._end(source), name=f"end of {source}")
        self._endings.append(ending)  # of the runner: the operators wait for the end, whoever waits here
        await self._shielded(ending)

    async def _end(self, source: str) -> None:
        while self._pushing[source] or self._lanes[source] or self._in_turn[source].locked():
            if self._lanes[source] or self._in_turn[source].locked():
                await self._rows_sent(source)
            else:
                self._pushed.clear()
                await self._pushed.wait()
        self._ended.add(source)
        await self.way.send(self._routes[source], Signal.END, self._now[source], wall())

    async def clock(self, now: int) -> None:
        """Set the arrival clock to ``now`` for the operators that use it, after all that was pushed before."""
        self._check_running()
        for source in [name for name in self._now if name in self._open]:
            if self._lanes[source] or self._in_turn[source].locked():
                await self._rows_sent(source)
            if source not in self._open:  # it has ended meanwhile
                continue
            self._pushing[source] += 1  # so that the end waits for it
            try:
                await self.way.send(self._routes[source], Signal.TICK, now, wall())
            finally:
                self._pushed_one(source)

    async def settle(self) -> None:
        """Wait until all that was pushed has been worked off, as far as it can be by now.

        A graph that settles after each push keeps its inputs in step, see ``in_step``.
        """
        self._check_running()
        await self._all_rows_in()
        while self._fault is None and not self._is_idle():
            self._rested.clear()
            await self._rested.wait()

    def _is_idle(self) -> bool:
        """Return whether nothing is on its way in, nor in the graph."""
        on_their_way = any(self._pushing.values()) or any(self._lanes.values())
        return not on_their_way and all(s.inbox.idle for s in self._stations.values())

    @property
    def statistics(self) -> Statistics:
        """The figures of the run so far.

        States are looked at before a bound behind a page, after the first message and every 64, and here, unless from
        another thread or after an error.
        """
        here = self._thread in (None, get_ident()) and self._fault is None
        for name, station in self._stations.items() if here else ():
            if not station.inbox.busy:
                self._statistics.operators[name].counts = self._counts(name)
                if station.unseen:
                    self.way.look(station, 0, Signal.TICK)
        return self._statistics

    async def snapshot(self) -> dict[str, bytes]:
        """Return the state of every operator, and of the runner, after all that was pushed; nobody pushes meanwhile."""
        return {name: packed() for name, packed in (await self.captured()).items()}

    async def captured(self, *, kept: bool = True) -> dict[str, Callable[[], bytes]]:
        """Return the ``snapshot`` of now as functions that pack its entries, on any thread, while the graph goes on.

        ``kept``: False where nothing keeps it: then all is worked off, and no operator has to save its state.
        """
        await self.settle()
        if self._fault is not None:
            raise self._fault
        return states.captured("Local", self.operators, self._save()) if kept else {}

    def restore(self, saved: Mapping[str, bytes], fresh: Collection[str] = ()) -> None:
        """Take over a snapshot of the same graph, as ``Inline.restore`` does, before the block is entered.

        ``fresh``: nodes that begin empty; the snapshot need not know them, and may know others.
        """
        if self._loop is not None:
            msg = f"graph {self.plan.name!r}: restore is for before its block (`async with Local(...)`)"
            raise UsageError(msg)

        def load(own: Saved) -> None:
            self._load(own, fresh)

        states.restore(self.plan.name, "Local", self.operators, saved, load, fresh)
        for name in self.operators:
            self._statistics.operators[name].before = self._counts(name)

    def _counts(self, name: str) -> dict[str, int]:
        operator = self.operators[name]
        return counts_of(place_of(self.plan.name, name, operator), operator)

    def leave(self) -> None:
        """Leave the block without ending the sources: incomplete results are not emitted, nor is anything else.

        Pushes that wait raise ``UsageError``.
        """
        if self._thread is not None and get_ident() != self._thread:
            self._check_running()
        read = [] if self._fault is not None else list(self.operators)
        self._stop(self._outside())
        self._ended.update(self._now)
        self._open.clear()
        tasks = [*filter(None, self._workers), *self._soon.values(), *self._endings]
        for task in sorted(tasks, key=asyncio.Task.get_name):
            task.cancel()
        for name in read:
            self._statistics.operators[name].counts = self._counts(name)

    @property
    def in_step(self) -> bool:
        """Whether the virtual time of results is that of ``Inline`` even if pushes do not wait for each other.

        It is if no operator has several inputs.  Else one of them may be ahead by the messages in its queue: then a
        result that waited for the other has the latest arrival that has been seen, which is later.
        """
        return all(len(operator.inputs) == 1 for operator in self.operators.values())

    def _check(self, source: str) -> None:
        if self._fault is None and source in self._open and get_ident() == self._thread:
            return
        self._check_running()
        raise not_open(self.plan.name, source, self._now)

    def _check_running(self) -> None:
        if self._fault is not None:
            raise self._fault
        if self._thread is None:
            raise self._outside()
        if get_ident() != self._thread:
            way_out = "push_threadsafe(source, message).result()"
            msg = f"graph {self.plan.name!r}: it runs in the event loop of another thread: from here call {way_out}"
            raise UsageError(msg)

    def _outside(self) -> Exception:
        """Return the error of a call before the block or behind it."""
        when = "has not begun" if self._loop is None else "has ended; nothing can follow"
        return self._fault or UsageError(
            f"graph {self.plan.name!r}: its block (`async with Local(...)`) {when}"
        )

    def _save(self) -> dict[str, Any]:
        own = self._clocks.save() | {"now": self._now, "ended": sorted(self._ended)}
        return own | ({"changes": self._changes.save()} if self._changes else {})

    def _load(self, saved: Saved, fresh: Collection[str]) -> None:
        now, ended = saved.part("now"), set(saved.part("ended").values())
        times = {name: NEVER if name in fresh else now.integer(name) for name in self._now}
        self._clocks.load(saved, fresh, ended)
        self._now, self._ended = times, ended & set(times)
        self._open = set(times) - self._ended
        if self._changes:
            self._changes.load(
                saved.part("changes") if "changes" in saved else Saved(), self.operators, fresh
            )

    async def _end_all(self) -> None:
        for source in [name for name in self._now if name in self._open]:
            await self.end(source)

    def _stop(self, error: BaseException) -> None:
        """Raise the error in every task that pushes, now or later: its messages have no taker."""
        if self._fault is None:
            cancelled = UsageError(f"graph {self.plan.name!r}: it was cancelled; nothing can follow")
            self._fault = error if isinstance(error, Exception) else cancelled
            self._rested.set()
            for line in self._lines.values():
                _wake(line, len(line))
            for station in self._stations.values():
                station.inbox.fail(self._fault)

    async def _work(self, station: Station) -> None:
        try:
            await self._work_off(station)
        except faults() as error:
            self.way.blame(station, error)

    async def _work_off(self, station: Station) -> None:
        """Handle all that comes to an operator, until its ports have ended."""
        name, inbox, ports = station.name, station.inbox, self._clocks.open_ports[station.name]
        while ports:
            envelopes = await inbox.take()
            began = wall()
            for arrived in envelopes:
                if wall() - began > TURN_S:  # other tasks of the loop have theirs
                    await asyncio.sleep(0)
                    began = wall()
                envelope = self._clocks.in_time(name, arrived)
                if envelope.message is not Signal.TICK:
                    await self.way.handle(station, *envelope, more=arrived is not envelopes[-1])
                if envelope.message is Signal.END:
                    ports.discard(envelope.port)
                if isinstance(envelope.message, Signal):
                    await self._tick(station, envelope)
            if not ports:
                self._statistics.operators[name].counts = self._counts(name)
                for routes in station.routes:
                    await self.way.send(routes, Signal.END, envelope.now, envelope.born)
            inbox.done()
            self._rested.set()

    async def _tick(self, station: Station, envelope: Envelope) -> None:
        """Advance the clock here, then downstream."""
        if (now := self._clocks.tick(station.name, envelope)) is None:
            return
        tick = Envelope(0, Signal.TICK, now, envelope.born)
        if station.operator.clock_every:
            await self.way.handle(station, *tick)
        for routes in station.routes:
            await self.way.send(routes, *tick[1:])


def _read_now(pages: Iterator[Message | Change]) -> list[Message | Change]:
    """Return the pages of rows that their giver may change from now on, up to a bad row, whose push is over."""
    messages = list[Message | Change]()
    with suppress(ContractError):
        messages.extend(pages)
    return messages


def _wake(line: deque[asyncio.Future[None]], most: int) -> None:
    """Resume the first ones in a queue."""
    while most and line:
        if not (place := line.popleft()).done():  # else its task was cancelled
            place.set_result(None)
            most -= 1


async def _room(routes: Iterable[LocalRoute]) -> None:
    """Wait until there is room behind all of some routes."""
    inboxes = [route.station.inbox for route in routes if route.station is not None]
    while (full := next((inbox for inbox in inboxes if inbox.full), None)) is not None:
        await full.wait()
