"""SIGKILL of a real process that has a journal before lines of TCP (``OOP_ENGINE_KILLS``: how often)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from oop_engine.testing import multiset
from tests.children import started

KILLS = int(os.environ.get("OOP_ENGINE_KILLS", "1"))
ROWS = 1_500


def rows_of(random: Random) -> list[dict[str, Any]]:
    return [{"ts": n // 5 - random.randint(0, 8), "key": random.choice("xyz"), "n": n} for n in range(ROWS)]


def expected(rows: list[dict[str, Any]]) -> object:
    windows: dict[tuple[int, str], list[int]] = {}
    for row in rows:
        windows.setdefault((row["ts"] // 20, row["key"]), []).append(row["n"])
    return multiset(
        {"key": key, "window_start": at * 20, "window_end": at * 20 + 20, "rows": len(n), "sum": sum(n)}
        for (at, key), n in windows.items()
    )


def begun(process: subprocess.Popen[str], kept: int) -> tuple[int, int]:
    """Return the port of a process, and the last row that its journal has."""
    assert process.stdout is not None
    for line in process.stdout:
        word, number = line.split()
        if word == "port":
            return int(number), kept
        kept = max(kept, int(number))
    raise AssertionError(process.communicate()[1])


def sent(
    process: subprocess.Popen[str], port: int, rows: list[dict[str, Any]], random: Random, last: int
) -> int:
    """Send rows as lines until the row ``last`` is in the journal, and a few more; return the last."""
    assert process.stdout is not None
    with socket.create_connection(("127.0.0.1", port)) as connection:
        at = kept = rows[0]["n"] - 1
        while kept < last:
            few = rows[at + 1 - rows[0]["n"] :][: random.randint(1, 60)]
            connection.sendall(b"".join(json.dumps(row).encode() + b"\n" for row in few))
            at += len(few)
            while kept < at and (line := process.stdout.readline()):
                kept = int(line.split()[1])
        more = rows[at + 1 - rows[0]["n"] :][:20]
        connection.sendall(b"".join(json.dumps(row).encode() + b"\n" for row in more))
        return kept


@pytest.mark.slow
def test_the_service_goes_on_to_the_last_row_that_was_accepted(tmp_path: Path) -> None:
    random, kept = Random(KILLS), -1
    rows = rows_of(random)
    command = [
        sys.executable,
        "-m",
        "tests.parts.connectors.journaled_service",
        str(tmp_path),
        str(ROWS - 1),
    ]
    for kill in range(KILLS):
        with started(command) as process:
            port, there = begun(process, -1)
            assert there in (-1, *range(kept, ROWS))  # -1: a checkpoint has all of them
            kept = max(kept, there)
            kept = sent(process, port, rows[kept + 1 :], random, (kill + 1) * ROWS // (KILLS + 2))
            process.kill()
            assert process.stdout is not None  # a row is told of before a checkpoint has it
            kept = max([kept, *(int(line.split()[1]) for line in process.stdout.read().splitlines())])
    with started(command) as process:
        port, there = begun(process, -1)
        kept = max(kept, there)
        sent(process, port, rows[kept + 1 :], random, ROWS - 1)
        _, problems = process.communicate()
        assert process.returncode == 0, problems
    assert multiset(pq.ParquetDataset(tmp_path / "out").read().to_pylist()) == expected(rows)
