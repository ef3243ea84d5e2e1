"""A log under a simulated logrotate, and a tail that is stopped and started again: ``make rotations HISTORIES=10000``.

A history has a seed.  It draws how the log is rotated (renamed or copied and cut; numbers or dates; compressed at once,
later, or never; how many files stay; whether a new file is made at once), and then acts: lines and halves of lines, the
steps of a rotation, a writer that opens the new file late, looks of the tail, checkpoints, restarts.  Nothing sleeps;
files are written at moments of a clock of its own.

The law: each line comes once.  One may be missing only if its file was removed before a checkpoint had it, and a
warning has told then; where nothing was removed, there is none.  A part of a line is told of, too.  Each file is CSV
and begins with a line of names, in one order or the other; some have another one below.  Each row is read by its names.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine.connectors.source import LiveSource
from oop_engine.connectors.tailing.tail import LogTail
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.service.dead_letters import DeadLetters
from oop_engine.service.letters.record_reader import RecordReader

__all__ = ["History"]

_SECOND = 10**9


_NAMES = (b"n,m,p;", b"m,n,p;")
"""The columns in both orders: the number of a row, thrice that and one, and some text which ends with a semicolon."""
_NAMED = len(_NAMES[0]) + 1
"""Bytes of a line of names: a file that begins with it may be any of the log."""
_ROW = re.compile(rb"(\d+),(\d+),x*;")
_SCHEMA = Schema({"n": pa.int64(), "m": pa.int64(), "p;": pa.string()}, "n", "rows")


def _numbers(lines: Iterable[bytes]) -> list[int]:
    """Return the numbers of whole rows; the rest of a row whose beginning is lost is none."""
    pairs = [sorted(map(int, found.groups())) for line in lines if (found := _ROW.fullmatch(line))]
    return [number for number, check in pairs if check == 3 * number + 1]


class _Log(LiveSource):
    """The log as a source of rows; positions have the file that has the data before them."""

    format, by_lines, is_file = "csv", True, True

    def file_above(self, before: Any, behind: Any) -> tuple[str, bytes]:
        file: tuple[str, bytes] = behind
        return file


def _rows(page: Any) -> list[dict[str, Any]]:
    assert isinstance(page, Page)
    return page.to_pylist()


class History:
    """The history of ``seed`` in ``folder``; ``run`` raises ``AssertionError`` where the law is broken."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = pick = random.Random(seed)
        self.log = folder / "app.log"
        self.now = 1_700_000_000
        self.copied = pick.random() < 0.35
        self.dated = pick.random() < 0.4
        self.compress = pick.choice(["", "", "at once", "delayed"])
        self.suffix = pick.choice([".gz", ".gz", ".zst"])
        self.keep = pick.choice([1, 2, 3, 6, 50])
        self.creates = pick.random() < 0.7
        self.lateness = pick.choice([0, 0, 3, 8])
        self.written = 0
        self.orders, self.order = random.Random(f"orders {seed}"), 0  # apart: histories stay what they were
        self.slow = -1  # of another program, which writes to a rotated file for a while
        self.order_of: dict[int, int] = {}  # of the columns that were named last, by inode
        self.headers: list[str] = []  # that the checkpoint has
        self.reader: RecordReader | None = None
        self.half, self.rest, self.half_for = b"", b"", 0
        self.dates = 20_260_000
        self.rotation: Iterator[None] | None = None
        self.late = 0
        self.removed = False
        self.may_be_lost: set[bytes] = set()
        self.unseen: set[int] = set()
        self.sizes: dict[int, int] = {}  # of all files, by inode, at the last look
        self.warnings: list[str] = []
        self.position: Any = None  # of the checkpoint
        self.kept: list[bytes] = []  # that the checkpoint has
        self.fresh: list[bytes] = []  # that came since
        self.tail: LogTail | None = None
        self.writer = -1
        if pick.random() < 0.8:
            self._open()
            if pick.random() < 0.8:
                self._write()

    # The writer.

    def _open(self) -> None:
        if self.writer >= 0:
            os.close(self.writer)
        self._tick()
        made = not self.log.exists()  # a file that is there keeps its time
        self.writer = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        if made:
            os.utime(self.writer, ns=(self.now * _SECOND, self.now * _SECOND))

    def _tick(self) -> int:
        self.now += 2
        return self.now * _SECOND

    def _append(self, content: bytes) -> None:
        if self._put(self.writer, content):
            self._lose_unseen((self.half + content + self.rest).splitlines())

    def _put(self, file: int, content: bytes) -> bool:
        """Append to a file; return whether it has no name any more."""
        os.write(file, content)
        os.utime(file, ns=(self._tick(), self.now * _SECOND))
        gone = os.fstat(file).st_nlink == 0
        self.removed = self.removed or gone
        return gone

    def _write_slowly(self) -> None:
        """Append a row to the rotated file that another program has open still."""
        inode = os.fstat(self.slow).st_ino if self.slow >= 0 else 0
        if inode in self.order_of and inode != os.fstat(self.writer).st_ino:
            row = self._row(self.order_of[inode])
            if self._put(self.slow, row):
                self._lose_unseen([row.rstrip()])

    def _row(self, order: int) -> bytes:
        self.written += 1
        more = b"x" * self.random.choice([0, 3, 40, 300])
        first, second = (self.written, 3 * self.written + 1)[:: -1 if order else 1]
        return b"%d,%d,%s;\n" % (first, second, more)

    def _close_slow(self) -> None:
        if self.slow >= 0:
            os.close(self.slow)
        self.slow = -1

    def _lose_unseen(self, lines: list[bytes]) -> None:
        """Note lines that are in no file with a name: without an open file, a tail cannot know of them."""
        self.may_be_lost.update(lines)
        self.unseen.update(_numbers(lines))

    def _write(self) -> None:
        if self.writer < 0:
            self._open()
        self._complete()
        lines = b""
        if os.fstat(self.writer).st_size == 0 or self.orders.random() < 0.1:
            self.order = self.order_of[os.fstat(self.writer).st_ino] = self.orders.randrange(2)
            lines = _NAMES[self.order] + b"\n"
        for _ in range(self.random.choice([1, 1, 2, 5, 30])):
            lines += self._row(self.order)
        cut = len(lines)
        if self.random.random() < 0.25:
            cut = self.random.randrange(lines.rfind(b"\n", 0, -1) + 1, len(lines))
        self._append(lines[:cut])
        self.half, self.rest, self.half_for = lines[lines.rfind(b"\n", 0, cut) + 1 : cut], lines[cut:], 0
        if not self.half:
            self._complete()
        if self.orders.random() < 0.5:
            self._write_slowly()

    def _complete(self) -> None:
        rest, self.rest = self.rest, b""
        if rest:
            self._append(rest)
        self.half = b""

    # logrotate.

    def _name(self, index: int) -> Path | None:
        for suffix in ("", self.suffix):
            if (path := self.log.with_name(f"{self.log.name}.{index}{suffix}")).exists():
                return path
        return None

    def _remove(self, path: Path) -> None:
        self.removed = True
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        elif path.suffix == ".zst":
            content = pa.input_stream(str(path), compression="zstd").read()
        lines = set(content.splitlines()) - set(self.kept)
        self.may_be_lost.update(lines)
        if self._no_row(self.position) or self.sizes.get(path.stat().st_ino) == 0:
            self.unseen.update(_numbers(lines))  # an empty file that is gone again tells nothing
        if self.copied and self.tail is not None and self._no_row(self.tail.position):
            self.unseen.update(_numbers(lines - set(self.fresh)))
        path.unlink()

    @staticmethod
    def _no_row(position: Any) -> bool:
        """Return whether no row of the newest file was read: no reader can tell how many files came after it."""
        return position is None or position[1] <= _NAMED

    def _rotate(self) -> Iterator[None]:
        """Rotate the log, as logrotate does, in steps between which others act."""
        if not self.log.exists() or (self.copied and self.half):
            return
        if self.late and self.random.random() < 0.7:
            self._reopen()
        if self.dated:
            self.dates += 1
            first = self.log.with_name(f"{self.log.name}-{self.dates}")
        else:
            first = self.log.with_name(f"{self.log.name}.1")
            if (oldest := self._name(self.keep)) is not None:
                self._remove(oldest)
                yield
            for index in range(self.keep - 1, 0, -1):
                if (path := self._name(index)) is not None:
                    suffix = self.suffix if path.suffix == self.suffix else ""
                    path.rename(self.log.with_name(f"{self.log.name}.{index + 1}{suffix}"))
                    yield
        if self.copied:
            self._complete()
            shutil.copyfile(self.log, first)
            os.utime(first, ns=(self._tick(), self.now * _SECOND))
            if self.random.random() < 0.3:
                yield
                if self.log.stat().st_size != first.stat().st_size:  # lost by logrotate, not by the tail
                    shutil.copyfile(self.log, first)
                    os.utime(first, ns=(self._tick(), self.now * _SECOND))
            self._complete()
            shutil.copyfile(self.log, first)
            os.truncate(self.log, 0)
            os.utime(first, ns=(self.now * _SECOND, self.now * _SECOND))
            os.utime(self.log, ns=(self._tick(), self.now * _SECOND))
        else:
            self._close_slow()
            if self.writer >= 0 and self.orders.random() < 0.3:
                self._complete()
                self.slow = os.dup(self.writer)
            self.log.rename(first)
            yield
            if self.creates:
                self._tick()
                if not self.log.exists():  # its writer may have made it
                    self.log.touch()
                    os.utime(self.log, ns=(self.now * _SECOND, self.now * _SECOND))
            self.late = self.random.randrange(self.lateness) + 1 if self.lateness else 0
            if not self.late:
                self._reopen()
        yield
        if self.compress:
            yield from self._compressed(first)
        if self.dated:
            names = sorted(self.log.parent.glob(f"{self.log.name}-*"))
            for path in names[: max(len(names) - self.keep, 0)]:
                self._remove(path)
                yield

    def _reopen(self) -> None:
        self.late = 0
        self._complete()
        self._open()

    def _compressed(self, first: Path) -> Iterator[None]:
        plain = first
        if self.compress == "delayed":
            names = [self.log.with_name(f"{self.log.name}-{self.dates - 1}")] if self.dated else []
            names = names or [self.log.with_name(f"{self.log.name}.2")]
            plain = names[0]
        if not plain.exists():
            return
        content, known = plain.read_bytes(), plain.stat()
        packed = plain.with_name(plain.name + self.suffix)
        if self.suffix == ".gz":
            packed.write_bytes(gzip.compress(content)[:-3])
            yield
            packed.write_bytes(gzip.compress(content))
        else:
            with pa.output_stream(str(packed), compression="zstd") as file:
                file.write(content)
        os.utime(packed, ns=(known.st_mtime_ns, known.st_mtime_ns // _SECOND * _SECOND))
        yield
        if len(plain.read_bytes()) > len(content) or plain.read_bytes()[-1:] not in {b"", b"\n"}:
            self.removed = True
            begun = content[: content.rfind(b"\n") + 1]
            self._lose_unseen((plain.read_bytes()[len(begun) :] + self.rest).splitlines())
        self.removed = self.removed or not content  # an empty file is in no other
        plain.unlink()
        yield

    # The tail.

    def _started(self) -> LogTail:
        if self.tail is None:
            position = json.loads(json.dumps(self.position))
            self.reader = RecordReader("log", _Log(), _SCHEMA, DeadLetters(lambda: 0, kept=True))
            self.reader.begin(self.headers)
            self.tail = LogTail(
                self.log,
                position,
                follow=True,
                skip_lost=True,
                warn=self.warnings.append,
                refuse=self._refused,
            )
            if position is None:  # as FileTail does: a position before the first line
                piece = self.tail.step()
                self._came(piece or (b"", self.tail.position))
                self._checkpoint()
        return self.tail

    def _refused(self, reason: str, record: str) -> None:
        raise AssertionError((reason, record))

    def _came(self, piece: tuple[bytes, Any]) -> None:
        lines = piece[0].splitlines()
        self.fresh += lines
        self.behind = piece[1]
        if lines:
            assert self.tail is not None
            self._read(piece[0], (str(self.tail.inode), self.tail.header), lines)

    def _read(self, data: bytes, file: tuple[str, bytes], lines: list[bytes]) -> None:
        """Read rows by the names that stand above them."""
        assert self.reader is not None
        rows = [row for page in self.reader.messages([(data, None, file)]) for row in _rows(page)]
        whole = [row["n"] for row in rows if (row["p;"] or "").endswith(";") and row["m"] == 3 * row["n"] + 1]
        assert sorted(whole) == sorted(_numbers(lines)), f"read by other names: {lines[:3]}"

    def _look(self) -> None:
        tail = self._started()
        for _ in range(self.random.choice([1, 1, 2, 4])):
            if (piece := tail.step()) is not None:
                self._came(piece)
        found = [path.stat() for path in self.log.parent.iterdir()]
        self.sizes = {each.st_ino: each.st_size for each in found}

    def _checkpoint(self) -> None:
        if self.tail is not None:
            self.position = self.behind
            self.kept += self.fresh
            self.headers = self.reader.headers if self.reader is not None else []
            self.fresh = []

    def _restart(self) -> None:
        if self.tail is not None:
            self.tail.close()
        self.tail, self.fresh, self.behind = None, [], self.position

    # All together.

    def run(self, acts: int) -> None:
        """Act so often, then read to the end, and compare."""
        self._started()
        try:
            for _ in range(acts):
                self._act()
            self._end()
        finally:
            self._restart()
            self._close_slow()
            if self.writer >= 0:
                os.close(self.writer)

    def _act(self) -> None:
        if self.half:
            self.half_for += 1
            if self.half_for > 3:
                self._complete()
        if self.late:
            self.late -= 1
            if not self.late:
                self._reopen()
        act = self.random.choices(
            [self._write, self._look, self._checkpoint, self._restart, self._go_on_rotating], [6, 6, 2, 1, 9]
        )[0]
        act()

    def _go_on_rotating(self) -> None:
        if self.rotation is None:
            if self.random.random() < 0.6:
                return
            self.rotation = self._rotate()
        if next(self.rotation, self) is self:
            self.rotation = None

    def _end(self) -> None:
        self._complete()
        while self.rotation is not None:
            self._go_on_rotating()
        if self.late or self.writer < 0:
            self._reopen()
        tail = self._started()
        quiet = 0
        while quiet < 3:
            piece = tail.step()
            quiet = quiet + 1 if piece is None else 0
            if piece is not None:
                self._came(piece)
        while (piece := tail.last()) is not None:
            self._came(piece)
        self._checkpoint()
        got = Counter(_numbers(self.kept))
        cut = [line for line in self.kept if line[-1:] != b";"]
        assert len(cut) <= len([line for line in self.warnings if "line break" in line]), f"cut: {cut}"
        twice = [number for number, times in got.items() if times > 1]
        missing = set(range(1, self.written + 1)) - {*got}
        may = {*_numbers(self.may_be_lost)}
        lost = [line for line in self.warnings if "not exist" not in line and "nothing was read" not in line]
        lost_or_unread = [line for line in self.warnings if "not exist" not in line]
        assert not twice, f"twice: {twice[:5]}"
        assert missing <= may, f"missing: {sorted(missing - may)[:5]} of {self.written}"
        assert missing <= self.unseen or lost_or_unread, (
            f"missing, and no line tells: {sorted(missing - self.unseen)[:5]} of {sorted(missing)}"
        )
        assert self.removed or not lost, f"told without a reason: {lost}"


def check(seed: int, acts: int = 60) -> tuple[bool, int]:
    """Run the history of a seed; return whether lines were lost with a warning, and how many came."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        history = History(seed, Path(folder))
        history.run(acts)
        return bool([line for line in history.warnings if "lost" in line]), len(history.kept)


if __name__ == "__main__":
    first, many, told, lines, broken = int(os.environ.get("FROM", "0")), int(sys.argv[1]), 0, 0, 0
    for seed in range(first, first + many):
        try:
            lossy, came = check(seed)
        except Exception as error:
            broken += 1
            print(f"seed {seed}: FROM={seed} make rotations HISTORIES=1: {error!r}")
        else:
            told, lines = told + lossy, lines + came
    print(
        f"{many:,} histories, {lines:,} lines, {told:,} histories with a warning of loss, {broken:,} broken"
    )
    sys.exit(broken > 0)
