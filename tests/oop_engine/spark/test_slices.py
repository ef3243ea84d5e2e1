"""Slices: what tasks cannot see is told, and is not taken for silence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from oop_engine import Page, Schema, TraceError
from oop_engine.runners.spark.slices import spool

SCHEMA = Schema({"ts": pa.int64()}, "ts", "s")


def test_what_was_spooled_where_tasks_cannot_see_it_is_no_silence(tmp_path: Path) -> None:
    feeds = {"source": [Page.of(SCHEMA, {"ts": [1, 2]})], "silent": []}
    found = spool(feeds, dict.fromkeys(feeds, SCHEMA), tmp_path / "feeds")
    assert list(found["silent"].read(0)) == []
    shutil.rmtree(tmp_path / "feeds")
    for slices in found.values():
        with pytest.raises(TraceError, match="driver and tasks must share the folder of the checkpoint"):
            list(slices.read(0))
