"""The names of a package, each loaded when it is first used, so that importing the package is quick.

A package lists them once, under ``if TYPE_CHECKING``, as imports that a type checker reads; here the same lines are
read when the first name is asked for::

    if TYPE_CHECKING:
        from oop_engine.core.page import Page as Page
    else:
        __getattr__, __dir__ = lazy_names(__name__)

``as Page`` is how a type checker knows that the name is public.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from types import FrameType
from typing import Any

from oop_engine.core.close_names import SHELVES, did_you_mean

__all__ = ["lazy_names", "listed", "shelf", "source_of"]


def lazy_names(
    package: str, *, elsewhere: Iterable[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of ``package``, which knows ``__all__`` too.

    ``elsewhere``: packages, in which a name that is not here may be; where several have it, the first.
    Reading the list takes about a millisecond, once.  Raises ``ImportError`` there for a package without its source.
    """

    @cache
    def homes() -> dict[str, str]:
        return listed(source_of(package))

    def load(name: str) -> object:
        names = vars(sys.modules[package])
        if name == "__all__":
            from oop_engine.system.moved_names import before

            return sorted({*homes(), *before(package, sys._getframe(1))})
        if name.startswith("__") or name not in homes():
            quiet = (
                name.startswith("_") or sys._getframe(1).f_globals.get("__name__") == "importlib._bootstrap"
            )
            if not quiet and (value := _moved(package, name, elsewhere)) is not None:
                return value
            hint = "" if quiet else _hint(name, homes(), elsewhere)  # the import system looks for submodules
            msg = f"module {package!r} has no attribute {name!r}{hint}"
            if hint and _imported(sys._getframe(1)):  # Python drops the words of an AttributeError there
                raise ImportError(msg, name=package)
            raise AttributeError(msg)
        else:
            names[name] = getattr(import_module(homes()[name]), name)
        return names[name]

    return load, lambda: sorted(homes())


def shelf(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a shelf, or of the root: a wrong name is looked for on all."""
    top = package.partition(".")[0]
    return lazy_names(package, elsewhere=[top, *(f"{top}.{name}" for name in SHELVES)])


def _hint(name: str, here: Mapping[str, str], elsewhere: Iterable[str]) -> str:
    """Return the name that was meant: the very name, elsewhere, comes before one that is alike."""
    from oop_engine.system.other_names import INSTEAD  # only where a name is wrong

    others = _packages(elsewhere)
    if name in others:
        return f": from {others[name]} import {name}"
    alike = meant(name, here, INSTEAD if others else {}) or meant(name, others, {})
    needed: dict[str, list[str]] = {}
    for word in sorted(set(re.findall(r"[A-Za-z]\w+", alike))):
        if word in others and word not in here:
            needed.setdefault(others[word], []).append(word)
    lines = "; ".join(
        f"from {package} import {', '.join(names)}" for package, names in sorted(needed.items())
    )
    return f"{alike} ({lines})" if lines else alike


def _packages(elsewhere: Iterable[str]) -> dict[str, str]:
    """Return the package of each name that is elsewhere."""
    return {name: package for package in reversed([*elsewhere]) for name in import_module(package).__all__}


def _moved(package: str, name: str, elsewhere: Iterable[str]) -> object | None:
    from oop_engine.system.moved_names import moved

    return moved(package, name, lambda: _packages(elsewhere), sys._getframe(2))


def _imported(frame: FrameType) -> bool:
    """Return whether a frame is at a ``from ... import``."""
    import dis  # only where a name is wrong

    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def meant(name: str, known: Iterable[str], instead: Mapping[str, str]) -> str:
    """Return the name that was meant, as the end of a message, or nothing.

    >>> meant("TumblingWindow", ["Tumbling"], {"hoppingwindow": "Sliding"})
    '; did you mean Tumbling?'
    >>> meant("HoppingWindow", ["Tumbling"], {"hoppingwindow": "Sliding"})
    ': write Sliding'
    """
    small = name.lower().replace("_", "")
    if small in instead:
        return f": write {instead[small]}"
    names = {name.lower(): name for name in known}
    stem = small.removesuffix("windows").removesuffix("window").removesuffix("join").removesuffix("aggregate")
    return did_you_mean(next((form for form in (stem, small) if form in names), small), names.values())


def listed(source: str) -> dict[str, str]:
    """Return the module of each name that ``source`` imports for type checkers as public.

    >>> listed("if TYPE_CHECKING:\\n    from page import Page as Page, pages\\n")
    {'Page': 'page'}
    """
    blocks = [
        n for n in ast.parse(source).body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"
    ]
    imports = [n for block in blocks for n in block.body if isinstance(n, ast.ImportFrom)]
    return {alias.name: n.module or "" for n in imports for alias in n.names if alias.asname == alias.name}


def source_of(package: str) -> str:
    """Return the text of a package's ``__init__``, also out of a zip file."""
    loader: Any = getattr(sys.modules[package].__spec__, "loader", None)
    source: str | None = loader.get_source(package) if hasattr(loader, "get_source") else None
    if source is None:
        msg = f"{package}: its names are read from its source, which is not there: install it with its .py files"
        raise ImportError(msg)
    return source
