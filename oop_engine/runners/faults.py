"""Faults: an error of an operator names its place, and the message.

Errors of ours keep their type and get the place in front; any other comes out as an ``OperatorError``
whose cause it is.  So does a ``CancelledError`` that an operator or a receiver of results raises: asyncio
would take it for a task that somebody cancelled, and nobody would learn of the rows that are lost.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable
from numbers import Integral
from typing import TYPE_CHECKING, Any, NoReturn

from oop_engine.core.errors import ContractError, EngineError, OperatorError
from oop_engine.core.operator import Message, Operator
from oop_engine.core.page import Page
from oop_engine.core.punctuation import GroupWise
from oop_engine.runners.dispatch import Result, Signal

if TYPE_CHECKING:
    from asyncio import CancelledError  # which a plain loop does without until there is an error

__all__ = [
    "blame",
    "blame_part",
    "cancelling",
    "counts_of",
    "deliver",
    "faults",
    "first_of",
    "place_of",
    "taken",
    "wrapped",
]


def faults() -> tuple[type[BaseException], ...]:
    """Return the exceptions of an operator that are errors of its own; called where one was raised."""
    return Exception, _cancelled()


def _cancelled() -> type[CancelledError]:
    from asyncio import CancelledError

    return CancelledError


def blame(
    error: BaseException, graph: str, node: str, operator: Operator, port: int, message: Message | Signal
) -> NoReturn:
    """Raise the error that an operator has just raised over a message, with the place."""
    of_port = f"input {operator.inputs[port]!r}, " if len(operator.inputs) > 1 else ""
    of_port = of_port if message is not Signal.TICK else ""
    _raise_at(f"{place_of(graph, node, operator)}, {of_port}{_in_words(message)}", error)


def place_of(graph: str, node: str, operator: Operator) -> str:
    """Return how messages name an operator of a graph."""
    return f"graph {graph!r}, operator {node!r} ({type(operator).__name__})"


def counts_of(place: str, operator: Operator) -> dict[str, int]:
    """Return the counts of an operator.

    Raises an error of its own with the ``place``, and ``ContractError`` for what are no counts.
    """
    try:
        counts: Any = operator.counts()
    except faults() as error:
        _raise_at(f"{place}, counts()", error)
    if isinstance(counts, dict) and all(
        isinstance(name, str) and isinstance(number, Integral) for name, number in counts.items()
    ):
        return counts
    msg = f"{place}: counts() must return whole numbers by their names, such as {{'late': 3}}; got {counts!r:.80}"
    raise ContractError(msg)


def _raise_at(place: str, error: BaseException) -> NoReturn:
    if isinstance(error, EngineError):
        error.args = (f"{place}: {error}",)
        raise error
    raise wrapped(place, error) from error


def deliver(graph: str, receiver: Callable[[Result], object], result: Result) -> object:
    """Hand a result over to its receiver; an error of that is raised as it is, but for a ``CancelledError``.

    Return its return value: of an asynchronous receiver an awaitable, see ``taken``.
    """
    try:
        return receiver(result)
    except _cancelled() as error:
        raise wrapped(_at_sink(graph, result), error) from error


async def taken(graph: str, result: Result, taking: object) -> None:
    """Wait until an asynchronous receiver has taken a result; ``taking``: the return value of ``deliver``."""
    try:
        if isawaitable(taking):
            await taking
    except _cancelled() as error:
        blame_part(_at_sink(graph, result), error)


def blame_part(place: str, error: CancelledError) -> NoReturn:
    """Raise a ``CancelledError`` that has come out of a part at ``place`` where somebody cancelled this task.

    Else the part itself raised it, and it is an error of the part, with the place.
    """
    if cancelling():
        raise error
    raise wrapped(place, error) from error


def cancelling() -> bool:
    """Return whether somebody has cancelled this task, so that a ``CancelledError`` is no error of its work."""
    from asyncio import current_task

    return (task := current_task()) is not None and task.cancelling() > 0


def _at_sink(graph: str, result: Result) -> str:
    return f"graph {graph!r}, sink {result.sink!r}, {_in_words(result.message)}"


def wrapped(place: str, error: BaseException) -> OperatorError:
    """Return the error to raise for one that is none of ours; give it as the cause."""
    return OperatorError(f"{place}: {type(error).__name__}: {error}")


def first_of(error: BaseException) -> BaseException:
    """Return the first error of a group of groups, or the error that is no group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _in_words(message: Message | Signal) -> str:
    match message:
        case Page():
            return f"page of {_number(len(message), 'row')}{_times(message)}"
        case Signal.END:
            return "the end of its input"
        case Signal():
            return "a tick of the clock"
        case GroupWise():
            return f"punctuation for {_number(len(message), 'group')} of {', '.join(message.attributes)}"
    return f"punctuation {message}"


def _times(page: Page) -> str:
    if not len(page):
        return ""
    try:
        times = page.times
    except ContractError:  # a time beyond int64: that may be what the error is about
        return ""
    return f", {page.schema.progressing} {times.min()} to {times.max()} {page.schema.unit}"


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
