"""Replay: a trace, or several, through a graph, on a clock that follows their arrivals.

virtual   as fast as the machine goes; the clock shows the arrival of what is being
          handled, so state and delay are those of the real thing, exactly, every time
paced     in real time: a tuple goes in when it is due, ``speed`` times faster
flat out  no clock at all, to see how fast the graph is
"""

from __future__ import annotations

from asyncio import sleep as sleep_async
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter, sleep
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import UsageError
from oop_engine.core.graph import Graph
from oop_engine.core.html import table_html
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.schema import Schema
from oop_engine.core.statistics import LateTuples, Statistics
from oop_engine.core.units import TIME_UNITS
from oop_engine.core.waiting import MissingPunctuation
from oop_engine.runners.dispatch import Result, Signal, Watch
from oop_engine.runners.door import messages
from oop_engine.runners.inline import Inline
from oop_engine.runners.local import Local, run_async
from oop_engine.runners.schedule import Step, schedule
from oop_engine.system import stopwatch

__all__ = ["Outcome", "replay"]

Runner = Literal["inline", "local"]
T = TypeVar("T", bound=np.generic)
_SHOWN = 20  # rows in a notebook
_STEP_S = 0.05  # paced: how finely tuples are let in, in wall seconds


@dataclass
class Outcome:
    """What a replay gave.

    ``results``: a table a sink, rows in the order they came.  ``emitted``: for each row the
    virtual time when it came, int64, in the unit of the attribute.  Behind an operator of several inputs ``on="local"``
    tells it to a page: never earlier than it was, and no later than the end of the pages that had begun to arrive
    by then; for pages of one moment each it is exact.  ``waited_s``: for each row
    the wall seconds since its release left the edge.  ``tuples``: how many went in.
    ``wall_s`` and ``cpu_s`` are the graph's own, without reading the feeds and compiling kernels.
    """

    results: dict[str, pa.Table]
    emitted: dict[str, NDArray[np.int64]]
    waited_s: dict[str, NDArray[np.float64]]
    statistics: Statistics
    tuples: int
    wall_s: float
    cpu_s: float

    @property
    def late(self) -> LateTuples:
        """The tuples that came behind a promise: how many (``total``), and at which operators."""
        return self.statistics.late

    def _repr_html_(self) -> str:
        """Return the first results of each sink, for a notebook."""
        shown = (
            table_html(
                f"{name}: {table.num_rows:,} rows", table.column_names, table.slice(0, _SHOWN).to_pylist()
            )
            for name, table in self.results.items()
        )
        return "".join([f"<p>{self.tuples:,} tuples in {self.wall_s:.3g} s</p>", *shown])


@dataclass
class _Collector:
    """Keeps what reaches the sinks."""

    pages: dict[str, list[Page]]
    emitted: dict[str, list[NDArray[np.int64]]] = field(default_factory=dict)
    waited: dict[str, list[NDArray[np.float64]]] = field(default_factory=dict)

    def __call__(self, result: Result) -> None:
        if isinstance(page := result.message, Page):
            self.pages[result.sink].append(page)
            self.emitted.setdefault(result.sink, []).append(np.full(len(page), result.now))
            self.waited.setdefault(result.sink, []).append(np.full(len(page), result.waited_s))


