"""Object disk: the operations of a ``Disk`` on an object store (S3, Google, Azure, memory), by the package obstore.

An object appears whole, with its name, so nothing is left to sync.  ``create`` is a conditional put: of all processes
that race for a name, on any machine, one makes the object.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from threading import Timer
from typing import Any

from oop_engine.core.errors import SetupError, UsageError, not_installed
from oop_engine.system.addresses import Address, printable
from oop_engine.system.disk import Disk

__all__ = ["ObjectDisk", "StoreError", "disk_of"]

_LOG = logging.getLogger("oop_engine")
_TOLD_S = 10.0
_PATIENT: dict[str, Any] = {
    "max_retries": 1000,
    "retry_timeout": timedelta(minutes=10),
    "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=10), "base": 2},
}
"""Retries of a store that has answered before; one that never did is an error after some seconds."""
_SERVERS = ("s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "http", "https")


@contextmanager
def _as_of_a_disk() -> Iterator[None]:
    """Turn an error of a store (no rights, no such bucket) into an ``OSError`` of one line."""
    from obstore.exceptions import AlreadyExistsError, BaseError

    waiting = Timer(_TOLD_S, _LOG.warning, ("the object store of a checkpoint does not answer: trying on",))
    waiting.daemon = True
    waiting.start()
    try:
        yield
    except AlreadyExistsError:
        raise
    except BaseError as error:
        words = str(error).partition("\n")[0]
        msg = f"the object store of a checkpoint fails: {words}: check its address, the keys and the rights, and start "
        raise StoreError(msg + "again: the next process restores the last checkpoint") from error
    finally:
        waiting.cancel()


class StoreError(SetupError, OSError):
    """An object store does not answer, or refuses; as an ``OSError``, since it stands for a disk."""


class ObjectDisk(Disk):
    """The objects of ``store``, a store of obstore; paths are its keys.  Raises ``OSError``.

    ``patient``: the same store with more retries, which is used once it has answered.
    """

    def __init__(self, store: Any, patient: Any = None) -> None:
        self._store, self._patient = store, patient or store

    def write(self, path: Path, data: bytes) -> None:
        """Put an object."""
        with _as_of_a_disk():
            self._store.put(path.as_posix(), data)

    def create(self, path: Path, data: bytes) -> bool:
        """Put an object that is not there yet; return whether it was this call that did."""
        from obstore.exceptions import AlreadyExistsError

        try:
            with _as_of_a_disk():
                self._store.put(path.as_posix(), data, mode="create")
        except AlreadyExistsError:  # perhaps by this call, whose first answer was lost
            with suppress(FileNotFoundError):  # its owner has removed it meanwhile
                return self.read(path) == data
            return False
        return True

    def replace(self, old: Path, new: Path) -> None:
        """Give an object another name."""
        with _as_of_a_disk():
            self._store.rename(old.as_posix(), new.as_posix())

    def sync(self, folder: Path) -> None:
        """Do nothing: a put is there when it has returned."""

    def make(self, folder: Path) -> None:
        """Do nothing: keys have no folders."""

    def read(self, path: Path) -> bytes:
        """Return the bytes of an object."""
        with _as_of_a_disk():
            return bytes(self._store.get(path.as_posix()).bytes())

    def exists(self, path: Path) -> bool:
        """Tell whether there is such an object."""
        with suppress(FileNotFoundError), _as_of_a_disk():
            self._store.head(path.as_posix())
            return True
        return False

    def names(self, folder: Path) -> list[str]:
        """Return the names below a prefix, sorted."""
        with _as_of_a_disk():
            prefix = None if folder == Path() else f"{folder.as_posix()}/"
            found = self._store.list_with_delimiter(prefix)
        self._store = self._patient
        keys = [*found["common_prefixes"], *(each["path"] for each in found["objects"])]
        return sorted({key.rstrip("/").rpartition("/")[2] for key in keys})

    def remove(self, path: Path) -> None:
        """Remove an object, if it is there; a folder, which only a store on a disk has, stays."""
        from obstore.exceptions import GenericError

        with suppress(FileNotFoundError), _as_of_a_disk():
            try:
                self._store.delete(path.as_posix())
            except GenericError as error:
                if "Is a directory" not in str(error):
                    raise


def disk_of(where: str | Path) -> tuple[Disk, Path]:
    """Return the disk and the folder on it that a path, or the address of an object store, names.

    Raises ``SetupError`` if an address needs obstore and it is not installed, ``UsageError`` if it cannot be read.
    """
    if "://" not in str(where):
        return Disk(), Path(where)
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError as error:
        place = f"checkpoint {printable(where)}"
        raise not_installed(place, "obstore", "objects") from error
    try:
        store = from_url(str(where))
        on_server = str(where).partition("://")[0].lower() in _SERVERS
        return ObjectDisk(store, from_url(str(where), retry_config=_PATIENT) if on_server else None), Path()
    except (BaseError, ValueError) as error:
        words = Address(where).clean(error).partition(" Debug source")[0][:200]
        msg = f"checkpoint {printable(where)}: {words}: give an address like s3://bucket/folder"
        raise UsageError(msg) from None
