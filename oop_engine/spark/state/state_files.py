"""States of source chains and subtasks, in files named by their version and a hash of their content.

    heads/<source>/<segments that were read>-<hash>.state
    copies/<component>-<key group>/<micro-batch after which it holds>-<hash>.state

A file is written once and never changes.  Which of them hold is in the manifest of the checkpoint: a state that a
task wrote before its micro-batch failed is in no manifest, and nobody reads it.
"""

from __future__ import annotations

import hashlib
import os
import uuid

from pyarrow import fs

from oop_engine.core.errors import SnapshotError, UsageError

__all__ = ["QUERY", "SOURCE_CHAINS", "SUBTASKS", "StateFiles", "version_of"]

QUERY = "query.json"
"""The file of a checkpoint that is there before any task runs."""

SOURCE_CHAINS, SUBTASKS = "heads/", "copies/"
"""The folders of a checkpoint that states are in."""

_KEPT = 16  # versions; Spark goes back by one at most
_HASH = 32  # hexadecimal digits of the SHA-256: 128 bits


class StateFiles:
    """The states below ``folder``: a path, or a URI of a file system that driver and tasks share."""

    def __init__(self, folder: str) -> None:
        self._fs, self._folder = fs.FileSystem.from_uri(
            os.path.abspath(folder) if "://" not in folder else folder
        )

    @classmethod
    def of_checkpoint(cls, folder: str) -> StateFiles:
        """Return the states below ``folder`` of a checkpoint.

        Raises ``UsageError`` where that is not to be seen: without its states a task would begin from nothing.
        """
        states = cls(folder)
        checkpoint = states._folder.rpartition("/")[0]
        if states._fs.get_file_info(f"{checkpoint}/{QUERY}").type != fs.FileType.File:
            msg = (
                f"checkpoint {checkpoint}: the driver made it, and a task does not see it: give one that all machines "
                f"have under the same path"
            )
            raise UsageError(msg)
        return states

    def load(self, owner: str, name: str) -> bytes:
        """Return the state of ``owner`` in the file ``name``, as it was saved; else raise ``SnapshotError``."""
        path = f"{self._folder}/{owner}/{name}"
        try:
            with self._fs.open_input_stream(path) as file:
                state = bytes(file.read())
        except FileNotFoundError:
            damage = "is missing"
        except OSError as error:
            damage = f"cannot be read ({error})"
        else:
            if name == _name(version_of(name), state):
                return state
            damage = "is damaged"
        msg = f"{path}, the state of a query, {damage}: restore the file, or start with an empty folder"
        raise SnapshotError(msg)

    def save(self, owner: str, version: int, state: bytes) -> str:
        """Keep a state, whole or not at all; forget old ones; return the name of its file."""
        name = _name(version, state)
        path = f"{self._folder}/{owner}/{name}"
        self._fs.create_dir(f"{self._folder}/{owner}")
        unfinished = f"{path}.{uuid.uuid4().hex}"
        with self._fs.open_output_stream(unfinished) as file:
            file.write(state)
        self._fs.move(unfinished, path)
        self._forget(owner)
        return name

    def _forget(self, owner: str) -> None:
        """Remove all but the newest versions; an attempt that failed may have left a second file of one."""
        infos = self._fs.get_file_info(fs.FileSelector(f"{self._folder}/{owner}"))
        states = [info for info in infos if info.base_name.endswith(".state")]
        versions = sorted({version_of(info.base_name) for info in states})[-_KEPT:]
        for info in states:
            if version_of(info.base_name) < versions[0]:
                self._fs.delete_file(info.path)


def version_of(name: str) -> int:
    """Return the version of the state in the file ``name``."""
    return int(name.partition("-")[0])


def _name(version: int, state: bytes) -> str:
    return f"{version:012d}-{hashlib.sha256(state).hexdigest()[:_HASH]}.state"