def replay(
    graph: Graph,
    feeds: Mapping[str, Any],
    *,
    on: Runner = "inline",
    speed: float | None = None,
    flat_out: bool = False,
    check: bool = False,
    on_tuples: Callable[[int], None] | None = None,
    on_result: Callable[[Result], None] | None = None,
    watch: Watch | None = None,
) -> Outcome:
    """Run ``graph`` over ``feeds``: for each source its messages, in arrival order.

    A feed, or anything in it, may be Arrow data: a data frame, table, record batch, relation or reader goes in as
    pages of the source's schema (see ``page.pages``).
    Feeds are read side by side, as they are needed: by their arrivals, or a message of each by turns where
    they have none (see ``schedule``).  They may be endless: what is done is forgotten, if ``on_result`` takes
    the results.

    ``speed``: wall pace, 1.0 is real time; None: virtual time.  ``flat_out`` ignores
    arrivals.  ``check`` holds every edge against its promises.  ``on_tuples`` is told how
    many tuples went in, page by page; ``on_result`` gets what reaches a sink (then
    nothing is collected and ``results`` is empty).  If much has come of a source without a promise, and nothing in the
    graph makes any of it, that is logged (``waiting``): results then wait for its end.
    ``watch``, inline only, looks on.
    Raises ``UsageError`` if the feeds are not the graph's sources, ``ContractError`` if the
    arrivals of a feed go back.
    """
    plan = graph.plan()
    _check_feeds(feeds, [node.name for node in plan.of_kind("source")], graph.name)
    collector = _Collector({node.name: [] for node in plan.of_kind("sink")})
    runner: Inline | Local
    if on == "inline":
        runner = Inline(graph, on_result or collector, check=check, watch=watch)
    else:
        runner = Local(graph, on_result or collector, check=check)
    unit = next(node.schema for node in plan.of_kind("source") if node.schema is not None).unit
    if speed is not None and unit not in TIME_UNITS:
        msg = f"replay: --speed needs a time; the progressing attribute is in {unit!r}: leave it out"
        raise UsageError(msg)
    if speed is not None and not speed > 0:
        msg = f"replay: --speed must be above 0 (1 is real time); got {speed:g}"
        raise UsageError(msg)
    step = None if speed is None else max(1, int(_STEP_S * speed * TIME_UNITS[unit]))
    ticks = None if flat_out else runner.clock_every
    sources = {node.name: node.schema for node in plan.of_kind("source") if node.schema is not None}
    told = {name: messages(schema, feeds[name]) for name, schema in sources.items()}
    steps = schedule(told, [every for every in (step, ticks) if every], ticks)
    counted = _Counted(map(_without_clock, steps) if flat_out else steps, on_tuples, MissingPunctuation(plan))
    pace = None if speed is None else _Pace(speed * TIME_UNITS[unit])
    wall, cpu = stopwatch.wall(), stopwatch.cpu()
    if isinstance(runner, Inline):
        _run_inline(runner, counted, pace)
    else:
        run_async(_run_local(runner, counted, pace))
    wall, cpu = stopwatch.wall() - wall - counted.wall_s, stopwatch.cpu() - cpu - counted.cpu_s
    sinks = plan.of_kind("sink")
    tables = {n.name: _table(plan.schema(n.inputs[0]), collector.pages[n.name]) for n in sinks}
    return Outcome(
        tables,
        {name: _joined(collector.emitted.get(name), np.int64) for name in tables},
        {name: _joined(collector.waited.get(name), np.float64) for name in tables},
        runner.statistics,
        counted.tuples,
        wall,
        cpu,
    )


def _check_feeds(feeds: Mapping[str, Any], sources: list[str], name: str) -> None:
    if set(feeds) != set(sources):
        msg = f"replay: graph {name!r} has the sources {', '.join(sources)}; got feeds for {', '.join(feeds) or 'none'}"
        raise UsageError(msg)


def _run_inline(runner: Inline, steps: Iterable[Step], pace: _Pace | None) -> None:
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


async def _run_local(runner: Local, steps: Iterable[Step], pace: _Pace | None) -> None:
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


class _Pace:
    """Maps the arrival clock to the wall clock, from the first arrival on."""

    def __init__(self, units_per_s: float) -> None:
        self._units_per_s = units_per_s
        self._start: tuple[int, float] | None = None

    def seconds_until(self, now: int) -> float:
        if now in (NEVER, FOREVER):
            return 0.0
        if self._start is None:
            self._start = (now, perf_counter())
        first, began = self._start
        return began + (now - first) / self._units_per_s - perf_counter()


class _Counted:
    """Counts the tuples that go by, and the time that it takes to read them."""

    def __init__(
        self, steps: Iterator[Step], on_tuples: Callable[[int], None] | None, missing: MissingPunctuation
    ) -> None:
        self._steps, self._on_tuples, self._missing = steps, on_tuples, missing
        self.tuples = 0
        self.wall_s = self.cpu_s = 0.0

    def __iter__(self) -> Iterator[Step]:
        while (step := self._read()) is not None:
            yield step
            if not isinstance(step.message, Signal):
                self._missing.see(step.source, step.message)
            if isinstance(step.message, Page):
                self.tuples += len(step.message)
                if self._on_tuples is not None:
                    self._on_tuples(len(step.message))

    def _read(self) -> Step | None:
        wall, cpu = stopwatch.wall(), stopwatch.cpu()
        step = next(self._steps, None)
        self.wall_s += stopwatch.wall() - wall
        self.cpu_s += stopwatch.cpu() - cpu
        return step


def _without_clock(step: Step) -> Step:
    message = step.message.without_arrival() if isinstance(step.message, Page) else step.message
    return step._replace(message=message, until=None)


def _table(schema: Schema, pages: list[Page]) -> pa.Table:
    return pa.Table.from_batches([page.batch for page in pages], schema=schema.fields)


def _joined(parts: list[NDArray[T]] | None, dtype: type[T]) -> NDArray[T]:
    return np.concatenate(parts) if parts else np.empty(0, dtype)
