"""Library: a package that one connector needs, loaded when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from oop_engine.core.errors import not_installed

__all__ = ["library"]


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
