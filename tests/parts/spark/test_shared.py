"""What tasks of a cluster cannot see is told; it is not taken for silence, or for a beginning."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from oop_engine import Page, Schema, UsageError
from oop_engine.errors import TraceError
from oop_engine.spark.io.spool import spool
from oop_engine.spark.state.state_files import QUERY, StateFiles

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")


def test_what_was_spooled_where_tasks_cannot_see_it_is_no_silence(tmp_path: Path) -> None:
    feeds = {"source": [Page.of(SCHEMA, {"ts": [1, 2]})], "silent": []}
    found = spool(feeds, dict.fromkeys(feeds, SCHEMA), tmp_path / "feeds")
    assert list(found["silent"].read(0)) == []
    shutil.rmtree(tmp_path / "feeds")
    for segments in found.values():
        with pytest.raises(TraceError, match="driver and tasks must share the folder of the checkpoint"):
            list(segments.read(0))


def test_a_task_that_cannot_see_the_checkpoint_does_not_begin_from_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a task does not see it: give one that all machines have"):
        StateFiles.of_checkpoint(str(tmp_path / "copies"))
    (tmp_path / QUERY).touch()
    assert StateFiles.of_checkpoint(str(tmp_path / "copies")).save("0-0", 3, b"state")
