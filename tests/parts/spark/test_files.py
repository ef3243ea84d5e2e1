"""Files of a folder: what has been read keeps its number, whatever comes later."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import write_trace
from oop_engine.core.errors import SnapshotError, TraceError, UsageError
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.spark.io.segments import Files
from oop_engine.spark.io.source import _available

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")


def add(folder: Path, name: str, ts: int) -> None:
    folder.mkdir(exist_ok=True)
    write_trace(folder / f"{name}.arrow", SCHEMA, [Page.of(SCHEMA, {"ts": [ts]})])


def read(files: Files, number: int) -> list[int]:
    return [ts for page in files.read(number) if isinstance(page, Page) for ts in page.times.tolist()]


def remembering(folder: Path, known: Path) -> Files:
    files = Files(str(folder), SCHEMA, known=str(known))
    files.check(0)
    files.look()
    return files


def test_a_file_that_sorts_before_what_was_read_is_read_behind_it(tmp_path: Path) -> None:
    folder, known = tmp_path / "web", tmp_path / "checkpoint" / "files" / "web.json"
    for name, ts in (("b0", 0), ("b1", 1)):
        add(folder, name, ts)
    driver = remembering(folder, known)
    job: Any = SimpleNamespace(sources={"web": driver})
    assert _available(job) == {"web": 2}
    add(folder, "a9", 2)
    add(folder, "a8", 3)
    assert _available(job) == {"web": 4}
    task = Files(str(folder), SCHEMA, known=str(known))
    assert [read(task, number) for number in range(4)] == [[0], [1], [3], [2]]
    add(folder, "a0", 4)
    (folder / "_SUCCESS").touch()
    assert _available(job) == {"web": 6}
    again = remembering(folder, known)
    assert [read(again, number) for number in range(5)] == [[0], [1], [3], [2], [4]]


def test_a_file_that_was_read_and_is_gone_leaves_the_others_in_their_places(tmp_path: Path) -> None:
    for name, ts in (("a", 0), ("b", 1)):
        add(tmp_path / "web", name, ts)
    files = remembering(tmp_path / "web", tmp_path / "known")
    (tmp_path / "web" / "a.arrow").unlink()
    assert read(files, 1) == [1]
    with pytest.raises(TraceError, match=r"a\.arrow: does not exist"):
        read(files, 0)
    with pytest.raises(UsageError, match=r"a\.arrow: the query has read it, and it is gone: leave files"):
        remembering(tmp_path / "web", tmp_path / "known")


@pytest.mark.parametrize("damaged", ["{", "{}", "[1]", '["a", "b"]'])
def test_names_that_cannot_be_read_are_an_error(tmp_path: Path, damaged: str) -> None:
    add(tmp_path / "web", "a", 0)
    (tmp_path / "known").write_text(f"{damaged}\n")
    with pytest.raises(SnapshotError, match=r"known is damaged.*: restore the file, or start with"):
        remembering(tmp_path / "web", tmp_path / "known")


def test_partitions_and_compressed_files_are_segments_and_others_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    schema = Schema({"ts": pa.int64(), "month": pa.int8()}, "ts", "s")
    for month, name in ((10, "a.csv"), (9, "b.csv.gz"), (9, "a.jsonl.zst")):
        path = tmp_path / "web" / f"month={month}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_trace(path, SCHEMA, [Page.of(SCHEMA, {"ts": [month]})])
    (tmp_path / "web" / "more").mkdir()
    (tmp_path / "web" / "notes.doc").write_text("")
    driver = Files(str(tmp_path / "web"), schema, known=str(tmp_path / "known"))
    driver.look()
    assert driver.count() == 3
    rows = [row for i in range(3) for page in driver.read(i).pages() for row in page.to_pylist()]
    assert rows == [{"ts": month, "month": month} for month in (9, 9, 10)]
    assert "more: is a folder within the folder" in caplog.text
    assert "notes.doc: is left out, as others of this suffix" in caplog.text
