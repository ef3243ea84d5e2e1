"""Running a graph on Spark: a streaming query, or one batch over all there is."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from oop_engine.core.graphs.graph import Graph, Stream
from oop_engine.core.graphs.leading import leading_to_changing
from oop_engine.runners.feeds.bad_rows import BadRows, Refusals
from oop_engine.runners.outcome import BySink
from oop_engine.spark.io.feeds import Feed, check_feeds, schemas_of, segments_of
from oop_engine.spark.io.frames import check_frames, is_frame
from oop_engine.spark.io.ordered_frames import in_declared_order
from oop_engine.spark.io.segments import SEGMENT_ROWS, Segments
from oop_engine.spark.io.sink import check_sink
from oop_engine.spark.io.sinks import Lasting, Memory, Sink
from oop_engine.spark.outcome import BatchDone, ShardDone, SparkOutcome
from oop_engine.spark.plan.at_rest import at_rest
from oop_engine.spark.plan.balance import Balance
from oop_engine.spark.plan.fusion import Score
from oop_engine.spark.plan.pieces import SHARDS, Cut
from oop_engine.spark.plan.sampled import worth_halves
from oop_engine.spark.plan.two_level import pieces_of
from oop_engine.spark.query import SparkQuery
from oop_engine.spark.session.session import session
from oop_engine.spark.session.settings import check_batches, check_packages
from oop_engine.spark.session.waiting import terminable
from oop_engine.spark.session.workers import check_workers
from oop_engine.spark.state.checkpoint import CHANGES, Checkpoint
from oop_engine.spark.state.state_files import SOURCE_CHAINS, SUBTASKS
from oop_engine.spark.tasks.job import Job, addresses_of, check_travels
from oop_engine.system.apart import check_apart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BatchDone", "Feed", "ShardDone", "SparkOutcome", "pieces_of", "run_on_spark"]

StatePlace: TypeAlias = Literal["files", "store"]


def run_on_spark(
    graph: Graph,
    feeds: Mapping[str, Feed],
    *,
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
    segment_rows: int = SEGMENT_ROWS,
    quick: bool = False,
    on_batch: Callable[[BatchDone], None] | None = None,
    settings: Mapping[str, Any] | None = None,
    bad_rows: BadRows | None = None,
    order: Mapping[str, str] | None = None,
    arrival: Mapping[str, str] | None = None,
) -> SparkOutcome:
    """Run ``graph`` over ``feeds`` on Spark, with the results that it has everywhere.

    Parameters
    ----------
    spark, master, quick, settings
        A session to use; or the settings of one (see ``session``), which is stopped afterwards.
    batch
        Read everything there is in one batch, without state; else in micro-batches.
    checkpoint
        Folder in which a query keeps where it is: run again with the same folder and graph, it goes
        on there.  On a cluster it must be on a file system that driver and tasks share.  None: a temporary one.
    sink
        Where results go; None: ``Memory``.
    follow
        Wait for more segments until interrupted; else stop when all there are have been read.
    groups
        Key groups of a component; None: two a partition.
    score, rates
        How operators are fused (see ``fusion``).
    split
        Split aggregates that one task would have to work on alone (see ``two_level``), and those of few groups, so that
        partial aggregates are shuffled, not tuples (see ``sampled``).
    balance
        Work on aggregates by a key in shards, one a partition, and move key groups from one to another as
        soon as they are not loaded alike (see ``balance``).  For keys that are far from equally frequent: the
        shards are one shuffle more.  In a batch there are shards, but nothing moves.
    state
        Where micro-batches leave the states of components: in files of the checkpoint, or in Spark's state
        store, which takes longer and which tools of Spark know.
    segments_per_batch, segment_rows
        How many segments a source gives to a micro-batch, and how many tuples are in a segment that is spooled.
    on_batch
        Called with each micro-batch when it is done.
    bad_rows
        As in ``replay``, for feeds that are spooled: given as rows, columns, Arrow data, messages.
    order, arrival
        For sources that are DataFrames, in a batch: the column by which rows came, such as a sequence number, or the
        moment when each arrived.  They are replayed in that order, rows of one value by their times, and are late
        by the policy; without either no row of a batch is late.

    Raises ``GraphError`` for a graph that cannot be cut up or sent to tasks, ``UsageError`` for feeds that do
    not fit it and for a checkpoint of another graph, ``SetupError`` for a missing Java or package, all before
    anything runs; and the error of an operator or a trace in a task.
    """
    check_packages()
    check_feeds(graph.plan(), feeds)
    if sink is not None:
        check_sink(sink)
    reads = [(f"source {name!r}", feed) for name, feed in feeds.items() if isinstance(feed, str | Path)]
    folders = (("sink", getattr(sink, "folder", None)), ("checkpoint", checkpoint))
    check_apart(reads, [(name, path) for name, path in folders if isinstance(path, str | Path)])
    if order or arrival:
        schemas = schemas_of(graph.plan())
        frames = {name: feed for name, feed in feeds.items() if is_frame(feed)}
        check_frames(frames, schemas, batch=batch)
        feeds = in_declared_order(feeds, schemas, order or {}, arrival or {}, batch=batch)
        spark = spark or next((frame.sparkSession for frame in frames.values()), None)
    began = time.perf_counter()
    with ExitStack() as stack:
        stack.enter_context(terminable())
        stored = Checkpoint(_folder(checkpoint, stack))
        graph = _at_rest(graph, feeds) if batch else graph
        run = _Asked(
            graph, feeds, stored, sink or Memory(), batch=batch, groups=groups, score=score, rates=rates, split=split,
            balance=balance, state=state, segments_per_batch=segments_per_batch, segment_rows=segment_rows,
            refusals=Refusals("run_on_spark", bad_rows),
        )  # fmt: skip
        run.check()
        sources = run.sources()
        halves = run.halves(sources)
        if spark is not None:
            check_workers(spark)
        spark = spark or stack.enter_context(session(master, settings, quick=quick))
        check_batches(spark)
        query = run.query(spark, sources, halves, on_batch)
        start_s = time.perf_counter() - began
        query.all_at_once() if batch else query.in_batches(follow=follow)
        return run.outcome(query, start_s, time.perf_counter() - began - start_s)


def _at_rest(graph: Graph, feeds: Mapping[str, Feed]) -> Graph:
    """Return a graph for a batch: rows of DataFrames come in the order of their partitions, and none is late."""
    return at_rest(graph, [name for name, feed in feeds.items() if is_frame(feed)])


def _folder(checkpoint: str | Path | None, stack: ExitStack) -> Path:
    if checkpoint is not None:
        return Path(checkpoint).absolute()
    folder = Path(tempfile.mkdtemp(prefix="oop-engine-run-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


@dataclass(frozen=True)
class _Asked:
    """A run as it was asked for: it is checked before Spark is there, and becomes a query once it is."""

    graph: Graph
    feeds: Mapping[str, Feed]
    kept: Checkpoint
    sink: Sink
    batch: bool
    groups: int | None
    score: Score
    rates: Mapping[Stream, int] | None
    split: bool
    balance: Balance | bool
    state: StatePlace
    segments_per_batch: int
    segment_rows: int
    refusals: Refusals

    @cached_property
    def frames(self) -> dict[str, DataFrame]:
        """The feeds that are DataFrames of Spark."""
        return {name: feed for name, feed in self.feeds.items() if is_frame(feed)}

    def check(self) -> None:
        """Raise the errors that keep the run from starting, and start the sink."""
        plan = self.graph.plan()
        check_travels(plan)
        check_frames(self.frames, schemas_of(plan), batch=self.batch)
        plan = pieces_of(
            self.graph,
            unordered=self.frames,
            split=self.split,
            balance=bool(self.balance),
            halves=self.kept.halves() or (),
        ).plan  # refuses graphs that cannot run
        self.kept.check(plan, batch=self.batch, state=self.state)
        sinks = {node.name: plan.schema(node.inputs[0]) for node in plan.of_kind("sink")}
        self.sink.start(sinks, self.kept.query())
        if isinstance(self.sink, Lasting) and not self.batch:
            self.sink.check(self.kept.made())

    def sources(self) -> dict[str, Segments]:
        """Return the other feeds in segments."""
        others = {name: feed for name, feed in self.feeds.items() if name not in self.frames}
        return segments_of(self.graph.plan(), others, self.kept.folder, self.segment_rows, self.refusals)

    def halves(self, sources: Mapping[str, Segments]) -> list[str]:
        """Return the aggregates with ``by`` that are split: those of the first start, if there was one."""
        if (known := self.kept.halves()) is not None:
            return known
        return worth_halves(self.graph, sources, self.frames) if self.split and not self.balance else []

    def query(
        self,
        spark: SparkSession,
        sources: Mapping[str, Segments],
        halves: list[str],
        on_batch: Callable[[BatchDone], None] | None,
    ) -> SparkQuery:
        """Return the query, of the size in the checkpoint, or of the session."""
        shuffled = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
        partitions, groups = self.kept.sizes(shuffled, self.groups)
        pieces = pieces_of(
            self.graph, groups, self.score, self.rates, self.frames,
            split=self.split, balance=bool(self.balance), shards=partitions, halves=halves,
        )  # fmt: skip
        sizes = (partitions, groups)
        read = self.kept.keep(pieces, sources, sizes, batch=self.batch, state=self.state, halves=halves)
        how = self.balance if isinstance(self.balance, Balance) else Balance()
        job = self._job(pieces, read, partitions)
        return SparkQuery(spark, job, self.frames, self.sink, self.kept, on_batch, how)

    def _job(self, pieces: Cut, sources: Mapping[str, Segments], partitions: int) -> Job:
        folder = self.kept.folder
        return Job(
            pieces,
            addresses_of(pieces, partitions),
            sources,
            partitions,
            chains=str(folder / SOURCE_CHAINS),
            subtasks=str(folder / SUBTASKS) if self.state == "files" else "",
            assignments=str(folder / "maps") if pieces.at(SHARDS) and not self.batch else "",
            changes="" if self.batch or not leading_to_changing(self.graph.plan()) else str(folder / CHANGES),
            segments_per_batch=self.segments_per_batch,
        )

    def outcome(self, query: SparkQuery, start_s: float, wall_s: float) -> SparkOutcome:
        """Return the outcome of the query."""
        results = BySink(self.sink.results() if isinstance(self.sink, Memory) else {})
        totals = query.totals
        return SparkOutcome(
            results,
            totals.statistics(),
            totals.tuples,
            query.batches,
            start_s,
            wall_s,
            query.cut,
            query.moves,
            self.refusals.counts,
        )
