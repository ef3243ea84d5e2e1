"""The line of progress of a run over files: rows a second, the bound, and the time that is left."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

from oop_engine import Schema, open_trace
from oop_engine.cli import output
from oop_engine.cli.running import at_rest
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Linear
from oop_engine.traces.table_writing import write_table

ROWS = 100_000
SCHEMA = Schema({"ts": pa.int64(), "text": pa.string()}, "ts", "s")


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "arrow"])
def test_the_part_that_is_read_grows_to_the_whole(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    write_table(path, pa.table({"ts": range(ROWS), "text": [f"text number {i}" for i in range(ROWS)]}))
    trace = open_trace(path, SCHEMA, page_rows=20_000)
    shares = [trace.share or 0.0 for message in trace if isinstance(message, Page)]
    assert shares == sorted(shares)
    assert 0 < shares[0] <= shares[-1] == 1
    assert suffix == "arrow" or shares[0] < 1  # which is written as one batch


def test_of_a_compressed_file_no_part_is_known(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    write_table(path, pa.table({"ts": [1], "text": ["a"]}))
    trace = open_trace(path, SCHEMA)
    assert [trace.share for _ in trace] == [None]


def test_the_line_has_rows_a_second_the_bound_and_the_time_left() -> None:
    fields = {"tuples": 3000, "bound": "2026-01-01T00:00:00Z"}
    assert output._pace(fields, 3.0, 1.0, 0.75) == (
        "3,000 tuples, 1,000/s, 1 s left, bound 2026-01-01T00:00:00Z"
    )
    assert output._pace({"tuples": 10, "bound": ""}, None, None, 0) == "10 tuples, 100/s"


def test_a_run_shows_the_bound_of_its_results(tmp_path: Path) -> None:
    class Line(output.ProgressLine):
        bounds: ClassVar[list[str]] = []

        def on_bound(self, bound: str) -> None:
            self.bounds.append(bound)

    shown = at_rest._BoundShown(Line(), "out", SCHEMA)
    shown.passed(None, "elsewhere", Linear(5), 0)  # type: ignore[arg-type]
    shown.passed(None, "out", Linear(1_767_225_600), 0)  # type: ignore[arg-type]
    assert Line.bounds in (["2026-01-01T00:00:00Z"], ["1767225600"])


def test_several_files_are_as_far_as_the_one_that_has_the_least() -> None:
    class Progress:
        seen: ClassVar[list[dict[str, float]]] = []

        def add_task(self, *_: object, **__: object) -> int:
            return 0

        def update(self, _: int, **fields: float) -> None:
            self.seen.append(fields)

    line = output.ProgressLine(Progress())
    for name, share in (("a", 0.5), ("b", 0.25), ("b", None)):
        line.on_share(name, share)
    assert [each["completed"] for each in Progress.seen] == [0.5, 0.25]


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_shows_all_of_the_line(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    with output.watching() as line:
        line.on_run("graph.py", 0, 1)
        line.on_tuples(53_000_000)
        line.on_bound("2026-01-01T00:00:00Z")
        line.on_share("a", 0.5)
        line._progress.refresh()
    assert re.search(r"53,000,000 tuples, [0-9,]+/s, 0 s left, bound 2026-01-01T00:00:00Z", stderr.getvalue())
