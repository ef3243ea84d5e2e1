"""What is added from outside: a thing that no file of the packages knows is as good as one of theirs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import (
    Graph,
    GraphError,
    GroupWise,
    Linear,
    Operator,
    Page,
    Punctuation,
    Schema,
    UsageError,
    open_trace,
    replay,
    run,
    write_trace,
)
from oop_engine.errors import TraceError
from oop_engine.extend import Emission, Message, TraceFormat, register_format, register_policy
from oop_engine.operators import (
    BoundedDisorder,
    Meld,
    PerGroup,
    Punctuate,
    Sum,
    Tumbling,
    Upstream,
    WindowAggregate,
)
from oop_engine.operators.policies.running_bound import length_of
from oop_engine.pipeline.policy import read_policy
from oop_engine.policies import Lag
from oop_engine.rewrites import consolidated, in_order
from oop_engine.spark import BatchResults, Receipt, SinkWork
from oop_engine.spark.io.segments import Files
from oop_engine.spark.plan.two_level import scaled
from oop_engine.spark.run import run_on_spark
from oop_engine.testing import Case, contract_suite
from oop_engine.traces.format import Marks, readable
from oop_engine.traces.format_registry import _OF_SUFFIX, FORMATS

SCHEMA = Schema({"ts": pa.int64(), "n": pa.int64()}, "ts", "s")
PAGES = {
    "a": [Page.of(SCHEMA, {"ts": [3, 1, 14], "n": [1, 2, 3]})],
    "b": [Page.of(SCHEMA, {"ts": [12, 2, 31], "n": [5, 7, 9]})],
}
SUMS = [(10, 8), (20, 8), (40, 9)]


class Odd(Operator):
    """The tuples whose ``n`` is odd: a toy that answers no question that it need not."""

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        odd = page.column("n").fill_null(0).to_numpy() % 2 == 1
        if odd.any():
            yield 0, page.filter(odd)


class OpenOdd(Odd):
    """The same, which says of itself what it does to order and to unions."""

    distributes = True

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True


class TwinnedOdd(Odd):
    """The same, with another operator in its place where order is kept."""

    def twin(self, inputs: tuple[Schema, ...]) -> Operator:
        return OpenOdd()


class HalvedSum(WindowAggregate):
    """An aggregate whose class no rewrite has heard of."""


def is_odd(inputs: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [row for row in inputs[0] if row["n"] is not None and row["n"] % 2 == 1]


test_operator_keeps_the_laws = contract_suite(
    [Case("odd", Odd(), (SCHEMA,), is_odd), Case("open-odd", OpenOdd(), (SCHEMA,), is_odd)],
    examples=5,
    together=True,
)


def sums_of_odd(odd: Operator) -> Graph:
    graph = Graph("sums of what is odd")
    edges = [
        graph.add(f"edge-{name}", Punctuate(BoundedDisorder(20)), graph.source(name, SCHEMA))
        for name in PAGES
    ]
    graph.add("odd", odd, graph.add("both", Meld(len(edges)), *edges))
    graph.sink("out", graph.add("sum", HalvedSum(Tumbling(10), {"s": Sum("n")}), "odd"))
    return graph


def sums(graph: Graph) -> list[tuple[int, int]]:
    rows = run(graph, PAGES, check=True).results["out"].to_pylist()
    return sorted((row["window_end"], row["s"]) for row in rows)


@pytest.mark.parametrize("odd", [Odd(), OpenOdd()], ids=["silent", "open"])
def test_operator_runs_in_any_graph(odd: Operator) -> None:
    assert sums(sums_of_odd(odd)) == SUMS


@pytest.mark.parametrize("odd", [OpenOdd(), TwinnedOdd()], ids=["itself", "another"])
def test_operator_that_names_an_in_order_twin_has_one(odd: Operator) -> None:
    graph = Graph("odd, in order")
    graph.add("edge", Punctuate(BoundedDisorder(20)), graph.source("a", SCHEMA))
    graph.sink("out", graph.add("odd", odd, "edge"))
    twin = in_order(graph)
    assert type(twin.plan().operator("odd")) is OpenOdd
    results = run(twin, {"a": PAGES["a"]}, check=True).results
    assert results["out"]["ts"].to_pylist() == [3, 14]


def test_operator_that_says_nothing_is_refused_in_order() -> None:
    told = "node 'odd': Odd has no in-order twin: sorted input must leave sorted, and Odd.keeps_order()"
    with pytest.raises(GraphError, match=re.escape(told)):
        in_order(sums_of_odd(Odd()))


@pytest.mark.parametrize(
    ("odd", "firsts"),
    [(Odd(), ["sum-partial"]), (OpenOdd(), ["sum-partial-0", "sum-partial-1"])],
    ids=["silent", "open"],
)
def test_rewrite_in_halves_asks_and_knows_no_name(odd: Operator, firsts: list[str]) -> None:
    twin = consolidated(sums_of_odd(odd))
    assert [name for name in twin.nodes if "partial" in name] == firsts
    assert sums(twin) == SUMS
    assert [name for name in scaled(sums_of_odd(odd))[0].nodes if "partial" in name] == firsts


@register_policy
@dataclass(frozen=True)
class EverySecondTick(Lag):
    """A policy that trails the largest value by twice ``tick``: a toy."""

    tick: int

    def lag(self, schema: Schema, what: str) -> tuple[int, int]:
        return 0, 2 * length_of(self.tick, schema, f"{what}: tick", least=1)


def test_policy_is_named_in_a_declaration_and_runs_in_both_architectures() -> None:
    policy = read_policy(
        "PerGroup(EverySecondTick(5), by=('n',), linear=EverySecondTick(tick=10))", "test", SCHEMA
    )
    assert policy == PerGroup(EverySecondTick(5), by=("n",), linear=EverySecondTick(10))
    graph = Graph("after a policy of my own")
    graph.add("edge", Punctuate(EverySecondTick(1)), graph.source("a", SCHEMA))
    graph.sink("out", graph.add("sum", WindowAggregate(Tumbling(10), {"s": Sum("n")}), "edge"))
    late = Page.of(SCHEMA, {"ts": [3, 14, 11, 12, 25], "n": [1, 2, 64, 4, 8]}, arrival=[0, 1, 2, 3, 4])
    for plan in (graph, in_order(graph)):
        rows = run(plan, {"a": [late]}, check=True).results["out"].to_pylist()
        assert [(row["window_end"], row["s"]) for row in rows] == [(10, 1), (20, 6), (30, 8)]
    with pytest.raises(UsageError, match=r"EverySecondTick\(0\).*tick must be at least 1 s; got 0"):
        read_policy("EverySecondTick(0)", "test", SCHEMA)


def test_policy_of_a_name_that_is_taken_is_refused() -> None:
    taken = type("Ordered", (Lag,), {"__module__": __name__})
    with pytest.raises(
        UsageError, match=r"there is a policy 'Ordered' already, of oop_engine.*take another name"
    ):
        register_policy(taken)


class LinesReader:
    """Reads lines: names, then a tuple each; ``< 5`` is a bound.  A toy that knows integers only."""

    guessed: ClassVar[bool] = False
    sparse: ClassVar[bool] = False
    crowded: ClassVar[bool] = False

    def __init__(self, path: Path, times: tuple[str, ...] = ()) -> None:
        self._path = path
        with readable(path):
            time, unit, arrival, *names = path.read_text().splitlines()[0].split("|")
        self.fields = pa.schema([(name, pa.int64()) for name in names])
        self.marks = Marks(time, unit, arrival)

    def read(self, columns: pa.Schema, page_rows: int) -> Iterator[pa.RecordBatch | Punctuation]:
        with readable(self._path):
            for line in self._path.read_text().splitlines()[1:]:
                if line.startswith("<"):
                    yield Linear(int(line[1:]))
                else:
                    row = dict(zip(self.fields.names, map(int, line.split("|")), strict=True))
                    yield pa.RecordBatch.from_pylist([row], schema=self.fields).select(columns.names)


class LinesWriter:
    """Writes what ``LinesReader`` reads."""

    def __init__(self, sink: pa.NativeFile, fields: pa.Schema, marks: Marks) -> None:
        self._sink = sink
        self._line(marks.time, marks.unit, marks.arrival, *fields.names)

    def write(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            self._line(*row.values())

    def punctuation(self, punctuation: Punctuation) -> None:
        if not isinstance(punctuation, Linear):
            raise TraceError(f"lines: only linear punctuation can be written; got {punctuation}")
        self._line(f"< {punctuation.below}")

    def close(self) -> None: ...

    def _line(self, *values: object) -> None:
        self._sink.write(("|".join(map(str, values)) + "\n").encode())


LINES = TraceFormat("toylines", LinesReader, LinesWriter, suffixes=("tl",))


@pytest.fixture(autouse=True)
def _lines_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only within a test of this file: others take all formats that there are when they are collected."""
    for registry in (FORMATS, _OF_SUFFIX):
        monkeypatch.setattr(registry, "_things", dict(registry._things))
    register_format(LINES)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The feed ``a`` as a file of the toy format, with a bound in it."""
    page = Page.of(SCHEMA, {"ts": [3, 1, 14, 2], "n": [1, 2, 3, 64]}, arrival=[4, 5, 14, 15])
    path = tmp_path / "in" / "a.tl"
    path.parent.mkdir()
    assert write_trace(path, SCHEMA, [page.slice(0, 2), Linear(3), page.slice(2, 4)]) == 4
    return path


def carried() -> Graph:
    graph = Graph("what the file promises")
    graph.add("edge", Punctuate(Upstream()), graph.source("a", SCHEMA))
    graph.sink("out", graph.add("sum", WindowAggregate(Tumbling(10), {"s": Sum("n")}), "edge"))
    return graph


def test_format_is_replayed(trace: Path) -> None:
    assert trace.read_text().splitlines()[:4] == ["ts|s|arrival|ts|n|arrival", "3|1|4", "1|2|5", "< 3"]
    found = open_trace(trace)
    assert (found.schema, found.arrival) == (SCHEMA, "arrival")
    assert [type(message) for message in found] == [Page, Page, Linear, Page, Page]
    results = replay(carried(), {"a": found}).results["out"].to_pylist()
    assert [(row["window_end"], row["s"]) for row in results] == [(10, 3), (20, 3)]
    assert open_trace(shutil.copy(trace, trace.with_suffix(".dat")), format="toylines").schema == SCHEMA


def test_format_whose_suffix_is_taken_is_refused() -> None:
    taken = TraceFormat("others", LinesReader, LinesWriter, suffixes=("csv",))
    with pytest.raises(
        UsageError, match=r"there is a suffix of traces 'csv' already, of oop_engine\.traces\.formats\.csv"
    ):
        register_format(taken)
    assert "others" not in FORMATS


def test_format_that_cannot_hold_punctuation_says_so(tmp_path: Path) -> None:
    keys = pa.record_batch({"n": [1]})
    with pytest.raises(TraceError, match="lines: only linear punctuation can be written"):
        write_trace(tmp_path / "a.tl", SCHEMA, [GroupWise(keys, np.array([5]))])


@dataclass
class LinesSink:
    """Tasks write what they get to files of lines; the commit tells of them, and of each batch once."""

    folder: Path
    exactly_once: str = "exactly once: a batch that comes again has the same names"
    started: dict[str, list[str]] = field(default_factory=dict)
    commits: list[tuple[int, int, list[str]]] = field(default_factory=list)

    def start(self, schemas: Mapping[str, Schema], query: str) -> None:
        self.started = {name: schema.names for name, schema in schemas.items()}
        self.folder.mkdir(exist_ok=True)

    def worker(self) -> SinkWork:
        return partial(write_lines, self.folder)

    def commit(self, batch: int, results: BatchResults) -> None:
        files = [receipt.body.decode() for receipt in results.of("out")]
        self.commits.append((batch, results.tuples, files))


def write_lines(
    folder: Path, batch: int, partition: int, results: Iterable[tuple[str, Message]]
) -> Iterator[Receipt]:
    """Write the pages that reach sinks in one partition, a file a sink."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for sink, message in results:
        if isinstance(message, Page):
            rows.setdefault(sink, []).extend(message.to_pylist())
    for sink, found in rows.items():
        name = f"{sink}-{batch}-{partition}"
        (folder / name).write_text("\n".join(f"{row['window_end']}|{row['s']}" for row in found))
        yield Receipt(sink, len(found), name.encode())


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("batch", [True, False], ids=["all at once", "in micro-batches"])
def test_format_and_sink_are_used_on_spark(batch: bool, trace: Path, spark: Any, tmp_path: Path) -> None:
    sink = LinesSink(tmp_path / "out")
    source = Files(str(trace.parent), SCHEMA, complete=True)
    outcome = run_on_spark(carried(), {"a": source}, spark=spark, batch=batch, sink=sink)
    assert outcome.results == {}
    assert sink.started == {"out": ["window_start", "window_end", "s"]}
    files = [name for _, _, names in sink.commits for name in names]
    lines = [line for name in files for line in (sink.folder / name).read_text().splitlines()]
    assert sorted(lines) == ["10|3", "20|3"]
    assert sum(tuples for _, tuples, _ in sink.commits) == 2
