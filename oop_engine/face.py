"""Run: one graph, the same results wherever it runs."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Graph, Stream
from oop_engine.runners.dispatch import Result, Watch
from oop_engine.runners.feeds.bad_rows import BadRows
from oop_engine.runners.outcome import Outcome
from oop_engine.runners.replay import replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from oop_engine.spark.io.sinks import Sink
    from oop_engine.spark.plan.balance import Balance
    from oop_engine.spark.plan.fusion import Score
    from oop_engine.spark.run import BatchDone, SparkOutcome, StatePlace

__all__ = ["run"]


@overload
def run(
    graph: Graph,
    feeds: Mapping[str, Any],
    *,
    on: Literal["inline", "local"] = ...,
    bad_rows: BadRows | None = ...,
    speed: float | None = ...,
    flat_out: bool | None = ...,
    check: bool = ...,
    on_tuples: Callable[[int], None] | None = ...,
    on_result: Callable[[Result], Awaitable[None] | None] | None = ...,
    watch: Watch | None = ...,
) -> Outcome: ...
@overload
def run(
    graph: Graph,
    feeds: Mapping[str, Any],
    *,
    on: Literal["spark"],
    bad_rows: BadRows | None = ...,
    spark: SparkSession | None = ...,
    master: str | None = ...,
    batch: bool = ...,
    checkpoint: str | Path | None = ...,
    sink: Sink | None = ...,
    follow: bool = ...,
    groups: int | None = ...,
    score: Score = ...,
    rates: Mapping[Stream, int] | None = ...,
    split: bool = ...,
    balance: Balance | bool = ...,
    state: StatePlace = ...,
    segments_per_batch: int = ...,
    segment_rows: int = ...,
    quick: bool = ...,
    on_batch: Callable[[BatchDone], None] | None = ...,
    settings: Mapping[str, Any] | None = ...,
    order: Mapping[str, str] | None = ...,
    arrival: Mapping[str, str] | None = ...,
) -> SparkOutcome: ...
def run(
    graph: Graph,
    feeds: Mapping[str, Any],
    *,
    on: str = "inline",
    bad_rows: BadRows | None = None,
    speed: float | None = None,
    flat_out: bool | None = False,
    check: bool = False,
    on_tuples: Callable[[int], None] | None = None,
    on_result: Callable[[Result], Awaitable[None] | None] | None = None,
    watch: Watch | None = None,
    spark: SparkSession | None = None,
    master: str | None = None,
    batch: bool = False,
    checkpoint: str | Path | None = None,
    sink: Sink | None = None,
    follow: bool = False,
    groups: int | None = None,
    score: Score = "components",
    rates: Mapping[Stream, int] | None = None,
    split: bool = True,
    balance: Balance | bool = False,
    state: StatePlace = "files",
    segments_per_batch: int = 4,
    segment_rows: int = 1 << 18,
    quick: bool = False,
    on_batch: Callable[[BatchDone], None] | None = None,
    settings: Mapping[str, Any] | None = None,
    order: Mapping[str, str] | None = None,
    arrival: Mapping[str, str] | None = None,
) -> Outcome | SparkOutcome:
    """Run ``graph`` over ``feeds``, one for each source, and return its results, a table a sink.

    A feed holds rows in the order of their arrival: a trace, Arrow data, a data frame, a dictionary of columns, or an
    iterable of dictionaries, dataclasses, named tuples and pages, with punctuation between them
    (``runners/feeds/forms.py`` has the table).  On Spark it may also be a folder of traces, or a DataFrame of Spark.
    Inside a running event loop, and for asynchronous feeds, ``await arun(graph, feeds)``.

    Parameters
    ----------
    on
        ``"inline"``, a plain loop; ``"local"``, asyncio, a task an operator; ``"spark"``, Apache Spark.
    bad_rows
        A row that has no time, or does not fit its columns: ``"refuse"``, an error; ``"count"``, it is left out and
        counted in ``Outcome.refused``; a function, the same, and it is called with each ``BadRow``.  None: rows of a
        trace are counted, and others refused.
    speed, flat_out, check, on_tuples, on_result, watch
        Inline and local alone, see ``replay``: the pace (1.0 is real time), no clock at all, a check of every edge
        against its bounds, and functions that are called with the number of rows that went in, with each result
        (nothing is collected then), and with messages and states (inline alone).
    spark, master, batch, checkpoint, sink, follow, groups, score, rates, split, balance, state, segments_per_batch, \
    segment_rows, quick, on_batch, settings, order, arrival
        Spark alone, see ``oop_engine.spark.run.run_on_spark``.

    Raises ``UsageError`` for another runner, for an option that it has not, and for feeds that it cannot read;
    ``ContractError`` for bad rows, and for feeds of no such form.

    >>> import pyarrow as pa
    >>> from oop_engine import Schema
    >>> graph = Graph("nothing to do")
    >>> graph.sink("out", graph.source("in", Schema({"ts": pa.int64()}, "ts", "s")))
    >>> run(graph, {"in": [{"ts": 1}, {"ts": 2}]}).results["out"].num_rows
    2
    """
    embedded: dict[str, Any] = {
        "speed": speed, "flat_out": flat_out, "check": check, "on_tuples": on_tuples, "on_result": on_result,
        "watch": watch,
    }  # fmt: skip
    distributed: dict[str, Any] = {
        "spark": spark, "master": master, "batch": batch, "checkpoint": checkpoint, "sink": sink, "follow": follow,
        "groups": groups, "score": score, "rates": rates, "split": split, "balance": balance, "state": state,
        "segments_per_batch": segments_per_batch, "segment_rows": segment_rows, "quick": quick, "on_batch": on_batch,
        "settings": settings, "order": order, "arrival": arrival,
    }  # fmt: skip
    match on:
        case "inline" | "local":
            _check_defaults(on, "spark", distributed)
            return replay(graph, feeds, on=on, bad_rows=bad_rows, **embedded)
        case "spark":
            _check_defaults(on, "inline' or 'local", embedded)
            _check_no_live(graph, feeds)
            from oop_engine.spark.run import run_on_spark

            return run_on_spark(graph, feeds, bad_rows=bad_rows, **distributed)
    msg = f"run: on must be 'inline', 'local' or 'spark'; got {on!r}"
    raise UsageError(msg)


def _check_defaults(on: str, others: str, options: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` if an option of other runners was given."""
    known = signature(run).parameters
    for name, value in options.items():
        if value is not known[name].default and value != known[name].default:
            msg = f"run: {name} is an option of on='{others}'; got {name}={value!r:.80} with on={on!r}: leave it out"
            raise UsageError(msg)


def _check_no_live(graph: Graph, feeds: Mapping[str, Any]) -> None:
    if live := [name for name, feed in feeds.items() if isinstance(feed, AsyncIterable)]:
        msg = (
            f"graph {graph.name!r}: on Spark a feed is read again after a failure; got asynchronous ones for "
            f"{', '.join(live)}: write them to a folder of traces, or await arun(graph, feeds)"
        )
        raise UsageError(msg)
