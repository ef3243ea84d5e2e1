"""What cannot run is told before anything starts; what fails in a task is told as what it was."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import ContractError, Graph, GraphError, Operator, Page, Schema, UsageError, write_trace
from oop_engine.errors import LateTuple, SetupError, TraceError
from oop_engine.operators import BoundedDisorder, Late, Meld, Punctuate, WithColumns
from oop_engine.policies import Heartbeat
from oop_engine.spark import run
from oop_engine.spark.io.segments import Files
from oop_engine.spark.io.sinks import Parquet
from oop_engine.spark.io.source import RecordSource
from oop_engine.spark.run import run_on_spark
from oop_engine.spark.session import settings
from tests.parts.spark.small_graph import SCHEMA, checkpoint_of, of, page, plus, run_it


class Keeps(Operator):
    """It keeps what it saw, and cannot be saved."""

    def open(self) -> None:
        self.seen: list[Page] = []


class Ticking(Operator):
    inputs = ("left", "right")
    clock_every = 5

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None


def of_two(operator: Operator) -> Graph:
    made = Graph("two")
    made.source("one", SCHEMA)
    made.source("two", SCHEMA)
    made.sink("out", made.add("first", operator, "one", "two"))
    return made


class TestBeforeAnythingStarts:
    @pytest.fixture(autouse=True)
    def _no_session(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            pytest.fail("Spark was started")

        monkeypatch.setattr(run, "session", refuse)

    def test_a_package_that_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(settings, "PACKAGES", {"no_such_module": "pyspark"})
        with pytest.raises(SetupError, match="Spark needs pyspark, not installed here: pip install"):
            run_it(of(plus(1)))

    def test_what_cannot_be_pickled(self) -> None:
        lock = Lock()
        operator = WithColumns({"v": lambda batch: batch["v"] if lock.acquire(False) or True else None})
        with pytest.raises(
            GraphError, match=r"node 'first': WithColumns.* cannot be pickled \(.*lock.*\): let its"
        ):
            run_it(of(operator))

    def test_what_cannot_be_saved(self) -> None:
        words = "node 'first': Keeps keeps state and cannot be saved, .*: give it save"
        with pytest.raises(GraphError, match=words):
            run_it(of(Keeps()))

    def test_what_wants_the_clock_behind_a_union(self) -> None:
        graph = of_two(Meld(2))
        policy = Heartbeat(BoundedDisorder(5), 10, 5)
        graph.sink("late", graph.add("second", Punctuate(policy), "first"))
        for wrong, name in ((graph, "second"), (of_two(Ticking()), "first")):
            with pytest.raises(
                GraphError, match=f"node '{name}': .* wants the arrival clock, .*: put it between"
            ):
                run_on_spark(wrong, {"one": (), "two": ()})

    def test_a_column_that_a_folder_of_traces_has_not(self, tmp_path: Path) -> None:
        other = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
        given = Page.of(other, {"ts": [1], "k": ["a"]})
        write_trace(tmp_path / "0.parquet", other, [given])
        with pytest.raises(TraceError, match=r"0\.parquet: .*'v'"):
            run_it(of(plus(1)), tmp_path)

    def test_a_file_for_a_folder_of_results(self, tmp_path: Path) -> None:
        (tmp_path / "results").touch()
        with pytest.raises(UsageError, match=r"sink Parquet: folder .*results"):
            run_it(of(plus(1)), sink=Parquet(tmp_path / "results"))

    @pytest.mark.parametrize(
        ("other", "words"),
        [
            (
                of(plus(2)),
                r"node 'first', WithColumns v = <lambda>, has other parameters or functions than it had",
            ),
            (of(plus(1), 20), r"node 'sums' was WindowAggregate.*10.* and is WindowAggregate.*20"),
            (of(Punctuate(BoundedDisorder(3))), "node 'first' was WithColumns.* and is Punctuate"),
        ],
    )
    def test_another_graph_than_that_of_the_checkpoint(
        self, other: Graph, words: str, tmp_path: Path
    ) -> None:
        checkpoint_of(of(plus(1)), tmp_path)
        with pytest.raises(
            UsageError, match=f"checkpoint .*: it is of another graph; {words}.*: take another"
        ):
            run_it(other, checkpoint=tmp_path)

    def test_a_node_that_was_not_there(self, tmp_path: Path) -> None:
        checkpoint_of(of(plus(1)), tmp_path)
        more = of(plus(1))
        more.sink("all", "first")
        with pytest.raises(UsageError, match="node 'all' was not there: sink"):
            run_it(more, checkpoint=tmp_path)
        checkpoint_of(more, tmp_path / "more")
        with pytest.raises(UsageError, match="node 'all' is no longer there: sink"):
            run_it(of(plus(1)), checkpoint=tmp_path / "more")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "query.json cannot be read"),
            ('{"graph": {}', "query.json cannot be read"),
            ("[1]", "query.json is not of this version, or of something else"),
            ('{"graph": {}, "sizes": 3}', "query.json is not of this version, or of something else"),
        ],
    )
    def test_a_checkpoint_that_cannot_be_read(self, text: str, words: str, tmp_path: Path) -> None:
        (tmp_path / "query.json").write_text(text)
        with pytest.raises(UsageError, match=f"checkpoint {tmp_path}: {words}.*: take another folder"):
            run_it(of(plus(1)), checkpoint=tmp_path)

    def test_a_checkpoint_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(UsageError, match=r"cannot be written .*: take another folder"):
            run_it(of(plus(1)), checkpoint=tmp_path / "file")

    def test_micro_batches_in_the_checkpoint_of_one_batch(self, tmp_path: Path) -> None:
        checkpoint_of(of(plus(1)), tmp_path, batch=True)
        with pytest.raises(UsageError, match="it is of a run in one batch, and batch=False would give"):
            run_it(of(plus(1)), checkpoint=tmp_path)


@pytest.mark.slow(keep=1)
@pytest.mark.spark
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(
    ("operator", "error", "words"),
    [
        (Punctuate(BoundedDisorder(5), 10, Late.RAISE), LateTuple, "Punctuate: .*3"),
        (
            WithColumns({"v": pc.divide(pc.field("v"), pc.subtract(pc.field("v"), pc.field("v")))}),
            ContractError,
            "WithColumns: ",
        ),
    ],
)
def test_what_fails_in_a_task_is_told_as_what_it_was(
    spark, operator: Operator, error: type[Exception], words: str, batch: bool
) -> None:
    with pytest.raises(error) as caught:
        run_it(of(operator), [page(1, 90, 91), page(3)], spark=spark, batch=batch)
    assert type(caught.value) is error
    assert re.search(rf"operator 'first' \(\w+\), page of \d rows?, .*: {words}", str(caught.value))


@pytest.mark.spark
def test_a_damaged_file_is_named(spark, tmp_path: Path) -> None:
    for number in range(9):
        write_trace(tmp_path / f"{number}.msgpack", SCHEMA, [page(number)])
    whole = (tmp_path / "7.msgpack").read_bytes()
    (tmp_path / "7.msgpack").write_bytes(whole[:-20])
    source = Files(str(tmp_path), SCHEMA, complete=True)
    with pytest.raises(TraceError, match=r"^[^\n]*/7\.msgpack: [^\n]*$"):
        run_it(of(Punctuate(BoundedDisorder(5))), source, spark=spark, segments_per_batch=8)


def test_a_job_that_cannot_be_unpacked_is_an_error_of_a_call_and_not_of_the_constructor() -> None:
    """PySpark hides an error of the constructor behind "cannot access local variable 'reader'"."""
    reader = RecordSource({"job": "no job"}).streamReader(None)
    reader.stop()
    with pytest.raises(ValueError, match=r"base64|padding|string"):
        reader.initialOffset()
