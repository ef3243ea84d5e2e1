"""Registry: what there is of a kind, by name.  More is added from outside, without a change in this project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from oop_engine.core.errors import UsageError

__all__ = ["Registry"]

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Things of one ``kind`` by name, in the order in which they came.

    >>> colours = Registry[str]("colour")
    >>> colours.register("red", "#f00", "of here")
    '#f00'
    >>> list(colours), colours["red"]
    (['red'], '#f00')
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._things: dict[str, tuple[T, str]] = {}

    def register(self, name: str, thing: T, home: str) -> T:
        """Take up ``thing`` and return it; ``home``: who brings it, such as the name of a module.

        The same home may bring it again, as a cell of a notebook does that runs twice.  Raises ``UsageError`` if the
        name is that of a thing from elsewhere.
        """
        known = self._things.get(name)
        if known is not None and known[1] != home:
            msg = f"there is a {self._kind} {name!r} already, of {known[1]}; got another of {home}: take another name"
            raise UsageError(msg)
        self._things[name] = (thing, home)
        return thing

    def home(self, name: str) -> str:
        """Return who brought a thing."""
        return self._things[name][1]

    def __getitem__(self, name: str) -> T:
        return self._things[name][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)
