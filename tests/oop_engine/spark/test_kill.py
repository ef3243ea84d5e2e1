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

from oop_engine import replay
from oop_engine.testing import multiset
from oop_engine.traces import write_trace
from tests.oop_engine.spark.killed_query import SCHEMA, SEGMENTS, graph, pages
from tests.oop_engine.spark.processes import Running

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes as Linux has them"),
]

MODULE = "tests.oop_engine.spark.killed_query"
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
        assert running.wait(120) == -9, running.log.read_text()
        assert running.left_after(30) == []


def finished(place: Path, sink: str) -> int:
    """Start it, let it finish, and return how many micro-batches that took."""
    with Running(MODULE, str(place), sink, "", log=place / "log") as running:
        batches = running.lines(SEGMENTS)
        assert running.wait(60) == 0, running.log.read_text()
        assert running.left_after(10) == []
        return len(batches)


@pytest.mark.parametrize(
    ("sink", "read", "commits", "at_random"),
    [("parquet", blind, ["middle:1"], MORE), ("delta", from_log, ["after:1"], MORE)],
    ids=["parquet", "delta"],
)
def test_results_are_those_of_an_undisturbed_run(
    sink: str, read: Callable[[Path], Rows], commits: list[str], at_random: int, tmp_path: Path
) -> None:
    place = prepared(tmp_path)
    expected = replay(graph(), {name: iter(pages(seed)) for name, seed in (("left", 1), ("right", 2))})
    for dies in commits:
        killed_by_itself(place, sink, dies)
    chance = random.Random(len(sink))
    ended = [killed_at_random(place, sink, chance) for _ in range(at_random)]
    assert any(ended) or finished(place, sink) > 0
    found = read(place / "results" / "out")
    assert multiset(found) == multiset(expected.results["out"].to_pylist())
    assert list((place / "results" / "out" / "_unfinished").iterdir()) == []
    assert not list((place / "checkpoint" / "heads").rglob("*.state.*"))
