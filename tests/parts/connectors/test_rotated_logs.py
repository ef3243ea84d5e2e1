"""A tail under a simulated logrotate: each line comes once (``make rotations``: many more histories)."""

from __future__ import annotations

import asyncio
import bz2
import errno
import lzma
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Schema
from oop_engine.connectors.by_name import source_of
from oop_engine.connectors.source import Position
from oop_engine.connectors.tailing.tail import LogTail
from oop_engine.core.page import Page
from oop_engine.errors import TraceError
from oop_engine.service.dead_letters import DeadLetters
from oop_engine.service.letters.record_reader import RecordReader
from oop_engine.sources import FileTail
from tests.simulation.rotated_log import check

_ONCE_BROKEN = [
    29,
    1114,
    1173,
    2205,
    2749,
    2764,
    2996,
    3062,
    3136,
    3576,
    4132,
    7361,
    20787,
    41812,
    54418,
    54836,
    55602,
    112976,
    41866,
    50608,
]
"""Histories in which files were taken for others: read to byte 0, compressed too early, cut before a look."""


_SEEDS = range(1000, 1100)
"""Two thirds of these take every branch that 300 take; more of them find rare orders alone (``make rotations``)."""


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [_SEEDS, _ONCE_BROKEN], ids=lambda seeds: seeds[0])
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


def test_a_late_row_is_read_by_the_last_names_of_its_file(tmp_path: Path) -> None:
    log, schema = tmp_path / "log.csv", Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")
    log.write_bytes(b"v,ts\n100,1\nts,v\n2,200\n")
    source = FileTail(log, "csv", every_s=0)
    letters = DeadLetters(lambda: 0, kept=True)

    async def read() -> list[Any]:
        found, position, headers = [], None, []
        for step in range(3):  # lives of a service
            reader = RecordReader("in", source, schema, letters)
            if position is not None:
                reader.begin(headers)
            async for data, behind in source.read(position):
                found += reader.messages([(data, position, behind)])
                position, headers = list(behind), reader.headers
                if step == 0:
                    log.rename(tmp_path / "log.csv.1")
                    log.write_bytes(b"v,ts\n300,3\n")
                    step = 1
                elif step == 1 and len(found) == 3:
                    with (tmp_path / "log.csv.1").open("ab") as late:
                        late.write(b"4,400\n")
                    break
                elif len(found) == 4:
                    return found
        return found

    rows = [row for page in asyncio.run(read()) for row in Reading._of(page)]
    assert sorted(rows) == [(1, 100), (2, 200), (3, 300), (4, 400)]


def taken(tail: LogTail) -> tuple[bytes, Any]:
    """Return all lines that a tail has now, and the position behind them."""
    found = b""
    while (piece := tail.step()) is not None:
        found += piece[0]
    return found, tail.position


def tail_of(log: Path, position: Any, warnings: list[str]) -> LogTail:
    return LogTail(
        log, position, follow=True, skip_lost=False, warn=warnings.append, refuse=lambda reason, record: None
    )


@pytest.mark.parametrize("restarted", [False, True])
def test_a_file_between_is_read_though_the_one_before_was_written_later(
    tmp_path: Path, restarted: bool
) -> None:
    log, first, second = tmp_path / "log", tmp_path / "log.2", tmp_path / "log.1"
    warnings = list[str]()
    log.write_bytes(b"one\n")
    tail = tail_of(log, None, warnings)
    assert taken(tail)[0] == b"one\n"
    log.rename(first)
    second.write_bytes(b"two\n")  # was at the path meanwhile
    with first.open("ab") as late:
        late.write(b"late\n")
    for at, path in enumerate((second, first), 1):
        os.utime(path, ns=(os.stat(path).st_mtime_ns + at * 10**9,) * 2)
    lines, position = taken(tail)
    assert lines == b"late\n"
    if restarted:
        tail.close()
        tail = tail_of(log, position, warnings)
    log.write_bytes(b"three\n")
    with closing(tail):
        assert sorted(taken(tail)[0].split()) == [b"three", b"two"]
    assert warnings == []


