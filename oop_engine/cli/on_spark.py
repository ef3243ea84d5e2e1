"""``--on spark``: ``replay`` where the runner is Spark."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from oop_engine.cli.output import print_json, terminal
from oop_engine.core.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from oop_engine.core.operator import Message
    from oop_engine.lab.scenario import Scenario, Variant
    from oop_engine.spark.plan.balance import Move
    from oop_engine.spark.run import BatchDone, SparkOutcome

__all__ = ["Compared", "OnSpark", "Shown", "progress", "spark_options"]

F = TypeVar("F", bound=Callable[..., Any])
Tell = Callable[[str], None]
Feeds = Callable[[], Mapping[str, "Iterable[Message]"]]
BATCH_TUPLES = 1 << 16
STREAMING, BATCH = "spark, streaming", "spark, batch"


def spark_options(command: F) -> F:
    """Add the options that are for ``--on spark`` only; the command gets them as ``on_spark``."""

    @functools.wraps(command)
    def wrapped(*args: Any, **options: Any) -> Any:
        names = ("master", "batch", "compare", "checkpoint", "groups", "batch_tuples", "balance", "conf")
        return command(*args, on_spark=OnSpark(**{name: options.pop(name) for name in names}), **options)

    for option in reversed(_OPTIONS):
        option(wrapped)
    return wrapped  # type: ignore[return-value]


_OPTIONS = [
    click.option("--master", metavar="URL", help="Spark: where it runs; default: local[*], this machine."),
    click.option(
        "--conf", multiple=True, metavar="NAME=VALUE",
        help="Spark: a setting of its own, such as spark.driver.memory=4g; @FILE: settings in a file, a line each; "
        "may be repeated.",
    ),
    click.option("--batch", is_flag=True, help="Spark: all in one batch, not in micro-batches."),
    click.option(
        "--compare", is_flag=True,
        help="Spark: in micro-batches, in one batch, and in this process in both orders; results must be equal.",
    ),
    click.option(
        "--checkpoint", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
        help="Spark: write checkpoints here; the same command resumes from the last one.",
    ),
    click.option("--groups", type=click.IntRange(min=1), metavar="N", help="Spark: key groups a stage."),
    click.option(
        "--batch-tuples", type=click.IntRange(min=1), metavar="N",
        help=f"Spark: about how many tuples make a micro-batch; default: {BATCH_TUPLES:,}.",
    ),
    click.option(
        "--balance", is_flag=True,
        help="Spark: aggregates by a key in shards; key groups move from the most to the least loaded one.",
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Shown:
    """One way the plan was run; ``start_s``: until it could begin; ``steady``: tuples/s of later batches."""

    how: str
    tuples: int
    late: int
    results: dict[str, pa.Table]
    start_s: float
    wall_s: float
    steady: float | None = None
    batches: list[BatchDone] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many results there are."""
        return sum(table.num_rows for table in self.results.values())


