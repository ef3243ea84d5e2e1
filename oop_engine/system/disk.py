"""Disk: the few operations on files that survive a loss of power in a known order.

A file that ``write`` has returned from has its bytes on the disk; its *name* is there for sure after ``sync`` of its
folder.  ``create`` is the one operation that two processes may race for: one of them makes the file, whole, and the
other one learns that it was second.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["Disk"]

_OWNER = 0o600


def _of_owner(path: str, flags: int) -> int:
    """Open a file; one that is made is readable by its owner alone, as states and results may be confidential."""
    return os.open(path, flags | getattr(os, "O_BINARY", 0), _OWNER)


class Disk:
    """The file system of this machine; files that it makes are their owner's alone.

    All methods raise ``OSError`` where it does.
    """

    def leave(self) -> None:
        """Do nothing: nobody waits for a disk that is away."""

    def write(self, path: Path, data: bytes) -> None:
        """Write a file; its bytes are on the disk then, its name after ``sync``."""
        try:
            with open(path, "wb", opener=_of_owner) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:  # of a full disk it does not say which file
            raise OSError(error.errno, error.strerror, str(path)) from error

    def create(self, path: Path, data: bytes) -> bool:
        """Make a file that is not there yet, whole or not at all; return whether it was this call that made it.

        It is on the disk with its name then.  Two calls at the same time, of any processes: one of them gets True.
        """
        unfinished = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
        try:
            self.write(unfinished, data)
            os.link(unfinished, path)
        except FileExistsError:
            return False
        finally:
            unfinished.unlink(missing_ok=True)
        self.sync(path.parent)
        return True

    def append(self, path: Path, data: bytes) -> None:
        """Write behind the bytes of a file; they are on the disk then."""
        try:
            with open(path, "ab", opener=_of_owner) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error

    def lock(self, path: Path) -> Callable[[], None] | None:
        """Take a file for this process, until it ends or calls the function returned; None: another has it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, _OWNER)
        with contextlib.suppress(ImportError):  # Windows has none
            import fcntl

            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
        return lambda: os.close(descriptor)

    def replace(self, old: Path, new: Path) -> None:
        """Give a file another name, at once and for sure."""
        old.replace(new)
        self.sync(new.parent)

    def sync(self, folder: Path) -> None:
        """Make the names in a folder, or the bytes of a file, survive a loss of power."""
        with contextlib.suppress(PermissionError):  # Windows opens no folders
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def make(self, folder: Path) -> None:
        """Make a folder, and those above it, unless they are there."""
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for each in missing:
            self.sync(each.parent)

    def read(self, path: Path) -> bytes:
        """Return the bytes of a file."""
        return path.read_bytes()

    def exists(self, path: Path) -> bool:
        """Return whether there is such a file or folder."""
        return path.exists()

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted; none if there is no such folder."""
        return sorted(os.listdir(folder)) if folder.is_dir() else []

    def remove(self, path: Path) -> None:
        """Remove a file, or an empty folder, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            path.rmdir() if path.is_dir() else path.unlink()