@pytest.mark.parametrize(("suffix", "pack"), [(".bz2", bz2.compress), (".xz", lzma.compress)])
def test_the_rest_of_a_rotated_file_is_read_from_its_compressed_form(
    tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    log, warnings = tmp_path / "log", list[str]()
    log.write_bytes(b"one\n")
    with closing(tail_of(log, None, warnings)) as tail:
        lines, position = taken(tail)
    assert lines == b"one\n"
    with log.open("ab") as file:
        file.write(b"two\n")
    log.rename(tmp_path / "kept")  # so that no other file has its inode
    (tmp_path / f"log.1{suffix}").write_bytes(pack(b"one\ntwo\n"))
    (tmp_path / "kept").rename(tmp_path.with_name(f"{tmp_path.name}-kept"))
    log.write_bytes(b"three\n")
    with closing(tail_of(log, position, warnings)) as tail:
        assert taken(tail)[0] == b"two\nthree\n"
    assert warnings == []


def test_an_empty_log_that_is_cut_again_without_a_copy_is_named(tmp_path: Path) -> None:
    log, warnings = tmp_path / "log", list[str]()
    log.touch()
    with closing(tail_of(log, None, warnings)) as tail:
        _, position = taken(tail)
        log.write_bytes(b"one\n")
        os.truncate(log, 0)
        os.utime(log, ns=(1, 1))
        tail.step()
        tail.step()
    assert ["cut again" in line for line in warnings] == [True]
    with closing(tail_of(log, position, warnings)) as tail:
        taken(tail)
    assert len(warnings) == 2  # the position has the time before the cut


def test_an_empty_log_with_a_copy_that_is_empty_too_is_no_warning(tmp_path: Path) -> None:
    log, warnings = tmp_path / "log", list[str]()
    log.touch()
    os.utime(log, ns=(1, 1))
    with closing(tail_of(log, None, warnings)) as tail:
        taken(tail)
        (tmp_path / "log.1").touch()
        os.truncate(log, 0)
        tail.step()
    assert warnings == []


def test_files_after_a_line_of_names_are_read_though_the_log_begins_with_it_again(tmp_path: Path) -> None:
    log, warnings = tmp_path / "log", list[str]()
    log.write_bytes(b"n,m\n")
    os.utime(log, ns=(1, 1))
    with closing(tail_of(log, None, warnings)) as tail:
        _, position = taken(tail)
    (tmp_path / "log.1").write_bytes(
        b"m,n\n1,2\n"
    )  # of two copies the first one, with the same names, is gone
    with log.open("ab") as file:
        file.write(b"3,4\n")
    with closing(tail_of(log, position, warnings)) as tail:
        assert taken(tail)[0] == b"m,n\n1,2\n3,4\n"
    assert ["log.1 was written after that" in line for line in warnings] == [True]


def test_a_symbolic_link_to_another_file_is_a_rotation(tmp_path: Path) -> None:
    log, warnings = tmp_path / "log", list[str]()
    files = [tmp_path / f"log-{day}.txt" for day in range(1, 4)]
    for file, lines in zip(files, (b"one\n", b"two\n", b"three\n"), strict=True):
        file.write_bytes(lines)
        os.utime(file, ns=(int(file.stem[-1]) * 10**9,) * 2)
    log.symlink_to(files[0])
    with closing(tail_of(log, None, warnings)) as tail:
        assert taken(tail)[0] == b"one\n"
        log.unlink()
        log.symlink_to(files[2])  # twice, between two looks
        assert taken(tail)[0] == b"two\nthree\n"
    assert warnings == []


def test_a_file_that_cannot_be_opened_is_waited_for_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, warnings, may = tmp_path / "log", list[str](), Path.open
    log.write_bytes(b"one\n")
    with closing(tail_of(log, None, warnings)) as tail:
        assert taken(tail)[0] == b"one\n"
        with log.open("ab") as file:
            file.write(b"two\n")
        log.rename(tmp_path / "log.1")
        log.write_bytes(b"three\n")

        def refused(path: Path, *given: Any, **options: Any) -> Any:
            if path == log:
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return may(path, *given, **options)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", refused)
            assert taken(tail)[0] == b"two\n"  # of the file that is open
            assert taken(tail)[0] == b""
        assert warnings == [f"{log}: cannot be read (Permission denied): waiting until it can"]
        assert taken(tail)[0] == b"three\n"
    assert len(warnings) == 1


def test_skip_lost_is_an_option_of_the_address(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log, schema = tmp_path / "log", Schema({"ts": pa.int64()}, "ts", "s")
    log.write_bytes(b"one\ntwo\n")
    with closing(tail_of(log, None, [])) as tail:
        _, position = taken(tail)
    log.write_bytes(b"new\n")

    async def found(address: str) -> list[bytes]:
        return [lines async for lines, _ in source_of(address, schema).read(position)]

    with pytest.raises(TraceError, match=r"continue without the lost lines \(skip_lost=True, "):
        asyncio.run(found(f"tail:{log}?follow=no"))
    assert asyncio.run(found(f"tail:{log}?follow=no&skip_lost=yes")) == [b"new\n"]
    [line] = caplog.messages
    assert "was read to byte 8 and has 4: it was cut: lines" in line
