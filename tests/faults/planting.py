"""Planting: a fault is another text in the engine's source, put in place while its module is loaded.

Nothing is copied, and no file changes: the loader of a module gives the text with the fault to the compiler.  So a
fault lives in one process, and has to be planted before the module is imported.  Kernels that Numba caches are by the
file, whose text has not changed: a fault lies in Python that is not compiled.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

__all__ = ["FAULTS", "ROOT", "Edit", "Fault", "plant"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Edit:
    """``fixed`` stands once in ``file``; the fault has ``broken`` there."""

    file: str
    fixed: str
    broken: str

    def in_text(self, text: str) -> str:
        """Return the text of the file with the fault.  Raises ``ValueError`` unless ``fixed`` stands there once."""
        if (times := text.count(self.fixed)) != 1:
            msg = f"{self.file}: the text of a fault must stand there once; got {times} times: {self.fixed!r}"
            raise ValueError(msg)
        return text.replace(self.fixed, self.broken)


@dataclass(frozen=True)
class Fault:
    """A fault by its name: what it changes, and the scenarios and tests that are to notice it.

    ``slows``: times have to be measured with it; they are the same with all others.
    """

    name: str
    edits: tuple[Edit, ...]
    scenarios: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    slows: bool = False


def _fault(
    name: str,
    edit: list[dict[str, str]],
    scenarios: Sequence[str] = (),
    tests: Sequence[str] = (),
    *,
    slows: bool = False,
) -> Fault:
    return Fault(name, tuple(Edit(**one) for one in edit), tuple(scenarios), tuple(tests), slows)


FAULTS = {
    one["name"]: _fault(**one)
    for one in tomllib.loads(Path(__file__).with_name("planted.toml").read_text())["fault"]
}
"""All faults, by name."""


def plant(fault: Fault) -> None:
    """Let the modules of a fault have it from now on.  Raises ``ValueError`` if one is loaded already."""
    files = {str((ROOT / edit.file).resolve()) for edit in fault.edits}
    for name, module in list(sys.modules.items()):
        if str(Path(getattr(module, "__file__", None) or "").resolve()) in files:
            msg = f"fault {fault.name!r}: its module must take it before it is imported: {name}"
            raise ValueError(msg)
    sys.meta_path.insert(0, _Finder(fault))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, fault: Fault) -> None:
        self._edits: dict[str, list[Edit]] = {}
        for edit in fault.edits:
            self._edits.setdefault(str((ROOT / edit.file).resolve()), []).append(edit)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return spec
        edits = self._edits.get(str(Path(spec.origin).resolve()))
        if edits:
            spec.loader = _Loader(fullname, spec.origin, edits)
            spec.cached = None
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles the source with the fault, past the cache of compiled modules."""

    def __init__(self, fullname: str, path: str, edits: Sequence[Edit]) -> None:
        super().__init__(fullname, path)
        self._edits = edits

    def get_code(self, fullname: str) -> CodeType:
        text = Path(self.path).read_text()
        for edit in self._edits:
            text = edit.in_text(text)
        compiled: Any = self.source_to_code(text.encode(), self.path)
        assert isinstance(compiled, CodeType)
        return compiled
