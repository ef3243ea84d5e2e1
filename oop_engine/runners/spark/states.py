"""States of heads and copies, in files named by the version they belong to.

    heads/<source>/<slices that were read>.state
    copies/<component>-<key group>/<micro-batch after which it holds>.state

The state after a number of slices or micro-batches follows from those alone.  So a file is written once and
never changes, and tasks that are run twice write the same.  The state of a head that is missing can be
made anew.  A copy goes on from the newest state that is older than its micro-batch: one that a task wrote before
its micro-batch failed is left out of account, and written again.
"""

from __future__ import annotations

import os
import uuid

from pyarrow import fs

from oop_engine.errors import UsageError

__all__ = ["QUERY", "States"]

QUERY = "query.json"
"""The file of a checkpoint that is there before any task runs."""

_KEPT = 16  # versions; Spark goes back by one at most
_VERSION = "{:012d}.state"


class States:
    """The states below ``folder``: a path, or a URI of a file system that driver and tasks share."""

    def __init__(self, folder: str) -> None:
        self._fs, self._folder = fs.FileSystem.from_uri(
            os.path.abspath(folder) if "://" not in folder else folder
        )

    @classmethod
    def of_checkpoint(cls, folder: str) -> States:
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

    def load(self, owner: str, version: int) -> bytes | None:
        """Return the state of ``owner`` at ``version``; None if there is none."""
        path = f"{self._folder}/{owner}/{_VERSION.format(version)}"
        if self._fs.get_file_info(path).type != fs.FileType.File:
            return None
        return self._read(path)

    def before(self, owner: str, version: int) -> bytes | None:
        """Return the newest state of ``owner`` that is older than ``version``; None if there is none."""
        unwanted = _VERSION.format(version)
        older = [path for path in self._finished(owner) if path.rpartition("/")[2] < unwanted]
        return self._read(older[-1]) if older else None

    def save(self, owner: str, version: int, state: bytes) -> None:
        """Keep a state, whole or not at all; forget old ones."""
        path = f"{self._folder}/{owner}/{_VERSION.format(version)}"
        self._fs.create_dir(f"{self._folder}/{owner}")
        unfinished = f"{path}.{uuid.uuid4().hex}"
        with self._fs.open_output_stream(unfinished) as file:
            file.write(state)
        self._fs.move(unfinished, path)
        for old in self._finished(owner)[:-_KEPT]:
            self._fs.delete_file(old)

    def _read(self, path: str) -> bytes:
        with self._fs.open_input_stream(path) as file:
            return bytes(file.read())

    def _finished(self, owner: str) -> list[str]:
        """Return the paths of all versions, the oldest first."""
        found = self._fs.get_file_info(fs.FileSelector(f"{self._folder}/{owner}", allow_not_found=True))
        return sorted(info.path for info in found if info.path.endswith(".state"))
