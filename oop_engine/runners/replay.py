"""Replay: a trace, or several, through a graph, on a clock that follows their arrivals.

virtual   as fast as the machine goes; the clock shows the arrival of what is being
          handled, so state and delay are those of the real thing, exactly, every time
paced     in real time: a tuple goes in when it is due, ``speed`` times faster
flat out  no clock at all, to see how fast the graph is
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator, Mapping
from inspect import iscoroutinefunction
from time import sleep
from typing import TYPE_CHECKING, Any, Literal

from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Graph, Stream
from oop_engine.core.graphs.lengths import log_doubtful_lengths
from oop_engine.core.graphs.statistics import Statistics
from oop_engine.core.graphs.waiting import MissingPunctuation
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER
from oop_engine.core.units import TIME_UNITS
from oop_engine.runners.dispatch import Result, Signal, Watch
from oop_engine.runners.feeds.bad_rows import BadRows, Refusals
from oop_engine.runners.feeds.given import check_feeds, intakes
from oop_engine.runners.feeds.reading import ReplayPace, RowCounter
from oop_engine.runners.inline import Inline
from oop_engine.runners.outcome import Collector, Outcome
from oop_engine.runners.schedule import Step, by_order_alone, schedule

if TYPE_CHECKING:
    from oop_engine.runners.local import Local  # and asyncio with it, which a plain loop does without

__all__ = ["arun", "replay"]

Runner = Literal["inline", "local"]
_STEP_S = 0.05  # paced: how finely tuples are let in, in wall seconds


def replay(
    graph: Graph,
    feeds: Mapping[str, Any],
    *,
    on: Runner = "inline",
    speed: float | None = None,
    flat_out: bool | None = False,
    check: bool = False,
    on_tuples: Callable[[int], None] | None = None,
    on_result: Callable[[Result], None] | None = None,
    watch: Watch | None = None,
    bad_rows: BadRows | None = None,
) -> Outcome:
    """Run ``graph`` over ``feeds``: for each source its rows and messages, in arrival order.

    A feed is a trace, Arrow data, a data frame, a dictionary of columns, or an iterable of rows (dictionaries,
    dataclasses, named tuples), of messages and of all of these (``runners/feeds/forms.py`` has the table).
    Feeds are read side by side, as they are needed: by their arrivals, or a message of each by turns where
    they have none (see ``schedule``).  They may be endless: nothing of the past is kept, if ``on_result`` takes
    the results.

    ``on``: ``"inline"``, a plain loop, or ``"local"``, asyncio, in an event loop of its own; inside a running one
    ``await arun(...)`` does the same.
    ``speed``: wall pace, 1.0 is real time; None: virtual time.  ``flat_out`` ignores arrivals; None: it does if results
    do not depend on them (``by_order_alone``): pages then go in as a whole, and results have the moments of pages.
    ``check`` checks every edge against its bounds.  ``on_tuples`` is called with the number of tuples that went in,
    page by page; ``on_result`` with each result (then nothing is collected and ``results`` is empty).  If much has
    come of a source without punctuation, and no operator makes any of it, that is logged (``waiting``): results then
    wait for its end.
    ``watch``, inline only, looks on.
    ``bad_rows``: ``"refuse"``, a row that has no time or does not fit its columns is a ``ContractError``;
    ``"count"``, it is left out and counted in ``Outcome.refused``; a function, the same, and it is called with each
    ``BadRow``.  None: rows of a trace are counted, as ``open_trace`` does, and others refused.
    Raises ``UsageError`` if the feeds are not the graph's sources, or need an event loop, ``ContractError`` if the
    arrivals of a feed go back, or something in a feed has none of its forms.

    >>> import pyarrow as pa
    >>> from oop_engine import Graph, Schema
    >>> graph = Graph("nothing to do")
    >>> graph.sink("out", graph.source("in", Schema({"ts": pa.int64()}, "ts", "s")))
    >>> outcome = replay(graph, {"in": [{"ts": 1}, {"ts": None}, {"ts": 2}]}, bad_rows="count")
    >>> outcome.results["out"].num_rows, outcome.refused
    (2, {'in': {'ts is null': 1}})
    """
    if on == "local":
        from oop_engine.runners.event_loop import run_async

        _check_no_loop(graph.name)
        return run_async(
            arun(
                graph, feeds, speed=speed, flat_out=flat_out, check=check, on_tuples=on_tuples, on_result=on_result,
                bad_rows=bad_rows,
            )
        )  # fmt: skip
    replayed = _Replay(graph, feeds, speed, flat_out, on_tuples, Refusals("replay", bad_rows))
    replayed.check_runs_without_a_loop(on_result)
    runner = Inline(graph, on_result or replayed.collector, check=check, watch=watch, exact=True)
    _run_inline(runner, replayed.steps(runner.clock_every), replayed.pace)
    return replayed.outcome(runner.statistics)


async def arun(
    graph: Graph,
    feeds: Mapping[str, Any],
    *,
    speed: float | None = None,
    flat_out: bool | None = False,
    check: bool = False,
    on_tuples: Callable[[int], None] | None = None,
    on_result: Callable[[Result], Awaitable[None] | None] | None = None,
    bad_rows: BadRows | None = None,
) -> Outcome:
    """Run ``graph`` over ``feeds`` inside a running event loop, on ``Local``; else like ``replay``.

    A feed may also be an asynchronous iterable of the same things.  If one of them is, all are live: each is read by a
    task of its own, and goes in as it comes; the arrival clock shows the latest arrival that has come from any of them.
    So nobody waits for a feed that is silent.  Otherwise they are merged by arrival.
    ``on_result`` may be asynchronous: while it waits, the operators before its sink wait too, back to the feeds.  It
    is called for results of one sink one after the other.
    A feed is read no further than the queues have room.  When a run fails or is cancelled, no task is left, and
    asynchronous feeds have been closed.
    Raises as ``replay`` does, and ``UsageError`` for a ``speed`` with live feeds.

    >>> import asyncio
    >>> import pyarrow as pa
    >>> from oop_engine import Page, Schema
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> graph = Graph("nothing to do")
    >>> graph.sink("out", graph.source("in", schema))
    >>> async def feed():
    ...     yield {"ts": 1}
    ...     yield Page.of(schema, {"ts": [2]})
    >>> async def main():
    ...     return await arun(graph, {"in": feed()})
    >>> asyncio.run(main()).results["out"].num_rows
    2
    """
    from oop_engine.runners.local import Local

    replayed = _Replay(graph, feeds, speed, flat_out, on_tuples, Refusals("arun", bad_rows))
    runner = Local(graph, on_result or replayed.collector, check=check, exact=True)
    if replayed.live:
        await replayed.read_live(runner)
    else:
        await _run_local(runner, replayed.steps(runner.clock_every), replayed.pace)
    return replayed.outcome(runner.statistics)


def _check_no_loop(graph: str) -> None:
    from oop_engine.runners.event_loop import in_loop

    if in_loop():
        msg = (
            f"graph {graph!r}: on='local' starts an event loop, and one is running here: "
            "await arun(graph, feeds) instead"
        )
        raise UsageError(msg)


class _Replay:
    """A graph and its feeds, checked; how they are read, and the counts."""

    def __init__(
        self,
        graph: Graph,
        feeds: Mapping[str, Any],
        speed: float | None,
        flat_out: bool | None,
        on_tuples: Callable[[int], None] | None,
        refusals: Refusals,
    ) -> None:
        plan = graph.plan()
        self._refusals = refusals
        self._graph, self._feeds = graph.name, feeds
        self._flat_out = by_order_alone(plan) if flat_out is None else flat_out
        self._schemas = {node.name: plan.schema(Stream(node.name)) for node in plan.of_kind("source")}
        check_feeds(refusals.call, graph.name, feeds, list(self._schemas))
        self._intakes = intakes(graph.name, self._schemas, refusals)
        self.live = any(isinstance(feed, AsyncIterable) for feed in feeds.values())
        per_s = None if speed is None else self._units_per_s(speed)
        self._cut_every = None if per_s is None else max(1, int(_STEP_S * per_s))
        self.pace = None if per_s is None else ReplayPace(per_s)
        self.collector = Collector({node.name: plan.schema(node.inputs[0]) for node in plan.of_kind("sink")})
        log_doubtful_lengths(plan)
        self._end = NEVER
        self._counted = RowCounter(on_tuples, MissingPunctuation(plan))

    def _units_per_s(self, speed: float) -> float:
        unit = next(iter(self._schemas.values())).unit
        if unit not in TIME_UNITS:
            msg = f"replay: --speed needs a time; the progressing attribute is in {unit!r}: leave it out"
            raise UsageError(msg)
        if not speed > 0:
            msg = f"replay: --speed must be above 0 (1 is real time); got {speed:g}"
            raise UsageError(msg)
        if self.live:
            got = f"got speed={speed:g}: leave it out"
            msg = f"graph {self._graph!r}: asynchronous feeds have a pace of their own; {got}"
            raise UsageError(msg)
        return speed * TIME_UNITS[unit]

    def check_runs_without_a_loop(self, on_result: object) -> None:
        """Raise ``UsageError`` for feeds and receivers that only an event loop can wait for."""
        if self.live or iscoroutinefunction(on_result):
            awaited = "a feed" if self.live else "on_result"
            msg = f"graph {self._graph!r}: {awaited} is asynchronous: await arun(graph, feeds) instead"
            raise UsageError(msg)

    def steps(self, ticks: int | None) -> Iterator[Step]:
        """Yield the steps of the feeds; the clock ticks every ``ticks``."""
        ticks = None if self._flat_out else ticks
        feeds = {
            name: intake.messages(self._feeds[name])
            for name, intake in intakes(self._graph, self._schemas, self._refusals).items()
        }
        steps = schedule(feeds, [every for every in (self._cut_every, ticks) if every], ticks)
        return self._counted.each(self._ending(map(_without_clock, steps) if self._flat_out else steps))

    async def read_live(self, runner: Local) -> None:
        """Read each feed as it comes, to the end of all of them."""
        from oop_engine.runners.live import Live

        ticks = None if self._flat_out else runner.clock_every
        live = Live(runner, ticks, self._counted.see, arrivals=not self._flat_out)
        self._counted.start()
        await live.read(
            {
                name: (intake, self._feeds[name])
                for name, intake in intakes(self._graph, self._schemas, self._refusals).items()
            }
        )

    def outcome(self, statistics: Statistics) -> Outcome:
        """Return the results and counts."""
        refused = self._refusals.counts
        spent = self._counted.spent()
        return self.collector.outcome(statistics, self._counted.tuples, *spent, refused, self._end)

    def _ending(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the steps; note when the last source ends."""
        for step in steps:
            if step.message is Signal.END:
                self._end = max(self._end, step.now)
            yield step


