"""What cannot run is told before anything starts; what fails in a task is told as what it was."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import (
    ContractError,
    Graph,
    GraphError,
    LateTuple,
    Operator,
    Page,
    Schema,
    SetupError,
    TraceError,
    UsageError,
)
from oop_engine.operators import (
    Apply,
    BoundedDisorder,
    Count,
    Late,
    Meld,
    Punctuate,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.operators.policies.policies import Heartbeat
from oop_engine.spark import run
from oop_engine.spark.io.segments import Files
from oop_engine.spark.io.sinks import Parquet
from oop_engine.spark.io.spool import spool
from oop_engine.spark.run import pieces_of, run_on_spark
from oop_engine.spark.session import settings
from oop_engine.spark.state.checkpoint import Checkpoint
from oop_engine.spark.state.fingerprint import fingerprint
from oop_engine.spark.state.state_files import StateFiles, version_of
from oop_engine.traces import write_trace
from tests.children import MOST_S
from tests.oop_engine.spark.killed_query import SCHEMA as KILLED_SCHEMA
from tests.oop_engine.spark.killed_query import pages as killed_pages
from tests.oop_engine.spark.processes import Running
from tests.oop_engine.spark.test_kill import blind

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
ROOT = Path(__file__).parents[3]


def page(*times: int) -> Page:
    return Page.of(SCHEMA, {"ts": times, "k": ["a"] * len(times), "v": times})


def of(operator: Operator, width: int = 10) -> Graph:
    """A graph of ``operator``, and of sums behind it."""
    made = Graph("errors")
    made.source("source", SCHEMA)
    made.add("first", operator, "source")
    made.add("sums", WindowAggregate(Tumbling(width), {"sum": Sum("v")}, by=["k"]), "first")
    made.sink("out", "sums")
    return made


def plus(number: int) -> Operator:
    return Apply({"v": lambda batch: pc.add(batch["v"], number)})


def run_it(graph: Graph, feed: Any = (), **options: Any) -> None:
    run_on_spark(graph, {"source": feed}, **options)


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
        operator = Apply({"v": lambda batch: batch["v"] if lock.acquire(False) or True else None})
        with pytest.raises(
            GraphError, match=r"node 'first': Apply.* cannot be pickled \(.*lock.*\): let its"
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
            (of(plus(2)), r"node 'first', Apply v = <lambda>, has other parameters or functions than it had"),
            (of(plus(1), 20), r"node 'sums' was WindowAggregate.*10.* and is WindowAggregate.*20"),
            (of(Punctuate(BoundedDisorder(3))), "node 'first' was Apply.* and is Punctuate"),
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


def checkpoint_of(graph: Graph, folder: Path, *, batch: bool = False) -> None:
    """Make the checkpoint that a first run of ``graph`` makes."""
    source = Files(str(folder), SCHEMA) if folder.exists() else None
    kept = Checkpoint(folder)
    kept.keep(pieces_of(graph), {"source": source} if source else {}, (2, 4), batch=batch)


def test_a_checkpoint_knows_how_it_was_run(tmp_path: Path) -> None:
    checkpoint_of(of(plus(1)), tmp_path)
    kept, pieces = Checkpoint(tmp_path), pieces_of(of(plus(1)))
    assert kept.sizes(7, None) == kept.sizes(7, 4) == (2, 4)
    assert kept.query() == Checkpoint(tmp_path).query() != Checkpoint(tmp_path / "other").query()
    with pytest.raises(UsageError, match="it has 4 key groups; got groups=5: leave it out"):
        kept.sizes(2, 5)
    kept.keep(pieces, {"source": Files(str(tmp_path), SCHEMA)}, (2, 4))
    with pytest.raises(UsageError, match="the feed of 'source' was Files, is a DataFrame: give it as then"):
        kept.keep(pieces, {}, (2, 4))
    other = pieces_of(of(Punctuate(BoundedDisorder(3))))
    with pytest.raises(UsageError, match="fused in another way: give the score and rates of then"):
        kept.keep(replace(other, components=()), {}, (2, 4))


def folder_of_segments(place: Path, names: str) -> Files:
    """Write a folder of segments, or more of them into it."""
    place.mkdir(exist_ok=True)
    for name in names.split():
        write_trace(place / f"{name}.csv", SCHEMA, [page(len(name))])
    return Files(str(place), SCHEMA)


def read_by(source: Files) -> list[str]:
    return [source.read(number).path.stem for number in range(source.count())]


def test_files_are_read_in_the_order_in_which_they_were_found(tmp_path: Path) -> None:
    source, pieces = folder_of_segments(tmp_path / "source", "b d"), pieces_of(of(plus(1)))
    found = Checkpoint(tmp_path).keep(pieces, {"source": source}, (2, 4))["source"]
    assert isinstance(found, Files)
    folder_of_segments(tmp_path / "source", "c a")
    assert read_by(found) == ["b", "d"]
    found.look()
    assert read_by(found) == ["b", "d", "a", "c"]
    again = Checkpoint(tmp_path).keep(pieces, {"source": source}, (2, 4))["source"]
    assert again == found
    assert not again.ended()
    (tmp_path / "source" / "_SUCCESS").touch()
    found.look()
    assert found.ended()
    folder_of_segments(tmp_path / "source", "e")
    with pytest.raises(TraceError, match=r"e\.csv: it came after the source had ended"):
        found.look()
    at_once = Checkpoint(tmp_path / "other").keep(pieces, {"source": source}, (2, 4), batch=True)["source"]
    assert isinstance(at_once, Files)
    assert read_by(at_once) == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("change", "words"),
    [(lambda file: file.unlink(), "is gone"), (lambda file: file.write_text(""), "has 0 bytes now, had ")],
)
def test_files_that_were_read_must_stay(change: Callable[[Path], None], words: str, tmp_path: Path) -> None:
    found = replace(folder_of_segments(tmp_path / "source", "a b"), known=str(tmp_path / "known"))
    found.look()
    found.check(2)
    change(tmp_path / "source" / "b.csv")
    with pytest.raises(UsageError, match=rf"b\.csv: the query has read it, and it {words}.*: leave files"):
        found.check(2)


def test_what_a_kill_left_is_cleared_away(tmp_path: Path) -> None:
    states = StateFiles(str(tmp_path / "heads"))
    name = states.save("source", 3, b"state")
    (tmp_path / "heads" / "source" / "000000000004.state.0123").write_bytes(b"half")
    checkpoint_of(of(plus(1)), tmp_path)
    assert [path.name for path in (tmp_path / "heads" / "source").iterdir()] == [name]


def test_old_states_of_source_chains_are_forgotten(tmp_path: Path) -> None:
    states = StateFiles(str(tmp_path))
    for offset in range(100):
        states.save("source", offset, b"state")
    kept = sorted(path.name for path in (tmp_path / "source").iterdir())
    assert [version_of(name) for name in kept] == list(range(84, 100))
    assert states.load("source", kept[-1]) == b"state"


def test_what_was_spooled_is_read_again_and_what_was_not_finished_is_spooled_anew(tmp_path: Path) -> None:
    def fails() -> Iterator[Page]:
        yield page(1, 2)
        raise KeyboardInterrupt

    def never() -> Iterator[Page]:
        pytest.fail("what is spooled already was asked for")
        yield page()

    schemas = {"source": SCHEMA}
    with pytest.raises(KeyboardInterrupt):
        spool({"source": fails()}, schemas, tmp_path, rows=1)
    first = spool({"source": [page(1, 2), page(3)]}, schemas, tmp_path, rows=1)
    assert spool({"source": never()}, schemas, tmp_path, rows=1) == first
    read = [m for number in range(first["source"].count()) for m in first["source"].read(number)]
    assert [row["ts"] for m in read if isinstance(m, Page) for row in m.to_pylist()] == [1, 2, 3]


SPOKEN = """
import sys
from oop_engine.spark.state.fingerprint import fingerprint
{blank}
class Mine:
    def __init__(self):
        self.names, self.number = {{"c", "a", "b"}}, {number}
        self.function = lambda value: value in {{"x", "y", "z"}} and value != {number}
