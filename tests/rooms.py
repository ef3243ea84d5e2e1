"""The rooms of the package: which imports which, and the floors that follow.

A room is a folder of ``oop_engine``, or of ``oop_engine/operators``.  It stands a floor above all rooms that it
imports, also within the bodies of functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import TopologicalSorter

from oop_engine.core.close_names import SHELVES
from tests.sources import MODULES, loaded, text_of

__all__ = ["FACES", "Rooms", "description", "floors", "imports", "room_of", "without_shortcuts"]

FACES = {"oop_engine", *(f"oop_engine.{shelf}" for shelf in SHELVES)}
LEFT_OUT = {*FACES, "oop_engine.__main__", "oop_engine.system.knobs"}
BY_NAME = "scenarios"  # the laboratory finds them by their names, as those of other packages
OPERATORS = ("edge", "levels")  # operators, as the files beside these folders
FILES = {name for name, path in MODULES.items() if path.name != "__init__.py"}
Rooms = Mapping[str, set[str]]
"""The rooms that each room imports."""


def room_of(module: str) -> str:
    """Return the room of a module.

    >>> room_of("oop_engine.operators.meld"), room_of("oop_engine.operators.keys.behind")
    ('operators', 'operators/keys')
    """
    _, room, *rest = module.split(".")
    own = room == "operators" and rest[0] not in OPERATORS and f"oop_engine.operators.{rest[0]}" not in FILES
    return f"{room}/{rest[0]}" if own else room


def imports() -> Rooms:
    """Return which room imports which, from the sources; those that only list names, and the knobs, are left out."""
    rooms = {room_of(name): set[str]() for name in MODULES if name not in LEFT_OUT}
    for name, path in MODULES.items():
        if name not in LEFT_OUT:
            found = {
                room_of(each) for each in loaded(text_of(path)) if each in MODULES and each not in LEFT_OUT
            }
            rooms[room_of(name)] |= found - {room_of(name), BY_NAME}
    return rooms


def floors(rooms: Rooms) -> dict[str, int]:
    """Return the floor of each room, 0 at the ground.

    >>> floors({"a": set(), "b": {"a"}, "c": {"a", "b"}})
    {'a': 0, 'b': 1, 'c': 2}
    """
    found: dict[str, int] = {}
    for room in TopologicalSorter(rooms).static_order():
        found[room] = max((found[below] + 1 for below in rooms[room]), default=0)
    return found


def without_shortcuts(rooms: Rooms) -> dict[str, set[str]]:
    """Return the arrows that do not follow from two others.

    >>> without_shortcuts({"a": set(), "b": {"a"}, "c": {"a", "b"}})["c"]
    {'b'}
    """
    under: dict[str, set[str]] = {}
    for room in TopologicalSorter(rooms).static_order():
        under[room] = rooms[room].union(*(under[below] for below in rooms[room]))
    return {room: below - set[str]().union(*(under[b] for b in below)) for room, below in rooms.items()}


def description(rooms: Rooms) -> str:
    """Return all arrows as text, a room after the other."""
    return "; ".join(
        f"{room}: {', '.join(sorted(below)) or 'nothing'}" for room, below in sorted(rooms.items())
    )
