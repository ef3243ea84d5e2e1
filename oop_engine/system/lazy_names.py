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
from collections.abc import Callable, Container
from functools import cache
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, *, by_name_only: Container[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of ``package``, which knows ``__all__`` too.

    ``by_name_only``: names that ``import *`` leaves out, for they need an extra.
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
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        else:
            names[name] = getattr(import_module(homes()[name]), name)
        return names[name]

    return load, lambda: sorted({*vars(sys.modules[package]), *homes()})


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
