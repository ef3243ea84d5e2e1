"""SIGKILL of real processes over files: the results are those of a run without (``OOP_ENGINE_KILLS``: how many)."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from random import Random
from subprocess import TimeoutExpired
from typing import Any

import pyarrow.parquet as pq
import pytest

from oop_engine.testing import multiset
from tests.children import started
from tests.parts.service.killed_service import LOGS

KILLS = int(os.environ.get("OOP_ENGINE_KILLS", "1"))
ROWS = 3_000
OVER = "its streams have ended, and all results are out"
"""What a service is told that begins where one had come to its end before it was killed."""


def written(folder: Path, random: Random) -> list[dict[str, Any]]:
    """Write the logs, and return their rows."""
    found = []
    for name in LOGS:
        rows = [
            {"ts": ts // 5 - random.randint(0, 8), "key": random.choice("xyz"), "n": random.randint(0, 9)}
            for ts in range(ROWS)
        ]
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        found += rows
    return found


def expected(rows: list[dict[str, Any]]) -> object:
    windows: dict[tuple[int, str], list[int]] = {}
    for row in rows:
        windows.setdefault((row["ts"] // 20, row["key"]), []).append(row["n"])
    return multiset(
        {"key": key, "window_start": at * 20, "window_end": at * 20 + 20, "rows": len(n), "sum": sum(n)}
        for (at, key), n in windows.items()
    )


def killed_and_ended(folder: Path, random: Random, *options: str) -> None:
    """Kill a service again and again, a moment after some of its lines; then let it come to its end."""
    command = [sys.executable, "-m", "tests.parts.service.killed_service", str(folder), *options]
    for _ in range(KILLS):
        with started(command) as process:
            assert process.stdout is not None
            for _ in range(random.randint(1, 5)):
                process.stdout.readline()
            with suppress(TimeoutExpired):
                process.wait(random.choice([0, random.uniform(0, 0.03)]))
            process.kill()
    with started(command) as process:
        _, problems = process.communicate()
        assert process.returncode == 0 or OVER in problems, problems


@pytest.mark.slow
def test_results_are_those_without_a_kill(tmp_path: Path) -> None:
    random = Random(KILLS)
    rows = written(tmp_path, random)
    killed_and_ended(tmp_path, random)
    assert multiset(pq.ParquetDataset(tmp_path / "out").read().to_pylist()) == expected(rows)


@pytest.mark.slow
def test_a_merged_table_is_that_without_a_kill(tmp_path: Path) -> None:
    """Its net content: each row is there once, and none that was taken back."""
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed (the extra delta)")
    random = Random(KILLS)
    rows = written(tmp_path, random)
    killed_and_ended(tmp_path, random, "delta")
    table = deltalake.DeltaTable(str(tmp_path / "out")).to_pyarrow_table()
    assert multiset(
        table.select(["key", "window_start", "window_end", "rows", "sum"]).to_pylist()
    ) == expected(rows)
    assert not list((tmp_path / "out").glob(".*.parquet"))
