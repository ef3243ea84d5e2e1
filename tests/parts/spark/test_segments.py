"""Segments keep their numbers: files that are found later, and feeds that are spooled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from oop_engine import Linear, Page, Schema, UsageError, write_trace
from oop_engine.errors import TraceError
from oop_engine.spark.io.segments import Files
from oop_engine.spark.io.spool import spool
from oop_engine.spark.run import pieces_of
from oop_engine.spark.state.checkpoint import Checkpoint
from oop_engine.spark.tasks.record import pack_messages, unpack_messages
from tests.parts.spark.small_graph import SCHEMA, of, page, plus


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


def test_what_was_spooled_is_read_again_and_what_was_not_finished_is_spooled_anew(tmp_path: Path) -> None:
    def fails() -> Iterator[Page]:
        yield page(1, 2)
        raise KeyboardInterrupt

    schemas = {"source": SCHEMA}
    with pytest.raises(KeyboardInterrupt):
        spool({"source": fails()}, schemas, tmp_path, rows=1)
    first = spool({"source": [page(1, 2), page(3)]}, schemas, tmp_path, rows=1)
    assert spool({"source": iter([page(1), page(2, 3)])}, schemas, tmp_path, rows=5) == first
    read = [m for number in range(first["source"].count()) for m in first["source"].read(number)]
    assert [row["ts"] for m in read if isinstance(m, Page) for row in m.to_pylist()] == [1, 2, 3]


OTHERS = {
    "other rows": [page(1, 2), page(4)],
    "more": [page(1, 2), page(3), page(4)],
    "none": [],
    "punctuation": [page(1, 2), Linear(2), page(3)],
    "arrivals": [Page.of(SCHEMA, {"ts": [1, 2, 3], "k": ["a"] * 3, "v": [1, 2, 3]}, [1, 2, 3])],
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_messages_over_the_same_checkpoint_are_refused(name: str, tmp_path: Path) -> None:
    schemas = {"source": SCHEMA}
    spool({"source": [page(1, 2), page(3)]}, schemas, tmp_path)
    with pytest.raises(
        UsageError, match="feed 'source': its messages are others than those at the first start"
    ):
        spool({"source": OTHERS[name]}, schemas, tmp_path)


@pytest.mark.parametrize("arrival", [None, 7])
def test_messages_of_one_moment_are_cut_into_segments(arrival: int | None, tmp_path: Path) -> None:
    taken = 0

    def feed() -> Iterator[Page]:
        nonlocal taken
        for number in range(20):
            taken += not (tmp_path / "source" / "000000.msgpack").exists()
            columns = {"ts": [number] * 10, "k": ["a"] * 10, "v": [number] * 10}
            yield Page.of(SCHEMA, columns, None if arrival is None else [arrival] * 10)

    found = spool({"source": feed()}, {"source": SCHEMA}, tmp_path, rows=50)["source"]
    assert found.count() == 4
    assert taken <= 7
    read = [m for number in range(found.count()) for m in found.read(number)]
    assert [row["ts"] for m in read if isinstance(m, Page) for row in m.to_pylist()] == [
        n // 10 for n in range(200)
    ]


def test_a_record_has_the_words_that_occur_in_it() -> None:
    kind = pa.dictionary(pa.int32(), pa.string())
    schema = Schema({"ts": pa.int64(), "k": kind}, "ts", "s")
    words = pa.array([f"word-{number}" for number in range(10_000)])
    places = pa.array([9_999, 5, None, 5, 7], pa.int32())
    whole = Page.of(schema, {"ts": range(5), "k": pa.DictionaryArray.from_arrays(places, words)})
    part = whole.slice(1, 5)
    tuples, body = pack_messages([part])
    [again] = unpack_messages(schema, body)
    assert isinstance(again, Page)
    assert (tuples, again.to_pylist()) == (4, part.to_pylist())
    assert len(body) < 2_000
