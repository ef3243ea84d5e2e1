"""CPU times of operators by themselves, side by side.

The least of some turns, and of more turns while it falls: other work on the machine only makes a turn longer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from oop_engine import NEVER
from oop_engine.core.operator import Operator
from oop_engine.extend import Message
from oop_engine.runners.dispatch import handle
from oop_engine.system import stopwatch

__all__ = ["TURNS", "cpu_s", "given_all", "least_cpu_s"]

TURNS = 3
"""How many turns each is run at least, if not asked otherwise."""
_MORE, _FALLS = 6, 0.98
"""So many times more turns at most, while one makes a time fall below this part of the least before."""


def cpu_s(
    operators: Mapping[str, Callable[[], Sequence[Operator]]], messages: Sequence[Message], turns: int = TURNS
) -> dict[str, float]:
    """Return the CPU seconds that opened operators of one input take over ``messages`` and the end of the stream.

    By name: the operators made for a turn each see all messages.  Turns go round by name, as in ``least_cpu_s``.
    """

    def given(made: Callable[[], Sequence[Operator]]) -> Callable[[], object]:
        return partial(given_all, made(), messages)

    return _least({name: partial(given, made) for name, made in operators.items()}, turns)


def least_cpu_s(functions: Mapping[str, Callable[[], object]], turns: int = TURNS) -> dict[str, float]:
    """Return the CPU seconds that functions take, by name.

    Turns go round by name, and the least counts.  They end when ``turns`` of them, less one, have made no time fall by
    a fiftieth; a quiet machine takes ``turns``, a busy one up to six times as many.
    """

    def same(function: Callable[[], object]) -> Callable[[], object]:
        return function

    return _least({name: partial(same, function) for name, function in functions.items()}, turns)


def _least(made: Mapping[str, Callable[[], Callable[[], object]]], turns: int) -> dict[str, float]:
    """Return the least seconds of functions that are made for each turn; making them does not count."""
    best = dict.fromkeys(made, float("inf"))
    idle = turn = 0
    while turn < turns or (idle < turns - 1 and turn < _MORE * turns):
        before = dict(best)
        for name, make in made.items():
            best[name] = min(best[name], _spent(make()))
        idle = idle + 1 if all(best[name] >= _FALLS * before[name] for name in made) else 0
        turn += 1
    return best


def _spent(function: Callable[[], object]) -> float:
    start = stopwatch.cpu()
    function()
    return stopwatch.cpu() - start


def given_all(operators: Sequence[Operator], messages: Sequence[Message]) -> None:
    """Give all messages and the end of the stream to each of some opened operators of one input."""
    for operator in operators:
        _one(operator, messages)


def _one(operator: Operator, messages: Sequence[Message]) -> None:
    for message in messages:
        deque(handle(operator, 0, message, NEVER), maxlen=0)  # results are made, and not kept
    deque(operator.on_end(0), maxlen=0)
