"""Running a query: over feeds at rest, as rows that become final, or as a service."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Graph, Stream
from oop_engine.core.page import Page
from oop_engine.face import run
from oop_engine.query.columns_read import columns_read
from oop_engine.query.feeds import CsvFiles, opened, profile_of
from oop_engine.query.finish import Finish, check_plain
from oop_engine.query.graph_of import Built, built
from oop_engine.query.step import StepOutput, steps_of
from oop_engine.runners.dispatch import Result
from oop_engine.runners.feeds.bad_rows import BadRows
from oop_engine.runners.outcome import Outcome
from oop_engine.runners.replay import arun
from oop_engine.traces.profiling import Profile

if TYPE_CHECKING:
    from oop_engine.runners.feeds.result_rows import ResultRows
    from oop_engine.service.served import Served

__all__ = ["Runnable", "as_graph"]


def as_graph(results: Mapping[str, Runnable], name: str = "query") -> Graph:
    """Return the graph of several results, a sink each under its name; equal steps are one node.

    Raises ``UsageError`` for a result with ORDER BY or LIMIT.

    >>> from oop_engine import stream
    >>> log = stream("log", {"ts": "int64"}).event_time("ts", "ordered", unit="s")
    >>> list(as_graph({"all": log, "old": log.filter("ts < 10")}).nodes)
    ['log', 'event-time', 'all', 'filter', 'old']
    """
    check_plain("as_graph", {sink: result._finish for sink, result in results.items()})
    return built(name, {sink: result._output for sink, result in results.items()}).graph


class Runnable:
    """The ways to run a stream; ``DataStream`` has the rest."""

    _output: StepOutput
    _finish: Finish

    @property
    def graph(self) -> Graph:
        """The graph, with the sink ``result``, to go on by hand; ``UsageError`` if a disorder is not known."""
        return self._built({}).graph

    @overload
    def run(
        self, feed: Any = None, /, *, on: Literal["inline", "local"] = "inline", workers: int = 1,
        bad_rows: BadRows | None = None, check: bool = False, **feeds: Any,
    ) -> Outcome: ...  # fmt: skip

    @overload
    def run(
        self, feed: Any = None, /, *, on: str, workers: int = 1, bad_rows: BadRows | None = None,
        check: bool = False, **feeds: Any,
    ) -> Any: ...  # fmt: skip

    def run(
        self, feed: Any = None, /, *, on: str = "inline", workers: int = 1, bad_rows: BadRows | None = None,
        check: bool = False, **feeds: Any,
    ) -> Any:  # fmt: skip
        """Run the query over ``feeds``, one for each source by its name, or ``feed`` of the only one; an ``Outcome``.

        A feed is a path of a trace, of a folder or a pattern of traces, or a form of ``run``: a data frame, columns,
        rows.  A source of ``scan`` has one.  ``on``: ``"inline"``, ``"local"`` or ``"spark"``, which is for many cores:
        ``workers`` must be 1.  Its ``table`` is the result.  Columns that no step reads are not read from files, and
        pages go in as a whole where results do not depend on arrivals (``replay(flat_out=None)``).
        Raises ``UsageError`` if a source has no feed, and as ``run`` does.
        """
        if workers != 1:
            msg = f"run: workers={workers}: the engine runs in one process, on='spark' on all cores: leave it out"
            raise UsageError(msg)
        made = columns_read(self._built(self._by_name(feed, feeds)))
        options: dict[str, Any] = {"on": on, "bad_rows": bad_rows, **({"check": True} if check else {})}
        if on != "spark":
            options["flat_out"] = None  # nobody asks here when a result came
        if on != "spark" and any(isinstance(feed, AsyncIterable) for feed in made.feeds.values()):
            return _finished(_run_live(made, bad_rows, check=check), self._finish)
        return _finished(run(made.graph, _opened(made), **options), self._finish)

    def rows(self, feed: Any = None, /, **feeds: Any) -> ResultRows:
        """Return results as they become final, for ``async for``; the feeds are read no faster than these.

        A feed may be an asynchronous iterable.  Left before its end (``break``, a reader that is cancelled), nothing of
        it goes on; ``async with query.rows(...) as rows`` has closed all of it with its block, and there a reader that
        is cancelled, as by a time limit, takes no row with it.  Several tasks may read: each row goes to one of them.
        """
        from oop_engine.runners.feeds.result_rows import ResultRows

        async def run(take: Callable[[Page], Awaitable[None]]) -> None:
            async def on_result(result: Result) -> None:
                if isinstance(result.message, Page):
                    await take(result.message)

            made = columns_read(self._built(self._by_name(feed, feeds)))
            await arun(made.graph, _opened(made), on_result=on_result)

        return ResultRows(run, self._finish.shown)

    async def serve(
        self, source: Any = None, /, *, to: Any, checkpoint: str | Path | None = None, page: int | None = None,
        signals: bool = False, options: Mapping[str, Any] | None = None, **sources: Any,
    ) -> Served:  # fmt: skip
        """Run the query as a service over live ``sources`` into the sink ``to``; a path is a file that grows.

        ``options`` are those of ``serve``.  Raises ``UsageError`` for a query whose state has no end, and as it does.
        """
        from oop_engine.service.serve import serve

        made = self._built(self._by_name(source, sources), measure=False)
        if made.unbounded:
            name, why = next(iter(made.unbounded.items()))
            msg = f"query: {name!r} has a state without an end over a live source: {why}"
            raise UsageError(msg)
        if self._finish.needs_all:
            msg = "serve: ORDER BY and LIMIT need all results, and a live source has no last one: leave them out"
            raise UsageError(msg)
        made = columns_read(made)
        live = {name: _live(name, made, feed) for name, feed in made.feeds.items()}
        others = dict(options or {})
        return await serve(
            made.graph, live, {"result": to}, checkpoint=checkpoint, page=page, signals=signals, **others
        )

    def profile(self, feed: Any = None, /, by: str | Sequence[str] = (), **feeds: Any) -> Profile:
        """Return how far out of order the feed of the only source is, also within each ``by``, and the costs.

        The feed is read once.  Raises ``UsageError`` if there are several sources or no feed, ``GraphError`` for
        unknown columns.

        >>> from oop_engine import scan
        >>> log = scan([{"ts": 3}, {"ts": 1}, {"ts": 4}]).event_time("ts", "2 s", unit="s")
        >>> log.profile().lateness.most
        2
        """
        sources = {step.name: step for step, _ in steps_of(self._output) if step.operator is None}
        given = self._by_name(feed, feeds)
        if len(sources) != 1:
            msg = (
                f"profile: is of one source; there are {', '.join(map(str, sources))}: profile each by itself"
            )
            raise UsageError(msg)
        [(name, source)] = sources.items()
        return profile_of(given.get(str(name), source.feed), source.schemas[0], by, str(name))

    def explain(self) -> str:
        """Return the plan in words: the graph, and when each node emits."""
        from oop_engine.query.explained import explained

        return explained(columns_read(self._built({})))

    def _built(self, feeds: Mapping[str, Any], *, measure: bool = True) -> Built:
        return built("query", {"result": self._output}, feeds, measure=measure)

    def _by_name(self, feed: Any, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Return the feeds by their sources; one that has no name is that of the only source."""
        if feed is None:
            return dict(feeds)
        names = sources_of(self._output)
        if len(names) != 1 or feeds:
            there = f"there are {', '.join(names)}"
            msg = f"run: a feed without a name is for a query of one source; {there}: give name=feed"
            raise UsageError(msg)
        return {names[0]: feed}


