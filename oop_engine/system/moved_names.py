"""Moved names: those of before the first release, found where they were, until that release removes this file.

``oop_engine`` and ``oop_engine.operators`` had nearly all names.  Whoever imports one from there gets it, with a
``DeprecationWarning`` that has the line to write; ``*`` brings them all, without one, for nobody knows which are used.
"""

from __future__ import annotations

import dis
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FrameType

__all__ = ["before", "moved"]

_PACKAGES = ("oop_engine", "oop_engine.operators")
_SHELVES = ("windows", "aggregates", "joins", "policies", "triggers", "thesis", "operators")
_OF_EXTEND = ("Expression", "Extents", "Folding", "Part", "Policy", "Trigger", "WindowView", "Windows")
_RENAMED = {
    "Apply": "WithColumns",
    "Describe": "PrunePunctuation",
    "Select": "Filter",
    "SlicedAggregate": "WindowAggregate",
    "Stamp": "ArrivalTime",
    "described": "prune_punctuation",
}
_STAR = ("IMPORT_STAR", "CALL_INTRINSIC_1")  # before Python 3.12, and since


def moved(package: str, name: str, shelves: Mapping[str, str], frame: FrameType) -> object | None:
    """Return the object that ``package`` had under a name, or None.  ``shelves``: the one of each name now."""
    now = _RENAMED.get(name, name)
    if package not in _PACKAGES or now not in shelves:
        return None
    if not _is_star(frame):
        line = f"from {shelves[now]} import {now}"
        warnings.warn(f"{package}.{name} has moved: {line}", DeprecationWarning, stacklevel=4)
    found: object = getattr(import_module(shelves[now]), now)
    return found


def before(package: str, shelves: Callable[[], Mapping[str, str]], frame: FrameType) -> set[str]:
    """Return the names that ``*`` brought from ``package``, if a frame asks for them."""
    if package not in _PACKAGES or not _is_star(frame):
        return set()
    rooms = {
        name: shelf.rpartition(".")[2] for name, shelf in shelves().items() if shelf != "oop_engine.testing"
    }
    if package == "oop_engine":
        return {*rooms}
    return {name for name, room in rooms.items() if room in _SHELVES} | {*_OF_EXTEND, *_RENAMED}


def _is_star(frame: FrameType) -> bool:
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] in _STAR
