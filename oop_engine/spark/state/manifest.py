"""The manifest of a checkpoint: the files with which a query goes on, each with its hash.

It is written twice a micro-batch, each time whole or not at all: before any task runs, with the offsets
of Spark; and after results are in place, before Spark hears that the micro-batch is done.  A
file that it names was there before it; a file that it does not name nobody reads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from oop_engine.core.errors import SnapshotError
from oop_engine.spark.state.ledger import Mark
from oop_engine.spark.state.state_files import StateFiles, version_of

__all__ = ["MANIFEST", "Manifest"]

MANIFEST = "manifest.json"
_WAY_OUT = "restore the file, or start with an empty folder"


@dataclass
class Manifest:
    """The files and the progress of the query in ``folder``; names of files are within that.

    ``begun``, ``done``: the last micro-batch that began, and the last whose results are in place; -1: none.
    ``fixed``: SHA-256 of files that never change; ``files``: of those that Spark goes on from.
    ``ledgers``: marks of files that only grow.
    ``states``: the files of source chains and subtasks, each with its micro-batch: the last that is done, and one
    before it.
    """

    folder: Path
    begun: int = -1
    done: int = -1
    fixed: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    ledgers: dict[str, Mark] = field(default_factory=dict)
    states: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """Return the manifest in ``folder``; None: there is none.  Raises ``SnapshotError`` if it is damaged."""
        path = folder / MANIFEST
        if not path.exists():
            return None
        try:
            digest, _, body = path.read_text().partition("\n")
            content: dict[str, Any] = json.loads(body)
        except (OSError, ValueError) as error:
            msg = f"{path} cannot be read ({error}): {_WAY_OUT}"
            raise SnapshotError(msg) from error
        if digest != _digest(body.encode()):
            msg = f"{path} is damaged, its hash is another: {_WAY_OUT}"
            raise SnapshotError(msg)
        if content.keys() != {field.name for field in fields(cls)} - {"folder"}:
            msg = f"{path} is of another version of this package: start with an empty folder"
            raise SnapshotError(msg)
        content["ledgers"] = {name: tuple(mark) for name, mark in content["ledgers"].items()}
        content["states"] = {owner: [*map(tuple, states)] for owner, states in content["states"].items()}
        return cls(folder, **content)

    def write(self) -> None:
        """Keep it, whole or not at all."""
        body = json.dumps({name: value for name, value in asdict(self).items() if name != "folder"})
        unfinished = self.folder / f"{MANIFEST}.part"
        unfinished.write_text(f"{_digest(body.encode())}\n{body}")
        unfinished.replace(self.folder / MANIFEST)

    def fix(self, names: Iterable[str]) -> None:
        """Write down which files are there for good; those that are not there are left out."""
        self.fixed = self._hashed(names)
        self.write()

    def begin(self, batch: int, names: Iterable[str], ledgers: Mapping[str, Mark]) -> None:
        """Write down that a micro-batch begins, and with which files."""
        self.begun = batch
        self.files = self._hashed(names)
        self.ledgers = dict(ledgers)
        self.write()

    def end(self, batch: int, states: Mapping[str, str], ledgers: Mapping[str, Mark]) -> None:
        """Write down that the results of a micro-batch are in place, and which states came of it."""
        self.done = batch
        self.ledgers = dict(ledgers)
        for owner, name in states.items():
            self.states[owner] = [*self._older(owner, batch)[-1:], (batch, name)]
        self.write()

    def before(self, batch: int) -> dict[str, str]:
        """Return the file with the state of each owner from which micro-batch ``batch`` goes on."""
        older_of = {owner: self._older(owner, batch) for owner in self.states}
        return {owner: older[-1][1] for owner, older in older_of.items() if older}

    def state_at(self, owner: str, version: int) -> str:
        """Return the file with the state of ``owner`` at ``version``; raises ``SnapshotError`` if there is none."""
        for _, name in self.states.get(owner, ()):
            if version_of(name) == version:
                return name
        msg = f"{self.folder / MANIFEST} knows no state of {owner} at {version}: start with an empty folder"
        raise SnapshotError(msg)

    def check(self, batch: int) -> None:
        """Make sure that all is there with which micro-batch ``batch`` goes on; else raise ``SnapshotError``.

        O(bytes of all states): each is read.
        """
        for name, digest in (self.fixed | self.files).items():
            path = self.folder / name
            if not path.exists() or _digest(path.read_bytes()) != digest:
                msg = f"{path} is {'damaged' if path.exists() else 'missing'}: {_WAY_OUT}"
                raise SnapshotError(msg)
        states = StateFiles(str(self.folder))
        for owner, name in self.before(batch).items():
            states.load(owner, name)

    def _older(self, owner: str, batch: int) -> list[tuple[int, str]]:
        return [(number, name) for number, name in self.states.get(owner, ()) if number < batch]

    def _hashed(self, names: Iterable[str]) -> dict[str, str]:
        there = [name for name in names if (self.folder / name).is_file()]
        return {name: _digest((self.folder / name).read_bytes()) for name in there}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
