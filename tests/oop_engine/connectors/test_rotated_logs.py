"""A tail under a simulated logrotate: each line comes once (``make rotations``: many more histories)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import FileTail, Schema
from oop_engine.connectors.source import Position
from oop_engine.core.page import Page
from oop_engine.service.dead_letters import DeadLetters
from oop_engine.service.letters.record_reader import RecordReader
from tests.simulation.rotated_log import check

_ONCE_BROKEN = [29, 1114, 1173, 2205, 2749, 2764, 2996, 3062, 3136, 3576, 4132, 7361]
"""Histories in which files were taken for others: read to byte 0, compressed too early, cut before a look."""


@pytest.mark.parametrize(
    "seeds",
    [range(1000, 1100), range(1100, 1200), range(1200, 1300), _ONCE_BROKEN],
    ids=lambda seeds: seeds[0],
)
def test_each_line_comes_once_across_rotations_and_restarts(seeds: list[int]) -> None:
    for seed in seeds:
        try:
            check(seed)
        except Exception as error:
            pytest.fail(f"seed {seed}: FROM={seed} make rotations HISTORIES=1: {error!r}")


@dataclass
class Checkpointed:
    """A position on its way into a checkpoint."""

    position: Position


class Reading:
    """One life of a source: rows of a log of CSV, and the position behind them."""

    def __init__(self, log: Path, position: Position = None) -> None:
        self.position, self.letters = position, DeadLetters(lambda: 0, kept=True)
        source = FileTail(log, "csv", follow=False)
        schema = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")
        reader = RecordReader("in", source, schema, self.letters)
        if position is not None:
            reader.begin()
        self.rows = [row for page in asyncio.run(self._read(source, reader)) for row in self._of(page)]

    @staticmethod
    def _of(page: Any) -> Iterator[tuple[int, int]]:
        assert isinstance(page, Page)
        yield from zip(page.columns["ts"].tolist(), page.columns["v"].tolist(), strict=True)

    async def _read(self, source: FileTail, reader: RecordReader) -> list[Any]:
        found = []
        async for data, behind in source.read(self.position):
            found += reader.messages([(data, self.position, behind)])
            self.position = asdict(Checkpointed(behind))["position"]
        return found


@pytest.mark.parametrize("path_exists", [True, False])
def test_rows_are_read_by_the_header_of_their_file(tmp_path: Path, path_exists: bool) -> None:
    log, old = tmp_path / "log.csv", tmp_path / "log.csv.1"
    log.write_bytes(b"v,ts\n500,1\n")
    first = Reading(log)
    with log.open("ab") as file:
        file.write(b"600,2\n")
    log.rename(old)
    if path_exists:
        log.write_bytes(b"ts,v\n3,700\n")
    second = Reading(log, first.position)
    if not path_exists:
        log.write_bytes(b"ts,v\n3,700\n")
    with old.open("ab") as file:  # a late writer
        file.write(b"800,4\n")
    with log.open("ab") as file:
        file.write(b"5,900\n")
    third = Reading(log, second.position)
    rows = first.rows + second.rows + third.rows
    assert sorted(rows) == [(1, 500), (2, 600), (3, 700), (4, 800), (5, 900)]
    assert [each.letters.counts for each in (first, second, third)] == [{"in": {}}] * 3