@dataclass(frozen=True)
class Compared:
    """All ways a plan was run; results of the others are held against the first."""

    variant: Variant
    runs: list[Shown]
    off: list[tuple[int, int]]  # rows missing and wrong, by run

    @property
    def results(self) -> dict[str, pa.Table]:
        """The results of the first run."""
        return self.runs[0].results

    def show(
        self, scenario: Scenario, values: dict[str, Any], rows: int, output: Path | None, *, as_json: bool
    ) -> int:
        """Print results and figures; return 1 if two runs gave different results, else 0."""
        equal = all(off == (0, 0) for off in self.off)
        if as_json:
            runs = [_plain(run, off) for run, off in zip(self.runs, self.off, strict=True)]
            print_json(
                {
                    "scenario": scenario.name, "parameters": values, "variant": self.variant.name,
                    "order": self.variant.order, "runs": runs, "equal": equal,
                }
            )  # fmt: skip
        else:
            self._print(rows, output)
        return 0 if equal else 1

    def _print(self, rows: int, output: Path | None) -> None:
        from oop_engine.cli.running.shard_table import shard_table
        from oop_engine.lab.report.table import grid, result_table
        from oop_engine.lab.report.words import count, late_in, seconds

        console = terminal()
        for name, table in self.results.items():
            console.print(result_table(name, table, rows))
        lines = [
            [
                run.how, count(run.tuples), count(run.late), count(run.rows), _verdict(off, number),
                seconds(run.start_s), seconds(run.wall_s), count(run.tuples / run.wall_s) if run.wall_s else "",
                "" if run.steady is None else count(run.steady),
            ]
            for number, (run, off) in enumerate(zip(self.runs, self.off, strict=True))
        ]  # fmt: skip
        headings = [
            "run",
            "tuples",
            "late",
            "results",
            "against the first",
            "start",
            "run time",
            "tuples/s",
            "steady",
        ]
        console.print(grid(self.variant.graph.name, headings, lines, words=("run", "against the first")))
        for run in self.runs:
            if run.late:
                console.print(late_in(run.how, run.late, run.tuples), markup=False)
        if any(run.steady for run in self.runs):
            console.print("steady: tuples/s of the micro-batches after the first two", style="dim")
        for run in self.runs:
            if any(batch.shards for batch in run.batches):
                console.print(shard_table(run.how, run.batches, run.moves))
        if output is not None:
            console.print(f"results: {output}", markup=False)


def _verdict(off: tuple[int, int], number: int) -> str:
    if not number:
        return ""
    return "equal" if off == (0, 0) else f"{off[0]} missing, {off[1]} wrong"


def _plain(run: Shown, off: tuple[int, int]) -> dict[str, Any]:
    return {
        "on": run.how,
        "tuples": run.tuples,
        "late": run.late,
        "results": {name: table.num_rows for name, table in run.results.items()},
        "missing": off[0],
        "wrong": off[1],
        "start_s": run.start_s,
        "wall_s": run.wall_s,
        "steady_tuples_per_s": run.steady,
        "batches": [batch.to_dict() for batch in run.batches],
        "moves": [asdict(move) for move in run.moves],
    }


