"""Steps: each leaves a mark when it is done; a step that has its mark is not done again.

A mark has a hash of the inputs of the step and of all steps before it.  If that has changed, the
step is done again, and so is every later one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from oop_engine.core.errors import UsageError

__all__ = ["Steps"]

_MARKS = "steps"


class Steps:
    """The steps of a pipeline in ``folder``, in the order in which they are asked for.

    Raises ``UsageError`` if there is something in the folder that no pipeline has put there.
    """

    def __init__(self, folder: Path, on_step: Callable[[str], None]) -> None:
        self.folder = folder
        self.done: dict[str, dict[str, Any]] = {}
        self._on_step = on_step
        self._key = ""
        if folder.exists() and not (folder / _MARKS).is_dir() and any(folder.iterdir()):
            msg = f"{folder}: is not empty, and holds no pipeline: give a folder of its own"
            raise UsageError(msg)
        (folder / _MARKS).mkdir(parents=True, exist_ok=True)

    def all_known(self, ahead: Sequence[tuple[str, Any]]) -> bool:
        """Return whether all of the next steps, names with inputs, are done with the inputs of now."""
        key = self._key
        for name, given in ahead:
            key = _hash(key, given)
            if self._mark(name).get("key") != key:
                return False
        return True

    def forget(self, name: str) -> None:
        """Take the mark of a step away."""
        self._path(name).unlink(missing_ok=True)

    def result(self, name: str) -> dict[str, Any]:
        """Return the result of a step that is done."""
        result: dict[str, Any] = self.done[name]["told"]
        return result

    def key(self, given: Any) -> str:
        """Return the hash in the mark of the next step for these inputs."""
        return _hash(self._key, given)

    def do(
        self,
        name: str,
        given: Any,
        work: Callable[[], dict[str, Any]],
        before: Callable[[], Any] | None = None,
    ) -> None:
        """Do ``work`` unless it is done; keep its result, which is plain values.

        ``before``: a preparation whose time is not counted as the step's.
        """
        key, mark = self.key(given), self._mark(name)
        again = mark.get("key") == key
        if not again:
            if before is not None:
                before()
            self._on_step(name)
            self.forget(name)
            began = time.perf_counter()
            result = work()
            mark = {"key": key, "seconds": round(time.perf_counter() - began, 3), "told": result}
            unfinished = self._path(name).with_suffix(".part")
            unfinished.write_text(json.dumps(mark, indent=1, default=str))
            unfinished.replace(self._path(name))
            mark = self._mark(name)  # as it is read later on
        self.done[name] = mark | {"again": again}
        self._key = key

    def _path(self, name: str) -> Path:
        return self.folder / _MARKS / f"{name}.json"

    def _mark(self, name: str) -> dict[str, Any]:
        try:
            mark: dict[str, Any] = json.loads(self._path(name).read_text())
        except (FileNotFoundError, ValueError):  # a mark that cannot be read is none
            return {}
        return mark


def _hash(before: str, given: Any) -> str:
    return hashlib.sha256(json.dumps([before, given], sort_keys=True, default=str).encode()).hexdigest()[:24]
