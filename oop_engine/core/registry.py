"""Registry: all things of a kind, by name.  More is added from outside, without a change in this project.

A package that is installed beside this one names its modules as entry points of the group ``oop_engine``; they are
imported once, when a name is asked for that nobody has registered yet, or when all names are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from oop_engine.core.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Registry", "Travelling", "is_ours", "take_over", "travelling"]

T = TypeVar("T")
_GROUP = "oop_engine"
_failed: dict[str, UsageError] = {}  # by entry point
_known: set[str] = set()
_travel: dict[str, Registry[Any]] = {}
Travelling: TypeAlias = tuple[tuple[str, str, Any, str], ...]
"""Things that a process has registered, each with the kind of its registry, its name and its home."""


def is_ours(kind: type) -> bool:
    """Return whether a class is of this package, whose tests hold it to its contract; parts of others are checked.

    >>> is_ours(Registry), is_ours(dict)
    (True, False)
    """
    return kind.__module__.startswith("oop_engine.")


class Registry(Mapping[str, T], Generic[T]):
    """Things of one ``kind`` by name, in the order in which they came.

    ``travels``: those from outside this package go with a graph to other processes (``travelling``).

    >>> colours = Registry[str]("colour")
    >>> colours.register("red", "#f00", "of here")
    '#f00'
    >>> list(colours), colours["red"]
    (['red'], '#f00')
    """

    def __init__(self, kind: str, *, travels: bool = False) -> None:
        self._kind = kind
        self._things: dict[str, tuple[T, str]] = {}
        if travels:
            _travel[kind] = self

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

    def registered(self) -> list[str]:
        """Return the names so far, for a module that is being imported."""
        return list(self._things)

    def __getitem__(self, name: str) -> T:
        if name not in self._things:
            _import_installed()
        return self._things[name][0]

    def __iter__(self) -> Iterator[str]:
        _import_installed()
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)


def travelling() -> Travelling:
    """Return the things from outside this package that another process does not know by itself."""
    return tuple(
        (kind, name, thing, home)
        for kind, registry in _travel.items()
        for name, (thing, home) in registry._things.items()
        if not home.startswith("oop_engine.")
    )


def take_over(things: Travelling) -> None:
    """Register the things that another process sent."""
    for kind, name, thing, home in things:
        _travel[kind].register(name, thing, home)


def _import_installed() -> None:
    """Import the modules of other packages, once.  Raises ``UsageError`` whenever one of them could not be imported."""
    if _GROUP not in _known:
        from importlib.metadata import entry_points

        _known.add(_GROUP)
        for entry in entry_points(group=_GROUP):
            try:
                entry.load()
            except Exception as error:  # a module may raise anything
                _failed[entry.value] = _error_of(entry, error)
    for failed in _failed.values():
        raise failed


def _error_of(entry: EntryPoint, error: Exception) -> UsageError:
    package = entry.dist.name if entry.dist is not None else "a package"
    why = f"{type(error).__name__}: {error}"
    msg = f"{package}: its entry point {entry.name} = {entry.value} fails: {why}: mend or uninstall it"
    failure = UsageError(msg)
    failure.__cause__ = error
    return failure
