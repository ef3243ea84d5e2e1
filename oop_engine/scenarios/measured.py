"""CPU times of operators by themselves, side by side.

The best of some turns, so that other work of the machine does not count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from oop_engine import NEVER, Message
from oop_engine.core.operator import Operator
from oop_engine.runners.dispatch import handle
from oop_engine.system import stopwatch

__all__ = ["TURNS", "cpu_s", "given_all", "least_cpu_s"]

TURNS = 3
"""How often each is run, if not asked otherwise."""


def cpu_s(
    operators: Mapping[str, Callable[[], Sequence[Operator]]], messages: Sequence[Message], turns: int = TURNS
) -> dict[str, float]:
    """Return the CPU seconds that opened operators of one input take over ``messages`` and the end of the stream.

    By name: the operators made for a turn each see all messages.  Turns go round by name, and the best one counts.
    """
    best = dict.fromkeys(operators, float("inf"))
    for _ in range(turns):
        for name, made in operators.items():
            opened = made()
            best[name] = min(best[name], _spent(partial(given_all, opened, messages)))
    return best


def least_cpu_s(functions: Mapping[str, Callable[[], object]], turns: int = TURNS) -> dict[str, float]:
    """Return the CPU seconds that functions take, by name.  Turns go round by name, and the best one counts."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(turns):
        for name, function in functions.items():
            best[name] = min(best[name], _spent(function))
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
