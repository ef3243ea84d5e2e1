"""States of heads, in files named by the offset they belong to.

The state after ``n`` slices follows from those slices alone.  So a file is written once and never
changes, tasks that are run twice write the same, and a state that is missing can be made anew.
"""

from __future__ import annotations

import os
import uuid

from pyarrow import fs

__all__ = ["HeadStates"]

_KEPT = 16  # offsets; Spark goes back by one at most


class HeadStates:
    """The states below ``folder``: a path, or a URI of a file system that driver and tasks share."""

    def __init__(self, folder: str) -> None:
        self._fs, self._folder = fs.FileSystem.from_uri(
            os.path.abspath(folder) if "://" not in folder else folder
        )

    def load(self, source: str, offset: int) -> bytes | None:
        """Return the state after ``offset`` slices; None if there is none."""
        path = self._path(source, offset)
        if self._fs.get_file_info(path).type != fs.FileType.File:
            return None
        with self._fs.open_input_stream(path) as file:
            return bytes(file.read())

    def save(self, source: str, offset: int, state: bytes) -> None:
        """Keep a state, whole or not at all; forget old ones."""
        path = self._path(source, offset)
        self._fs.create_dir(f"{self._folder}/{source}")
        unfinished = f"{path}.{uuid.uuid4().hex}"
        with self._fs.open_output_stream(unfinished) as file:
            file.write(state)
        self._fs.move(unfinished, path)
        self._forget(source)

    def _forget(self, source: str) -> None:
        found = self._fs.get_file_info(fs.FileSelector(f"{self._folder}/{source}"))
        finished = sorted(info.path for info in found if info.path.endswith(".state"))
        for path in finished[:-_KEPT]:
            self._fs.delete_file(path)

    def _path(self, source: str, offset: int) -> str:
        return f"{self._folder}/{source}/{offset:012d}.state"
