"""Times more than 1,000 years apart, or from now: said once, by ``run``, ``serve`` and ``profile``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from oop_engine import Graph, Schema, replay, run, serve
from oop_engine.cli.app import app
from oop_engine.runners.event_loop import run_async
from oop_engine.runners.feeds.far_times import far_times
from oop_engine.sinks import Gathered

NOW_MS = 1_772_355_600_000
SECONDS = Schema({"ts": pa.int64()}, "ts", "s")


def graph(schema: Schema = SECONDS) -> Graph:
    made = Graph("g")
    made.sink("out", made.source("log", schema))
    return made


async def served(rows: list[dict[str, int]]) -> None:
    await serve(graph(), {"log": iter(rows)}, {"out": Gathered()})


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([NOW_MS, NOW_MS + 1], "are more than 1,000 years from now"),
        ([NOW_MS // 1000, 200_000_000_000], "are more than 1,000 years apart (from 2026-03-01T09:00:00Z to "),
        ([-40_000_000_000], "are more than 1,000 years from now"),
        ([NOW_MS // 1000, 0, 300], ""),
    ],
)
def test_times_that_are_too_far_are_logged_once(
    rows: list[int], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    given: list[dict[str, int]] = [{"ts": ts} for ts in rows]
    runs: list[Any] = [
        lambda: replay(graph(), {"log": given}),
        lambda: run(graph(), {"log": given * 3}, on="local"),
        lambda: run_async(served(given)),
    ]
    for each in runs:
        caplog.clear()
        each()
        lines = [line for line in caplog.messages if "1,000 years" in line]
        assert len(lines) == bool(words)
        assert all(words in line and "graph 'g', source 'log': times of 'ts'" in line for line in lines)


def test_the_unit_that_was_meant_is_named() -> None:
    assert str(far_times(SECONDS, NOW_MS, NOW_MS)).endswith(": declare unit='ms'?")
    micro = Schema({"ts": pa.int64()}, "ts", "ms")
    assert str(far_times(micro, NOW_MS * 1000, NOW_MS * 1000)).endswith(": declare unit='us'?")
    stamps = Schema({"ts": pa.timestamp("s")}, "ts")
    assert str(far_times(stamps, 200_000_000_000, 200_000_000_000)).endswith(": is the clock right?")
    assert far_times(Schema({"ts": pa.int64()}, "ts", "rows"), -(2**60), 2**60) is None


def test_profile_has_it_among_its_notes(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"ts,v\n{NOW_MS},1\n")
    for options in ([], ["--json"]):
        done = CliRunner().invoke(app, ["profile", str(path), "--time", "ts", "--unit", "s", *options])
        assert done.output.count("1,000 years from now") == 1