def _run_inline(runner: Inline, steps: Iterable[Step], pace: ReplayPace | None) -> None:
    for source, message, now, until, _ in steps:
        if pace is not None and (wait := pace.seconds_until(now)) > 0:
            sleep(wait)
        if message is Signal.TICK:
            runner.clock(now)
        elif message is Signal.END:
            runner.end(source, now)
        elif not isinstance(message, Signal):
            runner.push(source, message, now)
        runner.drain(before=until)
    runner.drain()


async def _run_local(runner: Local, steps: Iterable[Step], pace: ReplayPace | None) -> None:
    settles = not runner.in_step
    async with runner:
        for source, message, now, until, _ in steps:
            if pace is not None and (wait := pace.seconds_until(now)) > 0:
                await sleep_async(wait)
            if message is Signal.TICK:
                await runner.clock(now)
            elif message is Signal.END:
                await runner.end(source)
            elif not isinstance(message, Signal):
                await runner.push(source, message, now)
            if settles and until is not None:
                await runner.settle()


async def sleep_async(seconds: float) -> None:
    """Wait without holding up the event loop."""
    from asyncio import sleep

    await sleep(seconds)


def _without_clock(step: Step) -> Step:
    message = step.message.without_arrival() if isinstance(step.message, Page) else step.message
    return step._replace(message=message, until=None)
