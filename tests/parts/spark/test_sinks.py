"""Sinks without Spark: batches come again, in part or with other partitions, and every result is there once."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle

from oop_engine import Page, Schema
from oop_engine.core.errors import GraphError, SetupError, UnitError, UsageError
from oop_engine.spark.io import parquet
from oop_engine.spark.io.result_folder import ResultFolder
from oop_engine.spark.io.sinks import BatchResults, Delta, ForeachBatch, Memory, Parquet, Sink
from oop_engine.spark.io.to_sink import ToSink
from oop_engine.testing.case import typed

SCHEMA = Schema({"window_end": pa.timestamp("ms", "UTC"), "n": pa.int64()}, "window_end")
DAY = 86_400_000
Partitions = list[list[int]]
"""What the tasks of a batch write: the numbers of each partition."""


class Killed(BaseException):
    """Stands for the end of the process."""


def page_of(schema: Schema, rows: Any) -> Page:
    """Return a page of columns, in which moments are integers of their unit."""
    return Page.of(schema, {name: typed(values, schema.type_of(name)) for name, values in rows.items()})


def numbers_of(values: list[int]) -> Page:
    return page_of(SCHEMA, {"window_end": [n * DAY // 4 for n in values], "n": values})


def work(sink: Sink, batch: int, partitions: Partitions) -> BatchResults:
    """Do what tasks do; the pieces travel as Spark sends them."""
    worker = cloudpickle.loads(cloudpickle.dumps(sink.worker()))
    return BatchResults(
        tuple(
            receipt
            for number, values in enumerate(partitions)
            for receipt in worker(batch, number, [("out", numbers_of([n])) for n in values])
        )
    )


def run(sink: Sink, batch: int, partitions: Partitions, query: str = "q") -> None:
    """Run one batch with a sink that was started just now."""
    sink.start({"out": SCHEMA}, query)
    sink.commit(batch, work(sink, batch, partitions))


def blind(folder: Path) -> list[int]:
    """Read what anybody sees who reads all the Parquet files there are."""
    return sorted(
        n for path in folder.rglob("*.parquet") for n in pq.ParquetFile(path).read().column("n").to_pylist()
    )


def from_log(folder: Path) -> list[int]:
    """Read the Delta table."""
    return sorted(DeltaTable(folder / "out").to_pyarrow_table().column("n").to_pylist())


KINDS: list[tuple[Callable[[Path], Sink], Callable[[Path], list[int]]]] = [
    (Parquet, blind),
    (lambda folder: Parquet(folder, by_window="1 d"), blind),
    (Delta, from_log),
    (Delta, blind),
]
kinds = pytest.mark.parametrize(("make", "read"), KINDS, ids=["parquet", "by window", "delta", "delta blind"])


@kinds
def test_batches_come_once(make, read, tmp_path: Path) -> None:
    sink = make(tmp_path)
    sink.start({"out": SCHEMA}, "q")
    batches: list[Partitions] = [[[1, 5], [2]], [[], []], [[3], [4, 6]]]
    for batch, partitions in enumerate(batches):
        found = work(sink, batch, partitions)
        assert found.tuples == sum(map(len, partitions))
        sink.commit(batch, found)
    assert read(tmp_path) == [1, 2, 3, 4, 5, 6]


@kinds
def test_a_last_batch_that_comes_again_changes_nothing(make, read, tmp_path: Path) -> None:
    run(make(tmp_path), 0, [[1], [2]])
    run(make(tmp_path), 1, [[3, 5], [4]])
    run(make(tmp_path), 1, [[3, 5], [4]])
    assert read(tmp_path) == [1, 2, 3, 4, 5]
    run(make(tmp_path), 2, [[6]])
    assert read(tmp_path) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("by_window", [None, "1 d"])
def test_a_batch_may_come_again_in_fewer_partitions(by_window, tmp_path: Path) -> None:
    """As in a batch job on a machine with fewer cores."""
    run(Parquet(tmp_path, by_window), 0, [[1], [2], [9]])
    run(Parquet(tmp_path, by_window), 0, [[9, 2, 1]])
    assert blind(tmp_path) == [1, 2, 9]


@pytest.mark.slow(keep=1)
@kinds
def test_killed_anywhere_in_a_commit(make, read, monkeypatch: pytest.MonkeyPatch) -> None:
    """After ``files`` files were put in place, or after the whole commit; then the batch comes again."""

    @settings(max_examples=20)
    @given(st.lists(st.lists(st.integers(0, 4), max_size=3), min_size=1, max_size=4))
    def holds(kills: list[list[int]]) -> None:
        with TemporaryDirectory() as place:
            folder, expected = Path(place), []
            for batch, times in enumerate(kills):
                rows = [[10 * batch + n for n in part] for part in ([1, 5], [2], [3, 8])]
                expected += [n for part in rows for n in part]
                for files in times:
                    with monkeypatch.context() as patched, suppress(Killed):
                        patched.setattr(ResultFolder, "put", _dying(files))
                        run(make(folder), batch, rows)
                run(make(folder), batch, rows)
                assert read(folder) == sorted(expected)

    holds()


def _dying(files: int) -> Callable[..., None]:
    def put(self: ResultFolder, written: list) -> None:
        PUT(self, written[:files])
        if files < len(written):
            raise Killed

    return put


PUT = ResultFolder.put


@kinds
def test_what_is_not_committed_is_seen_by_nobody_and_goes_at_the_next_start(
    make, read, tmp_path: Path
) -> None:
    run(make(tmp_path), 0, [[1]])
    sink = make(tmp_path)
    sink.start({"out": SCHEMA}, "q")
    work(sink, 1, [[2], [3]])
    assert read(tmp_path) == blind(tmp_path) == [1]
    assert len(list((tmp_path / "out" / "_unfinished").iterdir())) >= 2
    make(tmp_path).start({"out": SCHEMA}, "q")
    assert list((tmp_path / "out" / "_unfinished").iterdir()) == []


def test_folders_of_windows(tmp_path: Path) -> None:
    """A window that ends at midnight is one of the day before."""
    run(Parquet(tmp_path / "days", "1 d"), 3, [[-1, 0, 1, 4, 5]])
    run(Parquet(tmp_path / "hours", "6 h"), 3, [[1, 4]])
    places = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet")}
    name = "batch-000003-00000.parquet"
    assert places == {
        *(f"days/out/window={day}/{name}" for day in ("1969-12-31", "1970-01-01", "1970-01-02")),
        *(f"hours/out/window=1970-01-01T{hour}-00-00/{name}" for hour in ("00", "18")),
    }
    assert pq.read_table(tmp_path / "days" / "out").num_rows == 5


def test_folders_of_windows_by_number() -> None:
    schema = Schema({"at": pa.int64()}, "at", "m")
    page = Page.of(schema, {"at": [0, 9, 10, -1]})
    found = {level: part.to_pylist() for level, part in parquet.divided(page, schema, 10)}
    assert found == {
        "window=-10/": [{"at": -1}],
        "window=0/": [{"at": 0}, {"at": 9}],
        "window=10/": [{"at": 10}],
    }


@pytest.mark.parametrize("end", ["window_end", "time_end"])
def test_a_window_is_in_the_folder_of_its_last_instant(end: str) -> None:
    schema = Schema({end: pa.int64()}, end, "m")
    found = {
        level: len(part) for level, part in parquet.divided(Page.of(schema, {end: [10, 11, 20]}), schema, 10)
    }
    assert found == {"window=0/": 1, "window=10/": 2}


def test_there_may_be_more_folders_of_windows_than_files_that_a_process_may_open(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="this platform does not bound open files so")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/dev/fd").iterdir())) + 40, before[1]))
    try:
        run(Parquet(tmp_path, "6 h"), 0, [list(range(1, 201))])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(list(tmp_path.rglob("window=*"))) == 200
    assert blind(tmp_path) == list(range(1, 201))


def test_many_small_pages_are_few_row_groups(tmp_path: Path) -> None:
    run(Parquet(tmp_path), 0, [list(range(500))])
    (path,) = tmp_path.rglob("*.parquet")
    assert pq.ParquetFile(path).num_row_groups == 1


def results_of(kind: str, query: str) -> Callable[[Path], None]:
    sinks = {"Parquet": Parquet, "Delta": Delta}
    return lambda folder: run(sinks[kind](folder), 0, [[1]], query)


def a_file(folder: Path) -> None:
    folder.write_text("a file")


def somebodys_files(folder: Path) -> None:
    (folder / "out").mkdir(parents=True)
    (folder / "out" / "mine.csv").write_text("1")


def somebodys_table(folder: Path) -> None:
    results_of("Delta", "q")(folder)
    (folder / "out" / "_query").unlink()


@pytest.mark.parametrize("make", [Parquet, Delta])
@pytest.mark.parametrize(
    ("before", "words"),
    [
        (a_file, r"cannot be written \(Not a directory\): give one that can"),
        (
            results_of("Parquet", "other"),
            "has results of another query: take an empty folder, or the checkpoint",
        ),
        (
            results_of("Delta", "other"),
            "has results of another query: take an empty folder, or the checkpoint",
        ),
        (somebodys_files, "is not empty, there is mine.csv: take an empty folder"),
        (somebodys_table, "is not empty, there is _delta_log: take an empty folder"),
    ],
)
def test_bad_targets_are_told_at_the_start_and_left_alone(make, before, words: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    before(place)
    there = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match=f"sink {make.__name__}: folder .*{words}"):
        make(place).start({"out": SCHEMA}, "q")
    assert sorted(tmp_path.rglob("*")) == there


@pytest.mark.parametrize("make", [Parquet, Delta])
def test_elsewhere_is_told(make) -> None:
    with pytest.raises(UsageError, match=r"s3://bucket/x is not a folder .* ForeachBatch"):
        make("s3://bucket/x").start({"out": SCHEMA}, "q")


@pytest.mark.parametrize("make", [Parquet, Delta])
def test_of_two_queries_that_start_together_one_gets_the_folder(make, tmp_path: Path) -> None:
    one, two = make(tmp_path), make(tmp_path)
    one.start({"out": SCHEMA}, "one")
    two.start({"out": SCHEMA}, "two")
    two.commit(0, work(two, 0, [[2]]))
    with pytest.raises(UsageError, match="another query has begun to write to it"):
        one.commit(0, BatchResults())
    assert blind(tmp_path) == [2]


def test_a_kill_before_the_folder_has_a_name(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "_query").touch()
    run(Parquet(tmp_path), 0, [[1]])
    with pytest.raises(UsageError, match="results of another query"):
        Parquet(tmp_path).start({"out": SCHEMA}, "other")


def test_tasks_that_do_not_share_the_folder_are_told(tmp_path: Path) -> None:
    sink = Parquet(tmp_path)
    sink.start({"out": SCHEMA}, "q")
    found = work(sink, 0, [[1]])
    shutil.rmtree(tmp_path / "out" / "_unfinished")
    (tmp_path / "out" / "_unfinished").mkdir()
    with pytest.raises(UsageError, match="driver and tasks must share the folder"):
        sink.commit(0, found)


def test_a_task_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    sink = Parquet(tmp_path)
    sink.start({"out": SCHEMA}, "q")
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(UsageError, match="a task does not see it: driver and tasks must share the folder"):
        work(sink, 0, [[1]])


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (Parquet, pa.month_day_nano_interval()),
        (Delta, pa.uint8()),
        (Delta, pa.duration("s")),
        (Delta, pa.timestamp("ns")),
        (Delta, pa.timestamp("ns", "UTC")),
        (Delta, pa.list_(pa.struct({"at": pa.timestamp("ns", "UTC")}))),
        (Delta, pa.null()),
        (Delta, pa.decimal256(50, 2)),
    ],
)
def test_types_that_a_sink_cannot_hold(make, kind: pa.DataType, tmp_path: Path) -> None:
    schema = Schema({"at": pa.int64(), "what": kind}, "at", "m")
    with pytest.raises(UsageError, match=f"sink 'out': {make.__name__} cannot hold column 'what' of type"):
        make(tmp_path / "new").start({"out": schema}, "q")
    assert not (tmp_path / "new").exists()


def test_types_that_delta_holds_as_others(tmp_path: Path) -> None:
    types = {
        "seconds": pa.timestamp("s"),
        "zoned": pa.timestamp("ms", "America/New_York"),
        "long": pa.large_string(),
        "words": pa.dictionary(pa.int32(), pa.string()),
    }
    schema = Schema(types, "seconds")
    row = {"seconds": [1], "zoned": [2], "long": ["a"], "words": ["b"]}
    batch = pa.RecordBatch.from_pydict(
        {name: pa.array(row[name], kind) for name, kind in types.items()}, schema=schema.fields
    )
    sink = Delta(tmp_path)
    sink.start({"out": schema}, "q")
    sink.commit(0, BatchResults(tuple(sink.worker()(0, 0, [("out", Page(schema, batch))]))))
    found = DeltaTable(tmp_path / "out").to_pyarrow_table()
    wanted = [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.string(), pa.string()]
    assert found.schema.types == wanted
    assert found.to_pylist()[0] == {
        "seconds": pa.scalar(1, types["seconds"]).as_py(),
        "zoned": pa.scalar(2, types["zoned"]).as_py(),
        "long": "a",
        "words": "b",
    }


def test_a_table_without_results_can_be_read(tmp_path: Path) -> None:
    run(Delta(tmp_path), 0, [[]])
    assert from_log(tmp_path) == []


@pytest.mark.parametrize("length", ["0 s", -5])
def test_a_width_of_nothing_is_told(length, tmp_path: Path) -> None:
    with pytest.raises(UnitError, match="by_window must be longer than nothing"):
        Parquet(tmp_path, length).start({"out": SCHEMA}, "q")


def test_a_column_with_the_name_of_the_folders_is_told(tmp_path: Path) -> None:
    schema = Schema({"at": pa.int64(), "window": pa.int64()}, "at", "m")
    with pytest.raises(UsageError, match="there is a column 'window': rename it"):
        Parquet(tmp_path, 10).start({"out": schema}, "q")


def test_delta_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(SetupError, match=r"pip install 'oop-engine\[delta\]'"):
        Delta(tmp_path).start({"out": SCHEMA}, "q")


def test_what_a_sink_keeps_does_not_travel() -> None:
    lock = Lock()  # which cannot be pickled
    memory, each = Memory(), ForeachBatch(lambda found, batch: lock.release())
    memory.start({"out": SCHEMA}, "q")
    rows = numbers_of(list(range(10_000))).batch
    memory.commit(0, BatchResults(tables={"out": pa.Table.from_batches([rows])}))
    assert memory.results()["out"].num_rows == 10_000
    tasks = [ToSink(sink.worker(), {}, 0) for sink in (memory, each)]
    assert len(cloudpickle.dumps(tasks)) < 500


VERSIONS = Schema(
    {"end": pa.timestamp("ms"), "k": pa.string(), "n": pa.int64(), "change": pa.int8()},
    "end",
    change="change",
)


@pytest.mark.parametrize("by_window", [None, "1 d"])
def test_files_of_a_revision_stream_are_a_change_feed(tmp_path: Path, by_window: str | None) -> None:
    rows = {"end": [10, 10, 10, DAY], "k": ["a", "a", "b", "b"], "n": [1, 2, 5, 6], "change": [-1, 1, -1, 1]}
    sink = Parquet(tmp_path, by_window, key=("k", "end"))
    sink.start({"out": VERSIONS}, "q")
    worker = cloudpickle.loads(cloudpickle.dumps(sink.worker()))
    sink.commit(3, BatchResults(tuple(worker(3, 0, [("out", page_of(VERSIONS, rows))]))))
    found = [row for path in tmp_path.rglob("*.parquet") for row in pq.ParquetFile(path).read().to_pylist()]
    assert list(found[0]) == ["end", "k", "n", "_change_type", "_commit_version", "_commit_timestamp"]
    kinds_of = {row["n"]: row["_change_type"] for row in found}
    assert kinds_of == {1: "update_preimage", 2: "update_postimage", 5: "delete", 6: "insert"}
    assert {row["_commit_version"] for row in found} == {3}


def test_by_key_a_delta_table_is_the_net_content_after_each_batch(tmp_path: Path) -> None:
    versions: list[list[tuple[int, str | None, int, int]]] = [
        [(10, "a", 1, 1), (10, None, 5, 1)],
        [(10, "a", 1, -1), (10, "a", 2, 1), (10, None, 5, -1)],
        [(20, "b", 3, 1), (20, "b", 3, -1), (10, "a", 7, 1)],
        [(10, "a", 2, -1), (20, "b", 4, 1)],
        [],
    ]
    wanted: list[list[tuple[str | None, int]]] = [
        [("a", 1), (None, 5)],
        [("a", 2)],
        [("a", 7)],
        [("a", 7), ("b", 4)],
        [("a", 7), ("b", 4)],
    ]
    for batch, (rows, there) in enumerate(zip(versions, wanted, strict=True)):
        for _ in range(2):  # a batch comes again
            sink = Delta(tmp_path, key=("end", "k"))
            sink.start({"out": VERSIONS}, "q")
            page = page_of(
                VERSIONS, {name: [row[i] for row in rows] for i, name in enumerate(VERSIONS.names)}
            )
            sink.commit(batch, BatchResults(tuple(sink.worker()(batch, 0, [("out", page)]))))
        found = DeltaTable(tmp_path / "out").to_pyarrow_table()
        assert found.column_names == ["end", "k", "n"]
        assert {(row["k"], row["n"]) for row in found.to_pylist()} == set(there)
        assert not list((tmp_path / "out" / "_unfinished").iterdir())


def test_by_key_rows_of_a_delta_table_are_replaced(tmp_path: Path) -> None:
    plain = VERSIONS.plain()
    for batch, rows in enumerate(
        [{"end": [10, 20], "k": ["a", "b"], "n": [1, 2]}, {"end": [30], "k": ["a"], "n": [3]}]
    ):
        sink = Delta(tmp_path, key=("k",))
        sink.start({"out": plain}, "q")
        sink.commit(batch, BatchResults(tuple(sink.worker()(batch, 0, [("out", page_of(plain, rows))]))))
    found = DeltaTable(tmp_path / "out").to_pyarrow_table().select(["k", "n"]).to_pylist()
    assert sorted((row["k"], row["n"]) for row in found) == [("a", 3), ("b", 2)]


def test_sinks_of_a_revision_stream_refuse_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match=r"sink 'out': Delta: .*changes change.* put Finalize"):
        Delta(tmp_path / "delta").start({"out": VERSIONS}, "q")
    with pytest.raises(GraphError, match="sink 'out': Parquet: key: no column 'change'"):
        Parquet(tmp_path / "parquet", key=("change",)).start({"out": VERSIONS}, "q")
    with pytest.raises(GraphError, match="sink 'out': Delta: key: no column 'change'"):
        Delta(tmp_path / "delta", key=("change",)).start({"out": VERSIONS}, "q")
    assert not list(tmp_path.iterdir())
    memory = Memory()
    memory.start({"out": VERSIONS}, "q")
    assert memory.results()["out"].schema == VERSIONS.fields  # it passes the changes on
