"""The folder of dead letters: files that a service has written, and those that it is to read again.

    0000012-0-3f2a...-9c1e....jsonl    letters (``PartFiles``): these files never change
    retry/0000001.jsonl                letters to be fed again, by their numbers

A file of ``retry`` appears whole, under the next number, or not at all; it is both the order and the mark.  So however
often a retry is asked for, and killed, a letter is ordered once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from oop_engine.core.close_names import closest_or_all, did_you_mean
from oop_engine.core.errors import UsageError
from oop_engine.core.page import Page
from oop_engine.core.values.rfc3339 import rfc3339
from oop_engine.service.dead_letters import DEAD_LETTERS
from oop_engine.system.disk import Disk
from oop_engine.traces.format_registry import suffixes
from oop_engine.traces.trace import open_trace

__all__ = ["Letter", "LetterFolder", "Retry", "letters_of_sink", "sink_of_letter"]

_RETRY = "retry"
_SINK = "sink "
"""In front of the name of a sink, in the column of sources: a name has no space."""


def letters_of_sink(name: str) -> str:
    """Return the name of a sink in the column of sources.

    >>> sink_of_letter(letters_of_sink("out")), sink_of_letter("out")
    ('out', None)
    """
    return f"{_SINK}{name}"


def sink_of_letter(source: str) -> str | None:
    """Return the name of the sink that a letter is of; None: it is of a source."""
    return source.removeprefix(_SINK) if source.startswith(_SINK) else None


@dataclass(frozen=True)
class Letter:
    """A dead letter; ``letter``: its file and row.  The other columns are those of ``DEAD_LETTERS``."""

    letter: str
    source: str
    at: str
    position: str | None
    reason: str
    record: str
    coding: str
    context: str | None
    retried: bool


@dataclass(frozen=True)
class Retry:
    """A letter that is fed again, with its record as it was, or as it was mended."""

    letter: str
    source: str
    record: str
    coding: str
    context: str | None = None


class LetterFolder:
    """The dead letters in ``folder``.  Raises ``UsageError`` if there is none, or a file in it cannot be read."""

    def __init__(self, folder: str | Path, disk: Disk | None = None) -> None:
        self.folder, self._disk = Path(folder), disk or Disk()

    def letters(self, source: str | None = None) -> list[Letter]:
        """Return all letters, or those of one source, in their order.  O(letters)."""
        if not self.folder.is_dir():
            msg = f"{self.folder}: is no folder: give the one that serve(dead_letters=PartFiles(...)) has written"
            raise UsageError(msg)
        known, letters = {retry.letter for retry in self.retries()}, list[Letter]()
        ends = tuple(f".{suffix}" for suffix in suffixes())
        for name in self._disk.names(self.folder):
            if not name.startswith(".") and name.endswith(ends):
                letters += self._in_file(name, known)
        return [letter for letter in letters if source in (None, letter.source)]

    def without(self, source: str | None) -> str:
        """Return a line for a folder without letters, or without those of a source."""
        others = dict.fromkeys(letter.source for letter in self.letters())
        if others:
            return f"{self.folder}: no dead letters of {source}{closest_or_all(source, others)}"
        of_others = any((self.folder / name).exists() for name in ("epochs", "states"))
        hint = ", but checkpoints: give the folder of --dead-letters" if of_others else ""
        return f"{self.folder}: no dead letters{hint}"

    def _in_file(self, name: str, known: set[str]) -> list[Letter]:
        rows = [
            row
            for page in open_trace(self.folder / name, DEAD_LETTERS)
            if isinstance(page, Page)
            for row in page.to_pylist()
        ]
        letters = []
        for number, row in enumerate(rows, 1):
            letter = f"{name}:{number}"
            at = rfc3339(row["at"], "milliseconds")
            columns = {
                each: row[each] for each in ("source", "position", "reason", "record", "coding", "context")
            }
            letters.append(Letter(letter, at=at, retried=letter in known, **columns))
        return letters

    def retries(self, above: int = 0) -> list[Retry]:
        """Return the letters of all orders behind a number."""
        return [retry for number in self.orders(above) for retry in self.order(number)]

    def orders(self, above: int = 0) -> list[int]:
        """Return the numbers of the orders behind one."""
        names = self._disk.names(self.folder / _RETRY) if (self.folder / _RETRY).is_dir() else []
        numbers = [
            int(name.removesuffix(".jsonl")) for name in names if name.removesuffix(".jsonl").isdigit()
        ]
        return sorted(number for number in numbers if number > above)

    def order(self, number: int) -> list[Retry]:
        """Return the letters of an order."""
        path = self._path(number)
        try:
            return [Retry(**json.loads(line)) for line in self._disk.read(path).splitlines() if line.strip()]
        except (ValueError, TypeError) as error:
            msg = f"{path}: is no order of letters ({error}): put it back as it was, or remove it"
            raise UsageError(msg) from error

    def retry(
        self, source: str | None, mended: Mapping[str, Mapping[str, Any]] | None = None
    ) -> tuple[int, Path | None]:
        """Order that letters are fed again; return how many, and the file (None: none are left).

        ``mended``: those to feed, each with its ``record`` (and ``coding``); None: all that have not been fed again, as
        they came, but for parts of records, which have to be mended.
        """
        while True:
            last = max(self.orders(), default=0)
            letters = {each.letter: each for each in self.letters(source)}
            if mended is not None and (unknown := mended.keys() - letters.keys()):
                way = "take those that oop-engine dead-letters --show prints"
                msg = f"{self.folder}: there is no letter {min(unknown)!r}: {way}{did_you_mean(min(unknown), letters)}"
                raise UsageError(msg)
            orders = [
                _order(each, None if mended is None else mended[name])
                for name, each in letters.items()
                if not each.retried and (each.coding != "part" if mended is None else name in mended)
            ]
            if not orders:
                return 0, None
            self._disk.make(self.folder / _RETRY)
            lines = "".join(json.dumps(asdict(order)) + "\n" for order in orders)
            if self._disk.create(
                self._path(last + 1), lines.encode()
            ):  # else another retry was quicker: look again
                return len(orders), self._path(last + 1)

    def _path(self, number: int) -> Path:
        return self.folder / _RETRY / f"{number:07d}.jsonl"


def _order(letter: Letter, mended: Mapping[str, Any] | None) -> Retry:
    if mended is None:
        return Retry(letter.letter, letter.source, letter.record, letter.coding, letter.context)
    record = mended.get("record")
    coding = mended.get("coding", letter.coding)
    if not isinstance(record, str):
        msg = f"letter {letter.letter!r}: record must be text, as --show prints it; got {record!r:.80}"
        raise UsageError(msg)
    return Retry(letter.letter, letter.source, record, "text" if coding == "part" else coding, letter.context)
