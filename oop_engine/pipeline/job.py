"""The pipeline: raw events in, results and a manifest out, in steps of which each is done once.

parse     files -> rows that can be used, and a quarantine with the reason for each that cannot
order     -> segments in order of arrival, by source
profile   -> how late tuples are, by source and by group
policy    -> the punctuation policy of each source
run       -> results, by window
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oop_engine.core.errors import TraceError, UsageError
from oop_engine.core.graphs.fingerprint import described
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length, to_units
from oop_engine.pipeline import ingest, segmenting
from oop_engine.pipeline.cells import escaped
from oop_engine.pipeline.declaration import Declaration
from oop_engine.pipeline.graph_file import build, load_build
from oop_engine.pipeline.inputs import FileLayout, Input, find_inputs, layouts
from oop_engine.pipeline.manifest import hints_of, manifest, write_manifest
from oop_engine.pipeline.measure import Measured, in_spark, measure
from oop_engine.pipeline.policy import PolicyChoice, choose, read_policy
from oop_engine.pipeline.running import Folders, default_partition, run_graph
from oop_engine.pipeline.segmented import Segmented
from oop_engine.pipeline.spark_errors import as_trace_errors
from oop_engine.pipeline.steps import Steps
from oop_engine.spark.io.segments import SEGMENT_ROWS
from oop_engine.spark.run import BatchDone, pieces_of
from oop_engine.spark.session.session import active_session, session
from oop_engine.spark.session.settings import check_packages
from oop_engine.spark.tasks.job import check_travels
from oop_engine.system.apart import check_apart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["STEPS", "Wanted", "run_pipeline"]

STEPS = ("parse", "order", "profile", "policy", "run")
_SETTINGS = {"spark.driver.memory": "4g"}


@dataclass(frozen=True)
class Wanted:
    """The options of a pipeline.

    ``share``: the least share of tuples that are to be in time, if ``policy`` is "".  ``graph``: the file of the
    graph; None: that of the declaration.  ``until``: the last step to do.  ``slice_rows``: about how many
    rows are in a segment.  ``batch``: run the graph in one batch, not in micro-batches.
    """

    declaration: Declaration
    inputs: Sequence[Path]
    out: Path
    graph: Path | None = None
    policy: str = ""
    share: float = 1.0
    partition: str = ""
    until: str = "run"
    batch: bool = False
    slice_rows: int = SEGMENT_ROWS
    master: str | None = None
    settings: dict[str, str] = field(default_factory=dict)


def run_pipeline(
    wanted: Wanted,
    *,
    spark: SparkSession | None = None,
    on_step: Callable[[str], None] | None = None,
    on_batch: Callable[[BatchDone], None] | None = None,
) -> dict[str, Any]:
    """Do the steps that are not done yet, and return the manifest, which is in ``out/manifest.json`` too.

    ``spark``: a session to use; None: one is made when it is needed.  Raises ``UsageError``, ``TraceError`` or
    ``SetupError`` for errors that the user can mend, before anything runs where that can be known.
    """
    check_packages()
    with ExitStack() as stack:
        made = _Pipeline(wanted, spark, stack, on_step, on_batch)
        with as_trace_errors("the pipeline failed", made.files):
            return made.run()


class _Pipeline:
    """One run of a pipeline; all checks are made when it is made."""

    def __init__(
        self,
        wanted: Wanted,
        spark: SparkSession | None,
        stack: ExitStack,
        on_step: Callable[[str], None] | None,
        on_batch: Callable[[BatchDone], None] | None,
    ) -> None:
        self._wanted, self._said = wanted, wanted.declaration
        self._spark, self._stack, self._on_batch = spark, stack, on_batch
        escaped(wanted.out.absolute())  # raises where Spark cannot read
        self._inputs = find_inputs(wanted.inputs, self._said.format)
        self._layouts: list[FileLayout] = layouts(self._said, self._inputs)
        self._policy = wanted.policy or self._said.policy
        self._graph_file = wanted.graph or self._said.graph_file
        _check_out(wanted.out, wanted.inputs)
        if wanted.until == "run":
            self._build = load_build(self._file_of_graph())  # which may register policies
        if self._policy:
            read_policy(self._policy, "policy")
        self._partition = wanted.partition or self._said.partition
        if self._partition and to_units(self._partition, self._said.unit or "us", "by-window") <= 0:
            msg = f"by-window must be longer than nothing; got {self._partition!r}"
            raise UsageError(msg)
        self._on_step, self._start_s = on_step or _silent, 0.0
        self._steps = Steps(wanted.out, self._on_step)
        self._rows: DataFrame | None = None

    @property
    def files(self) -> list[Path]:
        """The files that go in, by their numbers."""
        return [file.path for file in self._inputs]

    def run(self) -> dict[str, Any]:
        """Do the steps in their order."""
        work = (self._parse, self._order, self._profile, self._choose, self._run)
        for _, step in zip(STEPS[: STEPS.index(self._wanted.until) + 1], work, strict=False):
            step()
        content = manifest(self._said, self._inputs, self._steps, self._start_s)
        write_manifest(self._wanted.out / "manifest.json", content)
        return content

    def _file_of_graph(self) -> Path:
        if self._graph_file is None:
            msg = f'{self._said.path}: names no graph: add [run] graph = "graph.py", or give --graph, or --until policy'
            raise UsageError(msg)
        return self._graph_file

    def _session(self) -> SparkSession:
        if self._spark is None:
            self._on_step("start")
            began = time.perf_counter()
            settings = {} if active_session() else _SETTINGS
            self._spark = self._stack.enter_context(
                session(self._wanted.master, settings | self._wanted.settings)
            )
            self._start_s = time.perf_counter() - began
        return self._spark

    def _prepared(self) -> DataFrame:
        if self._rows is None:
            links = self._wanted.out.absolute() / "inputs"
            self._stack.callback(shutil.rmtree, links, ignore_errors=True)
            self._stack.enter_context(ingest.settled(self._session()))
            self._rows = ingest.prepare(self._session(), self._said, self._layouts, links)
            segmenting.stream_schema(self._said, self._rows)
        return self._rows

    def _parse(self) -> None:
        out = self._wanted.out
        given = {"declaration": self._said.of_rows(), "files": [_identity(file) for file in self._inputs]}
        both = [("parse", given), ("order", self._ordered_as())]
        if not self._steps.all_known(both) and not (out / "staged").exists():
            self._steps.forget("parse")  # its output is gone
        self._steps.do("parse", given, lambda: self._parsed(out), self._session)

    def _parsed(self, out: Path) -> dict[str, Any]:
        made = ingest.parse(self._prepared(), self.files, out / "staged", out / "quarantine")
        return made | {"hints": hints_of(self._said, made.pop("examples"))}

    def _ordered_as(self) -> dict[str, Any]:
        return {"slice_rows": self._wanted.slice_rows}

    def _order(self) -> None:
        self._steps.do("order", self._ordered_as(), self._put_in_order, self._session)
        for name in ("staged", "ordered"):
            shutil.rmtree(self._wanted.out / name, ignore_errors=True)

    def _put_in_order(self) -> dict[str, Any]:
        out, used = self._wanted.out, self._steps.result("parse")["used"]
        names = segmenting.source_names(list(used)).values()
        total = sum(used.values())
        if not total:
            refused = self._steps.result("parse")["rows"]
            where = (
                f"all {refused:,} are in {out / 'quarantine'}, with the reasons"
                if refused
                else "the files have none"
            )
            hints = self._steps.result("parse").get("hints", {})
            msg = "; ".join(
                [f"no row can be used: {where}", *(f"{why}; {hint}" for why, hint in hints.items())]
            )
            raise TraceError(msg)
        schema = segmenting.stream_schema(self._said, self._prepared())
        if self._wanted.until == "run":
            self._try_graph(dict.fromkeys(names, schema))
        Folders(out).release()  # a run over other segments cannot go on
        shutil.rmtree(out / "traces", ignore_errors=True)
        count = max(1, round(total / self._wanted.slice_rows))
        ingest.order(self._prepared(), self._said.arrival, out / "staged", count, out / "ordered")
        made = segmenting.collect_segments(out / "ordered", out / "traces", schema, self._said.arrival)
        rows_out = sum(source["rows"] for source in made["sources"].values())
        if rows_out != total:
            self._steps.forget("parse")
            folders = f"read {total:,} rows of {out / 'staged'}, wrote {rows_out:,} to {out / 'ordered'}"
            msg = f"order: {folders}: compare the folders; does another process write there? The next run parses anew"
            raise TraceError(msg)
        return made

    def _try_graph(self, schemas: Mapping[str, Schema]) -> None:
        """Raise for a wrong graph as soon as its sources are known; no policy is chosen by then."""
        policies = {
            name: read_policy(self._policy or "Ordered()", "policy", schemas[name]) for name in schemas
        }
        graph = build(self._build, self._file_of_graph(), schemas, policies)
        check_travels(graph.plan())
        pieces_of(graph)

    def _profile(self) -> None:
        self._steps.do("profile", {}, self._measure, self._session)

    def _measure(self) -> dict[str, Any]:
        folder = self._wanted.out / "profile"
        tasks = int(str(self._session().conf.get("spark.sql.shuffle.partitions")))
        profiles = measure(in_spark(self._session()), self._sources(), self._said.by, folder, tasks)
        shutil.rmtree(folder)
        return {name: measured.to_dict() for name, measured in profiles.items()}

    def _sources(self) -> dict[str, Segmented]:
        return segmenting.open_segments(self._wanted.out / "traces")

    def _choose(self) -> None:
        given = {"policy": self._policy} if self._policy else {"share": self._wanted.share}
        self._steps.do("policy", given, self._choices)

    def _choices(self) -> dict[str, Any]:
        profiles = {name: Measured.of(plain) for name, plain in self._steps.result("profile").items()}
        if self._policy:
            schema = next(iter(self._sources().values())).schema
            read_policy(self._policy, "policy", schema)
            return {name: asdict(PolicyChoice(self._policy, "as it was set")) for name in profiles}
        return {name: asdict(choose(measured, self._wanted.share)) for name, measured in profiles.items()}

    def _run(self) -> None:
        sources = self._sources()
        schemas = {name: source.schema for name, source in sources.items()}
        policies = {
            name: read_policy(choice["policy"], f"policy of {name}", schemas[name])
            for name, choice in self._steps.result("policy").items()
        }
        file = self._file_of_graph()
        graph = build(self._build, file, schemas, policies)
        partition = self._partition or self._default_partition()
        nodes = described(graph.plan())
        given = {"graph": nodes, "batch": self._wanted.batch, "partition": partition}
        key = self._steps.key(given)
        self._steps.do(
            "run", given,
            lambda: {"graph": graph.text()} | run_graph(
                self._session(), graph, sources, Folders(self._wanted.out), key=key, batch=self._wanted.batch,
                partition=partition, on_batch=self._on_batch,
            ),
            self._session,
        )  # fmt: skip

    def _default_partition(self) -> Length:
        profiles = [source["profile"] for source in self._steps.result("profile").values()]
        span = max(p["last"] for p in profiles) - min(p["first"] for p in profiles)
        return default_partition(span, profiles[0]["unit"])


def _silent(step: str) -> None:
    """Report nothing."""


def _identity(file: Input) -> list[Any]:
    return [str(file.path), file.nbytes, file.path.stat().st_mtime_ns]


def _check_out(out: Path, inputs: Sequence[Path]) -> None:
    """Raise ``UsageError`` unless the folder of results is apart from the inputs, by any spelling or link."""
    check_apart([("the pipeline", path) for path in inputs], [("out", out)])
    for path in inputs:
        if os.path.realpath(out) in map(str, Path(os.path.realpath(path)).parents):
            msg = f"out: {out} holds {path}, which is read: give a folder of its own"
            raise UsageError(msg)