def sources_of(output: StepOutput) -> list[str]:
    """Return the names of the sources of a query."""
    return list(dict.fromkeys(str(step.name) for step, _ in steps_of(output) if step.operator is None))


def _run_live(made: Built, bad_rows: BadRows | None, *, check: bool) -> Outcome:
    """Return the outcome of feeds of which one is asynchronous, in an event loop of their own."""
    import asyncio

    from oop_engine.runners.event_loop import in_loop

    if in_loop():
        msg = (
            "run: a feed is asynchronous, and an event loop is running here: "
            "read the results as they become final, async for row in query.rows(...)"
        )
        raise UsageError(msg)
    return asyncio.run(arun(made.graph, _opened(made), bad_rows=bad_rows, check=check))


def _opened(made: Built) -> dict[str, Any]:
    """Return the feeds as a runner takes them."""
    for name, feed in made.feeds.items():
        if feed is None:
            msg = f"run: source {name!r} has no feed: give {name}=, a path, a data frame or rows"
            raise UsageError(msg)
    schemas = made.graph.plan()
    return {name: opened(feed, schemas.schema(Stream(name))) for name, feed in made.feeds.items()}


def _live(name: str, made: Built, feed: Any) -> Any:
    """Return a live source; a path is a file that is followed."""
    if feed is None:
        msg = f"serve: source {name!r} has no feed: give {name}=, such as FileTail(path) or Kafka(...)"
        raise UsageError(msg)
    from oop_engine.connectors.sources.file_tail import FileTail

    if isinstance(feed, CsvFiles):
        return FileTail(*feed)
    return FileTail(feed) if isinstance(feed, str | Path) else feed


def _finished(outcome: Any, finish: Finish) -> Any:
    """Return an outcome whose results are in their order, without hidden columns."""
    for name, table in outcome.results.items():
        shown = table.select(finish.shown(table.column_names))
        if finish.needs_all:
            at = finish.rows(table)
            shown = shown.take(at)
            if isinstance(outcome, Outcome):
                outcome.emitted[name] = outcome.emitted[name][at]
                outcome.waited_s[name] = outcome.waited_s[name][at]
        outcome.results[name] = shown
    return outcome
