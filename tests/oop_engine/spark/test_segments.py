"""Segments keep their numbers: files that are found later, and feeds that are spooled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from oop_engine import Page, TraceError, UsageError
from oop_engine.spark.io.segments import Files
from oop_engine.spark.io.spool import spool
from oop_engine.spark.run import pieces_of
from oop_engine.spark.state.checkpoint import Checkpoint
from oop_engine.traces import write_trace
from tests.oop_engine.spark.small_graph import SCHEMA, of, page, plus


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
