"""Library: a package that one connector needs, loaded when it is used."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from oop_engine.core.errors import not_installed
from oop_engine.system.on_thread import on_thread

__all__ = ["library", "loaded"]


def library(module: str, extra: str, place: str) -> Any:
    """Return a module.  Raises ``SetupError`` in the name of ``place`` if it is not installed.

    >>> library("no_such", "mqtt", "Mqtt")
    Traceback (most recent call last):
    oop_engine.core.errors.SetupError: Mqtt needs no-such, not installed here: pip install 'oop-engine[mqtt]', ...
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise not_installed(place, module.partition(".")[0].replace("_", "-"), extra) from error


async def loaded(*modules: str) -> None:
    """Load modules on a thread: the client of a server takes up to .3 s, for which all tasks of the event loop waited.

    Those that are not installed are left to ``library``, which raises.
    """
    if missing := [module for module in modules if module not in sys.modules]:
        await on_thread(_load, missing)


def _load(modules: Sequence[str]) -> None:
    for module in modules:
        with suppress(ImportError):
            import_module(module)
