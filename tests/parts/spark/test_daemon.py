"""Workers are forked from a process that has loaded what tasks need, and look for no garbage in that."""

from __future__ import annotations

import gc
import subprocess
import sys

import pyarrow as pa
import pytest

from oop_engine.spark.tasks.daemon import loaded_here
from tests.children import MOST_S


def state(batches):
    """Tell how much a worker keeps out of the search for garbage."""
    list(batches)
    yield pa.RecordBatch.from_pydict({"frozen": [gc.get_freeze_count()]})


@pytest.mark.spark
def test_workers_are_forked_with_everything_loaded(spark) -> None:
    assert spark.conf.get("spark.python.daemon.module") == "oop_engine.spark.tasks.daemon"
    found = spark.range(1, numPartitions=1).mapInArrow(state, "frozen long").toArrow()
    assert found.column("frozen")[0].as_py() > 10_000


def test_modules_of_ours_are_named_and_those_that_cannot_be_loaded_are_left_to_who_needs_them() -> None:
    assert "oop_engine.spark.tasks.daemon" in loaded_here().split()
    code = (
        "import sys; from oop_engine.spark.tasks.daemon import preload; preload(['no.such', 'oop_engine.core.page']);"
        "print('oop_engine.core.page' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=MOST_S
    )
    assert done.stdout.split() == ["True"]
