"""Rows of a file that grows: results, late rows and counts do not depend on how many rows are read at a time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import Graph, Page, Schema, replay, run, serve, write_trace
from oop_engine.connectors.tailing.tail import LogTail
from oop_engine.extend import Windows
from oop_engine.operators import (
    BoundedDisorder,
    Count,
    Late,
    PerGroup,
    Punctuate,
    Session,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.runners.local import Local
from oop_engine.sources import FileTail, GrowingFolder
from oop_engine.windows import LastRows

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
FEW, MANY = 400, 110_000  # rows
SIZES = [(FEW, size) for size in (1, 7, 300)] + [(MANY, size) for size in (1000, 8192, 100_000)]
Found = dict[str, Counter[str]]


def page_of(rows: int) -> Page:
    draw = np.random.default_rng(rows)
    times = np.arange(rows) // 4 - draw.integers(0, 40, rows) - 500 * (draw.random(rows) < 0.01)
    keys = [f"k{key}" for key in draw.integers(0, 9, rows)]
    return Page.of(SCHEMA, {"ts": times, "k": keys, "v": draw.integers(0, 100, rows)})


def graph() -> Graph:
    made = Graph("cuts")
    policy = PerGroup(BoundedDisorder(30), by=("k",), linear=BoundedDisorder(60))
    edge = made.add("edge", Punctuate(policy, late=Late.DIVERT), made.source("in", SCHEMA))
    asked = {"n": Count(), "s": Sum("v")}
    windows: dict[str, Windows] = {"ten": Tumbling(10), "session": Session(3), "last": LastRows(3, 20)}
    for name, one in windows.items():
        made.sink(name, made.add(f"by-{name}", WindowAggregate(one, asked, by=("k",)), edge["out"]))
    made.sink("late", edge["late"])
    return made


def counted(results: dict[str, pa.Table]) -> Found:
    return {name: Counter(map(repr, table.to_pylist())) for name, table in results.items()}


def in_one_page(rows: int) -> tuple[Found, int]:
    outcome = run(graph(), {"in": [page_of(rows)]})
    return counted(outcome.results), outcome.statistics.late.total


class Grows:
    """A log to which so many lines are added before each look."""

    def __init__(self, path: Path, lines: list[bytes], size: int) -> None:
        self.path, self.lines, self.size, self.at = path, lines, size, 0

    def before(self, step: Callable[[], Any]) -> Any:
        with self.path.open("ab") as file:
            file.write(b"".join(self.lines[self.at : self.at + self.size]))
        self.at += self.size
        return step()


def growing(grows: Grows, monkeypatch: pytest.MonkeyPatch) -> FileTail:
    step = LogTail.step
    monkeypatch.setattr(LogTail, "step", lambda tail: grows.before(partial(step, tail)))
    grows.path.touch()
    return FileTail(grows.path, follow=False, every_s=0)


def lines_of(page: Page, suffix: str) -> list[bytes]:
    rows = page.to_pylist()
    if suffix == "jsonl":
        return [json.dumps(row).encode() + b"\n" for row in rows]
    return [b"ts,k,v\n", *(f"{row['ts']},{row['k']},{row['v']}\n".encode() for row in rows)]


async def served(source: Any) -> tuple[Found, int, int]:
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in ("ten", "session", "last", "late")}

    def taking(name: str) -> Callable[[Page], None]:
        return lambda page: found[name].extend(page.to_pylist())

    sinks = {name: taking(name) for name in found}
    ran = await serve(graph(), {"in": source}, sinks, signals=False, progress_every_s=None)
    rows = {name: Counter(map(repr, some)) for name, some in found.items()}
    return rows, ran.statistics.late.total, ran.tuples["in"]


@pytest.mark.slow(keep=2)
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
@pytest.mark.parametrize(("rows", "size"), SIZES)
async def test_a_log_that_grows_by_any_number_of_lines(
    rows: int, size: int, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = page_of(rows)
    grows = Grows(tmp_path / f"log.{suffix}", lines_of(page, suffix), size)
    found, late, came = await served(growing(grows, monkeypatch))
    assert (found, late) == in_one_page(rows)
    assert came == rows
    assert late == found["late"].total() > 0


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(("rows", "size"), SIZES[1:])
async def test_files_of_parquet_of_any_number_of_rows(rows: int, size: int, tmp_path: Path) -> None:
    page = page_of(rows)
    for number, at in enumerate(range(0, rows, size)):
        write_trace(tmp_path / f"{number:05}.parquet", SCHEMA, [page.slice(at, min(at + size, rows))])
    found, late, came = await served(GrowingFolder(tmp_path, SCHEMA, follow=False))
    assert (found, late) == in_one_page(rows)
    assert came == rows


@pytest.mark.slow(keep=2)
@pytest.mark.parametrize(("rows", "size"), SIZES)
@pytest.mark.parametrize("runner", [run, replay])
def test_pages_of_any_number_of_rows(rows: int, size: int, runner: Any) -> None:
    page = page_of(rows)
    outcome = runner(graph(), {"in": [page.slice(at, min(at + size, rows)) for at in range(0, rows, size)]})
    assert (counted(outcome.results), outcome.statistics.late.total) == in_one_page(rows)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(("rows", "size"), SIZES)
async def test_pages_of_any_number_of_rows_that_are_pushed(rows: int, size: int) -> None:
    page, found = page_of(rows), dict[str, Counter[str]]()

    def take(result: Any) -> None:
        if isinstance(result.message, Page):
            found.setdefault(result.sink, Counter()).update(map(repr, result.message.to_pylist()))

    async with Local(graph(), take) as local:
        for at in range(0, rows, size):
            await local.push("in", page.slice(at, min(at + size, rows)))
    assert found == in_one_page(rows)[0]
