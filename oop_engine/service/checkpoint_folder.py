"""The folder of checkpoints: plain files, written in an order in which a crash at any moment leaves a good state.

    epochs/0000012.json                     the log: records and claims (``epochs``)
    states/0000012-3f2a.../count.9c1e...    the state of an operator, named by its hash
    states/0000012-3f2a.../manifest.json    the manifest (``checkpoint_manifest``)

States are on the disk before the manifest that names them, the manifest before its record, the record before any
sink commits and any source may forget.  An operator whose state has not changed has the file of an earlier
checkpoint.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from time import time
from typing import TypeVar

from oop_engine.connectors.link import LeftError
from oop_engine.core.errors import SnapshotError, UsageError
from oop_engine.service.checkpoint_manifest import (
    CheckpointManifest,
    StateFile,
    read_manifest,
    write_manifest,
)
from oop_engine.service.epochs import (
    Entry,
    foreign,
    garbage,
    kept_manifests,
    last_entry,
    next_number,
    number_of,
    read_entry,
    write_entry,
)
from oop_engine.system.addresses import printable
from oop_engine.system.disk import Disk
from oop_engine.system.object_disk import StoreError, disk_of
from oop_engine.system.on_thread import on_thread

__all__ = ["CheckpointFolder", "OwnerGone"]

T = TypeVar("T")
_MANIFEST = "manifest.json"
_HASH = 16
"""Hexadecimal digits of a hash in the name of a file; the whole hash is in the manifest."""


class OwnerGone(UsageError):  # noqa: N818  (the state of another process)
    """Another process has taken the checkpoint over; this one has committed nothing since."""


class CheckpointFolder:
    """The checkpoints in ``folder``; the last ``keep`` of them can be restored.

    ``folder``: a path, or the address of an object store (``s3://bucket/folder``; needs obstore); ``place``: its text.

    Methods raise ``SnapshotError`` for a file that is missing or damaged, ``UsageError`` for a folder of another one.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        keep: int = 3,
        disk: Disk | None = None,
        clock: Callable[[], float] = time,
        owner: str | None = None,
    ) -> None:
        self.place = printable(folder) if "://" in str(folder) else str(folder)
        self._disk, self.folder = disk_of(folder) if disk is None else (disk, Path(folder))
        self._keep, self._clock = keep, clock
        self._owner = owner or f"process {os.getpid()} on {socket.gethostname()}"
        self._last: Entry | None = None  # the last entry, which is ours
        self._manifests: dict[str, CheckpointManifest] = {}
        self._token = os.urandom(4).hex()

    @property
    def run(self) -> str:
        """The name of this checkpoint, by which sinks know it; it must have been claimed."""
        return self._mine().run

    @property
    def number(self) -> int:
        """The number of the last entry of the log, which is ours."""
        return self._mine().number

    async def aside(self, stop: asyncio.Event, work: Callable[[], T]) -> T:
        """Return the value of some work on the folder, which is done on a thread.

        Raises ``LeftError`` if its store is away once ``stop`` is set, or when that happens.
        """
        stopping = asyncio.create_task(stop.wait())
        stopping.add_done_callback(lambda _: self._disk.leave() if stop.is_set() else None)
        try:
            return await on_thread(work, leave=self._disk.leave)
        except StoreError as error:
            if stop.is_set():
                name = f"checkpoint {self.place}"
                raise LeftError(name) from error
            raise
        finally:
            stopping.cancel()

    def newest(self) -> CheckpointManifest | None:
        """Return the manifest of the last record, and claim nothing; None: there is none that can be read."""
        last = last_entry(self.entries())
        try:
            return self.manifest_of(last) if last is not None and last.manifest else None
        except SnapshotError:  # damaged, or removed by its owner, who has gone on: the claim finds out
            return None

    def claim(self) -> CheckpointManifest | None:
        """Take the checkpoint over: an earlier process can record nothing from now on.

        Return the manifest of the last record; None: nothing has been recorded.  Raises ``UsageError`` if the folder
        holds other files, and no checkpoint.
        """
        self._prepare()
        while True:
            entries = self.entries()
            self._check_last(entries)
            last = last_entry(entries)
            try:
                manifest = self.manifest_of(last) if last is not None and last.manifest else None
            except SnapshotError:
                if self.entries() == entries:
                    raise
                continue  # its owner has gone on meanwhile, and has removed that one
            entry = Entry(
                next_number(entries),
                "claim",
                last.manifest if last is not None else "",
                last.sha256 if last is not None else "",
                last.run if last is not None else os.urandom(6).hex(),
                self._owner,
                self._clock(),
            )
            if self._create(entry):
                self.collect()
                return manifest

    def entries(self) -> dict[int, Entry | None]:
        """Return the log; damaged entries are None."""
        folder = self.folder / "epochs"
        entries: dict[int, Entry | None] = {}
        for name in self._disk.names(folder):
            if (number := number_of(name)) is not None:
                with contextlib.suppress(FileNotFoundError):  # the owner has just removed an old one
                    entries[number] = read_entry(number, self._disk.read(folder / name))
        return entries

    def manifest_of(self, entry: Entry) -> CheckpointManifest:
        """Return the manifest of an entry that has one."""
        place = f"{self.place}/{entry.manifest}"
        if entry.manifest in self._manifests:
            return self._manifests[entry.manifest]
        data = self._read(entry.manifest)
        if _digest(data) != entry.sha256:
            msg = f"{place}: is damaged: restore the file, or start with an empty folder"
            raise SnapshotError(msg)
        return self._manifests.setdefault(entry.manifest, read_manifest(place, data))

    def states_of(self, manifest: CheckpointManifest) -> dict[str, bytes]:
        """Return the states that a manifest names.  O(bytes)."""
        states = {}
        for name, state in manifest.states.items():
            states[name] = self._read(state.file)
            if _digest(states[name]) != state.sha256:
                msg = f"{self.place}/{state.file}: the state of {name!r} is damaged: restore the file"
                raise SnapshotError(msg)
        return states

    def record(
        self, manifest: CheckpointManifest, states: Mapping[str, bytes], kinds: Mapping[str, tuple[str, int]]
    ) -> None:
        """Write the states, then the manifest, then its record.

        ``kinds``: the class of each operator and the version of its states.  Raises ``OwnerGone`` if the checkpoint
        has been taken over, ``SnapshotError`` if its files are gone; nothing has been recorded then.
        """
        self._check_mine()
        try:
            self._record(manifest, states, kinds)
        except FileNotFoundError as error:
            raise self._removed() from error

    def _record(
        self, manifest: CheckpointManifest, states: Mapping[str, bytes], kinds: Mapping[str, tuple[str, int]]
    ) -> None:
        mine = self._mine()
        number = mine.number + 1
        place = f"states/{number:07d}-{self._token}"
        before = self.manifest_of(mine).states if mine.manifest else {}
        self._disk.make(self.folder / place)
        files = {name: self._kept(place, name, data, before.get(name)) for name, data in states.items()}
        named = {
            name: StateFile(*kinds.get(name, ("", 1)), file, _digest(states[name]), len(states[name]))
            for name, file in files.items()
        }
        whole = replace(manifest, states=named, parent=mine.number, at=self._clock())
        data = write_manifest(whole)
        self._disk.write(self.folder / place / _MANIFEST, data)
        self._disk.sync(self.folder / place)
        entry = Entry(
            number, "record", f"{place}/{_MANIFEST}", _digest(data), mine.run, self._owner, self._clock()
        )
        if not self._create(entry):
            raise self._gone()
        self._manifests[entry.manifest] = whole

    def collect(self) -> None:
        """Remove the entries and files that no checkpoint needs that is kept."""
        entries = self.entries()
        whole = {entry.manifest: entry for entry in entries.values() if entry is not None}
        try:
            manifests = {name: self.manifest_of(whole[name]) for name in kept_manifests(entries, self._keep)}
        except SnapshotError:  # another process has taken over, and removed an old one
            return
        used = {
            name: [state.file for state in manifest.states.values()] for name, manifest in manifests.items()
        }
        numbers, files = garbage(entries, used, self._files())
        for file in files:
            self._disk.remove(self.folder / file)
            self._manifests.pop(file, None)
        for number in numbers:
            self._disk.remove(self.folder / "epochs" / f"{number:07d}.json")
        for name in self._disk.names(states := self.folder / "states"):
            if not self._disk.names(states / name) and int(name.partition("-")[0]) <= max(entries):
                self._disk.remove(states / name)

    def _mine(self) -> Entry:
        if self._last is None:
            msg = f"checkpoint {self.place}: must be claimed first"
            raise UsageError(msg)
        return self._last

    def _prepare(self) -> None:
        """Make the folder; raise ``UsageError`` if it is another's."""
        states = [file for file in self._files() if file.endswith(_MANIFEST)]
        problem = foreign(self.place, self._disk.names(self.folder), self._numbers(), states)
        if problem is not None:
            raise UsageError(problem)
        try:
            for part in ("epochs", "states"):
                self._disk.make(self.folder / part)
        except (FileExistsError, NotADirectoryError) as error:
            msg = f"checkpoint {self.place}: must be a folder; a file is in its place: give another path"
            raise UsageError(msg) from error

    def _check_last(self, entries: Mapping[int, Entry | None]) -> None:
        """Raise ``SnapshotError`` if the last entry is damaged: its epoch may have been committed."""
        if entries and entries[max(entries)] is None:
            msg = (
                f"{self.place}/epochs/{max(entries):07d}.json: is damaged: restore the file, or remove it to "
                "resume from the previous entry; results of its epoch may then come twice"
            )
            raise SnapshotError(msg)

    def _numbers(self) -> list[int]:
        names = self._disk.names(self.folder / "epochs")
        return [number for name in names if (number := number_of(name)) is not None]

    def _overtaken(self, number: int) -> bool:
        """Return whether there is an entry behind ``number``: that one counts for nothing then (``epochs``)."""
        return max(self._numbers(), default=0) > number

    def _check_mine(self) -> None:
        """Raise ``OwnerGone`` before anything is written, where it is known already; an error if the log is gone."""
        numbers, mine = self._numbers(), self._mine()
        if max(numbers, default=0) > mine.number:
            raise self._gone()
        if mine.number not in numbers or (
            mine.manifest and not self._disk.exists(self.folder / mine.manifest)
        ):
            raise self._removed()

    def _removed(self) -> SnapshotError:
        return SnapshotError(
            f"checkpoint {self.place}: its files were removed while the service runs; results since the last "
            f"checkpoint are not visible: restore the folder, or start with an empty one, which reads sources from "
            f"their beginning and gives earlier results again"
        )

    def _gone(self) -> OwnerGone:
        others = [e for e in self.entries().values() if e is not None and e.number > self._mine().number]
        by = others[-1].owner if others else "another process"
        return OwnerGone(
            f"checkpoint {self.place}: {by} has taken it over; this process has stopped, and its results since its "
            f"last checkpoint are not visible: run one process at a time, or give each a folder of its own"
        )

    def _create(self, entry: Entry) -> bool:
        file = self._file(entry.number)
        if not self._disk.create(file, write_entry(entry)):
            return False
        if self._overtaken(entry.number):  # it counts for nothing
            self._disk.remove(file)
            return False
        self._last = entry
        return True

    def _kept(self, place: str, name: str, data: bytes, before: StateFile | None) -> str:
        """Return the file with a state: that of the checkpoint before, if it is the same, else a new one."""
        digest = _digest(data)
        if before is not None and before.sha256 == digest:
            return before.file
        file = f"{place}/{name or 'runner'}.{digest[:_HASH]}"
        self._disk.write(self.folder / file, data)
        return file

    def _read(self, file: str) -> bytes:
        try:
            return self._disk.read(self.folder / file)
        except FileNotFoundError as error:
            if self._last is not None and self._overtaken(self._last.number):
                raise self._gone() from error
            msg = f"{self.place}/{file}: is missing: restore it, or start with an empty folder"
            raise SnapshotError(msg) from error

    def _files(self) -> list[str]:
        states = self.folder / "states"
        return [
            f"states/{name}/{file}"
            for name in self._disk.names(states)
            if name.partition("-")[0].isdigit()
            for file in self._disk.names(states / name)
        ]

    def _file(self, number: int) -> Path:
        return self.folder / "epochs" / f"{number:07d}.json"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
