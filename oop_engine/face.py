"""Run: one graph, the same results wherever it runs."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Graph
from oop_engine.runners.outcome import Outcome
from oop_engine.runners.replay import replay

if TYPE_CHECKING:
    from oop_engine.spark.run import SparkOutcome

__all__ = ["run"]


@overload
def run(
    graph: Graph, feeds: Mapping[str, Any], *, on: Literal["inline", "local"] = ..., **options: Any
) -> Outcome: ...
@overload
def run(graph: Graph, feeds: Mapping[str, Any], *, on: Literal["spark"], **options: Any) -> SparkOutcome: ...
def run(
    graph: Graph, feeds: Mapping[str, Any], *, on: str = "inline", **options: Any
) -> Outcome | SparkOutcome:
    """Run ``graph`` over ``feeds``, one for each source, and return its results, a table a sink.

    ``on``: ``"inline"``, a plain loop; ``"local"``, asyncio, a task an operator; ``"spark"``, Apache Spark.
    ``options`` are those of ``replay`` for the first two, those of ``runners.spark.run.run_on_spark`` for the
    last: ``batch``, ``checkpoint``, ``sink``, ``spark`` for a session of yours...  A feed is an iterable of
    messages in order of arrival, or Arrow data: a data frame, table, relation, reader, or some of them in a list (see
    ``page.pages``); on Spark it may also be a trace, a folder of traces, or a DataFrame of Spark.
    Inside a running event loop, and for asynchronous feeds, ``await arun(graph, feeds)``.
    Raises ``UsageError`` for another runner, and for feeds that this one cannot read.

    >>> import pyarrow as pa
    >>> from oop_engine import Page, Schema
    >>> graph = Graph("nothing to do")
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> graph.sink("out", graph.source("in", schema))
    >>> run(graph, {"in": [Page.of(schema, {"ts": [1, 2]})]}).results["out"].num_rows
    2
    """
    match on:
        case "inline" | "local":
            return replay(graph, feeds, on=on, **options)
        case "spark":
            _check_no_live(graph, feeds)
            from oop_engine.spark.run import run_on_spark

            return run_on_spark(graph, feeds, **options)
    msg = f"run: on must be 'inline', 'local' or 'spark'; got {on!r}"
    raise UsageError(msg)


def _check_no_live(graph: Graph, feeds: Mapping[str, Any]) -> None:
    if live := [name for name, feed in feeds.items() if isinstance(feed, AsyncIterable)]:
        msg = (
            f"graph {graph.name!r}: on Spark a feed is read again after a failure; got asynchronous ones for "
            f"{', '.join(live)}: write them to a folder of traces, or await arun(graph, feeds)"
        )
        raise UsageError(msg)
