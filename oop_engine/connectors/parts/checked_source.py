"""Sources of others: usual mistakes in their methods and in their data, each named with its place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any

from oop_engine.connectors.parts.calls import check_methods, check_parameters
from oop_engine.connectors.parts.json_value import json_value
from oop_engine.connectors.source import LiveSource, Position
from oop_engine.core.errors import ContractError, UsageError
from oop_engine.core.page import Page
from oop_engine.core.registry import is_ours

__all__ = ["behind_data", "check_data", "check_source", "no_pair", "pieces_of", "rest_of"]

_FORM = "async def read(self, position), with `yield data, position`"
_METHODS = {"acknowledge": "position", "latest": "", "close": ""}
_SCALARS = (int, float, type(None))


def check_source(place: str, source: LiveSource) -> None:
    """Raise ``UsageError`` unless the methods of a source have the form that a service calls."""
    read = source.read
    if getattr(type(source), "read", None) is LiveSource.read and "read" not in vars(source):
        msg = f"{place}: has no read: write {_FORM}"
        raise UsageError(msg)
    if not callable(read) or iscoroutinefunction(read) or isgeneratorfunction(read):
        got = "one without yield" if iscoroutinefunction(read) else "a plain generator (def)"
        msg = f"{place}: read must be {_FORM}; got {got if callable(read) else f'{read!r:.60}'}"
        raise UsageError(msg)
    check_parameters(place, "read", read, "position", _FORM)
    check_methods(place, source, LiveSource, _METHODS)
    if not hasattr(source.metadata, "items"):
        got = f"{source.metadata!r:.60}"
        msg = f"{place}: metadata must have the types of columns of messages by their names; got {got}"
        raise UsageError(msg)
    adds: object = source.adds
    if isinstance(adds, str):
        msg = f"{place}: adds must be a tuple of column names; got {adds!r}: write ({adds!r},)"
        raise UsageError(msg)


def pieces_of(place: str, source: LiveSource, position: Position) -> AsyncIterator[Any]:
    """Return the data of a source, one by one.  Raises ``ContractError`` if ``read`` returns anything else."""
    returned: Any = source.read(position)
    if hasattr(returned, "aclose") and hasattr(returned, "__anext__"):
        pieces: AsyncIterator[Any] = returned
        return pieces
    if isasyncgenfunction(source.read) or not hasattr(returned, "__aiter__"):
        got = f"{returned!r:.60} ({type(returned).__name__})"
        msg = f"{place}: read must be an asynchronous generator, {_FORM}; got {got}"
        raise ContractError(msg)
    return _each(returned)


async def _each(returned: Any) -> AsyncIterator[Any]:
    async for piece in returned:
        yield piece


def no_pair(place: str, piece: object) -> ContractError:
    """Return the error of a source that yields anything but data and a position."""
    got = f"{piece!r:.80} ({type(piece).__name__})"
    wanted = "data and the position behind them, a tuple of two"
    return ContractError(f"{place}: read must yield {wanted}; got {got}: `yield data, position`")


def check_data(place: str, source: LiveSource, data: object, position: object) -> None:
    """Raise ``ContractError`` if data are of no type that the source's format can be of; for the first of each type."""
    if source.format == "rows":
        if isinstance(data, _SCALARS) and isinstance(position, dict | list | tuple | Page):
            got = f"{data!r:.40}, {position!r:.60}"
            msg = (
                f"{place}: read must yield data, then the position behind them; got {got}: are they swapped?"
            )
            raise ContractError(msg)
    elif isinstance(data, str | dict | Page):
        kind = getattr(source.format, "name", source.format)
        way = "encode it" if isinstance(data, str) else "yield bytes, or take format = 'rows'"
        got = f"{data!r:.60} ({type(data).__name__})"
        msg = f"{place}: of the format {kind!r} data are bytes, or a list of bytes; got {got}: {way}"
        raise ContractError(msg)


def behind_data(place: str, source: LiveSource, position: object) -> Position:
    """Return a position that stays as it is.  Raises ``ContractError`` for one that a checkpoint cannot keep.

    None is one of a source that cannot be read again; of this package's also where a server gives some events no id.
    """
    if position is None and source.replayable and not is_ours(type(source)):
        msg = (
            f"{place}: is replayable, and yields None as the position behind its data, from which it would be read "
            "from its beginning again: yield the position behind them, or set replayable = False"
        )
        raise ContractError(msg)
    return json_value(position, f"{place}: a position")


def rest_of(place: str, method: str, returned: object) -> list[tuple[Any, Position]]:
    """Return the value of ``rest`` or ``last_data``, data with their positions.  Raises ``ContractError`` else."""
    if isinstance(returned, list) and all(isinstance(piece, tuple) and len(piece) == 2 for piece in returned):
        return returned
    msg = f"{place}: {method} must return a list of (data, position); got {returned!r:.80} ({type(returned).__name__})"
    raise ContractError(msg)
