"""Calls of the methods of sources and sinks: forms are checked before a service starts, errors get their place."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Mapping
from inspect import isasyncgenfunction, isawaitable, iscoroutinefunction, isgeneratorfunction, signature
from typing import Any

from oop_engine.connectors.link import UnreachableError
from oop_engine.connectors.sink import LiveSink
from oop_engine.connectors.source import LiveSource
from oop_engine.core.errors import ContractError, UsageError
from oop_engine.runners.faults import blame_part

__all__ = ["called", "check_apart", "check_methods", "check_parameters", "part_in_words"]

_OURS = "oop_engine."


def part_in_words(kind: str, name: str, part: object) -> str:
    """Return the place of a part in messages, such as ``sink 'out' (Lines)``.

    >>> part_in_words("sink", "out", 5)
    "sink 'out' (int)"
    """
    return f"{kind} {name!r} ({type(part).__name__})"


def check_apart(parts: Mapping[str, object]) -> None:
    """Raise ``UsageError`` if two of the parts, which are there by their names in messages, are one object."""
    seen = dict[int, str]()
    for name, part in parts.items():
        if isinstance(part, LiveSource | LiveSink) and seen.setdefault(id(part), name) != name:
            msg = f"{seen[id(part)]} and {name} are one {type(part).__name__}: give each an object of its own"
            raise UsageError(msg)


def check_methods(place: str, part: object, base: type, methods: Mapping[str, str]) -> None:
    """Raise ``UsageError`` unless the methods of a part can be called with the parameters that they get.

    ``methods``: by name, the parameters behind ``self``.  Those of ``base`` and of this package are right.
    """
    for name, parameters in methods.items():
        method = getattr(part, name, None)
        if getattr(type(part), name, None) is getattr(base, name) and name not in vars(part):
            continue
        form = f"async def {name}(self{', ' if parameters else ''}{parameters})"
        if not callable(method):
            msg = f"{place}: {name} must be a method, {form}; got {method!r:.60}"
            raise UsageError(msg)
        if getattr(method, "__module__", "").startswith(_OURS):
            continue
        if isgeneratorfunction(method) or isasyncgenfunction(method):
            msg = f"{place}: {name} must be {form}, without yield: a generator is never awaited"
            raise UsageError(msg)
        check_parameters(place, name, method, parameters, form)


def check_parameters(place: str, name: str, method: Callable[..., Any], parameters: str, form: str) -> None:
    """Raise ``UsageError`` unless a function takes the ``parameters``, which are given by their places."""
    given = [each for each in parameters.split(", ") if each]
    try:
        taken = signature(method)
        taken.bind(*given)
    except ValueError:  # it has no signature in Python
        return
    except TypeError as error:
        names = ", ".join(taken.parameters)
        words = "async def" if iscoroutinefunction(method) or isasyncgenfunction(method) else "def"
        msg = f"{place}: {name} must be {form}; got {words} {name}({names}) ({error})"
        raise UsageError(msg) from error


async def called(place: str, part: object, name: str, *given: Any) -> Any:
    """Return the value of an asynchronous method of a source or sink; its error gets a note with the place."""
    try:
        returned = getattr(part, name)(*given)
        if isawaitable(returned):
            return await returned
    except UnreachableError:
        raise
    except CancelledError as error:
        blame_part(f"{place}: {name}", error)
    except Exception as error:
        error.add_note(f"{place}: raised by {name}")
        raise
    msg = f"{place}: {name} must be asynchronous; got {returned!r:.60} ({type(returned).__name__}): write async def"
    raise ContractError(msg)
