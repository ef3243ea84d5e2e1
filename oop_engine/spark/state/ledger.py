"""Ledger: a file of lines that are only ever appended, and a mark of how far it was sound.

A line is a JSON value.  Whoever is killed while it appends leaves half a line, which does not count and is cut off
at the next start.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from oop_engine.core.errors import SnapshotError

__all__ = ["NOTHING", "Ledger", "Mark"]

Mark = tuple[int, str]
"""How many bytes there are, and their SHA-256."""


NOTHING: Mark = (0, hashlib.sha256().hexdigest())
"""The mark of a ledger without lines."""


class Ledger:
    """The lines in the file at ``path``, which need not be there yet; one process appends, others may read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = 0
        self._hash = hashlib.sha256()

    def lines(self) -> list[Any]:
        """Return all values.  Raises ``SnapshotError`` for lines that cannot be read.  O(bytes)."""
        try:
            return [json.loads(line) for line in self._whole().splitlines()]
        except ValueError as error:
            msg = f"{self._path} is damaged ({error}): restore the file, or start with an empty folder"
            raise SnapshotError(msg) from error

    def append(self, *values: Any) -> None:
        """Write values behind all others; they are in one line each."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write("".join(f"{json.dumps(value)}\n" for value in values).encode())

    def mark(self) -> Mark:
        """Return the mark of all lines there are.  O(bytes that are new since the last mark)."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._seen)
                new = file.read()
            new = new[: new.rfind(b"\n") + 1]
            self._hash.update(new)
            self._seen += len(new)
        return self._seen, self._hash.hexdigest()

    def resume(self, mark: Mark) -> None:
        """Make sure that it begins as it was when ``mark`` was made; cut off half a line at its end.

        Raises ``SnapshotError`` if it does not.
        """
        whole = self._whole()
        size, digest = mark
        if hashlib.sha256(whole[:size]).hexdigest() != digest:
            state = "is damaged" if self._path.exists() else "is missing"
            msg = f"{self._path} {state}: restore the file, or start with an empty folder"
            raise SnapshotError(msg)
        if self._path.exists() and self._path.stat().st_size > len(whole):
            with self._path.open("r+b") as file:
                file.truncate(len(whole))

    def _whole(self) -> bytes:
        data = self._path.read_bytes() if self._path.exists() else b""
        return data[: data.rfind(b"\n") + 1]
