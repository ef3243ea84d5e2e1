"""Sinks of others: usual mistakes in their methods and in all that they prepare, each named with its place."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isasyncgenfunction, isgeneratorfunction
from typing import Any

from oop_engine.connectors.parts.calls import check_methods, check_parameters
from oop_engine.connectors.parts.json_value import json_value
from oop_engine.connectors.sink import LiveSink, Prepared
from oop_engine.core.errors import ContractError, UsageError

__all__ = ["check_function", "check_sink", "prepared_of"]

_METHODS = {
    "open": "schema, run, prepared",
    "write": "epoch, page",
    "prepare": "epoch",
    "commit": "prepared",
    "forget": "",
    "close": "",
}


def check_sink(place: str, sink: LiveSink) -> None:
    """Raise ``UsageError`` unless the methods of a sink have the form that a service calls, and belong together."""
    check_methods(place, sink, LiveSink, _METHODS)
    if not _writes(sink, "write"):
        msg = f"{place}: has no write: write async def write(self, epoch, page)"
        raise UsageError(msg)
    if _writes(sink, "commit") and not _writes(sink, "prepare"):
        msg = (
            f"{place}: has commit and no prepare, so commit is never called: write async def prepare(self, epoch), "
            "which returns all that commit needs"
        )
        raise UsageError(msg)
    kinds: Any = sink.failures
    if not isinstance(kinds, tuple) or not all(
        isinstance(k, type) and issubclass(k, Exception) for k in kinds
    ):
        msg = f"{place}: failures must be a tuple of classes of errors, such as (OSError,); got {kinds!r:.60}"
        raise UsageError(msg)


def check_function(place: str, function: Callable[..., Any]) -> None:
    """Raise ``UsageError`` unless a function can be called with a page, and does its work then."""
    if isinstance(function, type):
        form = (
            f"an object of it, {function.__name__}(...)"
            if issubclass(function, LiveSink)
            else "a function of a page"
        )
        msg = f"{place}: must be a LiveSink or a function of a page; got the class {function.__name__}: give {form}"
        raise UsageError(msg)
    if isgeneratorfunction(function) or isasyncgenfunction(function):
        msg = f"{place}: a function of a page does its work when it is called; got a generator: write it without yield"
        raise UsageError(msg)
    check_parameters(
        place, getattr(function, "__name__", "function"), function, "page", "a function of a page"
    )


def prepared_of(place: str, sink: LiveSink, returned: object) -> Prepared:
    """Return the value of ``prepare`` as one that stays.  Raises ``ContractError`` if it cannot be committed."""
    if returned is not None and not _writes(sink, "commit"):
        msg = (
            f"{place}: prepare returns {returned!r:.60} and commit does nothing, so results stay hidden: write "
            "async def commit(self, prepared), or return None"
        )
        raise ContractError(msg)
    return json_value(returned, f"{place}: the value of prepare")


def _writes(sink: LiveSink, name: str) -> bool:
    """Return whether a sink has a method of its own."""
    return getattr(type(sink), name, None) is not getattr(LiveSink, name) or name in vars(sink)
