"""Kill it at any moment, start it again: the results are those of a run that nobody disturbed."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from oop_engine import replay, write_trace
from oop_engine.testing import multiset
from tests.children import MOST_S
from tests.parts.spark import killed_query
from tests.parts.spark.killed_query import SCHEMA, SEGMENTS, graph, pages
from tests.parts.spark.processes import Running

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes as Linux has them"),
]

MODULE = "tests.parts.spark.killed_query"
MORE = int(os.environ.get("OOP_ENGINE_KILLS", "0"))
"""How many kills at random moments, on top of those in a commit, where most is at stake."""

Rows = list[dict[str, Any]]


def blind(folder: Path) -> Rows:
    """Read what anybody sees who reads all the Parquet files there are."""
    return [row for path in folder.rglob("*.parquet") for row in pq.ParquetFile(path).read().to_pylist()]


def from_log(folder: Path) -> Rows:
    return DeltaTable(folder).to_pyarrow_table().to_pylist()


def prepared(place: Path) -> Path:
    (place / "left").mkdir()
    for number, page in enumerate(pages(1)):
        write_trace(place / "left" / f"{number:03d}.msgpack", SCHEMA, [page])
    return place


def killed_at_random(place: Path, sink: str, chance: random.Random) -> bool:
    """Start it, and kill all its processes after some micro-batches and a moment; tell if it had ended."""
    with Running(MODULE, str(place), sink, "", log=place / "log") as running:
        running.lines(chance.randint(1, 2))
        return running.wait(chance.uniform(0, 0.8)) == 0


def killed_by_itself(place: Path, sink: str, dies: str) -> None:
    """Start it, and have its driver killed in a commit: all else ends by itself."""
    with Running(MODULE, str(place), sink, dies, log=place / "log") as running:
        assert running.wait(MOST_S) == -9, running.log.read_text()
        assert running.left_after(MOST_S) == []


def finished(place: Path, sink: str) -> None:
    """Start it, and let it finish: no process is left."""
    with Running(MODULE, str(place), sink, "", log=place / "log") as running:
        assert running.lines(SEGMENTS)
        assert running.wait(MOST_S) == 0, running.log.read_text()
        assert running.left_after(MOST_S) == []


def finished_here(place: Path, sink: str) -> None:
    """Let it finish in the session that tests share: another start of Spark would say no more."""
    killed_query.main(place, sink, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sink", "read", "dies", "finish"),
    [("parquet", blind, "middle:1", finished), ("delta", from_log, "after:1", finished_here)],
    ids=["parquet", "delta"],
)
@pytest.mark.usefixtures("spark")
def test_results_are_those_of_an_undisturbed_run(
    sink: str, read: Callable[[Path], Rows], dies: str, finish: Callable[[Path, str], None], tmp_path: Path
) -> None:
    place = prepared(tmp_path)
    expected = replay(graph(), {name: iter(pages(seed)) for name, seed in (("left", 1), ("right", 2))})
    killed_by_itself(place, sink, dies)
    chance = random.Random(len(sink))
    ended = [killed_at_random(place, sink, chance) for _ in range(MORE)]
    if not any(ended):
        finish(place, sink)
    found = read(place / "results" / "out")
    assert multiset(found) == multiset(expected.results["out"].to_pylist())
    assert list((place / "results" / "out" / "_unfinished").iterdir()) == []
    assert not list((place / "checkpoint" / "heads").rglob("*.state.*"))
