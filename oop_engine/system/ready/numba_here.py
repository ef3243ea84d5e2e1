"""The Numba that is installed, which is not imported."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

__all__ = ["home", "known_numba", "version"]

_NUMBA = ("0.68.",)
"""Versions of Numba whose cache files, helpers and calls of kernels are known to be as this reads them."""


def known_numba() -> bool:
    """Return whether the installed Numba is of a known version."""
    return (version() or "").startswith(_NUMBA)


@cache
def home() -> Path | None:
    """Return the folder of Numba, which is not imported."""
    spec = find_spec("numba")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


@cache
def version() -> str | None:
    """Return its version; None: none is found."""
    folder = home()
    try:
        text = "" if folder is None else (folder / "_version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    match = re.search(r'"version": "([^"]*)"', text)
    return None if match is None else match[1]