@dataclass(frozen=True)
class OnSpark:
    """The options for Spark on the command line."""

    master: str | None
    batch: bool
    compare: bool
    checkpoint: Path | None
    groups: int | None
    batch_tuples: int | None
    balance: bool = False
    conf: tuple[str, ...] = ()

    def check(self, runner: str, *, clock: str) -> None:
        """Raise ``UsageError`` if options do not go together; ``clock``: one that Spark has no use for."""
        given = [f"--{name.replace('_', '-')}" for name, value in asdict(self).items() if value]
        if runner != "spark" and given:
            msg = f"{given[0]} is for Spark: add --on spark, or leave it out"
            raise UsageError(msg)
        if runner == "spark" and clock:
            msg = f"{clock} is for runs in this process: leave it out, or leave --on spark out"
            raise UsageError(msg)
        if self.compare and (self.batch or self.checkpoint):
            other = "--batch" if self.batch else "--checkpoint"
            msg = f"--compare runs everything from the start in every way: leave {other} out"
            raise UsageError(msg)
        self.settings()

    def settings(self) -> dict[str, str]:
        """Return the settings of ``--conf``, by name."""
        values = {}
        for given in self._given():
            name, equals, value = given.partition("=")
            if not equals or not name.startswith("spark."):
                msg = f"--conf must be spark.NAME=VALUE; got {name + ('=...' if equals else '')!r}"
                raise UsageError(msg)
            values[name] = value
        return values

    def _given(self) -> Iterator[str]:
        """Yield settings that are arguments, and those in files: anybody can read the arguments of a process."""
        for given in self.conf:
            if not given.startswith("@"):
                yield given
                continue
            try:
                lines = Path(given[1:]).read_text("utf-8").splitlines()
            except (OSError, UnicodeDecodeError) as error:
                msg = (
                    f"--conf {given}: it cannot be read ({error}): give a file with a spark.NAME=VALUE a line"
                )
                raise UsageError(msg) from error
            yield from (line.strip() for line in lines if line.strip() and not line.startswith("#"))

    def run(self, scenario: Scenario, variant: Variant, feeds: Feeds, tell: Tell) -> Compared:
        """Run the plan as asked, and hold all results against the first ones; ``tell`` shows progress."""
        from oop_engine.spark.session.failures import failure_of
        from oop_engine.spark.session.session import session
        from oop_engine.spark.session.settings import check_packages

        check_packages()
        runs = self._embedded(variant, feeds, tell) if self.compare else []
        tell("spark: starting")
        with session(self.master, self.settings()) as spark, failure_of():
            for batch in (False, True) if self.compare else (self.batch,):
                runs.append(self._on(spark, variant, feeds, tell, batch=batch))
        return Compared(variant, runs, [_off(scenario, runs[0].results, run.results) for run in runs])

    def _embedded(self, variant: Variant, feeds: Feeds, tell: Tell) -> list[Shown]:
        """Run the plan in this process, and its in-order twin if it is out of order and has one."""
        from oop_engine.core.errors import GraphError
        from oop_engine.operators.rewrites.in_order import in_order
        from oop_engine.runners.replay import replay

        plans = {"this process": variant.graph}
        if variant.order == "out":
            try:
                plans["this process, in order"] = in_order(variant.graph)
            except GraphError as error:
                tell(f"no run in order: {error}")
        rows = []
        for how, graph in plans.items():
            tell(f"{how}: running")
            outcome = replay(graph, feeds())
            late = outcome.statistics.count("late")
            rows.append(Shown(how, outcome.tuples, late, outcome.results, 0.0, outcome.wall_s))
        return rows

    def _on(self, spark: Any, variant: Variant, feeds: Feeds, tell: Tell, *, batch: bool) -> Shown:
        from oop_engine.spark.run import run_on_spark
        from oop_engine.spark.state.state_files import QUERY

        how = BATCH if batch else STREAMING
        if self.checkpoint is not None and (self.checkpoint / QUERY).exists():
            tell(f"{how}: resumes from its checkpoint; results are those since then")
        else:
            tell(f"{how}: the trace is written in segments, then they are run")
        began = time.perf_counter()
        outcome = run_on_spark(
            variant.graph, feeds(), spark=spark, batch=batch, checkpoint=self.checkpoint, groups=self.groups,
            balance=self.balance, segment_rows=self.batch_tuples or BATCH_TUPLES, segments_per_batch=1,
            on_batch=lambda done: tell(progress(done)),
        )  # fmt: skip
        late = outcome.statistics.count("late")
        start_s = time.perf_counter() - began - outcome.wall_s
        steady = _steady(outcome)
        return Shown(
            how, outcome.tuples, late, outcome.results, start_s, outcome.wall_s, steady, outcome.batches,
            outcome.moves,
        )  # fmt: skip


def _steady(outcome: SparkOutcome) -> float | None:
    later = outcome.batches[2:]
    wall_s = sum(batch.wall_s for batch in later)
    return sum(batch.tuples for batch in later) / wall_s if wall_s else None


def progress(done: BatchDone) -> str:
    """Return a line about a micro-batch."""
    from oop_engine.lab.report.words import count, seconds

    rate = f", {count(done.tuples / done.wall_s)} tuples/s" if done.tuples and done.wall_s else ""
    results = f"{count(done.results)} result{'' if done.results == 1 else 's'}"
    return f"  batch {done.number}: {count(done.tuples)} tuples, {results}, {seconds(done.wall_s)}{rate}"


def _off(scenario: Scenario, first: dict[str, pa.Table], other: dict[str, pa.Table]) -> tuple[int, int]:
    from oop_engine.lab.answers import missing_and_wrong

    differences = [missing_and_wrong(other[name], first[name], scenario.keys) for name in first]
    return sum(missing for missing, _ in differences), sum(wrong for _, wrong in differences)
