"""Object disk: the operations of a ``Disk`` on an object store (S3, Google, Azure, memory), by the package obstore.

An object appears whole, with its name, so nothing is left to sync.  ``create`` is a conditional put: of all processes
that race for a name, on any machine, one makes the object.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from threading import Event, Timer
from typing import Any, TypeVar

from oop_engine.core.errors import SetupError, UsageError, not_installed
from oop_engine.system.addresses import Address, printable
from oop_engine.system.disk import Disk
from oop_engine.system.stopwatch import wall

__all__ = ["ObjectDisk", "StoreError", "disk_of"]

T = TypeVar("T")
_LOG = logging.getLogger("oop_engine")
_TOLD_S = 10.0
_BRIEF: dict[str, Any] = {
    "max_retries": 2,
    "retry_timeout": timedelta(seconds=3),
    "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=1), "base": 2},
}
"""Retries by the client itself, of a store that has answered before: they cannot be given up."""
_MOST_S, _FIRST_S, _PAUSE_S = 600.0, 0.1, 10.0
"""Seconds for which such a store is tried again, and those from the first and the last tries to the next."""
_WRONG = re.compile("status code: 4(?!08|09|29)")
"""Answers that are the same however often they are asked for."""
_SERVERS = ("s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "http", "https")


class StoreError(SetupError, OSError):
    """An object store does not answer, or refuses; as an ``OSError``, since it stands for a disk."""


class ObjectDisk(Disk):
    """The objects of ``store``, a store of obstore; paths are its keys.  Raises ``OSError``.

    ``patient``: the same store with fewer retries of its own, which is used once it has answered: then it is asked
    again for 10 minutes, or until ``leave`` is called.
    """

    def __init__(self, store: Any, patient: Any = None) -> None:
        self._store, self._patient = store, patient
        self._known, self._left = False, Event()

    def leave(self) -> None:
        """Give up to wait for a store that is away; any thread may call it."""
        self._left.set()

    def _asked(self, call: Callable[[Any], T]) -> T:
        """Return the answer of the store, which is asked again for ``_MOST_S`` if it has answered before.

        Turns an error of it (no rights, no such bucket) into an ``OSError`` of one line.
        """
        from obstore.exceptions import AlreadyExistsError, BaseError

        waiting = Timer(
            _TOLD_S, _LOG.warning, ("the object store of a checkpoint does not answer: trying on",)
        )
        waiting.daemon = True
        waiting.start()
        until, pause_s = wall() + _MOST_S, _FIRST_S
        try:
            while True:
                try:
                    return call(self._store)
                except AlreadyExistsError:
                    raise
                except BaseError as error:
                    if not self._is_away(error) or self._left.wait(pause_s) or wall() >= until:
                        words = str(error).partition("\n")[0]
                        msg = (
                            f"the object store of a checkpoint fails: {words}: check its address, the keys and the "
                            "rights, and start again: the next process restores the last checkpoint"
                        )
                        raise StoreError(msg) from error
                pause_s = min(2 * pause_s, _PAUSE_S)
        finally:
            waiting.cancel()

    def _is_away(self, error: Exception) -> bool:
        """Return whether an error may pass: of a server that has answered before, and does not refuse."""
        from obstore.exceptions import GenericError

        return self._known and isinstance(error, GenericError) and _WRONG.search(str(error)) is None

    def write(self, path: Path, data: bytes) -> None:
        """Put an object."""
        self._asked(lambda store: store.put(path.as_posix(), data))

    def create(self, path: Path, data: bytes) -> bool:
        """Put an object that is not there yet; return whether it was this call that did."""
        from obstore.exceptions import AlreadyExistsError

        try:
            self._asked(lambda store: store.put(path.as_posix(), data, mode="create"))
        except AlreadyExistsError:  # perhaps by this call, whose first answer was lost
            with suppress(FileNotFoundError):  # its owner has removed it meanwhile
                return self.read(path) == data
            return False
        return True

    def replace(self, old: Path, new: Path) -> None:
        """Give an object another name."""
        self._asked(lambda store: store.rename(old.as_posix(), new.as_posix()))

    def sync(self, folder: Path) -> None:
        """Do nothing: a put is there when it has returned."""

    def make(self, folder: Path) -> None:
        """Do nothing: keys have no folders."""

    def read(self, path: Path) -> bytes:
        """Return the bytes of an object."""
        return self._asked(lambda store: bytes(store.get(path.as_posix()).bytes()))

    def exists(self, path: Path) -> bool:
        """Return whether there is such an object."""
        with suppress(FileNotFoundError):
            self._asked(lambda store: store.head(path.as_posix()))
            return True
        return False

    def names(self, folder: Path) -> list[str]:
        """Return the names below a prefix, sorted."""
        prefix = None if folder == Path() else f"{folder.as_posix()}/"
        listed = self._asked(lambda store: store.list_with_delimiter(prefix))
        if self._patient is not None:
            self._store, self._known = self._patient, True
        keys = [*listed["common_prefixes"], *(each["path"] for each in listed["objects"])]
        return sorted({key.rstrip("/").rpartition("/")[2] for key in keys})

    def remove(self, path: Path) -> None:
        """Remove an object, if it is there; a folder, which only a store on a disk has, stays."""
        from obstore.exceptions import GenericError

        def removed(store: Any) -> None:
            try:
                store.delete(path.as_posix())
            except GenericError as error:
                if "Is a directory" not in str(error):
                    raise

        with suppress(FileNotFoundError):
            self._asked(removed)


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
        return ObjectDisk(store, from_url(str(where), retry_config=_BRIEF) if on_server else None), Path()
    except (BaseError, ValueError) as error:
        words = Address(where).clean(error).partition(" Debug source")[0][:200]
        msg = f"checkpoint {printable(where)}: {words}: give an address like s3://bucket/folder"
        raise UsageError(msg) from None
