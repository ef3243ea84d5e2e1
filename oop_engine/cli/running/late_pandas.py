"""Late pandas: Arrow imports pandas with the first array that it makes, which takes a third of a second and 40 MB.

A program of the command line has no data frames until another module imports pandas.  Until then Arrow finds none.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pyarrow as pa

__all__ = ["import_pandas_late"]

_NAME = "pandas"


def import_pandas_late() -> None:
    """Make Arrow leave pandas alone until another module imports it; nothing, where it is imported already."""
    if _NAME in sys.modules:
        return
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(absent)
    sys.meta_path.insert(0, _Present())


class _Absent(MetaPathFinder):
    """Finds no pandas, and lets nobody else find it."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Refuse pandas, and leave all else to the others."""
        if name == _NAME:
            raise ModuleNotFoundError(name=name)


class _Present(MetaPathFinder):
    """Finds pandas once, where it is, and tells Arrow of it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the others, with a loader that tells Arrow."""
        if name != _NAME:
            return None
        sys.meta_path.remove(self)
        found = find_spec(_NAME)
        if found is not None and found.loader is not None:
            found.loader = _Telling(found.loader)
        return found


class _Telling(Loader):
    """Loads a module as another loader does; Arrow knows of pandas then."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module that the other loader makes."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then let Arrow look again."""
        self._loader.exec_module(module)
        arrow: Any = pa.lib
        arrow._pandas_api.loose_version  # noqa: B018  # Arrow asks for pandas anew only where it cannot do without
