"""Running a graph on Spark: a streaming query, or one batch over all there is."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa

from oop_engine.core.errors import UsageError
from oop_engine.core.graph import Graph, Plan, Stream
from oop_engine.core.operator import Message
from oop_engine.core.schema import Schema
from oop_engine.core.statistics import LateTuples, Statistics
from oop_engine.spark.io.frames import check_frames, is_frame, letters_of_frame
from oop_engine.spark.io.segments import SLICE_ROWS, Files, Slices, spool
from oop_engine.spark.io.sinks import Lasting, Memory, Sink
from oop_engine.spark.io.to_sink import ToSink, batch_results
from oop_engine.spark.plan.assignments import Control
from oop_engine.spark.plan.balance import Balance, Move
from oop_engine.spark.plan.cut import SHARDS, Cut, cut
from oop_engine.spark.plan.fusion import Score
from oop_engine.spark.plan.two_level import scaled
from oop_engine.spark.session.failures import failure_of
from oop_engine.spark.session.session import session
from oop_engine.spark.session.settings import check_packages
from oop_engine.spark.session.waiting import interruptible, terminable
from oop_engine.spark.state.checkpoint import Checkpoint
from oop_engine.spark.state.state_files import COPIES, HEADS
from oop_engine.spark.tasks.job import Job, addresses_of, check_travels
from oop_engine.spark.tasks.record import DDL, NOTE
from oop_engine.spark.tasks.rows import in_task, letters_of
from oop_engine.spark.tasks.stage_task import through_levels
from oop_engine.spark.tasks.task_metrics import Totals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming import DataStreamReader

__all__ = ["BatchDone", "Feed", "ShardDone", "SparkOutcome", "pieces_of", "run_on_spark"]

State: TypeAlias = Literal["files", "store"]
Feed = Any
"""A source: ``Slices``, the path of a trace or of a folder of traces, messages (``Iterable[Message]``, which are
spooled first), or a DataFrame of Spark."""


@dataclass(frozen=True)
class BatchDone:
    """One micro-batch: its number, the tuples that came in with it, results, wall seconds; shards, if there are."""

    number: int
    tuples: int
    results: int
    wall_s: float
    shards: tuple[ShardDone, ...] = ()


@dataclass(frozen=True)
class ShardDone:
    """What a shard did in a micro-batch: its tuples, and the CPU seconds its task took over them."""

    operator: str
    shard: int
    tuples: int
    spent_s: float


@dataclass
class SparkOutcome:
    """What a run on Spark gave.

    ``results``: a table for each sink of the graph if they were kept in ``Memory``, else empty.
    ``tuples``: how many came in since the query was first started.  ``batches``: one by one; the first also
    pays for what Spark and its Python workers load once.  ``start_s``: wall seconds until Spark was there.
    ``moves``: when key groups were moved between shards.
    """

    results: dict[str, pa.Table]
    statistics: Statistics
    tuples: int
    batches: list[BatchDone]
    start_s: float
    wall_s: float
    cut: Cut = field(repr=False)
    moves: list[Move] = field(default_factory=list)

    @property
    def late(self) -> LateTuples:
        """The tuples that came behind a promise since the query was first started: how many, and at which operators."""
        return self.statistics.late


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
    state: State = "files",
    slices_per_batch: int = 4,
    slice_rows: int = SLICE_ROWS,
    quick: bool = False,
    on_batch: Callable[[BatchDone], None] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> SparkOutcome:
    """Run ``graph`` over ``feeds`` on Spark, with the results that it has everywhere.

    Parameters
    ----------
    spark, master, quick, settings
        A session to use; or what to make one with (see ``session``), which is stopped afterwards.
    batch
        Read everything there is in one batch, without state; else in micro-batches.
    checkpoint
        Folder in which a query keeps where it is: run again with the same folder and graph, it goes
        on there.  On a cluster it must be on a file system that driver and tasks share.  None: a temporary one.
    sink
        Where results go; None: ``Memory``.
    follow
        Wait for more slices until interrupted; else stop when all there are have been read.
    groups
        Key groups of a component; None: two a partition.
    score, rates
        How operators are fused (see ``fusion``).
    split
        Split aggregates that one task would have to work on alone (see ``split``).
    balance
        Work on aggregates by a key in shards, one a partition, and move key groups from one to another as
        soon as they are not loaded alike (see ``balance``).  For keys that are far from equally frequent: the
        shards are one shuffle more.  In a batch there are shards, but nothing moves.
    state
        Where micro-batches leave the states of components: in files of the checkpoint, or in Spark's state
        store, which takes longer and which tools of Spark know.
    slices_per_batch, slice_rows
        How many slices a source gives to a micro-batch, and how many tuples are in a slice that is spooled.

    Raises ``GraphError`` for a graph that cannot be cut up or sent to tasks, ``UsageError`` for feeds that do
    not fit it and for a checkpoint of another graph, ``SetupError`` for a missing Java or package, all before
    anything runs; and what an operator or a trace raised in a task.
    """
    check_packages()
    plan = graph.plan()
    _check_feeds(plan, feeds)
    began = time.perf_counter()
    with ExitStack() as stack:
        stack.enter_context(terminable())
        kept = Checkpoint(_folder(checkpoint, stack))
        check_travels(plan)
        frames = {name: feed for name, feed in feeds.items() if is_frame(feed)}
        check_frames(frames, _schemas(plan), batch=batch)
        balanced = bool(balance)
        plan = pieces_of(graph, unordered=frames, split=split, balance=balanced).plan  # tells what cannot run
        kept.check(plan, batch=batch, state=state)
        sink = sink or Memory()
        sink.start({n.name: plan.schema(n.inputs[0]) for n in plan.of_kind("sink")}, kept.query())
        if isinstance(sink, Lasting) and not batch:
            sink.check(kept.made())
        sources = _slices(plan, {n: f for n, f in feeds.items() if n not in frames}, kept.folder, slice_rows)
        spark = spark or stack.enter_context(session(master, settings, quick=quick))
        partitions, groups = kept.sizes(int(str(spark.conf.get("spark.sql.shuffle.partitions"))), groups)
        pieces = pieces_of(
            graph, groups, score, rates, frames, split=split, balance=balanced, shards=partitions
        )
        sources = kept.keep(pieces, sources, (partitions, groups), batch=batch, state=state)
        job = Job(
            pieces,
            addresses_of(pieces, partitions),
            sources,
            partitions,
            heads=str(kept.folder / HEADS),
            copies=str(kept.folder / COPIES) if state == "files" else "",
            maps=str(kept.folder / "maps") if pieces.at(SHARDS) and not batch else "",
            slices_per_batch=slices_per_batch,
        )
        how = balance if isinstance(balance, Balance) else Balance()
        run = _Run(spark, job, frames, sink, kept, on_batch, how)
        start_s = time.perf_counter() - began
        run.all_at_once() if batch else run.in_batches(follow=follow)
        results = sink.results() if isinstance(sink, Memory) else {}
        wall_s = time.perf_counter() - began - start_s
        return SparkOutcome(
            results,
            run.totals.statistics(),
            run.totals.tuples,
            run.batches,
            start_s,
            wall_s,
            pieces,
            run.moves,
        )


def pieces_of(
    graph: Graph,
    groups: int = 1,
    score: Score = "components",
    rates: Mapping[Stream, int] | None = None,
    unordered: Collection[str] = (),
    *,
    split: bool = True,
    balance: bool = False,
    shards: int = 1,
) -> Cut:
    """Return ``graph`` as it is split and cut up to run."""
    twin, in_shards = scaled(graph, unordered, split=split, balance=balance)
    return cut(
        twin,
        groups=groups,
        score=score,
        rates=rates,
        unordered=unordered,
        shards=shards,
        in_shards=in_shards,
    )


def _check_feeds(plan: Plan, feeds: Mapping[str, Feed]) -> None:
    sources = [node.name for node in plan.of_kind("source")]
    if set(feeds) != set(sources):
        got = ", ".join(feeds) or "none"
        msg = f"graph {plan.name!r} has the sources {', '.join(sources)}; got feeds for {got}: give one for each"
        raise UsageError(msg)


def _folder(checkpoint: str | Path | None, stack: ExitStack) -> Path:
    if checkpoint is not None:
        return Path(checkpoint).absolute()
    folder = Path(tempfile.mkdtemp(prefix="oop-engine-run-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _slices(plan: Plan, feeds: Mapping[str, Feed], folder: Path, rows: int) -> dict[str, Slices]:
    """Return every source in slices; those given as messages are spooled together."""
    schemas = _schemas(plan)
    found: dict[str, Slices] = {}
    messages: dict[str, Iterable[Message]] = {}
    for name, feed in feeds.items():
        match feed:
            case str() | Path():
                found[name] = Files(str(Path(feed).absolute()), schemas[name])
            case Slices():
                found[name] = feed
            case _:
                messages[name] = feed
    if messages:
        spooled = spool(messages, {name: schemas[name] for name in messages}, folder / "feeds", rows)
        found |= spooled
    return {name: found[name] for name in schemas if name in found}


def _schemas(plan: Plan) -> dict[str, Schema]:
    return {node.name: plan.schema(Stream(node.name)) for node in plan.of_kind("source")}


class _Run:
    """One run of a job; it puts together what its tasks tell."""

    def __init__(
        self,
        spark: SparkSession,
        job: Job,
        frames: Mapping[str, DataFrame],
        sink: Sink,
        kept: Checkpoint,
        on_batch: Callable[[BatchDone], None] | None,
        balance: Balance,
    ) -> None:
        from oop_engine.spark.io.source import LetterSource

        spark.dataSource.register(LetterSource)
        self._spark, self._job, self._frames, self._sink = spark, job, frames, sink
        self._kept = kept
        self._packed = job.packed()
        self._stored = not job.copies  # in Spark's store
        self._on_batch = on_batch or (lambda done: None)
        edges = [edge for edge in job.cut.edges if edge.component is None]
        self._schemas = {edge.number: (edge.sink, edge.schema) for edge in edges}
        self._control = Control(balance, job.cut, job.maps) if job.maps else None
        self._last = time.perf_counter()
        self.totals = Totals()
        self.batches: list[BatchDone] = []

    @property
    def moves(self) -> list[Move]:
        """When key groups were moved."""
        return [] if self._control is None else self._control.moves

    def in_batches(self, *, follow: bool) -> None:
        """Run a streaming query until everything has been read, or for ever."""
        letters = self._letters(self._spark.readStream)
        if self._stored:
            from oop_engine.spark.tasks.store_task import through_store

            letters = through_store(letters, self._packed)
        writer = letters.writeStream.foreachBatch(self._batch).option(
            "checkpointLocation", str(self._kept.folder / "spark")
        )
        trigger: dict[str, Any] = {"processingTime": "0 seconds"} if follow else {"availableNow": True}
        with failure_of():
            query = writer.trigger(**trigger).start()
            try:
                interruptible(query.awaitTermination, query.stop)
            finally:
                with suppress(Exception):  # it has failed, or its JVM is gone: what is raised tells why
                    query.stop()

    def all_at_once(self) -> None:
        """Run one batch."""
        letters = self._letters(self._spark.read)
        with failure_of():
            interruptible(lambda: self._batch(letters, None), self._spark.sparkContext.cancelAllJobs)

    def _letters(self, reader: DataFrameReader | DataStreamReader) -> DataFrame:
        """Return the letters of all sources."""
        schemas = _schemas(self._job.cut.plan)
        parts = [
            letters_of_frame(frame, name, schemas[name], self._job) for name, frame in self._frames.items()
        ]
        if self._job.sources:
            parts.append(reader.format("oop-engine").option("job", self._packed.text).load())
        return reduce(lambda one, other: one.union(other), parts)

    def _batch(self, letters: DataFrame, number: int | None) -> None:
        """Run the tasks of a micro-batch, or of everything, hand results to the sink, take down what was told."""
        work = self._sink.worker()
        to_sink = ToSink(work, self._schemas, number or 0)
        states = {} if number is None else self._kept.begin(number)
        if self._stored and number is not None:
            done = letters.mapInArrow(in_task(to_sink), DDL)
        else:
            done = through_levels(letters, self._packed, batch=number, states=states, last=to_sink)
        arrived = [letter for part in done.toArrow().to_batches() for letter in letters_of(part)]
        results = batch_results(work, self._schemas, (letter for letter in arrived if letter.edge != NOTE))
        made = self._sink.commit(number or 0, results)
        before = self.totals.tuples
        self.totals.take(letter for letter in arrived if letter.edge == NOTE)
        if number is not None:
            self._kept.end(number, self.totals.states, made)
        self._tell(number or 0, before, results.tuples)

    def _tell(self, number: int, before: int, results: int) -> None:
        """Say that a micro-batch is done; ``before``: tuples until then."""
        if self._control is not None:
            self._control.take(number, self.totals.loads())
        now = time.perf_counter()
        done = BatchDone(number, self.totals.tuples - before, results, now - self._last, self._shards())
        self._last = now
        self.batches.append(done)
        self._on_batch(done)

    def _shards(self) -> tuple[ShardDone, ...]:
        spent = self.totals.spent()
        return tuple(
            ShardDone(component.name, shard, *spent.get((component.name, shard), (0, 0.0)))
            for component in self._job.cut.at(SHARDS)
            for shard in range(component.groups)
        )
