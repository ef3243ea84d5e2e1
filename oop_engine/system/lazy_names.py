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
import sys
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cache
from importlib import import_module
from types import FrameType
from typing import Any

from oop_engine.core.close_names import did_you_mean

__all__ = ["lazy_names"]


def lazy_names(
    package: str,
    *,
    by_name_only: Container[str] = (),
    instead: Mapping[str, str] | None = None,
    elsewhere: str | None = None,
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of ``package``, which knows ``__all__`` too.

    ``by_name_only``: names that ``import *`` leaves out, for they need an extra.  ``instead``: names that other systems
    have, in small letters without ``_``, and the names here.  ``elsewhere``: another package whose names are meant
    where this one has none that is alike.
    Reading the list takes about a millisecond, once.  Raises ``ImportError`` there for a package without its source.
    """

    @cache
    def homes() -> dict[str, str]:
        return listed(source_of(package))

    def load(name: str) -> object:
        names = vars(sys.modules[package])
        if name == "__all__":
            names[name] = sorted(one for one in homes() if one not in by_name_only)
        elif name.startswith("__") or name not in homes():
            hint = "" if name.startswith("_") else _hint(name, homes(), instead or {}, elsewhere)
            msg = f"module {package!r} has no attribute {name!r}{hint}"
            if hint and _imported(sys._getframe(1)):  # Python drops the words of an AttributeError there
                raise ImportError(msg, name=package)
            raise AttributeError(msg)
        else:
            names[name] = getattr(import_module(homes()[name]), name)
        return names[name]

    return load, lambda: sorted({*vars(sys.modules[package]), *homes()})


def _hint(name: str, homes: Mapping[str, str], instead: Mapping[str, str], elsewhere: str | None) -> str:
    """Return the name that was meant: another package's very name comes before one that is alike here."""
    if elsewhere is not None and name in dir(import_module(elsewhere)):
        return _of_another(name, elsewhere)
    alike = meant(name, homes, instead)
    return _of_another(name, elsewhere) if not alike and elsewhere is not None else alike


def _of_another(name: str, package: str) -> str:
    """Return that another package has the name, or one that is alike."""
    other = import_module(package)
    if name in dir(other):
        return f": from {package} import {name}"
    try:
        getattr(other, name)
    except AttributeError as error:
        found = str(error).partition(f"{name!r}")[2]
        return f" (of {package}){found}" if found else ""
    return ""


def _imported(frame: FrameType) -> bool:
    """Tell whether a frame is at a ``from ... import``."""
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
    names = {one.lower(): one for one in known}
    stem = small.removesuffix("windows").removesuffix("window").removesuffix("join").removesuffix("aggregate")
    return did_you_mean(next((one for one in (stem, small) if one in names), small), names.values())


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