print(fingerprint([Mine(), Mine]))
"""


def spoken(seed: int, blank: str = "", number: int = 1) -> str:
    command = [sys.executable, "-c", SPOKEN.format(blank=blank, number=number)]
    environment = os.environ | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=MOST_S
    ).stdout


def test_fingerprints_are_the_same_in_all_processes() -> None:
    assert spoken(1) == spoken(2) == spoken(3, blank="#\n\n\n") != spoken(1, number=2)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: {"a": [n, 2.0, "x", b"y", None]},
        lambda n: np.arange(n),
        lambda n: pa.array([n]),
        lambda n: pa.scalar(n),
        lambda n: pc.field("v") + n,
        lambda n: lambda value, other=n: value + other,
        lambda n: partial(max, n),
        lambda n: [].append if n == 1 else {}.update,
        lambda n: Late.DROP if n == 1 else Late.RAISE,
        lambda n: Sum("v") if n == 1 else Count(),
        lambda n: frozenset({n}),
        lambda n: timedelta(seconds=n),
    ],
)
def test_fingerprints_tell_values_apart(make: Callable[[int], object]) -> None:
    assert fingerprint(make(1)) == fingerprint(make(1)) != fingerprint(make(2))


def test_a_value_within_itself_has_a_fingerprint() -> None:
    endless: list[object] = [1]
    endless.append(endless)
    assert fingerprint(endless)


@pytest.mark.spark
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(
    ("operator", "error", "words"),
    [
        (Punctuate(BoundedDisorder(5), 10, Late.RAISE), LateTuple, "Punctuate: .*3"),
        (
            Apply({"v": pc.divide(pc.field("v"), pc.subtract(pc.field("v"), pc.field("v")))}),
            ContractError,
            "Apply: ",
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


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes as Linux has them")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_query_that_follows(
    sent: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from a terminal: the signal goes to all processes in the foreground."""
    (tmp_path / "left").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    for number, given in enumerate(killed_pages(1)):
        write_trace(tmp_path / "left" / f"{number:03d}.msgpack", KILLED_SCHEMA, [given])
    arguments = [str(tmp_path), "delta", "follow"]
    with Running("tests.oop_engine.spark.killed_query", *arguments, log=tmp_path / "log") as running:
        assert len(running.lines(3)) == 3
        os.killpg(running.process.pid, sent)
        code = -sent if sent == signal.SIGINT else 128 + sent
        assert running.wait(30) == code, running.log.read_text()
        assert running.left_after(10) == []
    said = running.log.read_text()
    if sent == signal.SIGINT:
        assert said.splitlines()[-1] == "KeyboardInterrupt"
        assert said.count("Traceback") == 1
    else:
        assert said == ""
    assert "py4j" not in said
    assert list((tmp_path / "temporary").iterdir()) == []
    assert blind(tmp_path / "results" / "out")
