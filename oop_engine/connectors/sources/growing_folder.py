"""Growing folder: files of any format of traces, to which more are added."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa

from oop_engine.connectors.paths import local_path
from oop_engine.connectors.source import BEGIN_AGAIN, LiveSource, Position, is_count
from oop_engine.core.errors import TraceError
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.core.values.column import column
from oop_engine.system.on_thread import on_thread
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.folder import LeftOut, is_hidden, is_trace, names_in
from oop_engine.traces.format_registry import format_of
from oop_engine.traces.formats.partitions import partition_order
from oop_engine.traces.trace import Trace, open_trace

__all__ = ["GrowingFolder"]

_KNOWN = 4096
"""Bytes at the start and at the end of a file by which it is known again."""
_LOG = logging.getLogger("oop_engine")


class GrowingFolder(LiveSource):
    """The files of ``folder`` in the order of their names, as pages of ``schema``, and files that come later.

    A file must appear whole (be renamed into the folder), and its name come after those read before: one that comes
    before them is a ``TraceError``.  Rows that cannot be read are dead letters.  A file that cannot be read ends the
    service with its name; the next one begins with the same message of the file, once it is mended or removed.  Left
    out, with one warning that names the first: folders within the folder, and files of each suffix that is no format of
    traces.  Folders called ``name=value`` (``year=2026``) are read, and are columns (``open_trace``).
    Hidden files are left out, too (names that begin with ``.`` or ``_``).

    The position is a name, how many messages of it have been read, whether these are all, and the size of the file with
    a checksum of its first bytes.  A file that is gone and was not read to its end is a ``TraceError``, and so is one
    that is another one now.  ``follow=False``: end behind the last file; else the folder need
    not be there yet.  ``every_s``: seconds between two looks, each of which lists the names in the folder.  ``csv``:
    how its CSV files are written.  The schema may have the column ``_file``: the path of the file of a row.
    """

    replayable = True

    def __init__(
        self,
        folder: str | Path,
        schema: Schema,
        *,
        every_s: float = 1.0,
        follow: bool = True,
        csv: CsvFormat | None = None,
    ) -> None:
        self._folder, self._schema = local_path("GrowingFolder", folder), schema
        self.reads = self._folder
        self._every_s, self._follow, self.csv = every_s, follow, csv
        self._left_out = LeftOut()
        self._in_files = _without(schema, "_file")

    def is_position(self, position: Position) -> bool:
        """Return whether a value can be a position: the name of a file, and how much of it."""
        return (
            isinstance(position, list)
            and len(position) > 1
            and isinstance(position[0], str)
            and is_count(position[1])
        )

    async def read(self, position: Position) -> AsyncIterator[tuple[Any, Position]]:
        """Yield the pages and the punctuation of each file."""
        last, done, *more = position or ["", 0]
        whole = more[:1]
        self._check_same(last, done, more)
        known = {name for name in self._listed() if _is_before(name, last) and is_trace(name)}
        if whole == [False] and not (self._folder / last).is_file():  # earlier versions did not write it
            msg = (
                f"{self._folder / last}: was read to message {done:,} and is gone: restore it; {BEGIN_AGAIN}"
            )
            raise TraceError(msg)
        if whole == [True]:
            known.add(last)
        self._check_there()
        while True:
            for name in await on_thread(self._fresh, last, known):
                skipped = done if name == last else 0
                start, number = await on_thread(_start, self._folder / name), 0
                async with aclosing(self._messages(name)) as messages:
                    async for message, over in messages:
                        number += 1
                        if number > skipped:
                            plain = self._told(message, name) if isinstance(message, Page) else message
                            yield plain, [name, number, over, *start]
                            await asyncio.sleep(0)
                last, done = name, 0
                known.add(name)
            if not self._follow:
                return
            await asyncio.sleep(self._every_s)

    async def latest(self) -> Position:
        """Return the position behind the last file that is there."""
        names = [name for name in self._listed() if not is_hidden(name) and is_trace(name)]
        last = max(names, default="", key=partition_order)
        return [last, 0, True, *_start(self._folder / last)] if last else None

    def _check_same(self, last: str, done: int, more: list[Any]) -> None:
        """Raise ``TraceError`` if the file of a position is another one now; one that was read may be gone."""
        path = self._folder / last
        if len(more) > 2 and path.is_file() and (start := _start(path)) != more[1:]:
            msg = (
                f"{path}: was read to message {done:,}, and is another file now (it had {more[1]:,} bytes, and has "
                f"{start[0]:,}): give other data a name that comes later, or put the file back; {BEGIN_AGAIN}"
            )
            raise TraceError(msg)

    def _check_there(self) -> None:
        if self._folder.is_dir():
            return
        if (exists := self._folder.exists()) or not self._follow:
            msg = f"{self._folder}: {'is a file' if exists else 'does not exist'}: give the path of a folder"
            raise TraceError(msg)
        _LOG.warning("%s: does not exist yet: waiting for it", self._folder)

    def _fresh(self, last: str, known: set[str]) -> list[str]:
        """Return the names of files that are still to be read; ``last`` is the one that was read last.

        ``known`` has the names that need no look any more; others that are left out are added to it.
        """
        listed = self._listed()
        known &= listed | {last}
        names = []
        for name in sorted(listed - known, key=partition_order):
            path = self._folder / name
            if is_hidden(name):
                known.add(name)
            elif path.is_dir() or not is_trace(name):
                known.add(name)
                self._left_out.tell(path)
            elif path.is_file():
                if _is_before(name, last):
                    msg = f"{path}: came after {last!r} was read: give new files names that come later"
                    raise TraceError(msg)
                names.append(name)
        return names

    async def _messages(self, name: str) -> AsyncGenerator[tuple[Message, bool], None]:
        """Yield the messages of a file, each with whether it is the last; it is read on a thread."""
        pending: list[Callable[[], object]] = []
        messages = await on_thread(lambda: _marked(self._trace(name, pending.append)))
        message: tuple[Message, bool] | None = None
        while message is None or not message[1]:
            try:
                message = await on_thread(next, messages, None)
            finally:
                for call in pending:
                    call()
                pending.clear()
            if message is None:
                return
            yield message

    def _trace(self, name: str, later: Callable[[Callable[[], object]], object]) -> Trace:
        """Open a file; ``later`` is called with functions that pass on the rows that cannot be read."""

        def refused(row: int, rows: pa.RecordBatch, reason: str) -> None:
            if self.unreadable is not None:
                for at in range(rows.num_rows):  # the number of the first is known
                    place = {"file": str(self._folder / name), "row" if not at else "behind row": row}
                    later(partial(self.unreadable, reason, *_record(rows.slice(at, 1)), place=place))

        path = self._folder / name
        csv = self.csv if format_of(path) == "csv" else None
        trace = open_trace(path, self._in_files, csv=csv, on_refused=refused)
        trace.made_up = False
        return trace

    def _told(self, page: Page, name: str) -> Page:
        """Return a page of the schema, with the path of its file if that is a column."""
        if self._in_files is self._schema:
            return page.without_arrival()
        columns = dict(zip(page.schema.names, page.batch.columns, strict=True))
        path = pa.array([str(self._folder / name)] * len(page), pa.string())
        columns["_file"] = column(path, self._schema.type_of("_file"), f"{self._folder}: column '_file'")
        return Page(self._schema, pa.RecordBatch.from_pydict({n: columns[n] for n in self._schema.names}))

    def _listed(self) -> set[str]:
        """Return the names in the folder, and in the partitions in it."""
        return set(names_in(self._folder))


def _without(schema: Schema, name: str) -> Schema:
    """Return a schema without a column that no file has; the column of progress stays."""
    if name not in schema.names or name == schema.progressing:
        return schema
    return schema.select([each for each in schema.names if each != name])


def _is_before(name: str, last: str) -> bool:
    return bool(last) and partition_order(name) < partition_order(last)


def _start(path: Path) -> list[int]:
    """Return the size of a file, and a checksum of its first and last bytes."""
    with path.open("rb") as file:
        first, size = file.read(_KNOWN), os.fstat(file.fileno()).st_size
        file.seek(max(size - _KNOWN, 0))
        return [size, crc32(file.read(_KNOWN), crc32(first))]


def _record(rows: pa.RecordBatch) -> tuple[Any, int]:
    """Return a refused row as it came: its line, where it could not be parsed, or its cells."""
    if rows.schema.names == ["line"]:
        return rows.column(0)[0].as_py(), 1
    cells = rows.to_pylist()[0]
    return {name: v.decode(errors="replace") if isinstance(v, bytes) else v for name, v in cells.items()}, 1


def _marked(messages: Iterable[Message]) -> Iterator[tuple[Message, bool]]:
    """Yield messages, each with whether it is the last."""
    left = iter(messages)
    pending = next(left, None)
    for following in left:
        if pending is not None:
            yield pending, False
        pending = following
    if pending is not None:
        yield pending, True
