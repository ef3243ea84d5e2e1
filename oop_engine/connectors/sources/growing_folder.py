"""Growing folder: files of any format of traces, to which more are added."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine.connectors.message_format import shown
from oop_engine.connectors.source import LiveSource, Position
from oop_engine.core.errors import TraceError
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.traces.format_registry import suffixes
from oop_engine.traces.trace import Trace, open_trace

__all__ = ["GrowingFolder"]


class GrowingFolder(LiveSource):
    """The files of ``folder`` in the order of their names, as pages of ``schema``, and files that come later.

    A file must appear whole (be renamed into the folder), and its name come behind those read before: one that comes
    before them is a ``TraceError``.  Hidden files, and those of suffixes that are no format of traces, are left out.
    The position is a name, how many messages of it have been read, and whether these are all.  A file that is gone
    and was not read to its end is a ``TraceError``.  ``follow=False``: end behind the last file; else the folder need
    not be there yet.  ``every_s``: how often one looks.
    """

    replayable = True

    def __init__(
        self, folder: str | Path, schema: Schema, *, every_s: float = 1.0, follow: bool = True
    ) -> None:
        self._folder, self._schema = Path(folder), schema
        self.reads = self._folder
        self._every_s, self._follow = every_s, follow

    async def read(self, position: Position) -> AsyncIterator[tuple[Any, Position]]:
        """Yield the pages and the punctuation of each file."""
        last, done, *whole = position or ["", 0]
        known = {name for name in self._names() if name < last}
        if whole == [False] and last not in self._names():  # earlier versions did not write it
            msg = f"{self._folder / last}: was read to message {done:,} and is gone: put it back, or begin anew with "
            msg += "another folder of checkpoints"
            raise TraceError(msg)
        self._check_there()
        while True:
            for name in self._fresh(last, known):
                skipped = done if name == last else 0
                for number, (message, over) in enumerate(_marked(self._trace(name)), 1):
                    if number > skipped:
                        plain = message.without_arrival() if isinstance(message, Page) else message
                        yield plain, [name, number, over]
                        await asyncio.sleep(0)
                last, done = name, 0
                known.add(name)
            if not self._follow:
                return
            await asyncio.sleep(self._every_s)

    def _check_there(self) -> None:
        if self._folder.is_dir():
            return
        if (exists := self._folder.exists()) or not self._follow:
            msg = f"{self._folder}: {'is a file' if exists else 'does not exist'}: give the path of a folder"
            raise TraceError(msg)
        logging.getLogger("oop_engine").warning("%s: does not exist yet: waiting for it", self._folder)

    def _fresh(self, last: str, known: set[str]) -> list[str]:
        """Return the names of files that are still to be read; ``last`` is the one that was read last."""
        names = [name for name in self._names() if name not in known]
        if names and names[0] < last:
            msg = f"{self._folder / names[0]}: came after {last!r} was read: give new files names that come later"
            raise TraceError(msg)
        return names

    def _trace(self, name: str) -> Trace:
        def refused(row: int, rows: pa.RecordBatch, reason: str) -> None:
            if self.unreadable is not None:
                self.unreadable(reason, f"{name}, row {row}: {shown(rows)}", rows.num_rows)

        return open_trace(self._folder / name, self._schema, on_refused=refused)

    def _names(self) -> list[str]:
        known = tuple(f".{suffix}" for suffix in suffixes())
        if not self._folder.is_dir():
            return []
        names = (path.name for path in self._folder.iterdir() if path.is_file())
        return sorted(name for name in names if not name.startswith(".") and name.endswith(known))


def _marked(messages: Iterable[Message]) -> Iterator[tuple[Message, bool]]:
    """Yield messages, each with whether it is the last."""
    left = iter(messages)
    held = next(left, None)
    for following in left:
        if held is not None:
            yield held, False
        held = following
    if held is not None:
        yield held, True
