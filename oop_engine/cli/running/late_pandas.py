"""Late pandas: Arrow imports pandas with the first array that it makes, which takes a third of a second and 40 MB.

A program of the command line has no data frames until another module imports pandas.  Until then Arrow finds none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["import_pandas_late"]

_NAME, _ARROW = "pandas", "pyarrow"


def import_pandas_late() -> None:
    """Make Arrow leave pandas alone until another module imports it; nothing, where it is imported already.

    Arrow itself is not imported: that waits for whoever imports it.
    """
    if _NAME in sys.modules:
        return
    if _ARROW in sys.modules:
        _look_away(sys.modules[_ARROW])
    else:
        sys.meta_path.insert(0, _Behind(_ARROW, _look_away))


def _look_away(arrow: Any) -> None:
    """Make Arrow believe that pandas is missing; it checks again when another module imports pandas."""
    if _NAME in sys.modules:  # which imports Arrow just now
        return
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        arrow.array([0])
    finally:
        sys.meta_path.remove(absent)
    # Arrow asks for pandas anew only where it cannot do without.
    sys.meta_path.insert(0, _Behind(_NAME, lambda _: arrow.lib._pandas_api.loose_version))


class _Absent(MetaPathFinder):
    """Finds no pandas, and lets nobody else find it."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Refuse pandas, and leave all else to the others."""
        if name == _NAME:
            raise ModuleNotFoundError(name=name)


class _Behind(MetaPathFinder):
    """Finds a module once, where it is, and calls ``then`` with it once it is loaded."""

    def __init__(self, name: str, then: Callable[[ModuleType], object]) -> None:
        self._name, self._then = name, then

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the others, with a loader that calls ``then``."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Calling(spec.loader, self._then)
        return spec


class _Calling(Loader):
    """Loads a module as another loader does, and calls ``then`` with it."""

    def __init__(self, loader: Loader, then: Callable[[ModuleType], object]) -> None:
        self._loader, self._then = loader, then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module that the other loader makes."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then call ``then``."""
        self._loader.exec_module(module)
        self._then(module)
